//! Direct-mapped caches of pages, simulated for several sizes at once.
//!
//! The one idea: only an access to another page than the one before can miss, so only those come
//! here and only misses are counted; everything else is a hit. What hits in one size hits in its
//! multiples too, and changes nothing there, so they only see what missed.
//!
//! The slots of a page are looked up once, when the page is new. Slots that no page maps to do not
//! exist, which keeps the memory below the number of pages, however large the cache.

use rustc_hash::FxHashMap;
use serde::Serialize;

/// What a direct-mapped cache of pages would have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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

impl DirectMapped {
    /// Share of accesses that hit, 0 to 1; 0 where there were none.
    pub fn hit_rate(&self) -> f64 {
        super::share(self.hits, self.hits.saturating_add(self.misses))
    }
}

/// Several caches with the same accesses, each of another size.
#[derive(Debug)]
pub(super) struct Caches {
    /// Each with the sizes that are multiples of one another, in ascending order.
    chains: Vec<Vec<Cache>>,
    /// The sizes as they were asked for.
    sizes: Vec<u64>,
}

#[derive(Debug)]
struct Cache {
    entries: u64,
    /// Where each slot is that a page maps to.
    places: FxHashMap<u64, usize>,
    /// Number of the page that each slot holds.
    held: Vec<usize>,
    /// The slot of each page, by its number.
    of_page: Vec<usize>,
    misses: u64,
}

/// No page has this number.
const NOTHING: usize = usize::MAX;

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

    /// Makes room for the page that has the next number.
    pub(super) fn add_page(&mut self, page: u64) {
        self.chains.iter_mut().flatten().for_each(|cache| cache.add_page(page));
    }

    /// Accesses to pages, by their numbers.
    pub(super) fn access(&mut self, numbers: &mut [usize], spare: &mut [usize]) {
        let Some((last, others)) = self.chains.split_last_mut() else { return };
        for chain in others {
            let copy = &mut spare[..numbers.len()];
            copy.copy_from_slice(numbers);
            access(chain, copy);
        }
        access(last, numbers);
    }

    /// What became of so many operations, those included that had to hit.
    pub(super) fn outcome(&self, operations: u64) -> Vec<DirectMapped> {
        let of_size = |entries: &u64| {
            let cache = self.chains.iter().flatten().find(|cache| cache.entries == *entries)?;
            let misses = cache.misses;
            // A slot is filled once and never emptied: each that is not empty was cold once.
            let cold = cache.held.iter().filter(|held| **held != NOTHING).count() as u64;
            let (hits, conflicts) = (operations - misses, misses - cold);
            Some(DirectMapped { entries: *entries, hits, misses, conflicts, cold })
        };
        self.sizes.iter().filter_map(of_size).collect()
    }
}

fn access(chain: &mut [Cache], numbers: &mut [usize]) {
    let mut rest = numbers;
    for cache in chain {
        let misses = cache.access(rest);
        rest = &mut rest[..misses];
    }
}

impl Cache {
    fn new(entries: u64) -> Self {
        let (places, held, of_page) = (FxHashMap::default(), Vec::new(), Vec::new());
        Self { entries, places, held, of_page, misses: 0 }
    }

    fn add_page(&mut self, page: u64) {
        let place = self.places.entry(page % self.entries).or_insert_with(|| {
            self.held.push(NOTHING);
            self.held.len() - 1
        });
        self.of_page.push(*place);
    }

    /// Accesses to pages, by their numbers; those that missed are moved to the front. Returns how
    /// many there are.
    #[inline(never)]
    fn access(&mut self, numbers: &mut [usize]) -> usize {
        let (held, of_page) = (self.held.as_mut_slice(), self.of_page.as_slice());
        let mut misses = 0;
        for at in 0..numbers.len() {
            let number = numbers[at];
            let held = &mut held[of_page[number]];
            // No branch: nobody can guess what hits.
            numbers[misses] = number;
            misses += usize::from(*held != number);
            *held = number;
        }
        self.misses += misses as u64;
        misses
    }
}
