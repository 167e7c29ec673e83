//! What a part of a trace leaves of an LRU stack, and how stacks go on with it.
//!
//! The one idea: the pages of a part in the order of their first use meet the stack of the parts
//! before exactly as the trace would have: what lies above a page is what was used since. Then the
//! order of last use is all that the next part has to know.

use super::{Tracker, Trackers};

/// A stack of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(in crate::stats) struct Tracked {
    pub(in crate::stats) shift: u32,
    pub(in crate::stats) one_in: u64,
    /// Runs, the first one among them.
    runs: u64,
    /// The page of the last operation.
    last_page: u64,
    /// Uses by distance, without first ones.
    distances: Vec<u64>,
    /// Pages in the order of first use.
    pages: Vec<u64>,
    /// Their places in that order, in the order of last use.
    recent: Vec<usize>,
}

impl Tracked {
    /// Whether it adds up.
    pub(in crate::stats) fn is_whole(&self) -> bool {
        let mut is_there = vec![false; self.pages.len()];
        self.recent.iter().for_each(|place| {
            if let Some(there) = is_there.get_mut(*place) {
                *there = true;
            }
        });
        self.recent.len() == self.pages.len()
            && is_there.into_iter().all(|there| there)
            && self.distances.len() <= self.pages.len()
    }
}

impl Trackers {
    /// Shift and rate of each stack.
    pub(in crate::stats) fn shapes(&self) -> Vec<(u32, u64)> {
        self.all.iter().map(|tracker| (tracker.shift, tracker.one_in)).collect()
    }

    /// What they leave of a part.
    pub(in crate::stats) fn into_tracked(self) -> Vec<Tracked> {
        let tracked = |tracker: Tracker| Tracked {
            shift: tracker.shift,
            one_in: tracker.one_in,
            runs: tracker.runs,
            last_page: tracker.page,
            distances: tracker.distances,
            pages: tracker.recency.pages.in_order(),
            recent: tracker.recency.stack.bottom_up(),
        };
        self.all.into_iter().map(tracked).collect()
    }

    /// Goes on with a part that has the same stacks and begins at this address.
    pub(in crate::stats) fn append(&mut self, parts: &[Tracked], start: u64) {
        for (tracker, part) in self.all.iter_mut().zip(parts) {
            tracker.append(part, start >> tracker.shift);
        }
    }
}

impl Tracker {
    fn append(&mut self, part: &Tracked, first: u64) {
        // The run of the part before may go on: then its page is not used anew.
        let goes_on = self.runs > 0 && self.page == first;
        self.runs = self.runs.saturating_add(part.runs.saturating_sub(u64::from(goes_on)));
        self.page = part.last_page;
        for (distance, count) in part.distances.iter().enumerate() {
            self.count(distance, *count);
        }
        for page in &part.pages {
            let distance = self.recency.touch(*page).1;
            if let Some(distance) = distance.filter(|_| !(goes_on && *page == first)) {
                self.count(distance, 1);
            }
        }
        for place in &part.recent {
            self.recency.touch(part.pages[*place]);
        }
    }

    /// So many uses had this distance.
    pub(super) fn count(&mut self, distance: usize, count: u64) {
        if distance >= self.distances.len() {
            self.distances.resize(distance + 1, 0);
        }
        self.distances[distance] += count;
    }
}
