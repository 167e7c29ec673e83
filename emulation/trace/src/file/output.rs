//! Creating trace files.

use std::{
    fmt,
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use super::{Compression, FileError};

/// Bytes that are written at once.
const WRITE_BYTES: usize = 1 << 18;

/// A file that is being written; [`Output::finish`] ends it.
pub struct Output {
    path: PathBuf,
    inner: Box<dyn Packer + Send>,
}

/// A file behind what compresses.
trait Packer: Write {
    /// Writes the end that the compression needs; what is left to write is the file's.
    fn end(self: Box<Self>) -> io::Result<BufWriter<File>>;
}

impl Packer for BufWriter<File> {
    fn end(self: Box<Self>) -> io::Result<BufWriter<File>> {
        Ok(*self)
    }
}

#[cfg(feature = "gz")]
impl Packer for flate2::write::GzEncoder<BufWriter<File>> {
    fn end(self: Box<Self>) -> io::Result<BufWriter<File>> {
        self.finish()
    }
}

#[cfg(feature = "xz")]
impl Packer for lzma_rust2::XzWriter<BufWriter<File>> {
    fn end(self: Box<Self>) -> io::Result<BufWriter<File>> {
        self.finish()
    }
}

#[cfg(feature = "zst")]
impl Packer for super::zst::FrameWriter<BufWriter<File>> {
    fn end(self: Box<Self>) -> io::Result<BufWriter<File>> {
        self.finish()
    }
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
/// When the start of it cannot be written, or this build has no such compression.
pub fn create(file: File, path: &Path) -> Result<Output, FileError> {
    let file = BufWriter::with_capacity(WRITE_BYTES, file);
    let failed = FileError::io("write", path);
    let inner = packer(Compression::of_path(path), file).map_err(failed)?;
    Ok(Output { path: path.to_owned(), inner })
}

/// Levels above give little for traces, and take several times as long.
fn packer(compression: Compression, file: BufWriter<File>) -> io::Result<Box<dyn Packer + Send>> {
    Ok(match compression {
        Compression::None => Box::new(file),
        #[cfg(feature = "gz")]
        Compression::Gz => {
            Box::new(flate2::write::GzEncoder::new(file, flate2::Compression::new(4)))
        }
        #[cfg(feature = "xz")]
        Compression::Xz => {
            Box::new(lzma_rust2::XzWriter::new(file, lzma_rust2::XzOptions::with_preset(1))?)
        }
        #[cfg(feature = "zst")]
        Compression::Zst => Box::new(super::zst::FrameWriter::new(file)),
        #[cfg(not(all(feature = "gz", feature = "xz", feature = "zst")))]
        missing => return Err(missing.unsupported()),
    })
}

impl Output {
    /// Says which file could not be written.
    pub fn failed(&self, source: io::Error) -> FileError {
        FileError::io("write", &self.path)(source)
    }

    /// Writes what is left, the ends that compressions need, and closes the file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(self) -> Result<(), FileError> {
        let Self { path, inner } = self;
        let done = inner.end().and_then(|mut file| file.flush());
        done.map_err(FileError::io("write", &path))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
