//! What a trace looks like: every statistic of fast-mem's `trace_stats`, stack distances and TLB
//! reach.
//!
//! A [`Collector`] is a [`Visit`]: it sees each operation once, and keeps numbers for each distinct
//! page, never for each operation. The one idea: an operation that stays where the one before was
//! only counts; all else is done where a page is left. It judges no records, reads no files and
//! knows no time.
//!
//! Definitions, as fast-mem's: an operation belongs to the page of its first byte; a write makes
//! its page present; a read of a page that is not present is an absent read.

mod direct;
mod pages;
mod part;
mod report;
mod reuse;
mod runs;
mod stack;
mod text;
mod uses;
mod values;
mod whole;

use std::convert::Infallible;

use runs::Runs;
use stack::Trackers;

use crate::{
    op::{Visit, Width},
    raw::HEAD_BYTES,
};

pub use direct::DirectMapped;
pub use part::Part;
pub use report::{Absent, PageOps, Reuse, Stats};
pub use reuse::{REUSE_SHIFTS, Reused, Uses};
pub use stack::{Point, Reach, StackDistances, TLB_ENTRIES, TLB_SHIFTS, TlbMisses};
pub use values::Bucket;
pub use whole::{Misfit, Whole};

/// How LRU stack distances are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Stack {
    /// Not at all.
    #[default]
    Off,
    /// For each transition.
    Exact,
    /// For the pages whose hash falls into one part of `one_in`, and scaled up: SHARDS with a
    /// fixed rate. 1 is exact.
    Sampled {
        /// One page in so many, from 1 on.
        one_in: u64,
    },
}

/// What to collect; the default is what fast-mem's tool prints.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Options {
    /// Pages are `2^page_shift` bytes; 0 to 63.
    pub page_shift: u32,
    /// How many of the most used pages to list; 0 for none.
    pub top: usize,
    /// Sizes of the direct-mapped caches, in pages; each at least 1.
    pub caches: Vec<u64>,
    /// LRU stack distances over the pages of `page_shift`.
    pub stack: Stack,
    /// TLB reach for pages of 4k, 2m and 1g, whatever `page_shift` is; always exact.
    pub tlb: bool,
}

impl Default for Options {
    fn default() -> Self {
        let caches = vec![4, 8, 16, 32];
        Self { page_shift: 12, top: 20, caches, stack: Stack::Off, tlb: false }
    }
}

/// Which option makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadOption {
    /// There are no such pages.
    #[error("page shift {0} is none of 0 to 63")]
    PageShift(u32),
    /// A cache without entries.
    #[error("a cache needs at least 1 entry, not 0")]
    Cache,
    /// A rate of one in none.
    #[error("one page in 0 cannot be sampled; 1 takes every page")]
    OneIn,
}

impl Options {
    /// Whether each of them makes sense.
    fn check(&self) -> Result<(), BadOption> {
        if self.page_shift >= u64::BITS {
            return Err(BadOption::PageShift(self.page_shift));
        }
        if self.caches.contains(&0) {
            return Err(BadOption::Cache);
        }
        if self.stack == (Stack::Sampled { one_in: 0 }) {
            return Err(BadOption::OneIn);
        }
        Ok(())
    }
}

/// Collects the statistics of a trace.
///
/// ```
/// use pagelab_trace::{Op, Width, stats::{Collector, Options}};
///
/// let mut collector = Collector::new(&Options::default())?;
/// for op in [Op::load(0x1000, Width::W2), Op::store(0x7ff8, Width::W8, 1)] {
///     let Ok(()) = op.visit(&mut collector);
/// }
/// let stats = collector.finish(0);
/// assert_eq!((stats.ops, stats.transitions, stats.absent.reads), (2, 1, 1));
/// assert_eq!(stats.bytes_consumed, 10 + 18);
/// # Ok::<(), pagelab_trace::stats::BadOption>(())
/// ```
#[derive(Debug)]
pub struct Collector {
    /// Address of the granule that the last operation began in.
    granule: u64,
    /// For each width, how many places in a granule an operation can begin at that ends in it;
    /// none before the first operation.
    rooms: [u64; Width::ALL.len()],
    ops: u64,
    /// Index of the first write of the run, or [`NO_WRITE`].
    first_write: u64,
    /// Reads and writes, by width.
    counts: [[u64; Width::ALL.len()]; 2],
    rest: Box<Rest>,
}

/// What only those operations look at that leave their granule.
#[derive(Debug)]
struct Rest {
    /// The address of the first operation.
    start: u64,
    shift: u32,
    /// The bits of an address that are an offset in its granule, the smallest page in use.
    offset: u64,
    straddles: u64,
    runs: Runs,
    trackers: Option<Trackers>,
    top: usize,
}

/// No operation has this index.
const NO_WRITE: u64 = u64::MAX;

impl Collector {
    /// A collector that has seen nothing.
    ///
    /// # Errors
    /// When an option makes no sense.
    pub fn new(options: &Options) -> Result<Self, BadOption> {
        options.check()?;
        let Options { page_shift: shift, top, ref caches, stack, tlb } = *options;
        let trackers = Trackers::new(shift, stack, tlb);
        let smallest = trackers.as_ref().map_or(shift, |trackers| trackers.shift_min().min(shift));
        let (offset, runs) = ((1 << smallest) - 1, Runs::new(caches));
        Ok(Self {
            granule: 0,
            rooms: [0; 4],
            ops: 0,
            first_write: NO_WRITE,
            counts: [[0; 4]; 2],
            rest: Box::new(Rest { start: 0, shift, offset, straddles: 0, runs, trackers, top }),
        })
    }

