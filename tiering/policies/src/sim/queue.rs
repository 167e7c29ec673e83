//! A queue of millions of entries that leave in order.
//!
//! The one idea: only the entries that leave soon are kept in order. What comes later lies in a
//! pile; when the ordered part is used up, the smallest part of the pile is selected and sorted.
//! So an entry is moved a few times through memory that is read in order, where a heap of millions
//! misses the caches at each level. What leaves, and in which order, is what a heap would say.
//!
//! It is not a priority queue for everybody: entries that are smaller than what is ordered go to a
//! small heap beside it, which is slow if there are many of them.

use std::{cmp::Reverse, collections::BinaryHeap};

/// Entries sorted at once, at least.
const SORTED_MIN: usize = 65_536;
/// The share of the pile that is sorted at once: one in so many.
const SHARE: usize = 16;

/// Larger than every entry.
const NEVER: u128 = u128::MAX;

/// Smallest first.
#[derive(Debug)]
pub(super) struct Queue {
    /// Largest first, so that the smallest is at the end.
    sorted: Vec<u128>,
    /// Entries that came later and are at most as large as some of `sorted`.
    late: BinaryHeap<Reverse<u128>>,
    /// Entries that are at least as large as every other.
    pile: Vec<u128>,
    /// The largest entry that `sorted` has had, or 0.
    horizon: u128,
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self { sorted: Vec::new(), late: BinaryHeap::new(), pile: Vec::new(), horizon: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sorted.is_empty() && self.late.is_empty() && self.pile.is_empty()
    }

    pub(super) fn push(&mut self, entry: u128) {
        if self.sorted.is_empty() && self.late.is_empty() {
            self.horizon = 0;
        }
        if entry < self.horizon {
            self.late.push(Reverse(entry));
        } else {
            self.pile.push(entry);
        }
    }

    /// Takes the smallest entry out if it is below `end`.
    pub(super) fn pop_before(&mut self, end: u128) -> Option<u128> {
        if self.sorted.is_empty() && self.late.is_empty() {
            self.refill();
        }
        let sorted = self.sorted.last().map_or(NEVER, |&entry| entry);
        let late = self.late.peek().map_or(NEVER, |&Reverse(entry)| entry);
        if sorted.min(late) >= end {
            return None;
        }
        if sorted < late { self.sorted.pop() } else { self.late.pop().map(|Reverse(entry)| entry) }
    }

    /// Sorts the smallest part of the pile.
    fn refill(&mut self) {
        let count = (self.pile.len() / SHARE).max(SORTED_MIN).min(self.pile.len());
        if count < self.pile.len() {
            self.pile.select_nth_unstable(count);
        }
        sort(&self.pile[..count], &mut self.sorted);
        self.pile.drain(..count);
        self.horizon = self.sorted.first().map_or(0, |&entry| entry);
    }
}

/// Puts entries in order, largest first: each goes near its place at once, by how far its upper
/// half is from that of the largest; what is near each other is sorted then.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the upper half, and no more parts than entries"
)]
fn sort(entries: &[u128], sorted: &mut Vec<u128>) {
    let upper = |entry: u128| (entry >> 64) as u64;
    let all = || entries.iter().copied().map(upper);
    sorted.clear();
    let (Some(least), Some(most)) = (all().min(), all().max()) else { return };
    let bits = u64::BITS - (most - least).leading_zeros();
    let shift = bits.saturating_sub(entries.len().ilog2()).min(u64::BITS - 1);
    let part = |entry: u128| ((most - upper(entry)) >> shift) as usize;
    // Where each part starts, and, when all entries are there, where it ends.
    let mut at = vec![0_usize; ((most - least) >> shift) as usize + 2];
    for &entry in entries {
        at[part(entry) + 1] += 1;
    }
    for index in 1..at.len() {
        at[index] += at[index - 1];
    }
    sorted.resize(entries.len(), 0);
    for &entry in entries {
        let place = &mut at[part(entry)];
        sorted[*place] = entry;
        *place += 1;
    }
    let mut start = 0;
    for end in at {
        sorted[start..end].sort_unstable_by(|left, right| right.cmp(left));
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn entries_leave_as_they_leave_a_heap(
            steps in proptest::collection::vec((any::<bool>(), 0_u16..500, 1_usize..3000), 1..60),
        ) {
            let (mut queue, mut heap) = (Queue::new(), BinaryHeap::new());
            let mut number = 0_u128;
            for (is_push, value, count) in steps {
                for step in 0..count {
                    if is_push {
                        number += 1;
                        let mixed = (u64::from(value) * 7919 + step as u64 * 104_729) % 10_007;
                        let entry = u128::from(mixed) << 64 | number;
                        queue.push(entry);
                        heap.push(Reverse(entry));
                    } else {
                        let smallest = heap.pop().map(|Reverse(entry)| entry);
                        prop_assert_eq!(queue.pop_before(NEVER), smallest);
                    }
                }
                prop_assert_eq!(queue.is_empty(), heap.is_empty());
            }
            while let Some(Reverse(entry)) = heap.pop() {
                prop_assert_eq!(queue.pop_before(entry), None);
                prop_assert_eq!(queue.pop_before(NEVER), Some(entry));
            }
            prop_assert!(queue.is_empty());
        }
    }
}
