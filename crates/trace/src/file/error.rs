//! What can be wrong with a trace file, as sentences that name it.

use std::{
    error::Error,
    fmt, io,
    path::{Path, PathBuf},
};

use super::Compression;
use crate::raw::RecordError;

/// What is wrong with a file as a whole.
#[derive(Debug)]
pub enum FileError {
    /// It cannot be opened, read to its end, decompressed or written.
    Io {
        /// What was tried: `open`, `read` or `write`.
        tried: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It has no bytes, or decompresses to none.
    Empty {
        /// Which.
        path: PathBuf,
        /// How it is compressed.
        compression: Compression,
    },
    /// Its first bytes are no record.
    NotATrace {
        /// Which.
        path: PathBuf,
        /// How it is compressed.
        compression: Compression,
        /// Its first bytes, decompressed.
        start: Vec<u8>,
    },
}

impl FileError {
    /// The error of what was `tried` with a file: `open`, `read` or `write`.
    pub fn io(tried: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self::Io { tried, path: path.to_owned(), source }
    }
}

impl Error for FileError {}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { tried, path, source } => {
                write!(f, "cannot {tried} {}: {source}", path.display())
            }
            Self::Empty { path, compression } => {
                let (path, inside) = (path.display(), inside(*compression));
                write!(f, "{path} is empty{inside}: a trace has at least one record")
            }
            Self::NotATrace { path, compression, start } => {
                let (path, inside) = (path.display(), inside(*compression));
                let start = hexadecimal(start);
                let expected = "operation 1 or 2 and width 1, 2, 4 or 8, \
                                or a gz, xz or zst file of that";
                write!(f, "{path} is no trace{inside}: it starts with {start}; expected {expected}")
            }
        }
    }
}

fn inside(compression: Compression) -> String {
    match compression {
        Compression::None => String::new(),
        packed => format!(" inside its {packed}"),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join(" ")
}

/// Why a trace could not be streamed to its end.
#[derive(Debug)]
pub enum StreamError<S: fmt::Display> {
    /// The file itself.
    File(FileError),
    /// A record makes no sense, or the last one is cut off.
    Record {
        /// Which file.
        path: PathBuf,
        /// What is wrong, and at which byte of the decompressed trace.
        error: RecordError,
    },
    /// Whoever takes the operations had enough.
    Taker {
        /// Which file.
        path: PathBuf,
        /// What it said.
        stop: S,
    },
}

impl<S: fmt::Debug + fmt::Display> Error for StreamError<S> {}

impl<S: fmt::Display> fmt::Display for StreamError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Record { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Taker { path, stop } => write!(f, "{}: {stop}", path.display()),
        }
    }
}

impl<S: fmt::Display> From<FileError> for StreamError<S> {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}