    /// An operation of `N` bytes.
    #[inline(always)]
    fn step<const N: usize, const WRITES: bool>(&mut self, addr: u64) {
        const { assert!(N.is_power_of_two() && N <= 8) }
        let width = const { N.ilog2() as usize };
        self.counts[usize::from(WRITES)][width] += 1;
        if addr.wrapping_sub(self.granule) >= self.rooms[width] {
            if self.ops == 0 {
                self.rest.start = addr;
                self.rooms = self.rest.rooms();
            }
            let beyond = const { N as u64 - 1 };
            self.first_write = self.rest.turn(addr, beyond, self.ops, self.first_write);
            self.granule = addr & !self.rest.offset;
        }
        if WRITES {
            self.first_write = self.first_write.min(self.ops);
        }
        self.ops += 1;
    }

    /// The statistics of everything seen. `bytes_trailing` is what [`crate::raw::finish`] says
    /// is left after the last complete record; it only goes into [`Stats::bytes_total`].
    pub fn finish(self, bytes_trailing: u64) -> Stats {
        let Self { ops, first_write, counts: [read_widths, write_widths], .. } = self;
        let Rest { shift, straddles, mut runs, trackers, top, .. } = *self.rest;
        runs.finish(ops, first_write);
        let run_count = runs.lengths.total();
        let absent_reads = runs.absent_reads().sum();
        let absent_pages = runs.absent_reads().filter(|reads| *reads > 0).count() as u64;
        let reads = read_widths.iter().sum();
        let bytes_consumed = raw_bytes(reads, write_widths);
        let trackers = trackers.as_ref();
        Stats {
            page_shift: shift,
            top,
            ops,
            bytes_consumed,
            bytes_total: bytes_consumed.saturating_add(bytes_trailing),
            reads,
            writes: ops - reads,
            read_widths,
            write_widths,
            straddles,
            transitions: run_count.saturating_sub(1),
            runs: runs.lengths.buckets(),
            top_pages: top_pages(runs.ops_of_pages(), top),
            reuse: runs.all.reuse(ops, runs.pages()),
            absent: Absent {
                reads: absent_reads,
                pages: absent_pages,
                reuse: runs.absent.reuse(absent_reads, absent_pages),
            },
            stack: trackers.and_then(|trackers| trackers.distances(ops)),
            tlb: trackers.map(|trackers| trackers.reach(ops)).unwrap_or_default(),
        }
    }
}

impl Rest {
    /// The operation `index` begins in another granule than the one before, or ends in another
    /// one than it begins in, or is the first; it has so many bytes `beyond` the first. Returns
    /// the first write of the run, as far as that is known. In and out by value: registers.
    #[inline(never)]
    fn turn(&mut self, addr: u64, beyond: u64, index: u64, first_write: u64) -> u64 {
        let page = addr >> self.shift;
        if addr.saturating_add(beyond) >> self.shift != page {
            self.straddles += 1;
        }
        if let Some(trackers) = &mut self.trackers {
            trackers.access(addr);
        }
        if self.runs.turn(page, index, first_write) { NO_WRITE } else { first_write }
    }

    /// For each width, how many places in a granule an operation can begin at that ends in it.
    #[cold]
    fn rooms(&self) -> [u64; Width::ALL.len()] {
        Width::ALL.map(|width| (self.offset + 1).saturating_sub(width.bytes() as u64 - 1))
    }
}

impl Visit for Collector {
    type Stop = Infallible;

    #[inline(always)]
    fn load<const N: usize>(&mut self, addr: u64) -> Result<(), Infallible> {
        self.step::<N, false>(addr);
        Ok(())
    }

    #[inline(always)]
    fn store<const N: usize>(&mut self, addr: u64, _: [u8; N]) -> Result<(), Infallible> {
        self.step::<N, true>(addr);
        Ok(())
    }
}

/// Bytes in the raw format of so many reads, and so many writes of 1, 2, 4 and 8 bytes; at most
/// [`u64::MAX`].
pub fn raw_bytes(reads: u64, write_widths: [u64; 4]) -> u64 {
    let head = HEAD_BYTES as u64;
    let writes = Width::ALL.into_iter().zip(write_widths);
    let writes = writes.map(|(width, count)| count.saturating_mul(head + width.bytes() as u64));
    writes.fold(reads.saturating_mul(head), u64::saturating_add)
}

/// The `count` pages with most operations.
fn top_pages(pages: impl Iterator<Item = PageOps>, count: usize) -> Vec<PageOps> {
    let mut pages: Vec<PageOps> = pages.collect();
    let rank = |page: &PageOps| (std::cmp::Reverse(page.ops), page.page);
    if count < pages.len() {
        pages.select_nth_unstable_by_key(count, rank);
        pages.truncate(count);
    }
    pages.sort_unstable_by_key(rank);
    pages
}
