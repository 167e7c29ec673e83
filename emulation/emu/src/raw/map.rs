//! The page map: numbers of pages to pages.
//!
//! The one idea: a table of (number, page) pairs, at most half full, searched from a hashed place
//! on until the number or a gap is found. A miss of the TLB costs one multiplication and, nearly
//! always, one cache line; a general hash map takes twice the instructions and a second line, and
//! on a sparse guest the instructions are what keeps misses from overlapping. Nothing is ever
//! removed but everything at once.
#![expect(clippy::cast_possible_truncation, reason = "a hash is cut to an index")]

use super::arena::Page;

/// A number that no page has: there are 2^52 pages.
const GAP: u64 = u64::MAX;

/// 2^64 divided by the golden ratio: spreads numbers that follow each other.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Pages by number.
#[derive(Debug, Clone)]
pub(crate) struct PageMap {
    /// A power of two of pairs; there is always a gap.
    table: Box<[(u64, Option<Page>)]>,
    /// How far a hash is shifted down to be an index.
    shift: u32,
    len: usize,
}

impl Default for PageMap {
    fn default() -> Self {
        Self { table: vec![(GAP, None); 64].into(), shift: 64 - 6, len: 0 }
    }
}

impl PageMap {
    /// How many pages it holds.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The page of this number.
    #[inline(always)]
    pub(crate) fn get(&self, number: u64) -> Option<Page> {
        let mask = self.table.len().wrapping_sub(1);
        let mut at = self.place(number);
        // The mask keeps every index inside: the loop ends at the number or at a gap.
        while let Some((found, page)) = self.table.get(at & mask) {
            if *found == number {
                return *page;
            }
            if *found == GAP {
                return None;
            }
            at += 1;
        }
        None
    }

    /// Enters a page, in the place of one of the same number.
    pub(crate) fn insert(&mut self, number: u64, page: Page) {
        if (self.len + 1) * 2 > self.table.len() {
            self.grow();
        }
        let mask = self.table.len() - 1;
        let mut at = self.place(number) & mask;
        while self.table[at].0 != GAP && self.table[at].0 != number {
            at = (at + 1) & mask;
        }
        self.len += usize::from(self.table[at].0 == GAP);
        self.table[at] = (number, Some(page));
    }

    /// Every number with its page, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Page)> {
        self.table.iter().filter_map(|(number, page)| page.map(|page| (*number, page)))
    }

    #[inline(always)]
    fn place(&self, number: u64) -> usize {
        (number.wrapping_mul(SPREAD) >> self.shift) as usize
    }

    #[cold]
    fn grow(&mut self) {
        let size = self.table.len() * 2;
        let old = std::mem::replace(&mut self.table, vec![(GAP, None); size].into());
        self.shift = 64 - size.trailing_zeros();
        self.len = 0;
        for (number, page) in old {
            if let Some(page) = page {
                self.insert(number, page);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::raw::arena::Arena;

    proptest! {
        #[test]
        fn it_is_a_map(
            numbers in prop::collection::vec(0..1_u64 << 52, 0..300),
            few in 1..200_u64,
        ) {
            let mut arena = Arena::new(false);
            let (mut map, mut model) = (PageMap::default(), BTreeMap::new());
            for (index, number) in numbers.iter().enumerate() {
                // Neighbours and far numbers, again and again.
                let number = if index % 2 == 0 { number % few } else { *number };
                let page = arena.page().unwrap();
                map.insert(number, page);
                model.insert(number, page);
                prop_assert_eq!(map.len(), model.len());
            }
            for number in numbers.iter().copied().chain(0..few) {
                prop_assert_eq!(map.get(number), model.get(&number).copied());
            }
            let all: BTreeMap<u64, Page> = map.iter().collect();
            prop_assert_eq!(all, model);
        }
    }
}
