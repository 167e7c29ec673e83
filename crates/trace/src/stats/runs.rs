//! What is counted once for each run: consecutive operations on one page.
//!
//! The one idea: inside a run every reuse distance is 1 and every cache hits, so a run adds to all
//! statistics at its end. Lengths, distances and pages are kept for a batch of runs and counted
//! together, which needs few branches.
//!
//! As long as a page is absent, all its operations are reads of an absent page: such reads need
//! no distances of their own, only to be told apart.

use super::{buckets::Log2, direct::Caches, pages::Pages};

/// How many runs are counted together.
const BATCH: usize = 512;
/// The largest value that is kept as a byte.
const NEAR_MAX: u64 = u8::MAX as u64;
/// Reads before its first write of a page that was never written.
const NEVER: u64 = u64::MAX;

/// A run, without its end.
#[derive(Debug, Clone, Copy)]
struct Run {
    page: u64,
    /// The page's number.
    number: usize,
    /// Index of its first operation.
    start: u64,
}

/// What is kept for a page.
#[derive(Debug, Clone, Copy)]
struct Page {
    ops: u64,
    /// Index of its last operation.
    last: u64,
    /// Reads before its first write, or [`NEVER`].
    absent_reads: u64,
}

/// What is kept of runs until they are counted.
#[derive(Debug)]
struct Batch {
    lengths: [u8; BATCH],
    /// Reuse distances.
    reuse: [u8; BATCH],
    /// Numbers of the pages.
    pages: [usize; BATCH],
    count: usize,
    page_count: usize,
}

impl Batch {
    const fn new() -> Self {
        Self { lengths: [0; BATCH], reuse: [0; BATCH], pages: [0; BATCH], count: 0, page_count: 0 }
    }
}

/// The statistics of all runs.
#[derive(Debug)]
pub(super) struct Runs {
    /// The run that goes on; of none before the first operation.
    run: Run,
    batch: Batch,
    /// Those of the batch that start with a read of an absent page.
    absents: Batch,
    absent_page: usize,
    spare: [usize; BATCH],
    pages: Pages,
    /// By number.
    of_page: Vec<Page>,
    pub(super) lengths: Log2,
    /// Reuse distances but those of 1.
    pub(super) reuse: Log2,
    pub(super) caches: Caches,
    /// The same two for reads of absent pages.
    pub(super) absent_reuse: Log2,
    pub(super) absent_caches: Caches,
}

impl Runs {
    pub(super) fn new(caches: &[u64]) -> Self {
        Self {
            run: Run { page: 0, number: 0, start: 0 },
            batch: Batch::new(),
            absents: Batch::new(),
            absent_page: usize::MAX,
            spare: [0; BATCH],
            pages: Pages::new(),
            of_page: Vec::new(),
            lengths: Log2::new(),
            reuse: Log2::new(),
            caches: Caches::new(caches),
            absent_reuse: Log2::new(),
            absent_caches: Caches::new(caches),
        }
    }

    /// The operation `index` is on this page. Says whether that starts a run; then `first_write`
    /// is the first write of the run before, or any index from `index` on.
    #[inline(always)]
    pub(super) fn turn(&mut self, page: u64, index: u64, first_write: u64) -> bool {
        if index > 0 {
            if page == self.run.page {
                return false;
            }
            self.end(index, first_write);
        }
        let number = match self.pages.known(page) {
            Some(number) => number,
            None => self.find(page, index),
        };
        self.run = Run { page, number, start: index };
        true
    }

    /// Ends the run that goes on, before the operation `end`.
    #[inline(always)]
    fn end(&mut self, end: u64, first_write: u64) {
        if self.batch.count == BATCH {
            self.count();
        }
        let Run { number, start, .. } = self.run;
        let page = &mut self.of_page[number];
        let (length, reuse, ops) = (end - start, start - page.last, page.ops);
        page.ops = ops + length;
        page.last = end - 1;
        let at = self.batch.count % BATCH;
        self.batch.count += 1;
        self.batch.lengths[at] = near(length, &mut self.lengths);
        self.batch.reuse[at] = near(reuse, &mut self.reuse);
        self.batch.pages[at] = number;
        if page.absent_reads == NEVER {
            if first_write < end {
                page.absent_reads = ops + (first_write - start);
            }
            if first_write > start {
                let at = self.absents.count % BATCH;
                self.absents.count += 1;
                self.absents.reuse[at] = near(reuse, &mut self.absent_reuse);
                // The runs between may all have been of pages that are present.
                if number != self.absent_page {
                    self.absent_page = number;
                    self.absents.pages[self.absents.page_count % BATCH] = number;
                    self.absents.page_count += 1;
                }
            }
        }
    }

    /// Ends the last run; `ops` operations were added in all.
    pub(super) fn finish(&mut self, ops: u64, first_write: u64) {
        if ops > 0 {
            self.end(ops, first_write);
        }
        self.count();
    }

    /// Counts what is kept.
    #[inline(never)]
    fn count(&mut self) {
        let Self { batch, absents, spare, .. } = self;
        self.lengths.count(&mut batch.lengths, batch.count);
        self.reuse.count(&mut batch.reuse, batch.count);
        self.caches.access(&mut batch.pages[..batch.count], spare);
        self.absent_reuse.count(&mut absents.reuse, absents.count);
        self.absent_caches.access(&mut absents.pages[..absents.page_count], spare);
        (batch.count, absents.count, absents.page_count) = (0, 0, 0);
    }

    /// The number of a page that was not used lately; `start` is its run's first operation.
    #[cold]
    #[inline(never)]
    fn find(&mut self, page: u64, start: u64) -> usize {
        let (number, new) = self.pages.number(page);
        if new {
            self.caches.add_page(page);
            self.absent_caches.add_page(page);
            // A distance of 0 is not counted: nothing is used again.
            self.of_page.push(Page { ops: 0, last: start, absent_reads: NEVER });
        }
        number
    }

    /// How many pages there are.
    pub(super) fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Every page with its operations, in no order.
    pub(super) fn ops_of_pages(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.pages.iter().map(|(page, number)| (page, self.of_page[number].ops))
    }

    /// Of each page the reads before its first write.
    pub(super) fn absent_reads(&self) -> impl Iterator<Item = u64> + '_ {
        self.of_page.iter().map(|page| page.absent_reads.min(page.ops))
    }
}

/// The value as a byte; a larger one is counted at once.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "just compared")]
fn near(value: u64, histogram: &mut Log2) -> u8 {
    if value > NEAR_MAX { far(value, histogram) } else { value as u8 }
}

#[cold]
#[inline(never)]
fn far(value: u64, histogram: &mut Log2) -> u8 {
    histogram.add(value);
    0
}
