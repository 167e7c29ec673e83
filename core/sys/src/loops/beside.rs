#![expect(unsafe_code, reason = "mprotect changes what memory is")]
//! Calls that one thread makes over and over beside others that fault in the same address space.
//!
//! The one idea: a small area of its own is brought into the state that the call takes away
//! ([`Ground::prepare`], never timed), and then there is the one call ([`Ground::call`]). What the
//! two threads share is the address space only: its locks, its list of mappings, and the TLBs that
//! hold its translations.
//!
//! Rules: (1) the ground is an [`Area`] that nobody else reaches; (2) a call keeps to its range.

use linux_raw_sys::general as uapi;

use crate::{
    Area, SysError,
    loops::Stride,
    memory::{Advice, Backing, Layout, Scanner},
};

/// Base pages of the ground: few enough that x86 flushes them one by one (the ceiling is 33).
pub const PAGES: u64 = 16;

const BASE_PAGE: usize = 4096;
const BYTES: usize = 16 * BASE_PAGE;
const EACH: Stride = Stride { step: BASE_PAGE, bytes: 8 };

/// A call that changes mappings or page tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `munmap` of present pages.
    Munmap,
    /// `mprotect` of present pages, to read-only and back: two calls, each by itself.
    Mprotect,
    /// `madvise(MADV_DONTNEED)` of present pages.
    Madvise,
}

/// Memory that the calls are made on.
#[derive(Debug)]
pub struct Ground {
    area: Area,
    call: Call,
    is_present: bool,
    is_writable: bool,
}

impl Ground {
    /// Reserves and maps it; every page is present afterwards.
    ///
    /// # Errors
    /// When there is no room.
    pub fn new(call: Call) -> Result<Self, SysError> {
        let layout = Layout::contiguous(BYTES);
        let mut area = Area::reserve(layout, Backing::Anonymous, 2 << 20, 0)?;
        area.open()?;
        let mut ground = Self { area, call, is_present: false, is_writable: true };
        ground.map()?;
        Ok(ground)
    }

    fn map(&mut self) -> Result<(), SysError> {
        self.area.map(false)?;
        // Base pages whatever the machine's policy: each touch below is then one fault.
        self.area.advise(Advice::NoHugePage)?;
        self.area.touch(0, BYTES, EACH);
        self.is_present = true;
        Ok(())
    }

    /// Makes present again what the last call took away; returns the faults that this must take.
    ///
    /// # Errors
    /// When memory is short.
    pub fn prepare(&mut self) -> Result<u64, SysError> {
        if self.is_present {
            return Ok(0);
        }
        match self.call {
            Call::Munmap => self.map()?,
            Call::Madvise | Call::Mprotect => self.area.touch(0, BYTES, EACH),
        }
        self.is_present = true;
        Ok(PAGES)
    }

    /// The call.
    ///
    /// # Errors
    /// When the kernel refuses, which it has no reason to.
    pub fn call(&mut self) -> Result<(), SysError> {
        match self.call {
            Call::Munmap => {
                self.is_present = false;
                self.area.release()
            }
            Call::Madvise => {
                self.is_present = false;
                self.area.give_up(BYTES)
            }
            Call::Mprotect => {
                let writable = if self.is_writable { 0 } else { uapi::PROT_WRITE };
                self.is_writable = !self.is_writable;
                let at = self.area.base() as *mut libc::c_void;
                let protection = (uapi::PROT_READ | writable).cast_signed();
                // SAFETY: the range is the ground's, and only its owner stores there.
                let result = unsafe { libc::mprotect(at, BYTES, protection) };
                SysError::checked(result, "mprotect", format_args!("{BYTES} bytes")).map(drop)
            }
        }
    }

    /// Base pages present now.
    ///
    /// # Errors
    /// When the page table cannot be read.
    pub fn present(&self) -> Result<u64, SysError> {
        Ok(Scanner::open()?.scan(&self.area)?.present)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::usage;

    #[test]
    fn a_call_takes_away_what_preparing_brought_and_the_faults_are_as_announced() {
        let _alone = crate::alone();
        for (call, left) in [(Call::Munmap, 0), (Call::Madvise, 0), (Call::Mprotect, PAGES)] {
            let mut ground = Ground::new(call).unwrap();
            let mut lap = || {
                let before = usage::thread();
                let announced = ground.prepare().unwrap();
                let faults = usage::thread().since(before).minor_faults;
                let prepared = ground.present().unwrap();
                ground.call().unwrap();
                (faults == announced, prepared, ground.present().unwrap())
            };
            // The first ones take the faults of the code.
            lap();
            lap();
            crate::counted((true, PAGES, left), lap);
        }
    }
}
