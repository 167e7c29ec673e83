//! Creating trace files.

use std::{
    fmt,
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use flate2::{Compression as Level, write::GzEncoder};
use lzma_rust2::{XzOptions, XzWriter};

use super::{Compression, FileError, zst::FrameWriter};

/// How hard xz tries: levels above give little for traces, and take several times as long.
const XZ_PRESET: u32 = 1;
/// How hard gz tries.
const GZ_LEVEL: Level = Level::new(4);
/// Bytes that are written at once.
const WRITE_BYTES: usize = 1 << 18;

/// A file that is being written; [`Output::finish`] ends it.
pub struct Output {
    path: PathBuf,
    inner: Inner,
}

enum Inner {
    Plain(BufWriter<File>),
    Gz(GzEncoder<BufWriter<File>>),
    Xz(Box<XzWriter<BufWriter<File>>>),
    Zst(FrameWriter<BufWriter<File>>),
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Starts to write a trace into a file that was just opened; its name says how it is compressed
/// ([`Compression::of_path`]).
///
/// Whoever has a long way to what is written opens the file first: a name that cannot be created
/// should not cost a run.
///
/// # Errors
/// When the start of it cannot be written.
pub fn create(file: File, path: &Path) -> Result<Output, FileError> {
    let file = BufWriter::with_capacity(WRITE_BYTES, file);
    let inner = match Compression::of_path(path) {
        Compression::None => Inner::Plain(file),
        Compression::Gz => Inner::Gz(GzEncoder::new(file, GZ_LEVEL)),
        Compression::Xz => {
            let writer = XzWriter::new(file, XzOptions::with_preset(XZ_PRESET));
            let failed = |source| FileError::Write { path: path.to_owned(), source };
            Inner::Xz(Box::new(writer.map_err(failed)?))
        }
        Compression::Zst => Inner::Zst(FrameWriter::new(file)),
    };
    Ok(Output { path: path.to_owned(), inner })
}

impl Output {
    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says which file could not be written.
    pub fn failed(&self, source: io::Error) -> FileError {
        FileError::Write { path: self.path.clone(), source }
    }

    /// Writes what is left, the ends that compressions need, and closes the file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(self) -> Result<(), FileError> {
        let Self { path, inner } = self;
        let packed = match inner {
            Inner::Plain(file) => Ok(file),
            Inner::Gz(encoder) => encoder.finish(),
            Inner::Xz(writer) => writer.finish(),
            Inner::Zst(writer) => writer.finish(),
        };
        let done = packed.and_then(|mut file| file.flush());
        done.map_err(|source| FileError::Write { path, source })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.inner {
            Inner::Plain(file) => file.write(bytes),
            Inner::Gz(encoder) => encoder.write(bytes),
            Inner::Xz(writer) => writer.write(bytes),
            Inner::Zst(writer) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.inner {
            Inner::Plain(file) => file.flush(),
            Inner::Gz(encoder) => encoder.flush(),
            Inner::Xz(writer) => writer.flush(),
            Inner::Zst(writer) => writer.flush(),
        }
    }
}
