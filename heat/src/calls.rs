#![expect(unsafe_code, reason = "system calls; the rules are in lib.rs")]
//! The system calls that are made here.
//!
//! The one idea: by number, never by the names that this library itself has.

use std::{
    ffi::{c_int, c_long, c_void},
    ptr,
};

use pagelab_sys::process::preload::{
    Map,
    edge::{Errno, checked},
};

/// `mmap(2)`.
///
/// # Safety
/// As the call: what lies there already is gone.
pub(crate) unsafe fn map(map: &Map) -> *mut c_void {
    let [access, flags, file] = [map.access, map.flags, map.file].map(c_long::from);
    // SAFETY: the caller's.
    let answer = unsafe {
        libc::syscall(libc::SYS_mmap, map.address, map.length, access, flags, file, map.offset)
    };
    answer as *mut c_void
}

/// `munmap(2)`.
///
/// # Safety
/// As the call: nothing points into it.
pub(crate) unsafe fn unmap(at: *mut c_void, length: usize) -> c_int {
    // SAFETY: the caller's.
    let answer = unsafe { libc::syscall(libc::SYS_munmap, at, length) };
    c_int::try_from(answer).unwrap_or(-1)
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

/// A new map, of memory that nothing points into yet.
#[cfg(test)]
pub(crate) fn map_new(asked: &Map) -> *mut c_void {
    assert_eq!(asked.address, 0, "a place that the kernel chooses");
    // SAFETY: nothing lies there.
    unsafe { map(asked) }
}

/// Whether the kernel reaches a byte.
#[cfg(test)]
pub(crate) fn is_readable(at: *const c_void) -> bool {
    let mut vector = libc::iovec { iov_base: at.cast_mut(), iov_len: 1 };
    let mut byte = 0_u8;
    let mut own = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let pid = pagelab_sys::process::preload::edge::process();
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
