//! How pages are used again: distances, and what caches of pages would do.
//!
//! The one idea: a use of the page that was used just before has distance 1 and hits in every
//! cache, so only the others come here, many at a time; the rest is known at the end.

use super::{Reuse, direct::Caches, values::Values};

/// How many uses are counted together.
pub(super) const BATCH: usize = 2048;

/// Uses of pages, but for those that follow a use of the same page inside a run.
#[derive(Debug)]
pub(super) struct Uses {
    pub(super) distances: Values,
    caches: Caches,
    /// What is kept of uses until they are counted: distances, and pages.
    distances_kept: [u8; BATCH],
    pages: [u64; BATCH],
    count: usize,
    /// Whether a page may follow itself, because uses of another kind come between.
    repeats: bool,
    /// The page used last, of those that are counted.
    last: Option<u64>,
}

impl Uses {
    pub(super) fn new(caches: &[u64], repeats: bool) -> Self {
        Self {
            distances: Values::new(),
            caches: Caches::new(caches),
            distances_kept: [0; BATCH],
            pages: [0; BATCH],
            count: 0,
            repeats,
            last: None,
        }
    }

    /// A page is used; `distance` is 0 the first time. Returns how many uses were kept before.
    #[inline(always)]
    pub(super) fn add(&mut self, page: u64, distance: u64) -> usize {
        let kept = self.count;
        self.count = kept + 1;
        self.distances_kept[kept % BATCH] = self.distances.near(distance);
        self.pages[kept % BATCH] = page;
        kept
    }

    /// Counts what is kept: after [`BATCH`] uses at the latest, and before any result is read.
    pub(super) fn count(&mut self) {
        self.distances.count(&mut self.distances_kept, self.count);
        let others = if self.repeats { self.drop_repeats() } else { self.count };
        self.caches.access(&mut self.pages[..others]);
        self.count = 0;
    }

    /// Moves the pages that do not follow themselves to the front; the others hit in every cache.
    fn drop_repeats(&mut self) -> usize {
        if self.count == 0 {
            return 0;
        }
        // Before the first use of all, the last page is any but the first.
        let mut last = self.last.unwrap_or(!self.pages[0]);
        let mut others = 0;
        for at in 0..self.count {
            let page = self.pages[at];
            self.pages[others] = page;
            others += usize::from(page != last);
            last = page;
        }
        self.last = Some(last);
        others
    }

    /// How many uses are kept.
    pub(super) const fn kept(&self) -> usize {
        self.count
    }

    /// What became of so many uses, those included that followed a use of the same page; `cold`
    /// of them were the first of a page.
    pub(super) fn reuse(&mut self, uses: u64, cold: u64) -> Reuse {
        let known = self.distances.total() + cold;
        self.distances.count_ones(uses - known);
        Reuse { distances: self.distances.buckets(), cold, caches: self.caches.outcome(uses) }
    }
}
