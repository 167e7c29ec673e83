//! A part of a trace, by bytes: for whoever cuts one into shards.
//!
//! The one idea: records have no marks between them, so where one begins near a byte can only be
//! guessed, by what decodes. A guess is proven by the part before, which ends where a record does:
//! whoever puts parts together compares, and reads a part again whose guess was wrong.

use std::{
    fmt,
    fs::File,
    io::{self, ErrorKind, Read, Seek, SeekFrom},
    path::Path,
};

use thiserror::Error;

use super::{FileError, StreamError, open};
use crate::{
    decode,
    op::Visit,
    raw::{self, Halt, RECORD_BYTES_MAX},
};

/// Bytes that are read at once, and that a guess is tried on.
const PIECE_BYTES: usize = 1 << 18;

/// What was read of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Where its first record begins.
    pub from: u64,
    /// Where the record after its last one begins.
    pub to: u64,
    /// Bytes behind the last record of the trace, where this is its end.
    pub trailing: u64,
}

/// Where a part begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At a record that begins at this byte.
    At(u64),
    /// At the first record that seems to begin at this byte or after it.
    Near(u64),
}

/// Why there is no such part.
#[derive(Debug, Error)]
pub enum SpanError {
    /// The file, or a record.
    #[error("{0}")]
    Stream(StreamError<String>),
    /// It is compressed, or no regular file: nobody can begin in its middle.
    #[error("{0} is compressed or no regular file: unpack it to cut it into parts")]
    Packed(String),
    /// Nothing decodes near this byte.
    #[error("at byte {0}: nothing near it is a record")]
    Nowhere(u64),
}

/// Hands the operations that begin in a range of bytes to a visitor, which never stops.
///
/// # Errors
/// When the file cannot be read in parts, or a record makes no sense.
pub fn span<V: Visit>(
    path: &Path,
    start: Start,
    end: u64,
    visitor: &mut V,
) -> Result<Span, SpanError>
where
    V::Stop: fmt::Display,
{
    let opened = open(path).map_err(|error| SpanError::Stream(StreamError::File(error)))?;
    let packed = |_| SpanError::Packed(path.display().to_string());
    let mut file = opened.into_plain().map_err(packed)?;
    let unreadable = |error| SpanError::Stream(FileError::io("read", path)(error).into());
    let from = match start {
        Start::At(from) => from,
        Start::Near(0) => 0,
        Start::Near(near) => {
            let bytes = bytes_at(&mut file, near, PIECE_BYTES).map_err(unreadable)?;
            near + guess(&bytes).ok_or(SpanError::Nowhere(near))?
        }
    };
    file.seek(SeekFrom::Start(from)).map_err(unreadable)?;
    let damaged = |error| SpanError::Stream(StreamError::Record { path: path.to_owned(), error });
    let mut buffer = vec![0; PIECE_BYTES];
    let (mut kept, mut at) = (0, from);
    while at < end {
        // Up to the end, and then no more than a record that begins before it.
        let room = end - at;
        let most = usize::try_from(room.saturating_add(RECORD_BYTES_MAX as u64 - 1));
        let most = most.unwrap_or(usize::MAX).clamp(kept + 1, buffer.len());
        let read = match file.read(&mut buffer[kept..most]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other.map_err(unreadable)?,
        };
        kept += read;
        let inside = usize::try_from(room).unwrap_or(usize::MAX).min(kept);
        let used = take(&buffer[..kept], inside, at, visitor).map_err(|halt| match halt {
            Halt::Record(error) => damaged(error),
            Halt::Visitor { stop, .. } => SpanError::Stream(StreamError::Taker {
                path: path.to_owned(),
                stop: stop.to_string(),
            }),
        })?;
        buffer.copy_within(used..kept, 0);
        kept -= used;
        at += used as u64;
        if read == 0 {
            let trailing = raw::finish(&buffer[..kept], at).map_err(damaged)?;
            return Ok(Span { from, to: at, trailing: trailing as u64 });
        }
    }
    Ok(Span { from, to: at, trailing: 0 })
}

/// Hands over the records that begin in the first `inside` bytes; returns the bytes that they take.
fn take<V: Visit>(
    bytes: &[u8],
    inside: usize,
    at: u64,
    visitor: &mut V,
) -> Result<usize, Halt<V::Stop>> {
    let mut used = decode::visit(&bytes[..inside], at, visitor)?;
    if used < inside {
        // One begins inside and ends outside.
        if let Some((op, length)) = raw::decode_one(&bytes[used..], at + used as u64)? {
            let offset = at + used as u64;
            op.visit(visitor).map_err(|stop| Halt::Visitor { offset, stop })?;
            used += length;
        }
    }
    Ok(used)
}

/// How far from the start of these bytes a record seems to begin: where all that follows decodes.
fn guess(bytes: &[u8]) -> Option<u64> {
    let decodes = |skip: &usize| {
        let mut rest = bytes.get(*skip..).unwrap_or_default();
        loop {
            match raw::decode_one(rest, 0) {
                Ok(Some((_, length))) => rest = &rest[length..],
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    };
    (0..RECORD_BYTES_MAX).find(decodes).map(|skip| skip as u64)
}

fn bytes_at(file: &mut File, at: u64, most: usize) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(at))?;
    super::read_up_to(file, most)
}
