//! What was counted by the processes of a run, read back by the command that started it.

use super::{
    Backed, Counted, Reason,
    names::{NAME_WORDS, names},
};

/// Words of the counts.
pub const WORDS: usize = Counted::ALL.len() + 2 * Reason::ALL.len() + Backed::ALL.len();
/// Words of the counts and, behind them, of the table of names.
pub const ALL_WORDS: usize = WORDS + NAME_WORDS;

/// The counts of a run, and the names of its programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts([u64; ALL_WORDS]);

impl Counts {
    /// The counts at the beginning of a file; what is missing is 0.
    pub fn of(file: &[u8]) -> Self {
        let mut words = [0; ALL_WORDS];
        for (count, word) in words.iter_mut().zip(file.as_chunks().0) {
            *count = u64::from_ne_bytes(*word);
        }
        Self(words)
    }

    /// One of them.
    pub const fn get(&self, counted: Counted) -> u64 {
        self.0[counted as usize]
    }

    /// One of those of the memory behind segments.
    pub const fn backed(&self, backed: Backed) -> u64 {
        self.0[backed.place()]
    }

    /// Calls that went to the kernel, and their bytes.
    pub const fn fallback(&self, reason: Reason) -> (u64, u64) {
        (self.0[reason.place()], self.0[reason.place() + 1])
    }

    /// The names of the programs that began with segments, and how often each did, in the order in
    /// which they came; of very many the first.
    pub fn names(&self) -> Vec<(String, u64)> {
        names(&self.0[WORDS..])
    }
}
