//! The workloads that are in no part yet: a folder for each collection.

use pagelab_bench::Table;

pub mod segment;
pub mod tlb;

/// Those before emulated memory, in the order of `list`.
pub const WORKLOADS: Table = &[&segment::FAULT];

/// Those that `list` shows after emulated memory.
pub const LATER: Table = &[&tlb::chase::CHASE];

#[cfg(test)]
mod tests;
