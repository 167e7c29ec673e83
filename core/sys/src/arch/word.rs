#![expect(unsafe_code, reason = "whoever makes one answers for an address")]
//! A word of memory under test, as the single instructions of this room take it.
//!
//! The one idea: the address is proved where it is made, by whoever owns the memory, and lives no
//! longer than the owner is borrowed. So a loop that gets one needs no pointer and no promise.

use std::marker::PhantomData;

/// An aligned word that is mapped and writable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Word<'memory>(*mut u64, PhantomData<&'memory ()>);

// SAFETY: only an address; what is behind it is reached by single instructions, never by reference.
unsafe impl Send for Word<'_> {}
// SAFETY: as above.
unsafe impl Sync for Word<'_> {}

impl Word<'_> {
    /// The word at an address.
    ///
    /// # Safety
    /// It is a multiple of 8, mapped and writable for as long as the value lives.
    #[inline(always)]
    pub(crate) unsafe fn new(at: *mut u64) -> Self {
        Self(at, PhantomData)
    }

    /// Its address.
    #[inline(always)]
    pub(crate) fn ptr(self) -> *mut u64 {
        self.0
    }
}
