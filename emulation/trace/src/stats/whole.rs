//! The statistics of a trace from those of its parts, exactly.
//!
//! The one idea: a part is replayed by its pages alone. Whatever a page's first use in a part would
//! have been in the whole (a distance, a hit, a depth in a stack) follows from what was known of it
//! before; all other uses are as they were counted. Of stacks that is PARDA's observation (Niu and
//! others, 2012): pages that are touched in the order of their first use meet the stack of the
//! parts before as the trace itself would have.
//!
//! Not known is how absent pages are used again: whether a read is absent hangs on all parts
//! before, and a part keeps no reads. [`Stats::absent`] has their count, no distances or caches.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    Absent, BadOption, DirectMapped, Options, PageOps, Part, Reuse, Stats, part::Seen, raw_bytes,
    stack::Trackers, top_pages, values::Values,
};

/// Why a part does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// It was collected with other options.
    #[error("the part was collected with other options than those before")]
    Options,
    /// What it says of itself does not add up.
    #[error("the part does not add up: collect it again")]
    Damaged,
}

/// Puts parts together, in their order.
///
/// ```
/// use pagelab_trace::{Op, Width, stats::{Collector, Options, Whole}};
///
/// let options = Options::default();
/// let mut whole = Whole::new(&options)?;
/// for addr in [0x1000, 0x1008] {
///     let mut collector = Collector::new(&options)?;
///     let Ok(()) = Op::load(addr, Width::W8).visit(&mut collector);
///     whole.append(&collector.into_part())?;
/// }
/// let stats = whole.finish(0);
/// assert_eq!((stats.ops, stats.transitions, stats.reuse.cold), (2, 0, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Whole {
    options: Options,
    ops: u64,
    counts: [[u64; 4]; 2],
    straddles: u64,
    lengths: Values,
    /// The run that may go on in the next part: its page and length.
    open: Option<(u64, u64)>,
    distances: Values,
    caches: Vec<Cache>,
    pages: FxHashMap<u64, Seen>,
    trackers: Option<Trackers>,
}

/// A direct-mapped cache: which page each slot that is used holds, and what missed.
#[derive(Debug)]
struct Cache {
    entries: u64,
    slots: FxHashMap<u64, u64>,
    misses: u64,
}

impl Whole {
    /// Of no part yet; the options are those that each part is collected with.
    ///
    /// # Errors
    /// When an option makes no sense.
    pub fn new(options: &Options) -> Result<Self, BadOption> {
        options.check()?;
        let cache = |&entries: &u64| Cache { entries, slots: FxHashMap::default(), misses: 0 };
        Ok(Self {
            ops: 0,
            counts: [[0; 4]; 2],
            straddles: 0,
            lengths: Values::new(),
            open: None,
            distances: Values::new(),
            caches: options.caches.iter().map(cache).collect(),
            pages: FxHashMap::default(),
            trackers: Trackers::new(options.page_shift, options.stack, options.tlb),
            options: options.clone(),
        })
    }

    /// Adds the part that follows.
    ///
    /// # Errors
    /// When it is none of this whole; nothing was added then.
    pub fn append(&mut self, part: &Part) -> Result<(), Misfit> {
        self.judge(part)?;
        if part.ops == 0 {
            return Ok(());
        }
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        for (to, more) in self.counts.iter_mut().flatten().zip(part.counts.iter().flatten()) {
            add(to, *more);
        }
        add(&mut self.straddles, part.straddles);
        self.join_runs(part);
        for (cache, misses) in self.caches.iter_mut().zip(&part.misses) {
            let hits = cache.enter(&part.pages);
            cache.misses = cache.misses.saturating_add(misses.saturating_sub(hits));
        }
        self.distances.add_all(&part.distances);
        for seen in &part.pages {
            self.meet(seen, self.ops);
        }
        if let Some(trackers) = &mut self.trackers {
            trackers.append(&part.stacks, part.start);
        }
        self.ops = self.ops.saturating_add(part.ops);
        Ok(())
    }

    /// Whether a part can be one of this whole.
    fn judge(&self, part: &Part) -> Result<(), Misfit> {
        let stacks = self.trackers.as_ref().map(Trackers::shapes).unwrap_or_default();
        let theirs: Vec<(u32, u64)> =
            part.stacks.iter().map(|stack| (stack.shift, stack.one_in)).collect();
        if part.ops > 0 && (part.misses.len() != self.caches.len() || stacks != theirs) {
            return Err(Misfit::Options);
        }
        let of_pages = sum(part.pages.iter().map(|seen| seen.ops));
        let of_widths = sum(part.counts.iter().flatten().copied());
        let runs = sum(part.lengths.iter().copied());
        let is_whole = of_pages == Some(part.ops)
            && of_widths == Some(part.ops)
            && runs.is_some_and(|runs| (runs > 0) == (part.ops > 0))
            && part.last_run <= part.ops
            && part.lengths.len() <= 64
            && part.distances.len() <= 64
            && part.pages.is_sorted_by_key(|seen| seen.first)
            && part.pages.iter().all(|seen| seen.first <= seen.last && seen.last < part.ops)
            && part.stacks.iter().all(super::stack::Tracked::is_whole);
        if is_whole { Ok(()) } else { Err(Misfit::Damaged) }
    }

