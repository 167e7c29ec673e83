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
const SORTED_MIN: usize = 4096;
/// The share of the pile that is sorted at once: one in so many.
const SHARE: usize = 16;

/// Smallest first.
#[derive(Debug)]
pub(super) struct Queue<T> {
    /// Largest first, so that the smallest is at the end.
    sorted: Vec<T>,
    /// Entries that came later and are at most as large as some of `sorted`.
    late: BinaryHeap<Reverse<T>>,
    /// Entries that are at least as large as every other.
    pile: Vec<T>,
    /// The largest entry that `sorted` has had.
    horizon: Option<T>,
}

impl<T: Ord + Copy> Queue<T> {
    pub(super) const fn new() -> Self {
        Self { sorted: Vec::new(), late: BinaryHeap::new(), pile: Vec::new(), horizon: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sorted.is_empty() && self.late.is_empty() && self.pile.is_empty()
    }

    pub(super) fn push(&mut self, entry: T) {
        if self.sorted.is_empty() && self.late.is_empty() {
            self.horizon = None;
        }
        if self.horizon.is_some_and(|horizon| entry < horizon) {
            self.late.push(Reverse(entry));
        } else {
            self.pile.push(entry);
        }
    }

    /// The smallest entry.
    pub(super) fn peek(&mut self) -> Option<T> {
        if self.sorted.is_empty() && self.late.is_empty() {
            self.refill();
        }
        match (self.sorted.last(), self.late.peek()) {
            (Some(&sorted), Some(&Reverse(late))) => Some(sorted.min(late)),
            (sorted, late) => sorted.copied().or(late.map(|&Reverse(late)| late)),
        }
    }

    /// Takes the smallest entry out.
    pub(super) fn pop(&mut self) -> Option<T> {
        let smallest = self.peek()?;
        if self.sorted.last() == Some(&smallest) {
            self.sorted.pop()
        } else {
            self.late.pop().map(|Reverse(late)| late)
        }
    }

    /// Sorts the smallest part of the pile.
    fn refill(&mut self) {
        let count = (self.pile.len() / SHARE).max(SORTED_MIN);
        if count < self.pile.len() {
            self.pile.select_nth_unstable(count);
        }
        let rest = self.pile.split_off(count.min(self.pile.len()));
        self.sorted = std::mem::replace(&mut self.pile, rest);
        self.sorted.sort_unstable_by(|a, b| b.cmp(a));
        self.horizon = self.sorted.first().copied();
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
            let mut number = 0_u64;
            for (is_push, value, count) in steps {
                for step in 0..count {
                    if is_push {
                        number += 1;
                        let mixed = (u64::from(value) * 7919 + step as u64 * 104_729) % 10_007;
                        queue.push((mixed, number));
                        heap.push(Reverse((mixed, number)));
                    } else {
                        prop_assert_eq!(queue.pop(), heap.pop().map(|Reverse(entry)| entry));
                    }
                }
                prop_assert_eq!(queue.is_empty(), heap.is_empty());
            }
            while let Some(Reverse(entry)) = heap.pop() {
                prop_assert_eq!(queue.peek(), Some(entry));
                prop_assert_eq!(queue.pop(), Some(entry));
            }
            prop_assert!(queue.is_empty());
        }
    }
}
