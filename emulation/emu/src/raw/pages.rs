//! Which pages exist, where they are, and who else sees them: the page table behind the TLB.
//!
//! The one idea: a page is either *own*, reachable from this memory alone, or *shared*, reachable
//! from a snapshot or a fork and never written again. Taking a snapshot makes every own page a
//! shared one; the first store to a shared page copies it. So a snapshot copies no page.
//!
//! # Rules
//! 1. An own page is reachable from this memory only: whoever has `&mut Pages` may write it.
//! 2. A shared page is never written.
//! 3. The arena keeps the chunk of every page in either map.
#![expect(unsafe_code, reason = "copies pages that it holds by pointer")]

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    arena::{Arena, Keep, Page},
    map::PageMap,
};
use crate::{
    Absent, Fault, Kind, Policy,
    memory::{OFFSET_MASK, PAGE_BYTES, page_of},
    policy::Permissions,
};

/// The page table of one memory.
#[derive(Debug)]
pub(crate) struct Pages {
    own: PageMap,
    shared: Arc<PageMap>,
    arena: Arena,
    policy: Policy,
    /// Own pages, and shared ones that no own page hides.
    count: u64,
    permissions: FxHashMap<u64, Permissions>,
    marks: Option<Box<Marks>>,
    /// Nothing is forbidden and nothing is noted.
    plain: bool,
}

/// What was seen since the last mark; pages by number.
#[derive(Debug, Clone, Default)]
struct Marks {
    written: FxHashSet<u64>,
    touched: FxHashSet<u64>,
}

/// What a look-up found, and what the TLB may therefore do without asking again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// The page; one of zeros for an absent one.
    pub(crate) page: Page,
    /// Loads may go on.
    pub(crate) load: bool,
    /// Stores may go on.
    pub(crate) store: bool,
    /// Fetches may go on.
    pub(crate) fetch: bool,
}

impl Found {
    /// An own page of a memory that forbids and notes nothing.
    #[inline(always)]
    pub(crate) fn everything(page: Page) -> Self {
        Self { page, load: true, store: true, fetch: true }
    }
}

/// Everything that a memory held at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Frozen {
    map: Arc<PageMap>,
    keep: Keep,
    permissions: FxHashMap<u64, Permissions>,
}

