//! Numbers that a process and its children count together.

use std::sync::atomic::Ordering;

use crate::{SysError, memory::map::Words};

/// How many numbers there are.
const NUMBERS: usize = 512;

/// A page of numbers, shared with children that are forked later.
#[derive(Debug)]
pub struct Tally(Words);

impl Tally {
    /// All 0.
    ///
    /// # Errors
    /// When memory is short.
    pub fn new() -> Result<Self, SysError> {
        Words::shared(NUMBERS).map(Self)
    }

    /// Adds to the number of this index, and returns what it was.
    pub fn add(&self, index: usize, more: u64) -> u64 {
        self.0.get()[index].fetch_add(more, Ordering::Relaxed)
    }

    /// The number of this index.
    pub fn get(&self, index: usize) -> u64 {
        self.0.get()[index].load(Ordering::Relaxed)
    }
}
