//! The default memory: a software TLB in front of a page table.
//!
//! The one idea: a slot of the TLB says for which page loads, stores and fetches may go straight
//! to host memory, and how far that memory is away. One comparison of the page of the *last* byte
//! with the tag in the slot of the *first* byte refuses a wrong page, an empty slot, a page
//! boundary and the end of the address space alike; everything that it refuses is out of line.
//!
//! # Rules
//! 1. A tag is the address of a page, or [`NOTHING`], which no page has for an address.
//! 2. Where a tag stands, `host + address` is inside that page for every address in it, and the
//!    page may be read (any tag) or written (the store tag).
//! 3. There are at least two slots. If first and last byte are in different pages, the tag would
//!    have to be that of the next page, and that stands in another slot.
//! 4. Whatever takes pages away, shares them or starts to watch them clears the tags.
//! 5. The page of zeros never gets a store tag.
//! 6. An open window shows a page that may be fetched from; its room ends where the widest access
//!    would leave the page.
//!
//! Instruction fetches go through a window of their own, the page that was fetched from last:
//! they stay on a page for hundreds of accesses, and a window costs half of what a slot does.
#![expect(clippy::cast_possible_truncation, reason = "host addresses wrap at their own width")]
#![expect(unsafe_code, reason = "loads and stores by pointer, by the rules above")]

use std::slice;

use super::pages::{Found, Frozen, Pages, rest_of_page};
use crate::{
    Fault, Kind, Memory, Policy,
    memory::{OFFSET_MASK, PAGE_BYTES, page_of},
    policy::Permissions,
};

/// Slots of the TLB unless somebody says otherwise: 32 KiB, where more gained nothing.
pub(crate) const SLOTS: usize = 1024;

/// A tag that no page has: the low bits of a page's address are clear.
const NOTHING: u64 = 1;

/// Where in [`Slot::tags`] the tag of an access stands.
const LOAD: usize = 0;
const STORE: usize = 1;
const FETCH: usize = 2;

/// One page that needs no look-up.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
struct Slot {
    tags: [u64; 3],
    /// The page's host memory, minus its address; only good with an address added.
    host: *mut u8,
}

impl Slot {
    const EMPTY: Self = Self { tags: [NOTHING; 3], host: std::ptr::null_mut() };
}

/// The page that was fetched from last.
#[derive(Debug, Clone, Copy)]
struct Window {
    page: u64,
    /// Offsets below this one may be fetched from, whatever the width; 0 where nothing may.
    room: u64,
    /// As in [`Slot`].
    host: *const u8,
}

impl Window {
    const CLOSED: Self = Self { page: 0, room: 0, host: std::ptr::null() };
    /// Room for accesses of 16 bytes, the widest.
    const ROOM: u64 = PAGE_BYTES as u64 - 15;
}

/// 2^64 bytes behind a direct-mapped software TLB of `N` slots, a power of two, at least 2.
///
/// It knows every policy, permissions, snapshots, forks, and which pages were touched and written.
/// The TLB is part of the value (32 KiB by default): keep it in a `Box`, or where it stays.
#[derive(Debug)]
pub struct Tlb<const N: usize = SLOTS> {
    window: Window,
    // In place, not boxed: one load less for each access.
    slots: [Slot; N],
    pages: Pages,
}

// SAFETY: the slots point into pages of `pages`, which is `Send`, or to the constant zeros.
unsafe impl<const N: usize> Send for Tlb<N> {}

/// Everything that a [`Tlb`] held at one moment; costs no page until either side stores to one.
#[derive(Debug, Clone)]
pub struct Snapshot(Frozen);

impl<const N: usize> Tlb<N> {
    /// An empty memory; `huge` asks the host for huge pages behind it.
    pub fn new(policy: Policy, huge: bool) -> Self {
        const { assert!(N.is_power_of_two() && N >= 2) };
        let slots = [Slot::EMPTY; N];
        Self { window: Window::CLOSED, slots, pages: Pages::new(policy, huge) }
    }

    /// Bytes of the pages that exist.
    pub fn resident_bytes(&self) -> u64 {
        self.pages.count() * PAGE_BYTES as u64
    }

    /// The numbers of all pages that exist, in order.
    pub fn page_numbers(&self) -> Vec<u64> {
        self.pages.numbers()
    }

    /// What the memory holds now. From here on the first store to a page copies it.
    pub fn snapshot(&mut self) -> Snapshot {
        self.forget();
        Snapshot(self.pages.freeze())
    }

    /// Goes back to what a snapshot holds, of this memory or of another.
    pub fn restore(&mut self, snapshot: &Snapshot) {
        self.forget();
        self.pages.thaw(&snapshot.0);
    }

