//! A memory that forgets: the cost of decoding a trace, and of nothing else.

use crate::{Fault, Memory, memory::PAGE_BYTES};

/// Loads return their own address, so that no decoder can be optimised away; stores do nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Noop;

impl Memory for Noop {
    #[inline(always)]
    fn load<const N: usize>(&mut self, addr: u64) -> Result<[u8; N], Fault> {
        const { assert!(N <= PAGE_BYTES) };
        let mut value = [0; N];
        let bytes = addr.to_le_bytes();
        let known = N.min(bytes.len());
        value[..known].copy_from_slice(&bytes[..known]);
        Ok(value)
    }

    #[inline(always)]
    fn store<const N: usize>(&mut self, _: u64, _: [u8; N]) -> Result<(), Fault> {
        Ok(())
    }
}
