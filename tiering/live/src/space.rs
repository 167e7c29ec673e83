//! The pages of a process, numbered as policies want them: densely, from 0.
//!
//! The one idea: a block of 2 MiB gets a slot when the first page of it is found, and keeps it. So
//! 64 GiB of address space with nothing in it cost nothing, and what a policy remembers of a page
//! stays with its address.

use std::collections::BTreeMap;

use pagelab_sys::memory::Stretch;
use pagelab_tier::{BLOCK_PAGES, Run};

use crate::PAGE;

/// Bytes of a block.
const BLOCK: u64 = BLOCK_PAGES as u64 * PAGE;

/// A block of the process.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Its address.
    start: u64,
    /// A bit for each page that is there.
    present: [u64; 8],
    /// A bit for each page that was used.
    used: [u64; 8],
    /// Mapped by a PMD: it moves as a whole.
    huge: bool,
}

/// Slots, and what was found in the present pass.
#[derive(Debug, Default)]
pub(crate) struct Space {
    slots: Vec<Slot>,
    by_start: BTreeMap<u64, u32>,
    /// Presence before this pass.
    before: Vec<[u64; 8]>,
}

impl Space {
    /// A pass begins: nothing is known to be there.
    pub(crate) fn begin(&mut self) {
        self.before.clear();
        self.before.extend(self.slots.iter().map(|slot| slot.present));
        for slot in &mut self.slots {
            (slot.present, slot.used, slot.huge) = ([0; 8], [0; 8], false);
        }
    }

    /// Notes what was found. A page may be found twice, where mappings change between two calls.
    pub(crate) fn note(&mut self, found: Stretch) {
        let mut at = found.start;
        while at < found.end {
            let start = at / BLOCK * BLOCK;
            let end = found.end.min(start + BLOCK);
            let number = self.slot(start);
            let Some(slot) = self.slots.get_mut(number as usize) else { return };
            let (first, last) = ((at - start) / PAGE, (end - start) / PAGE);
            for (word, from) in (0..8).zip((0..u64::from(BLOCK_PAGES)).step_by(64)) {
                let bits = below(last, from) & !below(first, from);
                slot.present[word] |= bits;
                slot.used[word] |= if found.written { bits } else { 0 };
            }
            slot.huge |= found.huge && last - first == u64::from(BLOCK_PAGES);
            at = end;
        }
    }

    fn slot(&mut self, start: u64) -> u32 {
        let next = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        *self.by_start.entry(start).or_insert_with(|| {
            self.slots.push(Slot { start, present: [0; 8], used: [0; 8], huge: false });
            self.before.push([0; 8]);
            next
        })
    }

    /// Pages that there are numbers for.
    pub(crate) fn pages(&self) -> u64 {
        self.slots.len() as u64 * u64::from(BLOCK_PAGES)
    }

    /// The address of each block of pages, in the order of their numbers.
    pub(crate) fn starts(&self) -> Vec<u64> {
        self.slots.iter().map(|slot| slot.start).collect()
    }

    /// Pages that are there.
    pub(crate) fn present(&self) -> u64 {
        let bits = self.slots.iter().flat_map(|slot| slot.present);
        bits.map(|word| u64::from(word.count_ones())).sum()
    }

    /// Where a page lies, and how many pages move with it: the first of them, and how many.
    pub(crate) fn unit(&self, page: u32) -> Option<Unit> {
        let slot = self.slots.get((page / BLOCK_PAGES) as usize)?;
        let within = page % BLOCK_PAGES;
        if slot.huge {
            let first = page - within;
            return Some(Unit { first, pages: BLOCK_PAGES, address: slot.start });
        }
        let is_there = slot.present[(within / 64) as usize] & (1 << (within % 64)) != 0;
        let address = slot.start + u64::from(within) * PAGE;
        is_there.then_some(Unit { first: page, pages: 1, address })
    }

    /// Pages that were used, in rising order.
    pub(crate) fn used(&self) -> Vec<Run> {
        self.runs(|slot, _, word| slot.used[word])
    }

