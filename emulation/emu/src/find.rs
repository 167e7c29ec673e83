//! How a backend of fast-mem's kind finds its pages: by a map, or by what stands in front of one.
//!
//! The policy is looked at only where nothing is found.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::BuildHasher,
};

use crate::{Absent, Fault, Policy, looked::Looked, memory::PAGE_BYTES};

/// The bytes of one page.
pub type Page = [u8; PAGE_BYTES];
/// A map that owns its pages, by page number.
pub type PageMap<S> = HashMap<u64, Box<Page>, S>;

/// The page is not there, and the policy is that this faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing;

impl Absent {
    /// What a look-up answers that found no page: `None`, or that this faults.
    #[inline]
    pub(crate) fn answer<T>(self) -> Result<Option<T>, Missing> {
        match self {
            Self::Zero | Self::Make => Ok(None),
            Self::Fault => Err(Missing),
        }
    }
}

/// How a backend finds its pages. Implementations should be `#[inline]` where they find.
pub trait Pages: Send {
    /// The page of that number; `None` when it is absent and so reads as zero. The policy is
    /// looked at only when nothing is found.
    ///
    /// # Errors
    /// When it is absent and the policy is that this faults.
    fn find(&mut self, number: u64, policy: &Policy) -> Result<Option<&Page>, Missing>;

    /// The page of that number; where there is none, what `fresh` makes, which is told how many
    /// pages there are.
    ///
    /// # Errors
    /// What `fresh` says; then there is no page more than before.
    fn find_or_insert(
        &mut self,
        number: u64,
        fresh: impl FnOnce(usize) -> Result<Box<Page>, Fault>,
    ) -> Result<&mut Page, Fault>;

    /// Makes a page that was just looked for and not found.
    ///
    /// # Errors
    /// What `fresh` says; then there is no page more than before.
    fn make(
        &mut self,
        number: u64,
        fresh: impl FnOnce(usize) -> Result<Box<Page>, Fault>,
    ) -> Result<(), Fault> {
        self.find_or_insert(number, fresh).map(drop)
    }

    /// Whether there is a page of that number.
    fn has(&self, number: u64) -> bool;

    /// How many pages there are.
    fn count(&self) -> usize;

    /// How often a cache in front of the map knew a page, where there is one and it counts.
    fn looked(&self) -> Option<Looked> {
        None
    }
}

impl<S: BuildHasher + Send> Pages for PageMap<S> {
    #[inline]
    fn find(&mut self, number: u64, policy: &Policy) -> Result<Option<&Page>, Missing> {
        match self.get(&number) {
            Some(page) => Ok(Some(page)),
            None => policy.absent.answer(),
        }
    }

    #[inline]
    fn find_or_insert(
        &mut self,
        number: u64,
        fresh: impl FnOnce(usize) -> Result<Box<Page>, Fault>,
    ) -> Result<&mut Page, Fault> {
        let count = self.len();
        match self.entry(number) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => Ok(entry.insert(fresh(count)?)),
        }
    }

    fn has(&self, number: u64) -> bool {
        self.contains_key(&number)
    }

    fn count(&self) -> usize {
        self.len()
    }
}
