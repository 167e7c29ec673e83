//! What a part of a trace leaves, so that the statistics of the whole can be put together.
//!
//! The one idea: what happens inside a part is counted there; what crosses into the next one hangs
//! on no more than the order in which pages were first and last used, and a page's first and last
//! operation. So a part grows with its distinct pages, and is put together without the trace.

use super::{Collector, Rest, runs::NEVER, stack::Tracked};

/// The statistics of consecutive operations, as [`super::Whole`] puts them together.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Part {
    /// Operations.
    pub ops: u64,
    /// Reads and writes, by width.
    pub(super) counts: [[u64; 4]; 2],
    pub(super) straddles: u64,
    /// The address of the first operation.
    pub(super) start: u64,
    /// Lengths of runs by power of two, the first and the last run among them.
    pub(super) lengths: Vec<u64>,
    /// Length of the last run.
    pub(super) last_run: u64,
    /// The page of the last run.
    pub(super) last_page: u64,
    /// Reuse distances by power of two.
    pub(super) distances: Vec<u64>,
    /// Misses of each direct-mapped cache.
    pub(super) misses: Vec<u64>,
    /// Every page, in the order of first use.
    pub(super) pages: Vec<Seen>,
    /// LRU stacks.
    pub(super) stacks: Vec<Tracked>,
}

/// A page of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Seen {
    pub(super) page: u64,
    pub(super) ops: u64,
    /// Index of its first operation, and of its last, in the part.
    pub(super) first: u64,
    pub(super) last: u64,
    /// Reads before its first write; `None` where it was never written.
    pub(super) absent_reads: Option<u64>,
}

impl Collector {
    /// What was seen, as a part of something longer.
    pub fn into_part(self) -> Part {
        let Self { ops, first_write, counts, .. } = self;
        let Rest { start, straddles, mut runs, trackers, .. } = *self.rest;
        let last_run = runs.last_run(ops);
        runs.finish(ops, first_write);
        let reuse = runs.all.reuse(ops, runs.pages());
        let seen = |(page, state): (u64, &super::runs::Page)| Seen {
            page,
            ops: state.ops,
            first: state.first,
            last: state.last,
            absent_reads: (state.absent_reads != NEVER).then_some(state.absent_reads),
        };
        Part {
            ops,
            counts,
            straddles,
            start,
            lengths: runs.lengths.by_power().to_vec(),
            last_run,
            last_page: runs.last_page(),
            distances: runs.all.distances.by_power().to_vec(),
            misses: reuse.caches.iter().map(|cache| cache.misses).collect(),
            pages: runs.in_order().map(seen).collect(),
            stacks: trackers.map(super::stack::Trackers::into_tracked).unwrap_or_default(),
        }
    }
}