    /// The runs of a part; its first one may go on with the last one before.
    fn join_runs(&mut self, part: &Part) {
        self.lengths.add_all(&part.lengths);
        let first_page = part.pages.first().map(|seen| seen.page);
        // The second run is on a page that was not used before.
        let first_run = part.pages.get(1).map_or(part.ops, |seen| seen.first);
        let is_one = part.pages.len() == 1;
        let mut last_run = part.last_run;
        if let Some((_, length)) = self.open.filter(|(page, _)| Some(*page) == first_page) {
            self.lengths.take_one(length);
            self.lengths.take_one(first_run);
            self.lengths.add_one(length.saturating_add(first_run));
            if is_one {
                last_run = length.saturating_add(part.ops);
            }
        }
        self.open = Some((part.last_page, last_run));
    }

    /// A page of a part, which begins after so many operations.
    fn meet(&mut self, seen: &Seen, before: u64) {
        let (first, last) = (before.saturating_add(seen.first), before.saturating_add(seen.last));
        let Some(known) = self.pages.get_mut(&seen.page) else {
            self.pages.insert(seen.page, Seen { first, last, ..*seen });
            return;
        };
        self.distances.add_one(first.saturating_sub(known.last));
        if known.absent_reads.is_none() {
            known.absent_reads = seen.absent_reads.map(|reads| known.ops.saturating_add(reads));
        }
        known.ops = known.ops.saturating_add(seen.ops);
        known.last = last;
    }

    /// The statistics; `bytes_trailing` is what is left after the last complete record.
    pub fn finish(self, bytes_trailing: u64) -> Stats {
        let Self { options, ops, counts: [read_widths, write_widths], straddles, .. } = self;
        let reads = read_widths.iter().sum();
        let bytes_consumed = raw_bytes(reads, write_widths);
        let absent = || self.pages.values().map(|seen| seen.absent_reads.unwrap_or(seen.ops));
        let pages = self.pages.values().map(|seen| PageOps { page: seen.page, ops: seen.ops });
        let absent_pages = absent().filter(|reads| *reads > 0).count() as u64;
        let trackers = self.trackers.as_ref();
        Stats {
            page_shift: options.page_shift,
            top: options.top,
            ops,
            bytes_consumed,
            bytes_total: bytes_consumed.saturating_add(bytes_trailing),
            reads,
            writes: ops.saturating_sub(reads),
            read_widths,
            write_widths,
            straddles,
            transitions: self.lengths.total().saturating_sub(1),
            runs: self.lengths.buckets(),
            top_pages: top_pages(pages, options.top),
            reuse: Reuse {
                distances: self.distances.buckets(),
                cold: self.pages.len() as u64,
                caches: self.caches.iter().map(|cache| cache.outcome(ops)).collect(),
            },
            absent: Absent {
                reads: absent().fold(0, u64::saturating_add),
                pages: absent_pages,
                reuse: Reuse { distances: Vec::new(), cold: absent_pages, caches: Vec::new() },
            },
            stack: trackers.and_then(|trackers| trackers.distances(ops)),
            tlb: trackers.map(|trackers| trackers.reach(ops)).unwrap_or_default(),
        }
    }
}

fn sum(mut values: impl Iterator<Item = u64>) -> Option<u64> {
    values.try_fold(0_u64, u64::checked_add)
}

impl Cache {
    /// A part goes through. Returns how many of its misses are none: the first page in a slot,
    /// where that slot holds it already.
    fn enter(&mut self, pages: &[Seen]) -> u64 {
        let mut met = FxHashSet::default();
        let hits = pages.iter().filter(|seen| {
            let slot = seen.page % self.entries;
            met.insert(slot) && self.slots.get(&slot) == Some(&seen.page)
        });
        let hits = hits.count() as u64;
        let mut last: FxHashMap<u64, &Seen> = FxHashMap::default();
        for seen in pages {
            let held = last.entry(seen.page % self.entries).or_insert(seen);
            if held.last < seen.last {
                *held = seen;
            }
        }
        self.slots.extend(last.into_iter().map(|(slot, seen)| (slot, seen.page)));
        hits
    }

    fn outcome(&self, ops: u64) -> DirectMapped {
        let (misses, cold) = (self.misses, self.slots.len() as u64);
        DirectMapped {
            entries: self.entries,
            hits: ops.saturating_sub(misses),
            misses,
            conflicts: misses.saturating_sub(cold),
            cold,
        }
    }
}