    /// A second memory that holds the same and goes its own way: pages are copied when written.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        let snapshot = self.snapshot();
        let mut child = Self::new(*self.pages.policy(), true);
        child.restore(&snapshot);
        child
    }

    /// Starts to note which pages are touched and which are written.
    pub fn mark(&mut self) {
        self.forget();
        self.pages.mark();
    }

    /// Numbers of the pages stored to since [`Tlb::mark`], in order.
    pub fn written_pages(&self) -> Vec<u64> {
        self.pages.written()
    }

    /// Numbers of the pages loaded, fetched or stored to since [`Tlb::mark`], in order.
    pub fn touched_pages(&self) -> Vec<u64> {
        self.pages.touched()
    }

    /// Sets what may be done with every page that has a byte in the range.
    pub fn protect(&mut self, addr: u64, bytes: u64, permissions: Permissions) {
        self.forget();
        self.pages.protect(addr, bytes, permissions);
    }

    /// Rule 4.
    fn forget(&mut self) {
        self.slots.fill(Slot::EMPTY);
        self.window = Window::CLOSED;
    }

    #[inline(always)]
    fn slot(&self, addr: u64) -> &Slot {
        &self.slots[page_of(addr) as usize & (N - 1)]
    }

    /// The host's address of `bytes` bytes at `addr`, where the TLB knows it.
    #[inline(always)]
    fn hit<const TAG: usize>(&self, addr: u64, bytes: usize) -> Option<*mut u8> {
        let last = addr.wrapping_add(bytes as u64 - 1);
        let slot = self.slot(addr);
        (slot.tags[TAG] == last & !OFFSET_MASK).then(|| slot.host.wrapping_add(addr as usize))
    }

    /// Enters a page; returns the host's address of `addr`, which is in it.
    #[inline(always)]
    fn enter(&mut self, addr: u64, found: Found) -> *mut u8 {
        let base = addr & !OFFSET_MASK;
        let tag = |may: bool| if may { base } else { NOTHING };
        let host = found.page.start().wrapping_sub(base as usize);
        let tags = [tag(found.load), tag(found.store), tag(found.fetch)];
        self.slots[page_of(addr) as usize & (N - 1)] = Slot { tags, host };
        host.wrapping_add(addr as usize)
    }

    /// After a miss: the host's address of `bytes` bytes at `addr`, which the TLB knows from now
    /// on; null where they are not in one page or where the access faults.
    #[inline(never)]
    fn refill(&mut self, addr: u64, bytes: usize, kind: Kind) -> *mut u8 {
        if rest_of_page(addr) >= bytes
            && let Some(page) = self.pages.plain(addr)
        {
            return self.enter(addr, Found::everything(page));
        }
        self.refill_slowly(addr, bytes, kind)
    }

    #[cold]
    #[inline(never)]
    fn refill_slowly(&mut self, addr: u64, bytes: usize, kind: Kind) -> *mut u8 {
        if rest_of_page(addr) < bytes {
            return std::ptr::null_mut();
        }
        self.locate(addr, kind).unwrap_or(std::ptr::null_mut())
    }

    /// The host's address of `addr`, for an access of this kind that ends in the same page.
    fn locate(&mut self, addr: u64, kind: Kind) -> Result<*mut u8, Fault> {
        let found = match kind {
            Kind::Store => self.pages.find_own(addr)?,
            Kind::Load | Kind::Fetch => self.pages.find(addr, kind)?,
        };
        // Another page may have stood behind the address: nothing, or one that is shared.
        self.window = Window::CLOSED;
        Ok(self.enter(addr, found))
    }

    #[cold]
    #[inline(never)]
    fn load_slowly<const B: usize>(&mut self, addr: u64, kind: Kind) -> Result<[u8; B], Fault> {
        self.pages.policy().edge.check(addr, B as u64, kind)?;
        // Both pages before either is noted as touched.
        self.pages.may_load(addr, kind)?;
        self.pages.may_load(addr.wrapping_add(B as u64 - 1) & !OFFSET_MASK, kind)?;
        let mut value = [0; B];
        self.read_as(addr, &mut value, kind)?;
        Ok(value)
    }

    #[cold]
    #[inline(never)]
    fn store_slowly<const B: usize>(&mut self, addr: u64, value: [u8; B]) -> Result<(), Fault> {
        self.pages.policy().edge.check(addr, B as u64, Kind::Store)?;
        if rest_of_page(addr) < B {
            // Both pages before either byte: a store that faults has written nothing.
            let second = addr.wrapping_add(rest_of_page(addr) as u64);
            self.pages.may_store(addr, 0)?;
            self.pages.may_store(second, u64::from(!self.pages.exists(addr)))?;
            self.locate(second, Kind::Store)?;
            self.locate(addr, Kind::Store)?;
        }
        self.write(addr, &value)
    }

    /// Makes the window show `bytes` bytes at `addr`; `false` where it cannot.
    #[inline(never)]
    fn look_at(&mut self, addr: u64, bytes: usize) -> bool {
        let host = match self.hit::<FETCH>(addr, bytes) {
            Some(host) => host,
            None => self.refill(addr, bytes, Kind::Fetch),
        };
        let page = addr & !OFFSET_MASK;
        if host.is_null() || addr - page >= Window::ROOM {
            return false;
        }
        self.window = Window { page, room: Window::ROOM, host: host.wrapping_sub(addr as usize) };
        true
    }

    fn read_as(&mut self, addr: u64, to: &mut [u8], kind: Kind) -> Result<(), Fault> {
        self.pages.policy().edge.check(addr, to.len() as u64, kind)?;
        let (mut addr, mut to) = (addr, to);
        while !to.is_empty() {
            let here = rest_of_page(addr).min(to.len());
            let from = match (kind, self.hit::<LOAD>(addr, here), self.hit::<FETCH>(addr, here)) {
                (Kind::Load, Some(host), _) | (Kind::Fetch, _, Some(host)) => host,
                _ => self.locate(addr, kind)?,
            };
            let (piece, rest) = to.split_at_mut(here);
            // SAFETY: rule 2: `here` bytes of the page from `addr` on; `piece` is the caller's.
            unsafe { piece.as_mut_ptr().copy_from_nonoverlapping(from, here) };
            (addr, to) = (addr.wrapping_add(here as u64), rest);
        }
        Ok(())
    }
}

