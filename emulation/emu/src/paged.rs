//! Memories behind a map of pages: fast-mem's backends, from the plain map to page caches.
//!
//! The one idea: a backend is only the way it finds a page, a [`Pages`]. Policies, straddles and
//! slices are written once, in [`Paged`], and are looked at where a page is missing or an access
//! leaves its page: what is found costs what fast-mem's code costs.
//!
//! This file has no unsafe code. The backends that keep pointers are in `raw/cache.rs`; what
//! pagelab itself offers, memories that need no map on the way, is not here.

use std::{collections::hash_map::RandomState, fmt};

use rustc_hash::FxBuildHasher;

use crate::{
    Absent, Fault, Kind, Memory, Policy,
    memory::{OFFSET_MASK, PAGE_BYTES, page_of},
};
pub use crate::{
    find::{Missing, Page, PageMap, Pages},
    looked::Looked,
    raw::cache::PageCache,
};

/// `paged-sip`: a map with the standard library's hasher.
pub type PagedSip = Paged<PageMap<RandomState>>;
/// `paged-ahash`: a map with `AHash`; always the same keys, so that runs can be compared.
#[cfg(feature = "hashers")]
pub type PagedAhash = Paged<AhashMap>;
#[cfg(feature = "hashers")]
pub(crate) type AhashMap = PageMap<Ahash>;
/// `paged-fx`: a map with `FxHash`.
pub type PagedFx = Paged<PageMap<FxBuildHasher>>;
/// `paged-nohash`: a map whose hash is the page number.
#[cfg(feature = "hashers")]
pub type PagedNohash = Paged<NohashMap>;
#[cfg(feature = "hashers")]
pub(crate) type NohashMap = PageMap<Nohash>;
/// `paged-last`: remembers the last page that it found.
pub type PagedLast = Paged<PageCache<1, false>>;
/// The hashers that fast-mem compares, by what they are called here.
#[cfg(feature = "hashers")]
pub(crate) type Ahash = std::hash::BuildHasherDefault<ahash::AHasher>;
#[cfg(feature = "hashers")]
pub(crate) type Nohash = nohash_hasher::BuildNoHashHasher<u64>;
/// `paged-cache-N`: remembers `N` pages, direct-mapped.
pub type PagedCache<const N: usize> = Paged<PageCache<N, false>>;
/// `paged-cache-N-neg`: remembers `N` absent pages, too.
pub type PagedCacheNeg<const N: usize> = Paged<PageCache<N, true>>;

/// A memory that asks `P` for its pages.
pub struct Paged<P> {
    pages: P,
    policy: Policy,
}

impl<P: Pages + Default> Paged<P> {
    /// An empty memory.
    pub fn new(policy: &Policy) -> Self {
        Self { pages: P::default(), policy: *policy }
    }
}

impl<P: Pages> fmt::Debug for Paged<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pages, policy } = self;
        f.debug_struct("Paged").field("pages", &pages.count()).field("policy", policy).finish()
    }
}

impl<P: Pages> Paged<P> {
    #[inline]
    fn load_as<const N: usize>(&mut self, addr: u64, kind: Kind) -> Result<[u8; N], Fault> {
        const { assert!(N > 0 && N <= PAGE_BYTES) };
        let offset = offset_of(addr);
        if offset > PAGE_BYTES - N {
            return self.load_straddling(addr, kind);
        }
        let mut value = [0; N];
        match self.pages.find(page_of(addr), &self.policy) {
            Ok(Some(page)) => value.copy_from_slice(&page[offset..offset + N]),
            Ok(None) => self.made(addr)?,
            Err(Missing) => return Err(Fault::Absent { addr, kind }),
        }
        Ok(value)
    }

    #[cold]
    fn load_straddling<const N: usize>(&mut self, addr: u64, kind: Kind) -> Result<[u8; N], Fault> {
        let mut value = [0; N];
        self.read_as(addr, &mut value, kind)?;
        Ok(value)
    }

