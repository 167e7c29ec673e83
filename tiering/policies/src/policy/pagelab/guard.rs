//! Whether swapping pages was worth it: those that came in are compared with those that went out.
//!
//! The one idea: some pages of the last exchange are remembered, in a table of fixed size, and
//! their samples are counted. If the pages that went out are sampled about as often as those that
//! came in, exchanging does nothing but cost, and stops for a number of windows that doubles each
//! time.

use crate::random::mix;

/// Pages that are remembered of each side, at most.
const SLOTS: usize = 2048;
/// Samples that are needed for a verdict.
const ENOUGH: u32 = 32;
/// The longest pause in windows.
const PAUSE_MAX: u32 = 64;

/// The last exchange.
#[derive(Debug)]
pub(super) struct Guard {
    /// Pages and one; 0 where the slot is empty. The low bit says which side.
    slots: Vec<u64>,
    hits: [u32; 2],
    members: [u32; 2],
    pause: u32,
    left: u32,
}

impl Guard {
    pub(super) fn new() -> Self {
        let slots = vec![0; SLOTS];
        Self { slots, hits: [0; 2], members: [0; 2], pause: 1, left: 0 }
    }

    fn slot(page: u32) -> usize {
        usize::try_from(mix(page.into()) % SLOTS as u64).unwrap_or(0)
    }

    /// Remembers a page that came in, or one that went out, if there is room.
    pub(super) fn remember(&mut self, page: u32, came_in: bool) {
        let slot = &mut self.slots[Self::slot(page)];
        if *slot == 0 {
            *slot = ((u64::from(page) + 1) << 1) | u64::from(came_in);
            self.members[usize::from(came_in)] += 1;
        }
    }

    /// A sample, of any page.
    #[inline]
    pub(super) fn sampled(&mut self, page: u32) {
        if self.members == [0; 2] {
            return;
        }
        let slot = self.slots[Self::slot(page)];
        if slot >> 1 == u64::from(page) + 1 {
            self.hits[usize::from(slot & 1 == 1)] += 1;
        }
    }

    /// Whether pages may be exchanged; to be asked once at the end of each window.
    pub(super) fn judge(&mut self) -> bool {
        if self.left > 0 {
            self.left -= 1;
            return self.left == 0;
        }
        let [out, come] = self.hits;
        if out + come < ENOUGH {
            return true;
        }
        let mean = |hits: u32, members: u32| f64::from(hits) / f64::from(members.max(1));
        let is_useless = mean(out, self.members[0]) > 0.8 * mean(come, self.members[1]);
        self.forget();
        if is_useless {
            self.left = self.pause;
            self.pause = (self.pause * 2).min(PAUSE_MAX);
            return false;
        }
        self.pause = 1;
        true
    }

    /// Whether exchanges are stopped.
    pub(super) const fn rests(&self) -> bool {
        self.left > 0
    }

    fn forget(&mut self) {
        self.slots.fill(0);
        (self.hits, self.members) = ([0; 2], [0; 2]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(out: u32, come: u32) -> Guard {
        let mut guard = Guard::new();
        guard.remember(1, true);
        guard.remember(2, false);
        (0..come).for_each(|_| guard.sampled(1));
        (0..out).for_each(|_| guard.sampled(2));
        (0..1000).for_each(|_| guard.sampled(3));
        guard
    }

    #[test]
    fn an_exchange_that_helped_may_go_on() {
        assert!(exchange(5, 100).judge());
        assert!(exchange(1, 1).judge());
    }

    #[test]
    fn one_that_did_not_pauses() {
        let mut guard = exchange(100, 100);
        assert!(!guard.rests() && !guard.judge() && guard.rests());
        assert!(guard.judge() && !guard.rests());
    }
}
