#![expect(unsafe_code, reason = "system calls; the rules are in lib.rs")]
//! The system calls that are made here.
//!
//! The one idea: by number, never by the names that this library itself has.

use std::ffi::{CStr, c_int, c_long, c_void};

use pagelab_sys::process::preload::edge::{Errno, checked};

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

/// Memory that may be read and written.
pub(crate) const USABLE: c_int = libc::PROT_READ | libc::PROT_WRITE;
/// Memory that nobody shares, of which none is set aside.
pub(crate) const OWN: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

/// `mmap(2)`.
///
/// # Safety
/// As the call: what lies there already is gone.
pub(crate) unsafe fn map(map: &Map) -> Result<*mut c_void, Errno> {
    let numbers = [map.access, map.flags, map.file].map(c_long::from);
    let [access, flags, file] = numbers;
    // SAFETY: the caller's.
    let answer = unsafe {
        libc::syscall(libc::SYS_mmap, map.address, map.length, access, flags, file, map.offset)
    };
    checked(answer).map(|at| at as *mut c_void)
}

/// `munmap(2)`.
///
/// # Safety
/// As the call: nothing points into it.
pub(crate) unsafe fn unmap(at: usize, length: usize) -> Result<(), Errno> {
    // SAFETY: the caller's.
    checked(unsafe { libc::syscall(libc::SYS_munmap, at, length) }).map(drop)
}

/// `mremap(2)`.
///
/// # Safety
/// As the call.
pub(crate) unsafe fn remap(
    at: usize,
    old: usize,
    new: usize,
    flags: c_int,
    to: usize,
) -> Result<*mut c_void, Errno> {
    let flags = c_long::from(flags);
    // SAFETY: the caller's.
    let answer = unsafe { libc::syscall(libc::SYS_mremap, at, old, new, flags, to) };
    checked(answer).map(|at| at as *mut c_void)
}

/// `mprotect(2)`.
///
/// # Safety
/// As the call: nobody relies on the rights that are gone then.
pub(crate) unsafe fn protect(at: usize, length: usize, access: c_int) -> Result<(), Errno> {
    let access = c_long::from(access);
    // SAFETY: the caller's.
    checked(unsafe { libc::syscall(libc::SYS_mprotect, at, length, access) }).map(drop)
}

/// `madvise(2)`.
///
/// # Safety
/// As the call: nobody needs what an advice throws away.
pub(crate) unsafe fn advise(at: usize, length: usize, advice: c_int) -> Result<(), Errno> {
    let advice = c_long::from(advice);
    // SAFETY: the caller's.
    checked(unsafe { libc::syscall(libc::SYS_madvise, at, length, advice) }).map(drop)
}

/// Reads from a file; nothing at its end, or where that fails.
pub(crate) fn read(file: c_int, buffer: &mut [u8]) -> usize {
    let file = c_long::from(file);
    // SAFETY: a buffer with its length.
    let answer = unsafe { libc::syscall(libc::SYS_read, file, buffer.as_mut_ptr(), buffer.len()) };
    usize::try_from(answer).unwrap_or(0)
}

/// Says something on stderr.
pub(crate) fn say(text: &[u8]) {
    // SAFETY: a text with its length.
    unsafe { libc::syscall(libc::SYS_write, 2, text.as_ptr(), text.len()) };
}

/// Ends the process as an allocator does that has nothing left.
pub(crate) fn abort() -> ! {
    // SAFETY: takes nothing, and does not return.
    unsafe { libc::abort() }
}

/// Where a link leads: so many bytes of the buffer.
pub(crate) fn link(path: &CStr, buffer: &mut [u8]) -> usize {
    let folder = c_long::from(libc::AT_FDCWD);
    let (at, length) = (buffer.as_mut_ptr(), buffer.len());
    // SAFETY: a text that ends with 0, and a buffer with its length.
    let answer = unsafe { libc::syscall(libc::SYS_readlinkat, folder, path.as_ptr(), at, length) };
    usize::try_from(answer).unwrap_or(0)
}
