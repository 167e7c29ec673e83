#![expect(unsafe_code, reason = "ioctl; rules below")]
//! userfaultfd, for what the libraries do with their program's own memory.
//!
//! Rules for the unsafe blocks:
//! 1. The structure of a request is as many words as are passed, which outlive the call.

use std::{
    ffi::{c_int, c_long},
    ops::Range,
};

use crate::{
    errno::{Errno, checked},
    kernel,
};

/// Requests of `userfaultfd.h`.
const API: c_long = 0xc018_aa3f;
/// The request that registers a range, which is what its structure begins with.
pub const REGISTER: c_long = 0xc020_aa00;
const UNREGISTER: c_long = 0x8010_aa01;
const WAKE: c_long = 0x8010_aa02;
const WRITEPROTECT: c_long = 0xc018_aa06;
/// `UFFD_API`.
const VERSION: u64 = 0xaa;
/// `UFFDIO_REGISTER_MODE_WP` and `UFFDIO_WRITEPROTECT_MODE_WP`.
const MODE_WP: u64 = 2;
const PROTECT: u64 = 1;
/// `UFFD_USER_MODE_ONLY`, which needs no privilege.
pub const USER_MODE_ONLY: c_int = 1;
/// `UFFD_FEATURE_*`: writes to protected pages are told.
pub const PAGEFAULT_FLAG_WP: u64 = 1;
/// Also of hugetlb memory.
pub const WP_HUGETLBFS_SHMEM: u64 = 1 << 12;
/// Also of pages that are not there yet.
pub const WP_UNPOPULATED: u64 = 1 << 13;
/// Without a message: the kernel notes them (Linux 6.7).
pub const WP_ASYNC: u64 = 1 << 15;

/// Opens a descriptor with these features, and no other.
///
/// # Errors
/// With the error number of the call: `EINVAL` where the kernel lacks one.
pub fn open(more: c_int, features: u64) -> Result<c_int, Errno> {
    let flags = c_long::from(libc::O_CLOEXEC | libc::O_NONBLOCK | more);
    // SAFETY: takes a number.
    let opened = checked(unsafe { libc::syscall(libc::SYS_userfaultfd, flags) })?;
    let file = c_int::try_from(opened).unwrap_or(-1);
    match request(file, API, [VERSION, features, 0]) {
        Ok(()) => Ok(file),
        Err(errno) => {
            kernel::close(file);
            Err(errno)
        }
    }
}

/// Makes threads wait that write to these pages.
///
/// # Errors
/// With the error number of the call.
pub fn protect(file: c_int, range: &Range<usize>) -> Result<(), Errno> {
    let [start, length] = words(range);
    request(file, REGISTER, [start, length, MODE_WP, 0])?;
    request(file, WRITEPROTECT, [start, length, PROTECT])
}

/// Takes whole pages back from a descriptor, as if they had never been registered. Memory that is
/// not registered stays as it is, and the range may have holes.
///
/// # Errors
/// With the error number of the call.
pub fn release(file: c_int, range: &Range<usize>) -> Result<(), Errno> {
    request(file, UNREGISTER, words(range))
}

/// Wakes threads that wait for a page of a range, or for one that was there before.
///
/// # Errors
/// With the error number of the call.
pub fn wake(file: c_int, range: &Range<usize>) -> Result<(), Errno> {
    request(file, WAKE, words(range))
}

fn words(range: &Range<usize>) -> [u64; 2] {
    [range.start as u64, range.len() as u64]
}

fn request<const N: usize>(file: c_int, what: c_long, mut words: [u64; N]) -> Result<(), Errno> {
    let (file, at) = (c_long::from(file), words.as_mut_ptr());
    // SAFETY: rule 1.
    checked(unsafe { libc::syscall(libc::SYS_ioctl, file, what, at) }).map(drop)
}
