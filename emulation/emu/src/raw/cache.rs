//! Page caches in front of a page map, as fast-mem builds them: pointers to pages, direct-mapped
//! by page number.
//!
//! The one idea: a page never moves, so a pointer to it that was found once can be used again
//! without asking the map. What a slot does not know goes to the map, out of line.
//!
//! This is what others are compared with, written as well as its author would; the design that is
//! meant to win is in `raw/tlb.rs`.
//!
//! # Rules
//! 1. A page's pointer is taken once, from the box that the page arrives in; the map owns the page
//!    from then on, and frees it when the map is dropped. The map never gives up a page before.
//! 2. Every pointer in a slot is a copy of one that the map of the same cache owns.
//! 3. References are made from these pointers only, and live no longer than the borrow of the
//!    cache that they were asked through: `&self` pages beside `&mut self` pages cannot exist.
//! 4. A number in `absent` is of a page that the map does not have.
#![expect(unsafe_code, reason = "pointers to pages that outlive a look-up, by the rules above")]

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    hash::BuildHasher,
    ptr::NonNull,
};

use rustc_hash::FxBuildHasher;

use crate::{
    Absent, Fault, Policy,
    find::{Missing, Page, Pages},
    looked::Looked,
};

/// No page has this number: there are 2^52.
const NONE: u64 = u64::MAX;

/// A page, owned through a pointer that others may copy.
struct Owned(NonNull<Page>);

impl Owned {
    fn new(page: Box<Page>) -> Self {
        Self(NonNull::from(Box::leak(page)))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: rule 1: it came from a box, and only its owner gets here.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// A map of pages behind `N` slots; with `NEGATIVE`, slots remember absent pages, too. With
/// `COUNTS` it says how often they knew: counting takes time, so that what is timed does not.
pub struct PageCache<
    const N: usize,
    const NEGATIVE: bool,
    S = FxBuildHasher,
    const COUNTS: bool = false,
> {
    map: HashMap<u64, Owned, S>,
    ids: [u64; N],
    pages: [Option<NonNull<Page>>; N],
    absent: [u64; N],
    looked: Looked,
}

// SAFETY: rules 1 and 2: all pointers are to pages that the cache owns and nobody else knows.
unsafe impl<const N: usize, const NEGATIVE: bool, S: Send, const COUNTS: bool> Send
    for PageCache<N, NEGATIVE, S, COUNTS>
{
}

impl<const N: usize, const NEGATIVE: bool, S: Default, const COUNTS: bool> Default
    for PageCache<N, NEGATIVE, S, COUNTS>
{
    fn default() -> Self {
        const { assert!(N.is_power_of_two()) };
        Self {
            map: HashMap::default(),
            ids: [NONE; N],
            pages: [None; N],
            absent: [NONE; N],
            looked: Looked::default(),
        }
    }
}

impl<const N: usize, const NEGATIVE: bool, S, const COUNTS: bool> fmt::Debug
    for PageCache<N, NEGATIVE, S, COUNTS>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { map, .. } = self;
        f.debug_struct("PageCache").field("pages", &map.len()).finish_non_exhaustive()
    }
}

impl<const N: usize, const NEGATIVE: bool, S: BuildHasher, const COUNTS: bool>
    PageCache<N, NEGATIVE, S, COUNTS>
{
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "only the low bits are used")]
    fn slot(number: u64) -> usize {
        number as usize & (N - 1)
    }

    /// What the slot remembers of that page.
    #[inline]
    fn remembered(&self, number: u64) -> Option<NonNull<Page>> {
        let slot = Self::slot(number);
        if self.ids[slot] == number { self.pages[slot] } else { None }
    }

    #[inline]
    fn remember(&mut self, number: u64, page: NonNull<Page>) {
        let slot = Self::slot(number);
        self.ids[slot] = number;
        self.pages[slot] = Some(page);
    }

    /// Counts a look-up of a kind, where it is to count.
    #[inline(always)]
    fn look(&mut self, of: fn(&mut Looked) -> &mut u64) {
        if COUNTS {
            *of(&mut self.looked) += 1;
        }
    }

    /// Asks the map, and remembers what it says. That a page is absent is not remembered where
    /// this faults, so that a slot says zero and nothing else.
    #[cold]
    #[inline(never)]
    fn find_in_map(&mut self, number: u64, policy: &Policy) -> Result<Option<&Page>, Missing> {
        let Some(&Owned(page)) = self.map.get(&number) else {
            if NEGATIVE && policy.absent == Absent::Zero {
                self.absent[Self::slot(number)] = number;
            }
            return policy.absent.answer();
        };
        self.remember(number, page);
        // SAFETY: rules 1 and 3.
        Ok(Some(unsafe { page.as_ref() }))
    }

    #[cold]
    #[inline(never)]
    fn find_or_insert_in_map(
        &mut self,
        number: u64,
        fresh: impl FnOnce(usize) -> Result<Box<Page>, Fault>,
    ) -> Result<&mut Page, Fault> {
        let count = self.map.len();
        let Owned(mut page) = *match self.map.entry(number) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Owned::new(fresh(count)?)),
        };
        let slot = Self::slot(number);
        if NEGATIVE && self.absent[slot] == number {
            self.absent[slot] = NONE;
        }
        self.remember(number, page);
        // SAFETY: rules 1 and 3.
        Ok(unsafe { page.as_mut() })
    }
}

impl<const N: usize, const NEGATIVE: bool, S: BuildHasher + Send, const COUNTS: bool> Pages
    for PageCache<N, NEGATIVE, S, COUNTS>
{
    #[inline]
    fn find(&mut self, number: u64, policy: &Policy) -> Result<Option<&Page>, Missing> {
        if let Some(page) = self.remembered(number) {
            self.look(|looked| &mut looked.hits);
            // SAFETY: rules 2 and 3.
            return Ok(Some(unsafe { page.as_ref() }));
        }
        if NEGATIVE && self.absent[Self::slot(number)] == number {
            self.look(|looked| &mut looked.absent_hits);
            return Ok(None);
        }
        self.look(|looked| &mut looked.misses);
        self.find_in_map(number, policy)
    }

    #[inline]
    fn find_or_insert(
        &mut self,
        number: u64,
        fresh: impl FnOnce(usize) -> Result<Box<Page>, Fault>,
    ) -> Result<&mut Page, Fault> {
        if let Some(mut page) = self.remembered(number) {
            self.look(|looked| &mut looked.hits);
            // SAFETY: rules 2 and 3.
            return Ok(unsafe { page.as_mut() });
        }
        self.look(|looked| &mut looked.misses);
        self.find_or_insert_in_map(number, fresh)
    }

    fn make(
        &mut self,
        number: u64,
        fresh: impl FnOnce(usize) -> Result<Box<Page>, Fault>,
    ) -> Result<(), Fault> {
        self.find_or_insert_in_map(number, fresh).map(drop)
    }

    fn has(&self, number: u64) -> bool {
        self.map.contains_key(&number)
    }

    fn count(&self) -> usize {
        self.map.len()
    }

    fn looked(&self) -> Option<Looked> {
        COUNTS.then_some(self.looked)
    }
}
