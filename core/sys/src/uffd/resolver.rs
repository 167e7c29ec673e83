#![expect(unsafe_code, reason = "a fault is resolved by an ioctl")]
//! The `ioctl` that ends a fault: seven of them, behind one call.
//!
//! Rules: (1) what runs here may run in a signal handler: no allocation, no lock, `errno` is left
//! as it was; (2) every request carries the size of its struct, which outlives the call; (3) the
//! kernel writes only to ranges that are registered, which are areas' ([`super::Uffd::register`]).

use std::{
    os::fd::{AsFd, AsRawFd, RawFd},
    sync::atomic::{Ordering, compiler_fence},
};

use linux_raw_sys::general as uapi;

use super::{
    descriptor::{UNREGISTER, Uffd, WAKE, WRITEPROTECT, request},
    tally::Tally,
};
use crate::Area;

/// How a fault is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `UFFDIO_COPY`: a fresh page with the contents of another.
    Copy,
    /// `UFFDIO_ZEROPAGE`: the shared zero page.
    ZeroPage,
    /// `UFFDIO_CONTINUE` (since Linux 5.13): the page that is in the page cache.
    Continue,
    /// `UFFDIO_WRITEPROTECT` without protection (since Linux 5.7).
    Unprotect,
    /// `UFFDIO_MOVE` (since Linux 6.8): a page from elsewhere, not copied.
    Move,
    /// `UFFDIO_POISON` (since Linux 6.6): every access ends in `SIGBUS`.
    Poison,
}

/// Resolves the faults of one range, so many bytes at a time.
#[derive(Debug, Clone, Copy)]
pub struct Resolver {
    fd: RawFd,
    op: Op,
    unit: usize,
    base: usize,
    range: (usize, usize),
    source: usize,
}

impl Resolver {
    /// For the faults of `from..to` of an area, `unit` aligned bytes at each fault.
    ///
    /// `source` is where copies come from (`unit` bytes of it), or the area whose pages are moved,
    /// each to its own place.
    ///
    /// # Panics
    /// When the unit is no power of two, does not divide the range, or the source is too small.
    pub fn new(
        uffd: &Uffd,
        op: Op,
        area: &Area,
        (from, to): (usize, usize),
        unit: usize,
        source: Option<&Area>,
    ) -> Self {
        let bytes = area.layout().bytes();
        assert!(unit.is_power_of_two() && from < to && to <= bytes, "units in the area");
        assert!(area.base().is_multiple_of(unit), "units are aligned");
        assert!(from.is_multiple_of(unit) && to.is_multiple_of(unit), "whole units");
        let needed = match op {
            Op::Copy => unit,
            Op::Move => bytes,
            _ => 0,
        };
        let has = source.map_or(0, |source| source.layout().bytes());
        assert!(has >= needed, "a source of {needed} bytes");
        Self {
            fd: uffd.as_fd().as_raw_fd(),
            op,
            unit,
            base: area.base(),
            range: (area.base() + from, area.base() + to),
            source: source.map_or(0, Area::base),
        }
    }

    /// Where its faults may lie: start and end.
    pub(super) fn range(&self) -> (usize, usize) {
        self.range
    }

    /// The start of the unit that an address lies in.
    #[inline(always)]
    pub(super) fn unit_of(&self, address: usize) -> usize {
        address & !(self.unit - 1)
    }

    /// Whether what it resolves cannot be accessed afterwards.
    #[inline(always)]
    pub(super) fn poisons(&self) -> bool {
        self.op == Op::Poison
    }

    /// Resolves the fault at `address` and whatever else lies in its unit.
    ///
    /// Answers whether anything was left to resolve; an error is the kernel's number.
    #[inline(always)]
    pub(super) fn resolve(&self, address: usize, tally: &Tally) -> Result<bool, i32> {
        let start = self.unit_of(address);
        let mut done = 0;
        loop {
            let (result, bytes) = self.call(start + done, self.unit - done);
            done += bytes;
            match result {
                0 => {
                    tally.resolved(done as u64);
                    return Ok(true);
                }
                // The address space is changing, or only a part was done: again, with the rest.
                libc::EAGAIN => {
                    tally.retried();
                    if done >= self.unit {
                        tally.resolved(done as u64);
                        return Ok(true);
                    }
                }
                libc::EEXIST => {
                    tally.duplicate();
                    let mut range =
                        uapi::uffdio_range { start: start as u64, len: self.unit as u64 };
                    return match ioctl(self.fd, WAKE, &mut range) {
                        0 => Ok(false),
                        error => Err(error),
                    };
                }
                error => return Err(error),
            }
        }
    }

