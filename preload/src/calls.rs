#![expect(unsafe_code, reason = "system calls; the rules are in lib.rs")]
//! The system calls that are made here.
//!
//! The one idea: by number, never by the names that this library itself has.

use std::ffi::{CStr, c_int, c_long, c_void};

pub(crate) use pagelab_sys::process::preload::edge::{
    Errno, aside, close, errno, memory_bytes, open, process, shared, size, variable,
};
use pagelab_sys::process::preload::{Map, edge::checked};

/// Maps as asked, but with these flags.
///
/// # Safety
/// As `mmap(2)`: what lies there already is gone.
pub(crate) unsafe fn map(map: &Map, flags: c_int) -> *mut c_void {
    // SAFETY: the caller's.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            map.address,
            map.length,
            c_long::from(map.access),
            c_long::from(flags),
            c_long::from(map.file),
            map.offset,
        )
    };
    answer as *mut c_void
}

/// Takes back a map that nobody has seen.
///
/// # Safety
/// It was made here, and nothing points into it.
pub(crate) unsafe fn unmap(at: *mut c_void, length: usize) {
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_munmap, at, length) };
}

/// `munmap(2)`.
///
/// # Safety
/// As the call: nothing points into it.
pub(crate) unsafe fn unmapped(at: *mut c_void, length: usize) -> c_int {
    // SAFETY: the caller's.
    let answer = unsafe { libc::syscall(libc::SYS_munmap, at, length) };
    number(answer).unwrap_or(-1)
}

/// Now, nanoseconds of `CLOCK_MONOTONIC_RAW`.
pub(crate) fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one `struct timespec`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut now) };
    let [seconds, rest] = [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds * 1_000_000_000 + rest
}

/// Advises the kernel; no advice that is given here changes what memory holds.
pub(crate) fn advise(at: *mut c_void, length: usize, advice: c_int) -> Result<(), Errno> {
    // SAFETY: only pages and their sizes change, never what they hold.
    let answer = unsafe { libc::syscall(libc::SYS_madvise, at, length, c_long::from(advice)) };
    checked(answer).map(drop)
}

/// `shmget(2)`.
pub(crate) fn segment(key: c_int, size: usize, flags: c_int) -> Result<c_int, Errno> {
    // SAFETY: takes numbers.
    let answer =
        unsafe { libc::syscall(libc::SYS_shmget, c_long::from(key), size, c_long::from(flags)) };
    number(answer)
}

/// `ftruncate(2)`.
pub(crate) fn truncate(file: c_int, size: i64) -> Result<(), Errno> {
    // SAFETY: takes numbers.
    checked(unsafe { libc::syscall(libc::SYS_ftruncate, c_long::from(file), size) }).map(drop)
}

/// `fcntl(2)` without an argument.
pub(crate) fn flags(file: c_int, which: c_int) -> Result<c_int, Errno> {
    // SAFETY: takes numbers.
    let answer =
        unsafe { libc::syscall(libc::SYS_fcntl, c_long::from(file), c_long::from(which), 0) };
    number(answer)
}

/// Where a link leads: so many bytes of the buffer.
pub(crate) fn link(path: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: a text that ends with 0, and a buffer with its length.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_readlinkat,
            c_long::from(libc::AT_FDCWD),
            path.as_ptr(),
            buffer.as_mut_ptr(),
            buffer.len(),
        )
    };
    checked(answer).map(|count| usize::try_from(count).unwrap_or(0))
}

/// A new file in memory.
pub(crate) fn file_in_memory(name: &CStr, flags: u32) -> Result<c_int, Errno> {
    // SAFETY: a text that ends with 0.
    let answer =
        unsafe { libc::syscall(libc::SYS_memfd_create, name.as_ptr(), c_long::from(flags)) };
    number(answer)
}

/// Puts a file in the place of another.
pub(crate) fn replace(old: c_int, new: c_int, flags: c_int) -> Result<(), Errno> {
    // SAFETY: takes numbers.
    let answer = unsafe {
        libc::syscall(libc::SYS_dup3, c_long::from(new), c_long::from(old), c_long::from(flags))
    };
    checked(answer).map(drop)
}

fn number(answer: c_long) -> Result<c_int, Errno> {
    checked(answer).map(|number| c_int::try_from(number).unwrap_or(-1))
}
