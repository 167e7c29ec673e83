//! Trace files: opened, sniffed and streamed; created and compressed.
//!
//! The one idea: a file is a stream of pieces. Whatever its compression, [`TraceFile::pieces`]
//! hands out decompressed bytes with what was left of the piece before in front, and
//! [`TraceFile::stream`] puts the decoder behind it. Memory is bounded whatever the file says: no
//! window above [`WINDOW_BYTES_MAX`] is accepted. Every error names the file.
//!
//! Files are read, never mapped: one that somebody shortens would end the process (`SIGBUS`).

mod compression;
mod encode;
mod error;
mod output;
mod span;
#[cfg(feature = "zst")]
mod zst;

use std::{
    fmt,
    fs::File,
    io::{self, BufReader, Cursor, Read, Seek},
    path::{Path, PathBuf},
};

pub use self::{
    compression::{Compression, WINDOW_BYTES_MAX},
    encode::{Encoder, Writer},
    error::{FileError, StreamError},
    output::{Output, create},
    span::{Span, SpanError, Start, span},
};
use crate::{
    decode,
    op::Visit,
    raw::{self, HEAD_BYTES, Halt},
};

/// Bytes that are handed out at once, and a little more.
const PIECE_BYTES: usize = 1 << 20;
/// Bytes that are read from a file at once.
const READ_BYTES: usize = 1 << 18;

/// What was streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streamed {
    /// Bytes of complete records.
    pub bytes: u64,
    /// Bytes behind them that are too few for a record: something to warn about.
    pub trailing: usize,
}

/// An open trace, at its start.
pub struct TraceFile {
    path: PathBuf,
    compression: Compression,
    is_regular: bool,
    /// The first piece, which was looked at.
    start: Vec<u8>,
    inner: Inner,
}

/// Where the bytes behind the first piece come from.
enum Inner {
    Plain(File),
    Packed(Box<dyn Read + Send>),
}

impl fmt::Debug for TraceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Opens a trace: raw, or in a gz, xz or zst file, which its first bytes tell.
///
/// # Errors
/// When it cannot be opened or read, is empty, or does not start with a record.
pub fn open(path: &Path) -> Result<TraceFile, FileError> {
    let failed = FileError::io("open", path);
    let mut file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
    }
    let reading = FileError::io("read", path);
    let magic = read_up_to(&mut file, compression::MAGIC_BYTES).map_err(reading)?;
    let compression = Compression::of_magic(&magic);
    let (start, inner) = if compression == Compression::None {
        let mut start = magic;
        let more = read_up_to(&mut file, HEAD_BYTES - start.len()).map_err(reading)?;
        start.extend(more);
        (start, Inner::Plain(file))
    } else {
        let whole = BufReader::with_capacity(READ_BYTES, Cursor::new(magic).chain(file));
        let mut reader = compression.reader(whole).map_err(reading)?;
        let start = read_up_to(&mut reader, HEAD_BYTES).map_err(reading)?;
        (start, Inner::Packed(reader))
    };
    judge_start(path, compression, &start)?;
    Ok(TraceFile {
        path: path.to_owned(),
        compression,
        is_regular: metadata.is_file(),
        start,
        inner,
    })
}

/// Whether these bytes may be the start of a trace.
fn judge_start(path: &Path, compression: Compression, start: &[u8]) -> Result<(), FileError> {
    let path = path.to_owned();
    if start.is_empty() {
        return Err(FileError::Empty { path, compression });
    }
    let plausible = start.len() >= HEAD_BYTES && raw::decode_one(start, 0).is_ok();
    if plausible {
        return Ok(());
    }
    Err(FileError::NotATrace { path, compression, start: start.to_vec() })
}

/// As many bytes as there are, and at most so many.
fn read_up_to(reader: &mut impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(most);
    reader.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl TraceFile {
    /// How it is compressed, by its first bytes.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// The file itself, at its start, where it is an uncompressed regular file.
    ///
    /// # Errors
    /// Gives the trace back where it is something else, or cannot be rewound.
    pub fn into_plain(mut self) -> Result<File, Box<Self>> {
        let rewound = match &mut self.inner {
            Inner::Plain(file) if self.is_regular => file.rewind().is_ok(),
            _ => false,
        };
        match self.inner {
            Inner::Plain(file) if rewound => Ok(file),
            inner => Err(Box::new(Self { inner, ..self })),
        }
    }

    /// The decompressed bytes, from the start.
    pub fn into_reader(self) -> Box<dyn Read + Send> {
        let start = Cursor::new(self.start);
        match self.inner {
            Inner::Plain(file) => Box::new(start.chain(file)),
            Inner::Packed(reader) => Box::new(start.chain(reader)),
        }
    }

    /// Hands out the decompressed bytes piece by piece: `take` gets each with its offset, and
    /// returns how many it used; the rest comes again, with more behind it.
    ///
    /// Returns when the file ends; what `take` never used is [`Streamed::trailing`].
    ///
    /// # Errors
    /// When the file cannot be read, `take` fails, or the last record is cut off inside a value.
    pub fn pieces<S: fmt::Display>(
        self,
        mut take: impl FnMut(&[u8], u64) -> Result<usize, S>,
    ) -> Result<Streamed, StreamError<S>> {
        let path = self.path.clone();
        let mut reader = self.into_reader();
        let mut buffer = vec![0; PIECE_BYTES];
        let (mut kept, mut offset) = (0, 0);
        loop {
            let read = match reader.read(&mut buffer[kept..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(FileError::io("read", &path)(error).into()),
                Ok(0) => break,
                Ok(read) => read,
            };
            let piece = &buffer[..kept + read];
            let used = match take(piece, offset) {
                Ok(used) => used.min(piece.len()),
                Err(stop) => return Err(StreamError::Taker { path, stop }),
            };
            kept = piece.len() - used;
            buffer.copy_within(used..used + kept, 0);
            offset += used as u64;
            if kept == buffer.len() {
                // Nothing fits behind what is left over: it cannot be the start of a record.
                break;
            }
        }
        match raw::finish(&buffer[..kept], offset) {
            Ok(trailing) => Ok(Streamed { bytes: offset, trailing }),
            Err(error) => Err(StreamError::Record { path, error }),
        }
    }

    /// Hands every operation to a visitor. `progress` is told the bytes of records so far.
    ///
    /// # Errors
    /// When the file cannot be read, a record makes no sense, or the visitor stops.
    pub fn stream<V: Visit>(
        self,
        visitor: &mut V,
        mut progress: impl FnMut(u64),
    ) -> Result<Streamed, StreamError<V::Stop>>
    where
        V::Stop: fmt::Display,
    {
        let path = self.path.clone();
        let done = self.pieces(|bytes, offset| {
            let used = decode::visit(bytes, offset, visitor)?;
            progress(offset + used as u64);
            Ok(used)
        });
        done.map_err(|error: StreamError<Halt<V::Stop>>| match error {
            StreamError::File(error) => StreamError::File(error),
            StreamError::Record { path, error }
            | StreamError::Taker { path, stop: Halt::Record(error) } => {
                StreamError::Record { path, error }
            }
            StreamError::Taker { stop: Halt::Visitor { stop, .. }, .. } => {
                StreamError::Taker { path, stop }
            }
        })
    }
}