    /// Keeps the error and gives the range back: who waits there is woken, and faults from now on
    /// in the ordinary way, so that nobody hangs.
    #[cold]
    pub(super) fn give_up(&self, error: i32, tally: &Tally) {
        tally.failed(error);
        let (start, end) = self.range;
        let mut range = uapi::uffdio_range { start: start as u64, len: (end - start) as u64 };
        // Something else has failed already, and that is what is reported.
        let _ = ioctl(self.fd, UNREGISTER, &mut range);
    }

    /// One request: its error number, or 0, and the bytes that the kernel says it resolved.
    #[inline(always)]
    fn call(&self, start: usize, bytes: usize) -> (i32, usize) {
        let range = uapi::uffdio_range { start: start as u64, len: bytes as u64 };
        let (fd, dst, len) = (self.fd, start as u64, bytes as u64);
        match self.op {
            Op::Copy => {
                // A retried copy starts where the first one ended, in the source as well.
                let src = (self.source + self.unit - bytes) as u64;
                let mut argument = uapi::uffdio_copy { dst, src, len, mode: 0, copy: 0 };
                (ioctl(fd, COPY, &mut argument), resolved(argument.copy))
            }
            Op::ZeroPage => {
                let mut argument = uapi::uffdio_zeropage { range, mode: 0, zeropage: 0 };
                (ioctl(fd, ZEROPAGE, &mut argument), resolved(argument.zeropage))
            }
            Op::Continue => {
                let mut argument = uapi::uffdio_continue { range, mode: 0, mapped: 0 };
                (ioctl(fd, CONTINUE, &mut argument), resolved(argument.mapped))
            }
            Op::Unprotect => {
                let mut argument = uapi::uffdio_writeprotect { range, mode: 0 };
                let result = ioctl(fd, WRITEPROTECT, &mut argument);
                (result, if result == 0 { bytes } else { 0 })
            }
            Op::Move => {
                let src = (self.source + (start - self.base)) as u64;
                let mut argument = uapi::uffdio_move { dst, src, len, mode: 0, move_: 0 };
                (ioctl(fd, MOVE, &mut argument), resolved(argument.move_))
            }
            Op::Poison => {
                let mut argument = uapi::uffdio_poison { range, mode: 0, updated: 0 };
                (ioctl(fd, POISON, &mut argument), resolved(argument.updated))
            }
        }
    }
}

/// A count of bytes, or an error number below zero, as the kernel leaves it.
#[inline(always)]
fn resolved(count: i64) -> usize {
    usize::try_from(count).unwrap_or(0)
}

const COPY: u64 = request::<uapi::uffdio_copy>(uapi::_UFFDIO_COPY);
const ZEROPAGE: u64 = request::<uapi::uffdio_zeropage>(uapi::_UFFDIO_ZEROPAGE);
const CONTINUE: u64 = request::<uapi::uffdio_continue>(uapi::_UFFDIO_CONTINUE);
const MOVE: u64 = request::<uapi::uffdio_move>(uapi::_UFFDIO_MOVE);
const POISON: u64 = request::<uapi::uffdio_poison>(uapi::_UFFDIO_POISON);

/// The error number of a request, 0 where it succeeded.
#[inline(always)]
fn ioctl<T>(fd: RawFd, request: u64, argument: &mut T) -> i32 {
    // SAFETY: the request names the size of `T`, which outlives the call (rule 2).
    let result =
        unsafe { libc::syscall(libc::SYS_ioctl, fd, request, std::ptr::from_mut(argument)) };
    // The struct is read next; nothing of it may be remembered from before the call.
    compiler_fence(Ordering::SeqCst);
    if result == 0 {
        0
    } else {
        std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
    }
}
