#![expect(unsafe_code, reason = "system calls; the rules are in lib.rs")]
//! The system calls that are made here.
//!
//! The one idea: by number, never by the names that this library itself has.

use std::{
    ffi::{CStr, c_int, c_long, c_void},
    ptr,
};

use pagelab_sys::process::preload::edge::checked;
pub(crate) use pagelab_sys::process::preload::edge::{
    Errno, aside, close, errno, open, shared, size, thread, variable,
};

/// How a map was asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Map {
    pub(crate) address: usize,
    pub(crate) length: usize,
    pub(crate) access: c_int,
    pub(crate) flags: c_int,
    pub(crate) file: c_int,
    pub(crate) offset: i64,
}

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

/// This process.
pub(crate) fn process() -> u64 {
    // SAFETY: takes nothing.
    let pid = unsafe { libc::syscall(libc::SYS_getpid) };
    u64::try_from(pid).unwrap_or(0)
}

/// Now, nanoseconds of `CLOCK_MONOTONIC_RAW`.
pub(crate) fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one `struct timespec`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut now) };
    let [seconds, rest] = [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds * 1_000_000_000 + rest
}

/// Nanoseconds that all threads of this process have computed for.
pub(crate) fn computed_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one `struct timespec`.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut now) };
    let [seconds, rest] = [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds * 1_000_000_000 + rest
}

/// Sleeps; nothing interrupts a thread that has all signals blocked.
pub(crate) fn sleep_ns(ns: u64) {
    let rest = libc::timespec { tv_sec: 0, tv_nsec: i64::try_from(ns).unwrap_or(0) };
    // SAFETY: reads one `struct timespec`.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const rest, ptr::null::<c_void>()) };
}

/// Says who may access memory; what it holds stays.
pub(crate) fn protect(at: *mut c_void, length: usize, access: c_int) -> Result<(), Errno> {
    // SAFETY: rule 1, or what is opened and closed here again, which nothing of ours points into.
    let answer = unsafe { libc::syscall(libc::SYS_mprotect, at, length, c_long::from(access)) };
    checked(answer).map(drop)
}

/// Advises the kernel; no advice that is given here changes what memory holds.
pub(crate) fn advise(at: *mut c_void, length: usize, advice: c_int) -> Result<(), Errno> {
    // SAFETY: only pages and their sizes change, never what they hold.
    let answer = unsafe { libc::syscall(libc::SYS_madvise, at, length, c_long::from(advice)) };
    checked(answer).map(drop)
}

/// Bytes of memory that this machine has.
pub(crate) fn memory_bytes() -> u64 {
    // SAFETY: numbers and padding: zeroes are one.
    let mut about: libc::sysinfo = unsafe { std::mem::zeroed() };
    // SAFETY: writes one `struct sysinfo`.
    let answer = unsafe { libc::syscall(libc::SYS_sysinfo, &raw mut about) };
    if answer == 0 { about.totalram.saturating_mul(about.mem_unit.into()) } else { 0 }
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

/// A new map, of memory that nothing points into yet.
#[cfg(test)]
pub(crate) fn map_new(asked: &Map) -> *mut c_void {
    assert_eq!(asked.address, 0, "a place that the kernel chooses");
    // SAFETY: nothing lies there.
    unsafe { map(asked, asked.flags) }
}

/// Whether the kernel reaches a byte.
#[cfg(test)]
pub(crate) fn is_readable(at: *const c_void) -> bool {
    let mut vector = libc::iovec { iov_base: at.cast_mut(), iov_len: 1 };
    let mut byte = 0_u8;
    let mut own = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let pid = process();
    // SAFETY: one vector of each process, which are both this one; one byte of ours is written.
    let read = unsafe {
        libc::syscall(
            libc::SYS_process_vm_readv,
            pid,
            &raw mut own,
            1_u64,
            &raw mut vector,
            1_u64,
            0_u64,
        )
    };
    read == 1
}
