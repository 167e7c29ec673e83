//! Huge pages made from outside, while the program runs.
//!
//! The one idea: a block is collapsed once it is dense, so that nothing is copied for memory that
//! is not used; and once it was refused, it is not asked for again. Which blocks are dense the page
//! tables say, and looking there may cost a fiftieth of the program's time: it is the rung's own
//! work, as khugepaged's would be.

use std::{collections::BTreeSet, io};

use pagelab_sys::{memory::outside::Outside as Advised, time::monotonic_raw_ns};

use super::{maps, rungs::Outside};

/// Bytes of a block.
const BLOCK: u64 = 2 << 20;
/// Pages of 4 KiB of a block that must be present.
const DENSE: u64 = 460;
/// Looking costs at most one of so many parts of the time.
const SHARE: u64 = 50;

/// What was collapsed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collapsed {
    /// Blocks that are huge pages since.
    pub blocks: u64,
    /// Blocks that the kernel refused.
    pub refused: u64,
    /// Why it refused the last one: an error number.
    pub why: Option<i32>,
}

impl Collapsed {
    /// What came since `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self {
            blocks: self.blocks - earlier.blocks,
            refused: self.refused - earlier.refused,
            why: self.why.filter(|_| self.refused > earlier.refused),
        }
    }
}

/// Somebody who collapses.
#[derive(Debug)]
pub struct Collapsing {
    what: Outside,
    asked: BTreeSet<(u32, u64)>,
    came: Collapsed,
    begun_ns: u64,
    spent_ns: u64,
}

impl Collapsing {
    /// Of this kind of memory.
    pub fn of(what: Outside) -> Self {
        let begun_ns = monotonic_raw_ns();
        Self { what, asked: BTreeSet::new(), came: Collapsed::default(), begun_ns, spent_ns: 0 }
    }

    /// Collapses what is dense by now in some processes.
    pub fn go_on(&mut self, processes: &[u32]) {
        let begun = monotonic_raw_ns();
        if self.spent_ns * SHARE > begun - self.begun_ns {
            return;
        }
        for pid in processes {
            let Ok(advised) = Advised::of(*pid) else { continue };
            let ranges = match self.what {
                Outside::Anonymous => maps::anonymous(*pid),
                Outside::Code => maps::code(*pid),
            };
            for range in ranges {
                let least = if self.what == Outside::Code { 1 } else { DENSE };
                let Ok(blocks) = advised.dense(range, BLOCK, least) else { continue };
                for block in blocks {
                    self.collapse(&advised, *pid, block);
                }
            }
        }
        self.spent_ns += monotonic_raw_ns() - begun;
    }

    fn collapse(&mut self, advised: &Advised, pid: u32, block: u64) {
        if !self.asked.insert((pid, block)) {
            return;
        }
        let is_over = |error: &io::Error| error.raw_os_error() == Some(ESRCH);
        match advised.collapse(block, BLOCK) {
            Ok(_) => self.came.blocks += 1,
            Err(error) if is_over(&error) => (),
            Err(error) => {
                self.came.refused += 1;
                self.came.why = error.raw_os_error();
            }
        }
    }

    /// What came of it so far.
    pub(super) fn came(&self) -> &Collapsed {
        &self.came
    }

    /// What came of it.
    pub fn close(self) -> Collapsed {
        self.came
    }
}

/// `ESRCH`: the process has ended.
const ESRCH: i32 = 3;