    /// Pages that were there before this pass and are not any more.
    pub(crate) fn gone(&self) -> Vec<Run> {
        self.runs(|slot, before, word| before[word] & !slot.present[word])
    }

    /// Units that came in this pass, or whose slot is of this share of all slots.
    pub(crate) fn fresh(&self, share: u32, of: u32) -> Vec<Unit> {
        let mut number = 0;
        let runs = self.runs(|slot, before, word| {
            let at = number / 8;
            number += 1;
            let again = at % of == share;
            slot.present[word] & if again { u64::MAX } else { !before[word] }
        });
        let mut units: Vec<Unit> = Vec::new();
        for run in runs {
            let mut page = run.first;
            while page < run.first + run.count {
                let Some(unit) = self.unit(page) else { break };
                units.push(unit);
                page = unit.first + unit.pages;
            }
        }
        units
    }

    fn runs(&self, mut bits: impl FnMut(&Slot, &[u64; 8], usize) -> u64) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (index, (slot, before)) in (0_u32..).zip(self.slots.iter().zip(&self.before)) {
            for word in 0..8 {
                let mut left = bits(slot, before, word);
                while left != 0 {
                    let bit = left.trailing_zeros();
                    let count = (left >> bit).trailing_ones();
                    left &= if bit + count == 64 { 0 } else { u64::MAX << (bit + count) };
                    let first = index * BLOCK_PAGES + u32::try_from(word).unwrap_or(0) * 64 + bit;
                    match runs.last_mut().filter(|run| run.first + run.count == first) {
                        Some(run) => run.count += count,
                        None => runs.push(Run { first, count }),
                    }
                }
            }
        }
        runs
    }
}

/// The bits of pages below one, in a word whose first page is `from`.
fn below(page: u64, from: u64) -> u64 {
    match page.saturating_sub(from) {
        count @ 0..64 => (1 << count) - 1,
        _ => u64::MAX,
    }
}

/// What moves as one: a page, or a large folio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Its first page.
    pub(crate) first: u32,
    /// Its pages.
    pub(crate) pages: u32,
    /// The address of the first.
    pub(crate) address: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(start: u64, end: u64, huge: bool) -> Stretch {
        Stretch { start, end, written: true, huge }
    }

    #[test]
    fn pages_keep_their_numbers_while_others_come_and_go() {
        let (far, near) = (0x7000_0000_0000, 0x40_0000);
        let mut space = Space::default();
        space.begin();
        space.note(stretch(far, far + 3 * PAGE, false));
        space.note(stretch(far + PAGE, far + 2 * PAGE, false));
        assert_eq!(space.used(), [Run { first: 0, count: 3 }]);
        assert_eq!(space.fresh(1, 2).len(), 3);
        space.begin();
        // A block further down, and a stretch over a boundary.
        space.note(stretch(near, near + PAGE, false));
        space.note(stretch(far + PAGE, far + BLOCK + PAGE, false));
        let used = [Run { first: 1, count: 512 }, Run { first: 1024, count: 1 }];
        assert_eq!(space.used(), used);
        assert_eq!(space.gone(), [Run { first: 0, count: 1 }]);
        assert_eq!(space.present(), 513);
        assert_eq!(space.unit(0), None);
        let unit = Unit { first: 1024, pages: 1, address: far + BLOCK };
        assert_eq!(space.unit(1024), Some(unit));
        assert_eq!(space.unit(9999), None);
    }

    #[test]
    fn a_huge_page_is_one_unit() {
        let mut space = Space::default();
        space.begin();
        space.note(stretch(BLOCK, 3 * BLOCK, true));
        let unit = Unit { first: 512, pages: 512, address: 2 * BLOCK };
        assert_eq!(space.unit(700), Some(unit));
        assert_eq!(space.fresh(1, 2).len(), 2);
        space.begin();
        space.note(stretch(BLOCK, 3 * BLOCK, true));
        assert_eq!(space.fresh(1, 2), [unit], "half of all are asked again");
        space.begin();
        assert_eq!(space.gone(), [Run { first: 0, count: 1024 }]);
    }
}
