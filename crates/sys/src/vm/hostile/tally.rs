//! Numbers that a process and its children count together.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Errno, answer};

/// How many numbers there are.
const NUMBERS: usize = 512;

/// A page of numbers, shared with children that are forked later.
#[derive(Debug)]
pub struct Tally(*const [AtomicU64; NUMBERS]);

// SAFETY: the numbers are atomics in memory that lives as long as the value.
unsafe impl Sync for Tally {}

impl Tally {
    /// All 0.
    pub fn new() -> Result<Self, Errno> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh mapping at a place of the kernel's choice, full of zeroes.
        let page =
            unsafe { libc::mmap(std::ptr::null_mut(), NUMBERS * 8, protection, flags, -1, 0) };
        answer(page as i64)?;
        Ok(Self(page.cast_const().cast()))
    }

    /// Adds to the number of this index, and returns what it was.
    pub fn add(&self, index: usize, more: u64) -> u64 {
        self.numbers()[index].fetch_add(more, Ordering::Relaxed)
    }

    /// The number of this index.
    pub fn get(&self, index: usize) -> u64 {
        self.numbers()[index].load(Ordering::Relaxed)
    }

    fn numbers(&self) -> &[AtomicU64; NUMBERS] {
        // SAFETY: a page of them is mapped for as long as `self` lives; all access is atomic.
        unsafe { &*self.0 }
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and `self` was the only way to reach it here.
        unsafe { libc::munmap(self.0.cast_mut().cast(), NUMBERS * 8) };
    }
}
