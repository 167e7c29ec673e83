//! A memory that the host's own MMU translates: one window of reserved address space.
//!
//! The one idea: a guest address below the window's end is an offset into a huge, empty mapping,
//! so a load is a load. What a page is backed with is the host's business, which makes this fast
//! on dense guests, slow on sparse ones (a host fault and its page table for each page), and blind:
//! it cannot tell absent pages from present ones, so it takes no policy that asks for that. It is
//! opt-in and may be refused; addresses past the window go to a [`Tlb`].
//!
//! # Rules
//! 1. The mapping is readable and writable, and [`Flat::end`] bytes long; it never moves.
//! 2. An access goes into the window only if all of its bytes are below the end.
#![expect(clippy::cast_possible_truncation, reason = "host addresses wrap at their own width")]
#![expect(unsafe_code, reason = "loads and stores by pointer, by the rules above")]

use memmap2::{MmapMut, MmapOptions};

use super::tlb::Tlb;
use crate::{Absent, Edge, Fault, Kind, Memory, Policy, Unfit};

/// Bits of the window unless somebody says otherwise: 32 TiB, which most hosts grant.
pub(crate) const WINDOW_BITS: u32 = 45;

/// 2^64 bytes, the low ones translated by the host.
#[derive(Debug)]
pub struct Flat {
    base: *mut u8,
    end: u64,
    edge: Edge,
    beyond: Box<Tlb>,
    /// Owns what `base` points to.
    _window: MmapMut,
}

// SAFETY: `base` points into the mapping that the value owns, alone.
unsafe impl Send for Flat {}

impl Flat {
    /// An empty memory whose lowest 2^`bits` bytes are a window; 20 to 46 bits.
    ///
    /// # Errors
    /// When the policy needs to know which pages exist, or the host does not grant the window.
    pub fn new(policy: Policy, bits: u32) -> Result<Self, Unfit> {
        if policy.absent != Absent::Zero || policy.page_limit != u64::MAX {
            let why = "flat cannot tell which pages exist, so absent loads cannot fault or make \
                       them, and pages cannot be limited: use tlb";
            return Err(Unfit(why.to_owned()));
        }
        if !(20..=46).contains(&bits) {
            return Err(Unfit(format!("a window of 2^{bits} bytes: choose 20 to 46 bits")));
        }
        let end = 1_u64 << bits;
        let refused = |why: &dyn std::fmt::Display| {
            Unfit(format!("the host does not grant a window of 2^{bits} bytes ({why}): use tlb"))
        };
        let bytes = usize::try_from(end).map_err(|error| refused(&error))?;
        let mut options = MmapOptions::new();
        let mut window =
            options.len(bytes).no_reserve_swap().map_anon().map_err(|error| refused(&error))?;
        // Huge pages would back 2 MiB for each page that a sparse guest touches.
        #[cfg(target_os = "linux")]
        let _ = window.advise(memmap2::Advice::NoHugePage);
        let base = window.as_mut_ptr();
        let beyond = Box::new(Tlb::new(policy, true));
        Ok(Self { base, end, edge: policy.edge, beyond, _window: window })
    }

    /// Where an access of so many bytes, at most a page, is in the window, if all of it is.
    #[inline(always)]
    fn inside(&self, addr: u64, bytes: usize) -> Option<*mut u8> {
        (addr <= self.end - bytes as u64).then(|| self.base.wrapping_add(addr as usize))
    }

    /// The same for any number of bytes.
    fn slice_inside(&self, addr: u64, bytes: usize) -> Option<*mut u8> {
        if bytes as u64 <= self.end { self.inside(addr, bytes) } else { None }
    }

    #[cold]
    #[inline(never)]
    fn load_outside<const B: usize>(&mut self, addr: u64) -> Result<[u8; B], Fault> {
        if addr >= self.end && addr.checked_add(B as u64 - 1).is_some() {
            return self.beyond.load(addr);
        }
        // Over the end of the window, or of the address space: this asks the policy.
        self.edge.check(addr, B as u64, Kind::Load)?;
        let mut value = [0; B];
        for (at, byte) in (0..).zip(&mut value) {
            [*byte] = self.load(addr.wrapping_add(at))?;
        }
        Ok(value)
    }

    #[cold]
    #[inline(never)]
    fn store_outside<const B: usize>(&mut self, addr: u64, value: [u8; B]) -> Result<(), Fault> {
        if addr >= self.end && addr.checked_add(B as u64 - 1).is_some() {
            return self.beyond.store(addr, value);
        }
        self.edge.check(addr, B as u64, Kind::Store)?;
        // The one byte beyond that may be refused first: a store that faults has written nothing.
        for (at, byte) in value.into_iter().enumerate().rev() {
            self.store(addr.wrapping_add(at as u64), [byte])?;
        }
        Ok(())
    }
}

impl Memory for Flat {
    #[inline(always)]
    fn load<const B: usize>(&mut self, addr: u64) -> Result<[u8; B], Fault> {
        match self.inside(addr, B) {
            // SAFETY: rules 1 and 2.
            Some(from) => Ok(unsafe { from.cast::<[u8; B]>().read_unaligned() }),
            None => self.load_outside(addr),
        }
    }

    #[inline(always)]
    fn store<const B: usize>(&mut self, addr: u64, value: [u8; B]) -> Result<(), Fault> {
        match self.inside(addr, B) {
            Some(to) => {
                // SAFETY: rules 1 and 2.
                unsafe { to.cast::<[u8; B]>().write_unaligned(value) };
                Ok(())
            }
            None => self.store_outside(addr, value),
        }
    }

    fn check_range(&self, addr: u64, bytes: u64, kind: Kind) -> Result<(), Fault> {
        self.edge.check(addr, bytes, kind)
    }

    fn read(&mut self, addr: u64, to: &mut [u8]) -> Result<(), Fault> {
        self.check_range(addr, to.len() as u64, Kind::Load)?;
        if let Some(from) = self.slice_inside(addr, to.len()) {
            // SAFETY: rules 1 and 2; `to` is the caller's.
            unsafe { to.as_mut_ptr().copy_from_nonoverlapping(from, to.len()) };
            return Ok(());
        }
        for (at, byte) in (0..).zip(to) {
            [*byte] = self.load(addr.wrapping_add(at))?;
        }
        Ok(())
    }

    fn write(&mut self, addr: u64, from: &[u8]) -> Result<(), Fault> {
        self.check_range(addr, from.len() as u64, Kind::Store)?;
        if let Some(to) = self.slice_inside(addr, from.len()) {
            // SAFETY: rules 1 and 2; `from` is the caller's.
            unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
            return Ok(());
        }
        for (at, byte) in (0..).zip(from) {
            self.store(addr.wrapping_add(at), [*byte])?;
        }
        Ok(())
    }
}