    /// Makes the page of `addr`, which is absent, where that is the policy.
    #[inline]
    fn made(&mut self, addr: u64) -> Result<(), Fault> {
        if self.policy.absent == Absent::Make {
            let policy = &self.policy;
            self.pages.make(page_of(addr), |count| fresh(policy, count, addr))?;
        }
        Ok(())
    }

    fn read_as(&mut self, addr: u64, to: &mut [u8], kind: Kind) -> Result<(), Fault> {
        self.check_range(addr, to.len() as u64, kind)?;
        let (mut addr, mut rest) = (addr, to);
        while !rest.is_empty() {
            let offset = offset_of(addr);
            let here = (PAGE_BYTES - offset).min(rest.len());
            let (piece, later) = rest.split_at_mut(here);
            match self.pages.find(page_of(addr), &self.policy) {
                Ok(Some(page)) => piece.copy_from_slice(&page[offset..][..here]),
                Ok(None) => {
                    piece.fill(0);
                    self.made(addr)?;
                }
                Err(Missing) => return Err(Fault::Absent { addr, kind }),
            }
            (addr, rest) = (addr.wrapping_add(here as u64), later);
        }
        Ok(())
    }

    /// Writes to both pages or to none: whatever can go wrong does so before the first byte.
    #[cold]
    fn store_straddling(&mut self, addr: u64, value: &[u8]) -> Result<(), Fault> {
        self.check_range(addr, value.len() as u64, Kind::Store)?;
        let (head, tail) = value.split_at(PAGE_BYTES - offset_of(addr));
        let next = addr.wrapping_add(head.len() as u64);
        let mut count = self.pages.count();
        let mut spare = [None, None];
        for (spare, addr) in spare.iter_mut().zip([addr, next]) {
            if !self.pages.has(page_of(addr)) {
                *spare = Some(fresh(&self.policy, count, addr)?);
                count += 1;
            }
        }
        for (spare, (addr, piece)) in spare.into_iter().zip([(addr, head), (next, tail)]) {
            let fresh = |_| spare.ok_or(Fault::OutOfMemory { addr });
            let page = self.pages.find_or_insert(page_of(addr), fresh)?;
            page[offset_of(addr)..][..piece.len()].copy_from_slice(piece);
        }
        Ok(())
    }
}

impl<P: Pages> Memory for Paged<P> {
    #[inline]
    fn load<const N: usize>(&mut self, addr: u64) -> Result<[u8; N], Fault> {
        self.load_as(addr, Kind::Load)
    }

    #[inline]
    fn fetch<const N: usize>(&mut self, addr: u64) -> Result<[u8; N], Fault> {
        self.load_as(addr, Kind::Fetch)
    }

    #[inline]
    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Fault> {
        const { assert!(N <= PAGE_BYTES) };
        let offset = offset_of(addr);
        if offset > PAGE_BYTES - N {
            return self.store_straddling(addr, &value);
        }
        let policy = &self.policy;
        let fresh = |count| fresh(policy, count, addr);
        let page = self.pages.find_or_insert(page_of(addr), fresh)?;
        page[offset..offset + N].copy_from_slice(&value);
        Ok(())
    }

    fn load_seq<const N: usize>(
        &mut self,
        addr: u64,
        count: usize,
        mut sink: impl FnMut(&[[u8; N]]),
    ) -> Result<(), Fault> {
        const { assert!(N > 0 && N <= PAGE_BYTES) };
        let (mut addr, mut left) = (addr, count);
        while left > 0 {
            let offset = offset_of(addr);
            let here = ((PAGE_BYTES - offset) / N).min(left);
            if here == 0 {
                sink(&[self.load(addr)?]);
                (addr, left) = (addr.wrapping_add(N as u64), left - 1);
                continue;
            }
            if self.policy.absent == Absent::Make && !self.pages.has(page_of(addr)) {
                self.made(addr)?;
            }
            let page = match self.pages.find(page_of(addr), &self.policy) {
                Ok(page) => page.unwrap_or(&ZEROS),
                Err(Missing) => return Err(Fault::Absent { addr, kind: Kind::Load }),
            };
            sink(page[offset..][..here * N].as_chunks().0);
            (addr, left) = (addr.wrapping_add((here * N) as u64), left - here);
        }
        Ok(())
    }

