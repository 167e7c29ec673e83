//! Direct-mapped caches of pages, simulated for several sizes at once.
//!
//! The one idea: only an access to another page than the one before can miss, so only those come
//! here and only misses are counted; everything else is a hit. What hits in one size hits in its
//! multiples too, and changes nothing there, so they only see what missed.
//!
//! A cache of a great size keeps only the slots that are used, which are no more than the pages.

use std::mem::replace;

use rustc_hash::FxHashMap;

/// What a direct-mapped cache of pages would have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct DirectMapped {
    /// How many pages it holds; page `p` goes to slot `p % entries`.
    pub entries: u64,
    /// Accesses to a page that was in its slot.
    pub hits: u64,
    /// All other accesses; `conflicts + cold`.
    pub misses: u64,
    /// Misses that found another page in the slot.
    pub conflicts: u64,
    /// Misses that found the slot empty.
    pub cold: u64,
}

/// Several caches with the same accesses, each of another size.
#[derive(Debug)]
pub(super) struct Caches {
    /// Each with the sizes that are multiples of one another, in ascending order.
    chains: Vec<Vec<Cache>>,
    /// The sizes as they were asked for.
    sizes: Vec<u64>,
}

/// One cache; it counts misses only.
#[derive(Debug)]
struct Cache {
    entries: u64,
    slots: Slots,
    misses: u64,
}

/// The page in each slot.
#[derive(Debug)]
enum Slots {
    /// All of them. A slot that is empty holds a page that belongs into another one.
    All(Vec<u64>),
    /// Those that are not empty: in a cache that may have far more slots than there are pages.
    Used(FxHashMap<u64, u64>),
}

/// Most slots that are kept whether they are used or not; 1 is too few for [`Slots::All`].
const ALL: std::ops::RangeInclusive<u64> = 2..=1 << 12;

impl Caches {
    /// Empty caches; `sizes` are not 0.
    pub(super) fn new(sizes: &[u64]) -> Self {
        let mut ascending = sizes.to_vec();
        ascending.sort_unstable();
        ascending.dedup();
        let mut chains: Vec<Vec<Cache>> = Vec::new();
        for entries in ascending {
            let cache = Cache::new(entries);
            let extends = |chain: &&mut Vec<Cache>| {
                chain.last().is_some_and(|smaller| entries.is_multiple_of(smaller.entries))
            };
            match chains.iter_mut().find(extends) {
                Some(chain) => chain.push(cache),
                None => chains.push(vec![cache]),
            }
        }
        Self { chains, sizes: sizes.to_vec() }
    }

    /// Accesses to pages; the list is used up.
    pub(super) fn access(&mut self, pages: &mut [u64]) {
        let Some((last, others)) = self.chains.split_last_mut() else { return };
        for chain in others {
            access(chain, &mut pages.to_vec());
        }
        access(last, pages);
    }

    /// What became of so many operations, those included that had to hit.
    pub(super) fn outcome(&self, operations: u64) -> Vec<DirectMapped> {
        let of_size = |entries: &u64| {
            let cache = self.chains.iter().flatten().find(|cache| cache.entries == *entries)?;
            // A slot is filled once and never emptied: each that is not empty was cold once.
            let (misses, cold) = (cache.misses, cache.used());
            let (hits, conflicts) = (operations - misses, misses - cold);
            Some(DirectMapped { entries: *entries, hits, misses, conflicts, cold })
        };
        self.sizes.iter().filter_map(of_size).collect()
    }
}

fn access(chain: &mut [Cache], pages: &mut [u64]) {
    let mut rest = pages;
    for cache in chain {
        let misses = cache.access(rest);
        rest = &mut rest[..misses];
    }
}

impl Cache {
    fn new(entries: u64) -> Self {
        let slots = if ALL.contains(&entries) {
            Slots::All((1..=entries).collect())
        } else {
            Slots::Used(FxHashMap::default())
        };
        Self { entries, slots, misses: 0 }
    }

    /// How many slots are not empty.
    fn used(&self) -> u64 {
        match &self.slots {
            Slots::All(held) => {
                let used = (0..).zip(held).filter(|(slot, page)| *page % self.entries == *slot);
                used.count() as u64
            }
            Slots::Used(held) => held.len() as u64,
        }
    }

    /// Accesses to pages; those that missed are moved to the front. Returns how many there are.
    fn access(&mut self, pages: &mut [u64]) -> usize {
        let entries = self.entries;
        let misses = match &mut self.slots {
            Slots::All(held) if entries.is_power_of_two() => {
                misses(pages, |page| Some(replace(&mut held[index(page & (entries - 1))], page)))
            }
            Slots::All(held) => {
                misses(pages, |page| Some(replace(&mut held[index(page % entries)], page)))
            }
            Slots::Used(held) => misses(pages, |page| held.insert(page % entries, page)),
        };
        self.misses += misses as u64;
        misses
    }
}

/// Moves the pages to the front that `put` did not find, and counts them; `put` returns what was
/// in the page's slot.
#[inline(always)]
fn misses(pages: &mut [u64], mut put: impl FnMut(u64) -> Option<u64>) -> usize {
    let mut misses = 0;
    for at in 0..pages.len() {
        let page = pages[at];
        // No branch: nobody can guess what hits.
        pages[misses] = page;
        misses += usize::from(put(page) != Some(page));
    }
    misses
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "as many as a vector has")]
const fn index(slot: u64) -> usize {
    slot as usize
}
