//! The statistics themselves: plain numbers, and the shares that follow from them.

use super::{Bucket, DirectMapped, Reach, StackDistances};

/// What a trace looks like.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Stats {
    /// Pages are `2^page_shift` bytes, here and below but in `tlb`.
    pub page_shift: u32,
    /// How many pages `top_pages` has at most.
    pub top: usize,
    /// Operations.
    pub ops: u64,
    /// Bytes of the operations in the raw format.
    pub bytes_consumed: u64,
    /// The same with the bytes that trail after the last complete record.
    pub bytes_total: u64,
    /// Operations that read.
    pub reads: u64,
    /// Operations that write.
    pub writes: u64,
    /// Reads of 1, 2, 4 and 8 bytes.
    pub read_widths: [u64; 4],
    /// Writes of 1, 2, 4 and 8 bytes.
    pub write_widths: [u64; 4],
    /// Operations that end on another page than they start on; the end of the address space is
    /// not crossed.
    pub straddles: u64,
    /// Operations on another page than the one before; the first operation is none.
    pub transitions: u64,
    /// Lengths, in operations, of the runs on one page.
    pub runs: Vec<Bucket>,
    /// The pages with most operations; equals are in order of their addresses.
    pub top_pages: Vec<PageOps>,
    /// How pages are used again; by the page of an operation's first byte.
    pub reuse: Reuse,
    /// Reads of pages that nothing was written to before.
    pub absent: Absent,
    /// LRU stack distances, where asked for.
    pub stack: Option<StackDistances>,
    /// TLB reach, where asked for: one row for each page size.
    pub tlb: Vec<Reach>,
}

/// A page and its operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PageOps {
    /// The page's number: its address shifted right.
    pub page: u64,
    /// Operations whose first byte is on it.
    pub ops: u64,
}

/// How pages are used again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Reuse {
    /// Differences of operation indices to the previous operation on the same page; 1 means
    /// consecutive.
    pub distances: Vec<Bucket>,
    /// Operations without a previous one on the same page: distinct pages.
    pub cold: u64,
    /// Direct-mapped caches, in the order asked for.
    pub caches: Vec<DirectMapped>,
}

/// Reads of pages that nothing was written to before.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Absent {
    /// How many there are.
    pub reads: u64,
    /// Distinct pages of these reads.
    pub pages: u64,
    /// How these pages are used again by such reads; distances count all operations between.
    pub reuse: Reuse,
}
