//! LRU stack distances over pages: miss-ratio curves and TLB reach.
//!
//! The one idea (Mattson): an LRU cache of `n` pages hits exactly where the stack distance, the
//! number of other pages used since, is below `n`, so one pass serves every size. An operation on
//! the page of the one before has distance 0 and needs no stack; all others have at least 1.
//!
//! Sampling is SHARDS with a fixed rate: the stack holds only pages whose hash is small, distances
//! and counts are scaled up, and what the sample got too few or too many is taken as the smallest
//! distance, here 1: of distance 0 nothing needs an estimate.

mod lru;
mod tracked;

use super::{Stack, pages::Pages, values::share};
use crate::synth::mix;
use lru::Lru;

pub(super) use tracked::Tracked;

/// Sizes of the TLBs, in entries.
pub const TLB_ENTRIES: [u64; 7] = [16, 64, 512, 1024, 1536, 2048, 4096];
/// Page shifts of the TLBs: 4k, 2m and 1g.
pub const TLB_SHIFTS: [u32; 3] = [12, 21, 30];

/// How deep in an LRU stack pages are found: which caches would hold them.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct StackDistances {
    /// Pages are `2^page_shift` bytes.
    pub page_shift: u32,
    /// One page in so many was looked at; 1 is exact.
    pub one_in: u64,
    /// Operations of the trace.
    pub ops: u64,
    /// Runs on one page: operations whose distance is not 0.
    pub runs: u64,
    /// Distinct pages that were looked at.
    pub sampled_pages: u64,
    /// The miss-ratio curve: sizes from 1 on, four to an octave, to the first that holds all
    /// pages; no sizes between 1 and `one_in`, which a sample cannot tell apart.
    pub curve: Vec<Point>,
    /// Accesses by distance in steps of `one_in` pages, without those of distance 0 and without
    /// first ones. Not serialised: it may have as many entries as there are pages.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub distances: Vec<u64>,
}

/// A point of a miss-ratio curve.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Point {
    /// Size of a fully associative LRU cache, in pages.
    pub pages: u64,
    /// Operations that miss in it.
    pub misses: u64,
    /// The same as a share of all operations, 0 to 1.
    pub miss_ratio: f64,
}

impl StackDistances {
    /// Operations that miss in a fully associative LRU cache of so many pages; an estimate where
    /// the distances are sampled, with steps of `one_in` pages.
    pub fn misses(&self, pages: u64) -> u64 {
        match pages {
            0 => self.ops,
            1 => self.runs,
            _ => {
                let far = usize::try_from(pages.div_ceil(self.one_in)).unwrap_or(usize::MAX);
                let far = self.distances.get(far..).unwrap_or_default().iter().sum::<u64>();
                (far + self.sampled_pages).saturating_mul(self.one_in).min(self.runs)
            }
        }
    }

    /// The same as a share of all operations, 0 to 1.
    pub fn miss_ratio(&self, pages: u64) -> f64 {
        share(self.misses(pages), self.ops)
    }

    /// Distinct pages; an estimate where the distances are sampled.
    pub fn pages(&self) -> u64 {
        self.sampled_pages.saturating_mul(self.one_in)
    }

    fn point(&self, pages: u64) -> Point {
        let misses = self.misses(pages);
        Point { pages, misses, miss_ratio: share(misses, self.ops) }
    }

    fn with_curve(mut self) -> Self {
        let mut size = 1_u64;
        self.curve.push(self.point(size));
        while size < self.pages() {
            let step = (1 << size.ilog2()) / 4;
            size = size.saturating_add(step.max(1));
            if size >= self.one_in {
                self.curve.push(self.point(size));
            }
        }
        self
    }
}

/// What TLBs of several sizes would miss, for one page size.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Reach {
    /// Pages are `2^page_shift` bytes.
    pub page_shift: u32,
    /// Distinct pages.
    pub pages: u64,
    /// One row for each of [`TLB_ENTRIES`].
    pub tlbs: Vec<TlbMisses>,
}

/// What a fully associative LRU TLB would miss.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TlbMisses {
    /// How many translations it holds.
    pub entries: u64,
    /// Bytes that it covers.
    pub reach_bytes: u64,
    /// Operations that miss, by the page of their first byte.
    pub misses: u64,
    /// The same as a share of all operations, 0 to 1.
    pub miss_ratio: f64,
}

