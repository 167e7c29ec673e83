//! What can be wrong with a trace file, as sentences that name it.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::Compression;
use crate::raw::RecordError;

/// What is wrong with a file as a whole.
#[derive(Debug, Error)]
pub enum FileError {
    /// It cannot be opened, read to its end, decompressed or written.
    #[error("cannot {tried} {}: {source}", path.display())]
    Io {
        /// What was tried: `open`, `read` or `write`.
        tried: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It has no bytes, or decompresses to none.
    #[error("{} is empty{}: a trace has at least one record", path.display(), inside(*compression))]
    Empty {
        /// Which.
        path: PathBuf,
        /// How it is compressed.
        compression: Compression,
    },
    /// Its first bytes are no record.
    #[error(
        "{} is no trace{}: it starts with {}; expected operation 1 or 2 and width 1, 2, 4 or 8, \
         or a gz, xz or zst file of that",
        path.display(), inside(*compression), hexadecimal(start)
    )]
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
#[derive(Debug, Error)]
pub enum StreamError<S: fmt::Display> {
    /// The file itself.
    #[error("{0}")]
    File(#[from] FileError),
    /// A record makes no sense, or the last one is cut off.
    #[error("{}: {error}", path.display())]
    Record {
        /// Which file.
        path: PathBuf,
        /// What is wrong, and at which byte of the decompressed trace.
        error: RecordError,
    },
    /// Whoever takes the operations had enough.
    #[error("{}: {stop}", path.display())]
    Taker {
        /// Which file.
        path: PathBuf,
        /// What it said.
        stop: S,
    },
}
