//! What was counted by the processes of a run, read back by the command that started it.

use super::{
    Backed, Counted, Reason,
    names::{NAME_WORDS, names},
};

/// Words of the counts.
pub const WORDS: usize = Counted::ALL.len() + 2 * Reason::ALL.len() + Backed::ALL.len();
/// Words of the counts and, behind them, of the table of names.
pub const ALL_WORDS: usize = WORDS + NAME_WORDS;

/// What is counted, and where: a reason has its calls there, and its bytes right behind.
pub trait Counter {
    /// The word that counts it.
    fn place(self) -> usize;
}

impl Counter for Counted {
    fn place(self) -> usize {
        self as usize
    }
}

impl Counter for Reason {
    fn place(self) -> usize {
        Counted::ALL.len() + 2 * self as usize
    }
}

impl Counter for Backed {
    fn place(self) -> usize {
        Counted::ALL.len() + 2 * Reason::ALL.len() + self as usize
    }
}

/// The counts of a run, and the names of its programs: the first words of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts(pub [u64; ALL_WORDS]);

impl Counts {
    /// One of them.
    pub fn get(&self, counted: impl Counter) -> u64 {
        self.0[counted.place()]
    }

    /// Calls that went to the kernel, and their bytes.
    pub fn fallback(&self, reason: Reason) -> (u64, u64) {
        (self.0[reason.place()], self.0[reason.place() + 1])
    }

    /// The names of the programs that began with segments, and how often each did, in the order in
    /// which they came; of very many the first.
    pub fn names(&self) -> Vec<(String, u64)> {
        names(&self.0[WORDS..])
    }
}
