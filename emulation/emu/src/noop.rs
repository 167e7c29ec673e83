//! A memory that forgets: the cost of decoding a trace, and of nothing else.
//!
//! The one idea: it uses all that the decoder made, because what nobody uses the compiler need
//! not make. It obeys no policy; what it returns is no memory's content.

use crate::{Fault, Memory, memory::PAGE_BYTES};

/// Loads return their own address; stores are added up.
#[derive(Debug, Clone, Copy, Default)]
pub struct Noop {
    stored: u64,
}

impl Memory for Noop {
    #[inline(always)]
    fn load<const N: usize>(&mut self, addr: u64) -> Result<[u8; N], Fault> {
        const { assert!(N <= PAGE_BYTES) };
        Ok(resized(addr.to_le_bytes()))
    }

    #[inline(always)]
    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Fault> {
        let value = u64::from_le_bytes(resized(value));
        self.stored = self.stored.wrapping_add(addr).wrapping_add(value);
        Ok(())
    }
}

/// The first bytes, and zeros where there are too few.
#[inline(always)]
pub(crate) fn resized<const FROM: usize, const TO: usize>(from: [u8; FROM]) -> [u8; TO] {
    let mut to = [0; TO];
    let known = FROM.min(TO);
    to[..known].copy_from_slice(&from[..known]);
    to
}