impl Pages {
    pub(crate) fn new(policy: Policy, huge: bool) -> Self {
        Self {
            own: PageMap::default(),
            shared: Arc::default(),
            arena: Arena::new(huge),
            policy,
            count: 0,
            permissions: FxHashMap::default(),
            marks: None,
            plain: true,
        }
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// How many pages exist.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The own page that holds `addr`, where any access to it may go on unasked.
    #[inline(always)]
    pub(crate) fn plain(&self, addr: u64) -> Option<Page> {
        if self.plain { self.own.get(page_of(addr)) } else { None }
    }

    /// The page that holds `addr`, to be loaded or fetched from.
    #[inline]
    pub(crate) fn find(&mut self, addr: u64, kind: Kind) -> Result<Found, Fault> {
        let number = page_of(addr);
        let allowed = self.allowed(addr, kind)?;
        let own = self.own.get(number);
        let found = own.or_else(|| self.shared.get(number));
        if found.is_none() && self.policy.absent == Absent::Fault {
            return Err(Fault::Absent { addr, kind });
        }
        // A page that must be copied, noted or made first is not to be stored to unasked.
        let mut store = own.is_some() && allowed.store;
        if let Some(marks) = &mut self.marks {
            marks.touched.insert(number);
            store &= marks.written.contains(&number);
        }
        let page = found.unwrap_or(Page::zeros());
        Ok(Found { page, load: allowed.load, store, fetch: allowed.fetch })
    }

    /// The page that holds `addr`, to be stored to: made or copied where it must be.
    #[inline]
    pub(crate) fn find_own(&mut self, addr: u64) -> Result<Found, Fault> {
        let number = page_of(addr);
        let allowed = self.allowed(addr, Kind::Store)?;
        let page = match self.own.get(number) {
            Some(page) => page,
            None => self.make_own(addr)?,
        };
        if let Some(marks) = &mut self.marks {
            marks.touched.insert(number);
            marks.written.insert(number);
        }
        Ok(Found { page, load: allowed.load, store: true, fetch: allowed.fetch })
    }

    #[cold]
    fn make_own(&mut self, addr: u64) -> Result<Page, Fault> {
        let number = page_of(addr);
        let shared = self.shared.get(number);
        if shared.is_none() && self.count >= self.policy.page_limit / PAGE_BYTES as u64 {
            return Err(Fault::PageLimit { addr, limit: self.policy.page_limit });
        }
        let page = self.arena.page().ok_or(Fault::OutOfMemory { addr })?;
        match shared {
            // SAFETY: both are whole pages whose chunks are here; the new one is nobody else's.
            Some(shared) => unsafe { page.copy_from(shared) },
            None => self.count += 1,
        }
        self.own.insert(number, page);
        Ok(page)
    }

    /// Whether a store to `addr` would succeed; makes nothing.
    pub(crate) fn may_store(&self, addr: u64, more: u64) -> Result<(), Fault> {
        self.allowed(addr, Kind::Store)?;
        let number = page_of(addr);
        let exists = self.own.get(number).is_some() || self.shared.get(number).is_some();
        let limit = self.policy.page_limit;
        if !exists && self.count.saturating_add(more) >= limit / PAGE_BYTES as u64 {
            return Err(Fault::PageLimit { addr, limit });
        }
        Ok(())
    }

    /// Whether a load or fetch of `addr` would succeed; notes nothing.
    pub(crate) fn may_load(&self, addr: u64, kind: Kind) -> Result<(), Fault> {
        self.allowed(addr, kind)?;
        if self.policy.absent == Absent::Fault && !self.exists(addr) {
            return Err(Fault::Absent { addr, kind });
        }
        Ok(())
    }

    /// Whether a page for `addr` exists.
    pub(crate) fn exists(&self, addr: u64) -> bool {
        let number = page_of(addr);
        self.own.get(number).is_some() || self.shared.get(number).is_some()
    }

    #[inline]
    fn allowed(&self, addr: u64, kind: Kind) -> Result<Permissions, Fault> {
        if self.permissions.is_empty() {
            return Ok(Permissions::ALL);
        }
        let known = self.permissions.get(&page_of(addr)).copied();
        let allowed = known.unwrap_or(Permissions::ALL);
        if allowed.allow(kind) { Ok(allowed) } else { Err(Fault::Denied { addr, kind }) }
    }

    /// Sets the permissions of every page that has a byte in the range; costs an entry for each.
    pub(crate) fn protect(&mut self, addr: u64, bytes: u64, permissions: Permissions) {
        let Some(last) = bytes.checked_sub(1) else { return };
        let last = page_of(addr.saturating_add(last));
        for number in page_of(addr)..=last {
            if permissions == Permissions::ALL {
                self.permissions.remove(&number);
            } else {
                self.permissions.insert(number, permissions);
            }
        }
        self.settle();
    }

    /// Whether an own page may be accessed unasked, after that may have changed.
    fn settle(&mut self) {
        self.plain = self.permissions.is_empty() && self.marks.is_none();
    }

    /// Starts to note which pages are touched and written.
    pub(crate) fn mark(&mut self) {
        self.marks = Some(Box::default());
        self.settle();
    }

    /// Pages stored to since the mark, in order of their numbers.
    pub(crate) fn written(&self) -> Vec<u64> {
        sorted(self.marks.iter().flat_map(|marks| &marks.written))
    }

    /// Pages loaded, fetched or stored to since the mark, in order of their numbers.
    pub(crate) fn touched(&self) -> Vec<u64> {
        sorted(self.marks.iter().flat_map(|marks| &marks.touched))
    }

    /// The numbers of all pages, in order.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.own.iter().chain(self.shared.iter()).map(|(n, _)| n).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// What is held now, for a snapshot or a fork: from here on every page is shared.
    pub(crate) fn freeze(&mut self) -> Frozen {
        let own = std::mem::take(&mut self.own);
        if own.len() > 0 {
            let shared = Arc::make_mut(&mut self.shared);
            own.iter().for_each(|(number, page)| shared.insert(number, page));
        }
        let (map, keep) = (Arc::clone(&self.shared), self.arena.share());
        Frozen { map, keep, permissions: self.permissions.clone() }
    }

    /// Goes back to what was held then. Own pages of now are used again.
    pub(crate) fn thaw(&mut self, frozen: &Frozen) {
        for (_, page) in std::mem::take(&mut self.own).iter() {
            // Rule 1: nobody else could reach it.
            self.arena.release(page);
        }
        self.arena.keep(&frozen.keep);
        self.shared = Arc::clone(&frozen.map);
        self.count = self.shared.len() as u64;
        self.permissions.clone_from(&frozen.permissions);
        self.settle();
        if let Some(marks) = &mut self.marks {
            **marks = Marks::default();
        }
    }
}

/// Bytes of the page of `addr` from `addr` on.
pub(crate) fn rest_of_page(addr: u64) -> usize {
    PAGE_BYTES - (addr & OFFSET_MASK) as usize
}

fn sorted<'a>(numbers: impl Iterator<Item = &'a u64>) -> Vec<u64> {
    let mut all: Vec<u64> = numbers.copied().collect();
    all.sort_unstable();
    all
}
