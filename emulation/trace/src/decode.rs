//! The fast decoder of the raw format.
//!
//! The one idea: while a longest record fits into what is left, nothing needs a bounds check, and
//! operation and width are one 16-bit key. What does not fit, and what makes no sense, goes to
//! [`raw::visit`], so that there is one place that judges a record.
//!
//! # Rules
//! 1. Memory is read only where `at + RECORD_BYTES_MAX <= bytes.len()`: the loop's condition.
//! 2. Every read is unaligned and of plain integers: any bytes are a value.
#![expect(unsafe_code, reason = "unaligned reads without a bounds check, by the rules above")]

use crate::{
    op::Visit,
    raw::{self, HEAD_BYTES, Halt, LOAD, RECORD_BYTES_MAX, STORE},
};

/// Operation and width as the little-endian number that they are in a record.
const fn key(op: u8, width: u8) -> u16 {
    u16::from_le_bytes([op, width])
}

const LOAD_1: u16 = key(LOAD, 1);
const LOAD_2: u16 = key(LOAD, 2);
const LOAD_4: u16 = key(LOAD, 4);
const LOAD_8: u16 = key(LOAD, 8);
const STORE_1: u16 = key(STORE, 1);
const STORE_2: u16 = key(STORE, 2);
const STORE_4: u16 = key(STORE, 4);
const STORE_8: u16 = key(STORE, 8);

/// Hands every complete record of `bytes` to `visitor`; returns the bytes that they take.
///
/// The same as [`raw::visit`], operation for operation and error for error.
///
/// # Errors
/// At the first record that makes no sense, and when the visitor stops.
#[inline]
pub fn visit<V: Visit>(bytes: &[u8], offset: u64, visitor: &mut V) -> Result<usize, Halt<V::Stop>> {
    let mut record = Record(bytes.as_ptr());
    // Hands the operation over and goes on behind it.
    macro_rules! pass {
        ($operation:expr, $bytes:expr) => {{
            if let Err(stop) = $operation {
                return Err(stopped(bytes, offset, record, stop));
            }
            record = record.skip($bytes);
        }};
    }
    if let Some(last) = bytes.len().checked_sub(RECORD_BYTES_MAX) {
        // The last place where a longest record fits.
        let last = bytes.as_ptr().wrapping_add(last);
        while record.0 <= last {
            // Instruction fetches come in runs where instructions are halfwords: a loop of their
            // own, which no compiler folds into the table below.
            while record.key() == LOAD_2 {
                pass!(visitor.load::<2>(record.addr()), HEAD_BYTES);
                if record.0 > last {
                    break;
                }
            }
            if record.0 > last {
                break;
            }
            let addr = record.addr();
            match record.key() {
                LOAD_8 => pass!(visitor.load::<8>(addr), HEAD_BYTES),
                STORE_8 => pass!(visitor.store(addr, record.value::<8>()), HEAD_BYTES + 8),
                LOAD_1 => pass!(visitor.load::<1>(addr), HEAD_BYTES),
                STORE_1 => pass!(visitor.store(addr, record.value::<1>()), HEAD_BYTES + 1),
                LOAD_4 => pass!(visitor.load::<4>(addr), HEAD_BYTES),
                STORE_4 => pass!(visitor.store(addr, record.value::<4>()), HEAD_BYTES + 4),
                STORE_2 => pass!(visitor.store(addr, record.value::<2>()), HEAD_BYTES + 2),
                _ => break,
            }
        }
    }
    let done = record.offset_in(bytes);
    raw::visit(&bytes[done..], offset + done as u64, visitor).map(|rest| done + rest)
}

/// Out of line, so that the loop need not keep what only an error asks for.
#[cold]
#[inline(never)]
fn stopped<S>(bytes: &[u8], offset: u64, record: Record, stop: S) -> Halt<S> {
    Halt::Visitor { offset: offset + record.offset_in(bytes) as u64, stop }
}

/// The first byte of a record that is all there, however long it is.
#[derive(Clone, Copy)]
struct Record(*const u8);

impl Record {
    /// The record that starts so many bytes later.
    #[inline(always)]
    fn skip(self, bytes: usize) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// Where it starts in the slice that it is part of.
    fn offset_in(self, bytes: &[u8]) -> usize {
        self.0.addr() - bytes.as_ptr().addr()
    }

    #[inline(always)]
    fn key(self) -> u16 {
        // SAFETY: rules 1 and 2: the first two of eighteen bytes.
        u16::from_le(unsafe { self.0.cast::<u16>().read_unaligned() })
    }

    #[inline(always)]
    fn addr(self) -> u64 {
        let from = self.0.wrapping_add(2);
        // SAFETY: rules 1 and 2: bytes two to nine of eighteen.
        u64::from_le(unsafe { from.cast::<u64>().read_unaligned() })
    }

    #[inline(always)]
    fn value<const N: usize>(self) -> [u8; N] {
        const { assert!(HEAD_BYTES + N <= RECORD_BYTES_MAX) };
        let from = self.0.wrapping_add(HEAD_BYTES);
        // SAFETY: rules 1 and 2: at most the last eight of eighteen bytes.
        unsafe { from.cast::<[u8; N]>().read_unaligned() }
    }
}
