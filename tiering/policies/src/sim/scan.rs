//! Accessed and written bits: whether a page was touched since somebody looked.
//!
//! The one idea: nothing is set on access. When a bit is asked for, the pattern says how many
//! accesses the page had since the last look, and a random number says whether that was none.

use super::{machine::Machine, scenario::BitScan, stamps::Stamps};
use crate::random::Random;

/// From so many expected accesses on, a bit is set: the chance that it is not is below 1e-17.
const CERTAIN: f64 = 40.0;

/// A bit of each page, as of the last look at it.
#[derive(Debug)]
pub(super) struct Bits {
    /// The last look.
    looked: Stamps,
    /// Share of accesses that set the bit.
    share: f64,
    random: Random,
}

impl Bits {
    pub(super) fn new(pages: u32, share: f64, seed: u64, stream: u64) -> Self {
        Self { looked: Stamps::new(pages), share, random: Random::stream(seed, stream) }
    }

    /// Whether the bit is set; it is clear then.
    pub(super) fn test_and_clear(&mut self, page: u32, machine: &Machine<'_>) -> bool {
        let since = self.looked.replace(page, machine.done).unwrap_or(0.0);
        let accesses = self.share * machine.pattern.expected(page, since, machine.done);
        if machine.is_sequence() && self.share >= 1.0 {
            return accesses >= 0.5;
        }
        accesses >= CERTAIN || self.random.any_of(accesses)
    }
}

/// A pass over the bit of every page, from time to time.
#[derive(Debug)]
pub(super) struct Pass {
    pub(super) scan: BitScan,
    pub(super) writes: bool,
    pub(super) next_ns: u64,
    /// Pages whose bit was set in the last pass.
    pub(super) found: Vec<u32>,
}

impl Pass {
    pub(super) fn new(scan: &BitScan, writes: bool) -> Self {
        Self { scan: scan.clone(), writes, next_ns: scan.period_ns, found: Vec::new() }
    }

    /// Looks at every page; returns nanoseconds that the scanner and that the program lost.
    pub(super) fn run(&mut self, bits: &mut Bits, machine: &Machine<'_>) -> (u64, f64) {
        self.found.clear();
        let pages = machine.pattern.pages();
        self.found.extend((0..pages).filter(|&page| bits.test_and_clear(page, machine)));
        let busy = u64::from(pages) * self.scan.page_ps / 1000;
        self.next_ns = machine.now + self.scan.period_ns.max(busy);
        (busy, f64::from(pages) * self.scan.stall_ps as f64 * 1e-3)
    }
}