    fn read(&mut self, addr: u64, to: &mut [u8]) -> Result<(), Fault> {
        self.read_as(addr, to, Kind::Load)
    }

    fn write(&mut self, addr: u64, from: &[u8]) -> Result<(), Fault> {
        self.check_range(addr, from.len() as u64, Kind::Store)?;
        let (mut addr, mut rest) = (addr, from);
        while !rest.is_empty() {
            let (piece, later) = rest.split_at((PAGE_BYTES - offset_of(addr)).min(rest.len()));
            let (policy, at) = (&self.policy, offset_of(addr));
            let fresh = |count| fresh(policy, count, addr);
            let page = self.pages.find_or_insert(page_of(addr), fresh)?;
            page[at..at + piece.len()].copy_from_slice(piece);
            (addr, rest) = (addr.wrapping_add(piece.len() as u64), later);
        }
        Ok(())
    }

    fn check_range(&self, addr: u64, bytes: u64, kind: Kind) -> Result<(), Fault> {
        self.policy.edge.check(addr, bytes, kind)
    }

    fn looked(&self) -> Option<Looked> {
        self.pages.looked()
    }
}

/// The first memory of fast-mem: every access is a slice of any length, which is copied page by
/// page; no width has a path of its own.
pub struct Sliced<P>(Paged<P>);

impl<P: Pages> fmt::Debug for Sliced<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sliced").field(&self.0).finish()
    }
}

impl<P: Pages + Default> Sliced<P> {
    /// An empty memory.
    pub fn new(policy: &Policy) -> Self {
        Self(Paged::new(policy))
    }
}

impl<P: Pages> Memory for Sliced<P> {
    #[inline]
    fn load<const N: usize>(&mut self, addr: u64) -> Result<[u8; N], Fault> {
        let mut value = [0; N];
        self.0.read_as(addr, &mut value, Kind::Load)?;
        Ok(value)
    }

    #[inline]
    fn fetch<const N: usize>(&mut self, addr: u64) -> Result<[u8; N], Fault> {
        let mut value = [0; N];
        self.0.read_as(addr, &mut value, Kind::Fetch)?;
        Ok(value)
    }

    #[inline]
    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Fault> {
        // A store makes all of its pages or none, which is asked for where there are two.
        if offset_of(addr) > PAGE_BYTES - N {
            return self.0.store_straddling(addr, &value);
        }
        self.0.write(addr, &value)
    }

    fn read(&mut self, addr: u64, to: &mut [u8]) -> Result<(), Fault> {
        self.0.read(addr, to)
    }

    fn write(&mut self, addr: u64, from: &[u8]) -> Result<(), Fault> {
        self.0.write(addr, from)
    }

    fn check_range(&self, addr: u64, bytes: u64, kind: Kind) -> Result<(), Fault> {
        self.0.check_range(addr, bytes, kind)
    }

    fn looked(&self) -> Option<Looked> {
        self.0.looked()
    }
}

/// What absent pages hold.
static ZEROS: Page = [0; PAGE_BYTES];

/// Where `addr` is in its page.
#[inline]
fn offset_of(addr: u64) -> usize {
    (addr & OFFSET_MASK) as usize
}

/// A page of zeros for `addr`, unless `count` pages are all there may be.
#[cold]
fn fresh(policy: &Policy, count: usize, addr: u64) -> Result<Box<Page>, Fault> {
    let limit = policy.page_limit;
    if count as u64 >= limit / PAGE_BYTES as u64 {
        return Err(Fault::PageLimit { addr, limit });
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(PAGE_BYTES).map_err(|_| Fault::OutOfMemory { addr })?;
    bytes.resize(PAGE_BYTES, 0);
    bytes.into_boxed_slice().try_into().map_err(|_| Fault::OutOfMemory { addr })
}
