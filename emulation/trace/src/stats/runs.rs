//! What is counted once for each run: consecutive operations on one page.
//!
//! The one idea: inside a run every reuse distance is 1 and every cache hits, so a run adds to all
//! statistics at its end. As long as a page is absent, all its operations are reads of an absent
//! page: such reads need no distances of their own, only to be told apart.

use super::{
    PageOps,
    pages::Pages,
    uses::{BATCH, Uses},
    values::Values,
};

/// Reads before its first write of a page that was never written.
pub(super) const NEVER: u64 = u64::MAX;

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
#[repr(align(32))] // No page is on two cache lines.
pub(super) struct Page {
    pub(super) ops: u64,
    /// Index of its first operation.
    pub(super) first: u64,
    /// Index of its last operation.
    pub(super) last: u64,
    /// Reads before its first write, or [`NEVER`].
    pub(super) absent_reads: u64,
}

/// The statistics of all runs.
#[derive(Debug)]
pub(super) struct Runs {
    /// The run that goes on; of none before the first operation.
    run: Run,
    pages: Pages,
    /// By number.
    of_page: Vec<Page>,
    pub(super) lengths: Values,
    /// Lengths that are not counted yet.
    lengths_kept: [u8; BATCH],
    /// Of all runs; but for distances of 1, which are inside runs.
    pub(super) all: Uses,
    /// Of runs that start with a read of an absent page; but for distances of 1.
    pub(super) absent: Uses,
}

impl Runs {
    pub(super) fn new(caches: &[u64]) -> Self {
        Self {
            run: Run { page: 0, number: 0, start: 0 },
            pages: Pages::new(),
            of_page: Vec::new(),
            lengths: Values::new(),
            lengths_kept: [0; BATCH],
            all: Uses::new(caches, false),
            absent: Uses::new(caches, true),
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
        let Run { page: address, number, start } = self.run;
        let page = &mut self.of_page[number];
        let (length, distance, ops) = (end - start, start - page.last, page.ops);
        page.ops = ops + length;
        page.last = end - 1;
        let kept = self.all.add(address, distance);
        self.lengths_kept[kept % BATCH] = self.lengths.near(length);
        if page.absent_reads == NEVER {
            if first_write < end {
                page.absent_reads = ops + (first_write - start);
            }
            if first_write > start {
                self.absent.add(address, distance);
            }
        }
        if kept + 1 == BATCH {
            self.count(BATCH);
        }
    }

    /// Counts what is kept: so many runs.
    #[inline(never)]
    fn count(&mut self, kept: usize) {
        self.lengths.count(&mut self.lengths_kept, kept);
        self.all.count();
        self.absent.count();
    }

    /// Ends the last run; `ops` operations were added in all.
    pub(super) fn finish(&mut self, ops: u64, first_write: u64) {
        if ops > 0 {
            self.end(ops, first_write);
        }
        self.count(self.all.kept());
    }

    /// The number of a page that was not used lately; `start` is its run's first operation.
    #[cold]
    #[inline(never)]
    fn find(&mut self, page: u64, start: u64) -> usize {
        let (number, new) = self.pages.number(page);
        if new {
            // A distance of 0 is not counted: nothing is used again.
            self.of_page.push(Page { ops: 0, first: start, last: start, absent_reads: NEVER });
        }
        number
    }

    /// How many pages there are.
    pub(super) fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Every page with its operations, in no order.
    pub(super) fn ops_of_pages(&self) -> impl Iterator<Item = PageOps> + '_ {
        self.pages.iter().map(|(page, number)| PageOps { page, ops: self.of_page[number].ops })
    }

    /// Every page with what is kept for it, in the order of first use.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (u64, &Page)> {
        self.pages.in_order().into_iter().zip(&self.of_page)
    }

    /// The page of the last operation.
    pub(super) fn last_page(&self) -> u64 {
        self.run.page
    }

    /// Length of the run that goes on, after so many operations.
    pub(super) fn last_run(&self, ops: u64) -> u64 {
        ops - self.run.start
    }

    /// Of each page the reads before its first write.
    pub(super) fn absent_reads(&self) -> impl Iterator<Item = u64> + '_ {
        self.of_page.iter().map(|page| page.absent_reads.min(page.ops))
    }
}
