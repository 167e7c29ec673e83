#![expect(unsafe_code, reason = "userfaultfd is spoken to by ioctl; the rules are in lib.rs")]
//! Pages that nobody can write to for a moment, while their contents are copied.
//!
//! The one idea: a userfaultfd protects them (of hugetlb memory since Linux 5.19). Whoever writes
//! waits in the kernel, and goes on when they are thawed, wherever the address leads by then. No
//! signal comes of it, as one would of `mprotect`. A child may have the descriptor for a moment
//! longer, so that closing it is not enough.

use std::{
    ffi::{c_int, c_long},
    ops::Range,
};

use pagelab_sys::process::preload::edge::{self, checked};

/// `UFFDIO_API` and the like of userfaultfd.h.
const API: c_long = 0xc018_aa3f;
const REGISTER: c_long = 0xc020_aa00;
const UNREGISTER: c_long = 0x8010_aa01;
const WAKE: c_long = 0x8010_aa02;
const WRITEPROTECT: c_long = 0xc018_aa06;
/// `UFFD_API`, and the features of write protection: of memory at all, and of hugetlb memory.
const VERSION: u64 = 0xaa;
const FEATURES: u64 = 1 | 1 << 12;
/// `UFFDIO_REGISTER_MODE_WP` and `UFFDIO_WRITEPROTECT_MODE_WP`.
const MODE_WP: u64 = 2;
const PROTECT: u64 = 1;
/// `UFFD_USER_MODE_ONLY`, which needs no privilege.
const USER_MODE_ONLY: c_int = 1;

/// Some pages, frozen until this is dropped.
#[derive(Debug)]
pub(crate) struct Frozen(c_int);

impl Frozen {
    /// Nothing yet; `None` where the kernel cannot, or not for this user.
    pub(crate) fn new() -> Option<Self> {
        let frozen = [0, USER_MODE_ONLY].into_iter().find_map(open)?;
        frozen.call(API, &mut [VERSION, FEATURES, 0]).then_some(frozen)
    }

    /// Pages of a pool, too; whether they are.
    pub(crate) fn add(&self, range: &Range<usize>) -> bool {
        let (start, length) = (range.start as u64, range.len() as u64);
        self.call(REGISTER, &mut [start, length, MODE_WP, 0])
            && self.call(WRITEPROTECT, &mut [start, length, PROTECT])
    }

    /// Lets those go on who wait for these pages, or for what was there before.
    pub(crate) fn thaw(&self, range: &Range<usize>) {
        let (start, length) = (range.start as u64, range.len() as u64);
        self.call(UNREGISTER, &mut [start, length]);
        self.call(WAKE, &mut [start, length]);
    }

    /// Its descriptor.
    pub(crate) fn kept(self) -> c_int {
        let file = self.0;
        std::mem::forget(self);
        file
    }

    /// What has a descriptor that was kept.
    pub(crate) fn again(file: c_int) -> Option<Self> {
        (file >= 0).then_some(Self(file))
    }

    fn call<const N: usize>(&self, request: c_long, argument: &mut [u64; N]) -> bool {
        let file = c_long::from(self.0);
        // SAFETY: the structure of this request is so many words, which outlive the call.
        let answer =
            unsafe { libc::syscall(libc::SYS_ioctl, file, request, argument.as_mut_ptr()) };
        checked(answer).is_ok()
    }
}

/// A descriptor: of the kernel's own faults, too, where that is allowed.
fn open(more: c_int) -> Option<Frozen> {
    let flags = c_long::from(libc::O_CLOEXEC | libc::O_NONBLOCK | more);
    // SAFETY: takes a number.
    let answer = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
    checked(answer).ok().and_then(|file| c_int::try_from(file).ok()).map(Frozen)
}

impl Drop for Frozen {
    fn drop(&mut self) {
        edge::close(self.0);
    }
}
