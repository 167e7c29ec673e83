//! What the parameters of the fault workloads choose among, where no other file owns it.

use pagelab_bench::{Read, words};
use pagelab_record::Case;

words! {
    /// Where anonymous memory lies.
    pub enum Place {
        /// Wherever there is room.
        Anon = "anon",
        /// In the heap.
        Brk = "brk",
        /// From a 1 GiB boundary.
        Fixed = "fixed",
    }

    /// What is told to the kernel against what the case says, for the witness to notice.
    pub enum Lie {
        /// Nothing.
        None = "none",
        /// Huge pages are wanted.
        ThpOn = "thp-on",
        /// Huge pages are not wanted.
        ThpOff = "thp-off",
        /// The memory begins in the middle of a page.
        Ragged = "ragged",
        /// `MAP_POPULATE` before the advice.
        EarlyPopulate = "early-populate",
        /// One untimed touch before the timed one.
        Present = "present",
        /// Loads instead of stores.
        Read = "read",
        /// The file is in the page cache.
        Cached = "cached",
        /// As many pages a fault as the kernel likes, or one.
        FaultAround = "fault-around",
        /// Memory is left as it is.
        Unfragmented = "unfragmented",
    }

    /// What is compared inside a case.
    pub enum Arm {
        /// The loop of this program.
        Pagelab = "pagelab",
        /// A minimal C loop.
        C = "c",
        /// That of `page_fault1` (will-it-scale).
        PageFault1 = "page-fault1",
        /// That of `pft`.
        Pft = "pft",
        /// The method of the latency note.
        AsPublished = "as-published",
    }

    /// What memory is short of.
    pub enum Pressure {
        /// Nothing.
        None = "none",
        /// Free blocks as large as the page under test.
        Fragmented = "fragmented",
        /// A memory cgroup of the case's own is full.
        Memcg = "memcg",
    }

    /// What the swap space of a case is.
    pub enum SwapTo {
        /// A compressed device in memory.
        Zram = "zram",
        /// A file on a disk.
        File = "file",
    }

    /// What is written before it is swapped out.
    pub enum Content {
        /// Nothing but zeros: zram keeps no page for it, and since Linux 6.12 no device sees it.
        Zero = "zero",
        /// 512 bytes of random words, 512 bytes of words whose upper 48 bits are zero, and so on.
        Half = "half",
        /// The same, and every page like the first: each is packed and unpacked by the same path.
        Alike = "alike",
        /// Random words.
        Random = "random",
    }
}

/// What `kind=swap` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swapping {
    /// What is swapped to.
    pub to: SwapTo,
    /// How zram compresses, where that is decided.
    pub algorithm: Option<String>,
    /// Whether pages may be read ahead.
    pub reads_ahead: bool,
    /// What is swapped.
    pub content: Content,
}

impl Swapping {
    /// What it is where nothing is said.
    pub const DEFAULT: Self =
        Self { to: SwapTo::Zram, algorithm: None, reads_ahead: false, content: Content::Half };

    pub(super) fn of(case: &Case) -> Self {
        Self {
            to: case.word("swap"),
            algorithm: case.text("algorithm").filter(|name| *name != "auto").map(str::to_owned),
            reads_ahead: case.is("page-cluster", "default"),
            content: case.word("content"),
        }
    }
}