impl<const N: usize> Memory for Tlb<N> {
    #[inline(always)]
    fn load<const B: usize>(&mut self, addr: u64) -> Result<[u8; B], Fault> {
        if let Some(host) = self.hit::<LOAD>(addr, B) {
            // SAFETY: rule 2: the tag stands for the page of the last byte, and by rule 3 of all.
            return Ok(unsafe { host.cast::<[u8; B]>().read_unaligned() });
        }
        let host = self.refill(addr, B, Kind::Load);
        if host.is_null() {
            return self.load_slowly(addr, Kind::Load);
        }
        // SAFETY: rule 2: the page was just entered, and the access ends in it.
        Ok(unsafe { host.cast::<[u8; B]>().read_unaligned() })
    }

    #[inline(always)]
    fn store<const B: usize>(&mut self, addr: u64, value: [u8; B]) -> Result<(), Fault> {
        if let Some(host) = self.hit::<STORE>(addr, B) {
            // SAFETY: rule 2, and rule 3: the page may be written.
            unsafe { host.cast::<[u8; B]>().write_unaligned(value) };
            return Ok(());
        }
        let host = self.refill(addr, B, Kind::Store);
        if host.is_null() {
            return self.store_slowly(addr, value);
        }
        // SAFETY: rule 2: the page was just entered, to be written; the access ends in it.
        unsafe { host.cast::<[u8; B]>().write_unaligned(value) };
        Ok(())
    }

    #[inline(always)]
    fn fetch<const B: usize>(&mut self, addr: u64) -> Result<[u8; B], Fault> {
        let inside = addr.wrapping_sub(self.window.page) < self.window.room;
        if !inside && !self.look_at(addr, B) {
            return self.load_slowly(addr, Kind::Fetch);
        }
        let from = self.window.host.wrapping_add(addr as usize);
        // SAFETY: rule 6: the room ends where the widest access would leave the page.
        Ok(unsafe { from.cast::<[u8; B]>().read_unaligned() })
    }

    #[inline]
    fn load_seq<const B: usize>(
        &mut self,
        addr: u64,
        count: usize,
        mut sink: impl FnMut(&[[u8; B]]),
    ) -> Result<(), Fault> {
        let (mut addr, mut left) = (addr, count);
        while left > 0 {
            let here = (rest_of_page(addr) / B).min(left);
            if here == 0 {
                sink(&[self.load(addr)?]);
                (addr, left) = (addr.wrapping_add(B as u64), left - 1);
                continue;
            }
            let from = match self.hit::<LOAD>(addr, here * B) {
                Some(host) => host,
                None => self.locate(addr, Kind::Load)?,
            };
            // SAFETY: rule 2: `here` values end inside the page; nobody stores while `sink` looks,
            // because this method has the only reference to the memory.
            sink(unsafe { slice::from_raw_parts(from.cast::<[u8; B]>(), here) });
            (addr, left) = (addr.wrapping_add((here * B) as u64), left - here);
        }
        Ok(())
    }

    fn read(&mut self, addr: u64, to: &mut [u8]) -> Result<(), Fault> {
        self.read_as(addr, to, Kind::Load)
    }

    fn write(&mut self, addr: u64, from: &[u8]) -> Result<(), Fault> {
        self.check_range(addr, from.len() as u64, Kind::Store)?;
        let (mut addr, mut from) = (addr, from);
        while !from.is_empty() {
            let here = rest_of_page(addr).min(from.len());
            let to = match self.hit::<STORE>(addr, here) {
                Some(host) => host,
                None => self.locate(addr, Kind::Store)?,
            };
            let (piece, rest) = from.split_at(here);
            // SAFETY: rule 2: `here` bytes of the page from `addr` on; `piece` is the caller's.
            unsafe { to.copy_from_nonoverlapping(piece.as_ptr(), here) };
            (addr, from) = (addr.wrapping_add(here as u64), rest);
        }
        Ok(())
    }

    fn check_range(&self, addr: u64, bytes: u64, kind: Kind) -> Result<(), Fault> {
        self.pages.policy().edge.check(addr, bytes, kind)
    }
}
