//! The raw format of fast-mem, byte for byte, and its bounds-checked decoder.
//!
//! A file is records and nothing else: no header, no magic, no values of loads. Little-endian:
//!
//! | field | bytes | value |
//! |---|---|---|
//! | op | 1 | 1 store, 2 load |
//! | width | 1 | 1, 2, 4 or 8 |
//! | address | 8 | |
//! | value | width | of stores only |
//!
//! This decoder is the safe twin of [`crate::decode`]: slices, no unsafe code, the same results.

use thiserror::Error;

use crate::op::{Op, Visit, Width, wide};

/// The first byte of a store.
pub const STORE: u8 = 1;
/// The first byte of a load.
pub const LOAD: u8 = 2;
/// Bytes of a load, and of a store without its value.
pub const HEAD_BYTES: usize = 10;
/// Bytes of the longest record.
pub const RECORD_BYTES_MAX: usize = 18;

/// What is wrong with a record; offsets count from the start of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The first byte is neither 1 nor 2.
    #[error("at byte {offset}: operation {op} is neither 1 (store) nor 2 (load)")]
    Op {
        /// Where the record starts.
        offset: u64,
        /// The byte.
        op: u8,
    },
    /// The second byte is no width.
    #[error("at byte {offset}: width {width} is none of 1, 2, 4, 8")]
    Width {
        /// Where the record starts.
        offset: u64,
        /// The byte.
        width: u8,
    },
    /// The trace ends inside the value of a store.
    #[error("at byte {offset}: the trace ends inside the value of a store of {width} bytes")]
    Truncated {
        /// Where the record starts.
        offset: u64,
        /// The width of the store.
        width: u8,
    },
}

/// Why a decoder stopped before the end of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Halt<S> {
    /// A record makes no sense.
    #[error("{0}")]
    Record(#[from] RecordError),
    /// The visitor had enough, at the record that starts at `offset`.
    #[error("at byte {offset}: {stop}")]
    Visitor {
        /// Where the record starts.
        offset: u64,
        /// What the visitor said.
        stop: S,
    },
}

/// Appends the record of an operation.
pub fn encode(op: Op, to: &mut Vec<u8>) {
    use crate::op::Access;
    let code = if matches!(op.access, Access::Load) { LOAD } else { STORE };
    let width = op.width.bytes();
    to.extend([code, 1 << op.width as u8]);
    to.extend(op.addr.to_le_bytes());
    if let Access::Store(value) = op.access {
        to.extend(&value.to_le_bytes()[..width]);
    }
}

/// The first record of `bytes` and its length; `None` when it is not all there.
///
/// # Errors
/// When the bytes are no record; `offset` is where they stand in the trace.
#[inline] // into loops that are measured: without LTO it would be a call there
pub fn decode_one(bytes: &[u8], offset: u64) -> Result<Option<(Op, usize)>, RecordError> {
    let Some([op, width, addr @ ..]) = bytes.first_chunk::<HEAD_BYTES>().copied() else {
        return Ok(None);
    };
    if op != LOAD && op != STORE {
        return Err(RecordError::Op { offset, op });
    }
    let Some(kind) = Width::of(usize::from(width)) else {
        return Err(RecordError::Width { offset, width });
    };
    let addr = u64::from_le_bytes(addr);
    if op == LOAD {
        return Ok(Some((Op::load(addr, kind), HEAD_BYTES)));
    }
    let value = match kind {
        Width::W1 => value::<1>(bytes).map(wide),
        Width::W2 => value::<2>(bytes).map(wide),
        Width::W4 => value::<4>(bytes).map(wide),
        Width::W8 => value::<8>(bytes).map(wide),
    };
    Ok(value.map(|value| (Op::store(addr, kind, value), HEAD_BYTES + kind.bytes())))
}

/// The value of the store that `bytes` starts with; `None` when it is not all there.
#[inline]
fn value<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.get(HEAD_BYTES..)?.first_chunk().copied()
}

/// Hands every complete record of `bytes` to `visitor`; returns the bytes that they take.
///
/// `offset` is where `bytes` starts in the trace. What is left over is the start of a record that
/// continues in the next piece: [`finish`] judges it at the end of the trace.
///
/// # Errors
/// At the first record that makes no sense, and when the visitor stops.
pub fn visit<V: Visit>(bytes: &[u8], offset: u64, visitor: &mut V) -> Result<usize, Halt<V::Stop>> {
    let mut at = 0;
    while let Some([op, width, addr @ ..]) = bytes[at..].first_chunk::<HEAD_BYTES>().copied() {
        let (rest, addr) = (&bytes[at..], u64::from_le_bytes(addr));
        // One match for what `decode_one` does in two, so that replays can be measured with it.
        let passed = match (op, width) {
            (LOAD, 1) => visitor.load::<1>(addr),
            (LOAD, 2) => visitor.load::<2>(addr),
            (LOAD, 4) => visitor.load::<4>(addr),
            (LOAD, 8) => visitor.load::<8>(addr),
            (STORE, 1) => store::<1, V>(rest, addr, visitor),
            (STORE, 2) => store::<2, V>(rest, addr, visitor),
            (STORE, 4) => store::<4, V>(rest, addr, visitor),
            (STORE, 8) => store::<8, V>(rest, addr, visitor),
            _ => break,
        };
        let value_bytes = if op == STORE { usize::from(width) } else { 0 };
        if rest.len() < HEAD_BYTES + value_bytes {
            break;
        }
        passed.map_err(|stop| Halt::Visitor { offset: offset + at as u64, stop })?;
        at += HEAD_BYTES + value_bytes;
    }
    // Either the bytes end here, or this says what is wrong with them.
    decode_one(&bytes[at..], offset + at as u64)?;
    Ok(at)
}

/// Hands a store over if its value is all there.
#[inline(always)]
fn store<const N: usize, V: Visit>(rest: &[u8], addr: u64, visitor: &mut V) -> Result<(), V::Stop> {
    value::<N>(rest).map_or(Ok(()), |value| visitor.store(addr, value))
}

/// Judges what is left after the last complete record: how many bytes trail, to warn about.
///
/// # Errors
/// When they are a store whose value is cut off.
pub fn finish(rest: &[u8], offset: u64) -> Result<usize, RecordError> {
    if rest.len() < HEAD_BYTES {
        return Ok(rest.len());
    }
    Err(RecordError::Truncated { offset, width: rest[1] })
}
