//! What a store or read test is, and what comes of it. No code of a loop is here.

use super::{Loads, Plot, Stores, Width};

/// The word of a page that serves as the fence, as in the original: the last.
pub const FENCE_WORD: u64 = 511;

/// Whose loop runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Ours.
    Pagelab,
    /// The C twin's, with its own clock.
    C,
}

/// What ends a round of stores.
#[derive(Debug, Clone, Copy)]
pub enum Fence<'plot> {
    /// Nothing: the stores may be under way.
    None,
    /// `sfence`.
    Sfence,
    /// `mfence`.
    Mfence,
    /// A store of the round's number to a word of uncached memory.
    UcStore(FenceWord<'plot>),
    /// The same, and the word loaded back.
    UcStoreLoad(FenceWord<'plot>),
}

/// Where the uncached word of a fence is.
#[derive(Debug, Clone, Copy)]
pub enum FenceWord<'plot> {
    /// Word 511 of a plot of its own.
    Own(&'plot Plot),
    /// Word 511 of the plot that is measured, which the loop then skips.
    Overlap,
}

/// When the words are compared with what was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    /// After each round, outside the clock.
    EachRound,
    /// After the last round, outside the clock.
    Last,
    /// Not at all: the caller does.
    Never,
    /// Each round, word by word and inside the test's time, by these loads.
    ReadBack(Loads, Width),
}

/// One store test.
#[derive(Debug, Clone, Copy)]
pub struct StoreSpec<'plot> {
    /// Whose loop.
    pub engine: Engine,
    /// How it stores.
    pub stores: Stores,
    /// How wide.
    pub width: Width,
    /// What ends a round.
    pub fence: Fence<'plot>,
    /// A word that is neither stored nor compared.
    pub skip: Option<u64>,
    /// When it is verified.
    pub verify: Verify,
}

/// One round of stores, over all workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreRound {
    /// Until the last store was issued.
    pub issue_ns: u64,
    /// Until the test's own end.
    pub test_ns: u64,
    /// Until every store had arrived.
    pub completion_ns: u64,
    /// Words that were wrong; `None` where this round was not verified.
    pub wrong_words: Option<u64>,
    /// Page faults between the first stamp and the last.
    pub faults: u64,
}

/// What came of a store test.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreRun {
    /// Each round.
    pub rounds: Vec<StoreRound>,
    /// Words stored in each round.
    pub words: u64,
}

impl StoreRun {
    /// Wrong words of all verified rounds.
    pub fn wrong_words(&self) -> u64 {
        self.rounds.iter().filter_map(|round| round.wrong_words).sum()
    }

    /// Rounds that were verified.
    pub fn verified(&self) -> u64 {
        self.rounds.iter().filter(|round| round.wrong_words.is_some()).count() as u64
    }

    /// Page faults of all rounds.
    pub fn faults(&self) -> u64 {
        self.rounds.iter().map(|round| round.faults).sum()
    }
}

/// One read test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadSpec {
    /// Whose loop.
    pub engine: Engine,
    /// How it loads.
    pub loads: Loads,
    /// How wide.
    pub width: Width,
}

/// What came of a read test.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadRun {
    /// Nanoseconds of each round, over all workers.
    pub ns: Vec<u64>,
    /// The wrapping sum of the words of all rounds.
    pub sum: u64,
    /// Page faults of all rounds.
    pub faults: u64,
}
