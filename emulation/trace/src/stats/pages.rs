//! Numbers pages densely, in the order of their first appearance.
//!
//! The one idea: whatever is kept for a page lies in flat vectors under its number, so that one
//! look-up serves every statistic. A small direct-mapped table in front answers nearly all of them
//! without the hash map.

use rustc_hash::FxHashMap;

/// Entries of the table in front: 8 KiB, a quarter of a small first-level cache.
const FRONT: usize = 512;

/// The number of each page seen so far.
#[derive(Debug)]
pub(super) struct Pages {
    front: Box<[(u64, usize); FRONT]>,
    numbers: FxHashMap<u64, usize>,
}

impl Pages {
    pub(super) fn new() -> Self {
        // An empty entry holds a page that belongs into another one, so that no page is special.
        let mut front = Box::new([(0, 0); FRONT]);
        front[slot(0)].0 = 1;
        debug_assert_ne!(slot(0), slot(1));
        Self { front, numbers: FxHashMap::default() }
    }

    /// How many pages there are.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The number of a page that was used lately.
    #[inline(always)]
    pub(super) fn known(&self, page: u64) -> Option<usize> {
        let (held, number) = self.front[slot(page)];
        (held == page).then_some(number)
    }

    /// The number of any page, and whether it is new; new ones count up from 0.
    pub(super) fn number(&mut self, page: u64) -> (usize, bool) {
        let fresh = self.numbers.len();
        let number = *self.numbers.entry(page).or_insert(fresh);
        self.front[slot(page)] = (page, number);
        (number, number == fresh)
    }

    /// Every page, in the order of the numbers.
    pub(super) fn in_order(&self) -> Vec<u64> {
        let mut pages = vec![0; self.len()];
        self.iter().for_each(|(page, number)| pages[number] = page);
        pages
    }

    /// Every page with its number, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, usize)> + '_ {
        self.numbers.iter().map(|(page, number)| (*page, *number))
    }
}

/// Entry of the table in front: a multiplicative hash, so that strides do not collide.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a hash is cut to an index")]
const fn slot(page: u64) -> usize {
    (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - FRONT.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_up_and_stay() {
        let mut pages = Pages::new();
        let some = [0, 1, u64::MAX, 512, 1 << 52, 7];
        for (number, page) in some.into_iter().enumerate() {
            assert_eq!(pages.number(page), (number, true));
        }
        for stride in 100..5_000 {
            assert!(pages.number(stride << 20).1);
        }
        for (number, page) in some.into_iter().enumerate() {
            assert_eq!(pages.number(page), (number, false));
        }
        assert_eq!(pages.len(), some.len() + 4_900);
        assert!(pages.iter().any(|entry| entry == (u64::MAX, 2)));
    }
}
