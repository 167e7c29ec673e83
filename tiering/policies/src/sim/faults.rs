//! Hint faults, as the scheduler's NUMA scanner arranges them.
//!
//! The one idea: a marked page faults at its next access, and the pattern knows at which count of
//! accesses that is. So a scan puts the pages that it marks into a queue by that count, and the
//! queue is exact whatever the speed. The scan itself is the kernel's: ranges in chunks, a budget
//! of changed entries and one of passed pages, a period that moves after each full pass.
#![expect(clippy::cast_possible_truncation, reason = "page numbers are below 2^31")]

use super::{machine::Machine, queue::Queue, scenario::HintScan};
use crate::random::Random;

/// Parts that ratios of faults and periods are counted in: `NUMA_PERIOD_SLOTS`.
const SLOTS: u64 = 10;
/// From so many parts on, a ratio is high: `NUMA_PERIOD_THRESHOLD`.
const THRESHOLD: u64 = 7;

/// The state of the scanner, and the marked pages.
#[derive(Debug)]
pub(super) struct Hints {
    pub(super) scan: HintScan,
    /// The scan that marked each page, from 1 on; 0 where it is not marked.
    marked: Vec<u32>,
    /// When each scan was.
    scans: Vec<u64>,
    /// Count of accesses at which a page faults, the page, the scan: one number, so that two are
    /// compared without a branch.
    due: Queue,
    /// Where the next scan starts.
    cursor: u64,
    pub(super) next_ns: u64,
    period_ns: u64,
    pub(super) updates: u64,
    pub(super) random: Random,
    local: u64,
    remote: u64,
    private: u64,
    shared: u64,
}

/// A page that faults.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    pub(super) page: u32,
    pub(super) marked: u64,
    pub(super) access: f64,
}

impl Hints {
    pub(super) fn new(scan: &HintScan, pages: u32, seed: u64) -> Self {
        Self {
            scan: scan.clone(),
            marked: vec![0; pages as usize],
            scans: vec![0],
            due: Queue::new(),
            cursor: 0,
            next_ns: scan.delay_ns,
            period_ns: scan.period_ns,
            updates: 0,
            random: Random::stream(seed, 2),
            local: 0,
            remote: 0,
            private: 0,
            shared: 0,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.due.is_empty()
    }

    /// One scan: marks pages of lower tiers, chunk by chunk.
    pub(super) fn tick(&mut self, machine: &Machine<'_>) {
        let pages = u64::from(machine.pattern.pages());
        self.scans.push(machine.now);
        let (mut updates, mut passed) = (self.scan.updates, self.scan.virtual_pages);
        while updates > 0 && passed > 0 {
            let end = (self.cursor + self.scan.chunk).min(pages);
            let mut changed = 0;
            for page in machine.places.below.pages(self.cursor as u32..end as u32, true) {
                changed += u64::from(self.mark(page, machine));
            }
            let walked = end - self.cursor;
            self.updates += changed;
            if changed > 0 {
                updates = updates.saturating_sub(walked);
            }
            passed = passed.saturating_sub(walked);
            self.cursor = end;
            if end == pages {
                self.cursor = 0;
                self.adapt();
                break;
            }
        }
        self.next_ns = machine.now + self.period_ns;
    }

    /// Marks a page of a lower tier if it is not marked.
    fn mark(&mut self, page: u32, machine: &Machine<'_>) -> bool {
        if self.marked[page as usize] != 0 {
            return false;
        }
        let scan = (self.scans.len() - 1) as u32;
        self.marked[page as usize] = scan;
        let access = machine.pattern.next(page, machine.done, &mut self.random);
        if access.is_finite() {
            self.due.push(by_access(access) | u128::from(page) << 32 | u128::from(scan));
        }
        true
    }

    /// The next page that faults before the access with this number.
    pub(super) fn pop(&mut self, before: f64) -> Option<Due> {
        loop {
            let due = self.due.pop_before(by_access(before))?;
            let (page, scan) = ((due >> 32) as u32, due as u32);
            if self.marked[page as usize] == scan {
                self.marked[page as usize] = 0;
                let access = f64::from_bits((due >> 64) as u64);
                return Some(Due { page, marked: self.scans[scan as usize], access });
            }
        }
    }

    /// A page moved: whoever moves it takes the mark away.
    pub(super) fn unmark(&mut self, page: u32) {
        self.marked[page as usize] = 0;
    }

    /// Counts a fault for the adaptation of the period.
    pub(super) fn count(&mut self, local: bool) {
        *if local { &mut self.local } else { &mut self.remote } += 1;
        let private = self.random.chance(self.scan.private);
        *if private { &mut self.private } else { &mut self.shared } += 1;
    }

    /// `update_task_scan_period`, after a full pass.
    fn adapt(&mut self) {
        let Self { local, remote, private, shared, .. } = *self;
        (self.local, self.remote, self.private, self.shared) = (0, 0, 0, 0);
        if self.scan.adapts {
            let next = adapted(self.period_ns, [local, remote, private, shared]);
            let (min, max) = (self.scan.period_min_ns, self.scan.period_max_ns);
            self.period_ns = next.clamp(min, max.max(min));
        }
    }
}

/// A count of accesses as the upper half of an entry: counts are not negative, and such floats are
/// ordered as their bits are.
fn by_access(access: f64) -> u128 {
    u128::from(access.to_bits()) << 64
}

/// The period after a pass with so many faults: local, remote, private, shared.
fn adapted(period: u64, [local, remote, private, shared]: [u64; 4]) -> u64 {
    if local + shared == 0 {
        return period * 2;
    }
    let ratio = |part: u64, rest: u64| part * SLOTS / (part + rest).max(1);
    let (near, own) = (ratio(local, remote), ratio(private, shared));
    let slot = period.div_ceil(SLOTS);
    let slower = |ratio: u64| period + (ratio - THRESHOLD).max(1) * slot;
    if own >= THRESHOLD {
        slower(own)
    } else if near >= THRESHOLD {
        slower(near)
    } else {
        period.saturating_sub((THRESHOLD - near.max(own)) * slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_moves_in_slots() {
        // No fault that says anything: twice as slow.
        assert_eq!(adapted(1000, [0, 50, 50, 0]), 2000);
        // All private and some local: three slots slower.
        assert_eq!(adapted(1000, [10, 40, 50, 0]), 1300);
        // Mostly shared and remote: faster by what is missing to the threshold.
        assert_eq!(adapted(1000, [0, 100, 20, 80]), 500);
        // Shared but local: slower by the local ratio.
        assert_eq!(adapted(1000, [80, 20, 10, 90]), 1100);
    }

    #[test]
    fn the_floor_is_the_kernels() {
        // 8 GiB: 32 scans would allow 31 ms; 2560 MB a second allow 100.
        assert_eq!(HintScan::floor_ns(2_097_152, 1_000_000_000, 65_536), 100_000_000);
        // 512 MB: two scans a second.
        assert_eq!(HintScan::floor_ns(131_072, 1_000_000_000, 65_536), 500_000_000);
        assert_eq!(HintScan::floor_ns(1, 1_000_000_000, 65_536), 1_000_000_000);
    }
}