/// The stacks that the options ask for.
#[derive(Debug)]
pub(super) struct Trackers {
    /// Each with its own shift and rate; at least one.
    all: Vec<Tracker>,
    /// Shift and rate of the distances that were asked for by themselves.
    wanted: Option<(u32, u64)>,
    tlb: bool,
}

impl Trackers {
    /// What is asked for; `None` where that is nothing.
    pub(super) fn new(shift: u32, stack: Stack, tlb: bool) -> Option<Self> {
        let wanted = match stack {
            Stack::Off => None,
            Stack::Exact => Some((shift, 1)),
            Stack::Sampled { one_in } => Some((shift, one_in)),
        };
        let mut needed: Vec<_> = wanted.into_iter().collect();
        if tlb {
            needed.extend(TLB_SHIFTS.map(|shift| (shift, 1)));
        }
        needed.sort_unstable();
        needed.dedup();
        let all: Vec<_> = needed.into_iter().map(Tracker::new).collect();
        (!all.is_empty()).then_some(Self { all, wanted, tlb })
    }

    /// The shift of the smallest pages.
    pub(super) fn shift_min(&self) -> u32 {
        self.all.iter().map(|tracker| tracker.shift).min().unwrap_or(0)
    }

    /// An operation at `addr`. Those that are on the smallest page of the one before may be left
    /// out.
    #[inline(never)]
    pub(super) fn access(&mut self, addr: u64) {
        for tracker in &mut self.all {
            let page = addr >> tracker.shift;
            if page != tracker.page || tracker.runs == 0 {
                tracker.turn(page);
            }
        }
    }

    /// The distances that were asked for by themselves.
    pub(super) fn distances(&self, ops: u64) -> Option<StackDistances> {
        let (shift, one_in) = self.wanted?;
        self.find(shift, one_in, ops).map(StackDistances::with_curve)
    }

    /// TLB reach for each page size, where asked for.
    pub(super) fn reach(&self, ops: u64) -> Vec<Reach> {
        if !self.tlb {
            return Vec::new();
        }
        let reach = |shift| {
            let distances = self.find(shift, 1, ops)?;
            let tlb = |entries| TlbMisses {
                entries,
                reach_bytes: entries << shift,
                misses: distances.misses(entries),
                miss_ratio: distances.miss_ratio(entries),
            };
            let tlbs = TLB_ENTRIES.map(tlb).into();
            Some(Reach { page_shift: shift, pages: distances.pages(), tlbs })
        };
        TLB_SHIFTS.into_iter().filter_map(reach).collect()
    }

    fn find(&self, shift: u32, one_in: u64, ops: u64) -> Option<StackDistances> {
        let wanted = |tracker: &&Tracker| (tracker.shift, tracker.one_in) == (shift, one_in);
        let tracker = self.all.iter().find(wanted)?;
        Some(StackDistances {
            page_shift: shift,
            one_in,
            ops,
            runs: tracker.runs,
            sampled_pages: tracker.recency.pages.len() as u64,
            curve: Vec::new(),
            distances: tracker.distances.clone(),
        })
    }
}

/// Pages in the order in which they were used last.
#[derive(Debug)]
pub(super) struct Recency {
    pages: Pages,
    stack: Lru,
}

impl Recency {
    pub(super) fn new() -> Self {
        Self { pages: Pages::new(), stack: Lru::new() }
    }

    /// Moves a page to the top; its number, by first uses, and how many others were used since its
    /// last one.
    pub(super) fn touch(&mut self, page: u64) -> (usize, Option<usize>) {
        let number = self.pages.known(page).unwrap_or_else(|| self.pages.number(page).0);
        (number, self.stack.touch(number))
    }
}

/// One stack.
#[derive(Debug)]
struct Tracker {
    shift: u32,
    one_in: u64,
    /// The page of the operation before.
    page: u64,
    runs: u64,
    recency: Recency,
    distances: Vec<u64>,
}

impl Tracker {
    fn new((shift, one_in): (u32, u64)) -> Self {
        let (recency, distances) = (Recency::new(), Vec::new());
        Self { shift, one_in, page: 0, runs: 0, recency, distances }
    }

    /// A run starts on this page.
    fn turn(&mut self, page: u64) {
        self.page = page;
        self.runs += 1;
        // The mixer spreads pages evenly.
        if mix(page) > u64::MAX / self.one_in {
            return;
        }
        let Some(distance) = self.recency.touch(page).1 else { return };
        self.count(distance, 1);
    }
}
