#![expect(unsafe_code, reason = "system calls; the rules are in lib.rs")]
//! The system calls that are made here.
//!
//! The one idea: by number, never by the names that this library itself has.

use std::ffi::{CStr, c_int, c_long, c_void};

pub(crate) use pagelab_sys::process::preload::Map;
use pagelab_sys::process::{
    preload::edge::{self, Errno, checked},
    segment::NAME_BYTES,
};

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

/// The name of this thread, which of a program's first one is that of its file.
pub(crate) fn name() -> [u8; NAME_BYTES] {
    let mut name = [0_u8; NAME_BYTES];
    // SAFETY: writes at most so many bytes, the last of which is 0.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
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

/// Takes out a mapping that nobody has seen.
pub(crate) fn forgotten(at: usize, length: usize) {
    // SAFETY: nothing points into it. What stays is only addresses.
    let _ = unsafe { unmap(at, length) };
}

/// Whether the pages from an address on are there, a byte for each; false where nobody knows.
pub(crate) fn present(at: usize, length: usize, answer: &mut [u8]) -> bool {
    debug_assert!(answer.len() * 4096 >= length, "a byte for each page");
    // SAFETY: as many bytes as the call writes.
    checked(unsafe { libc::syscall(libc::SYS_mincore, at, length, answer.as_mut_ptr()) }).is_ok()
}

/// The same file by a number that is at least so large, where there may be one.
pub(crate) fn moved_to(file: c_int, least: c_int) -> c_int {
    let (number, least) = (c_long::from(file), c_long::from(least));
    let how = c_long::from(libc::F_DUPFD_CLOEXEC);
    // SAFETY: takes numbers.
    let answer = unsafe { libc::syscall(libc::SYS_fcntl, number, how, least) };
    let Ok(moved) = checked(answer) else { return file };
    edge::close(file);
    c_int::try_from(moved).unwrap_or(-1)
}

/// Reads from a file; nothing at its end, or where that fails.
pub(crate) fn read(file: c_int, buffer: &mut [u8]) -> usize {
    let file = c_long::from(file);
    // SAFETY: a buffer with its length.
    let answer = unsafe { libc::syscall(libc::SYS_read, file, buffer.as_mut_ptr(), buffer.len()) };
    usize::try_from(answer).unwrap_or(0)
}

/// The same, from so many bytes on.
pub(crate) fn read_at(file: c_int, buffer: &mut [u8], at: usize) -> usize {
    let file = c_long::from(file);
    let (place, length) = (buffer.as_mut_ptr(), buffer.len());
    // SAFETY: a buffer with its length.
    let answer = unsafe { libc::syscall(libc::SYS_pread64, file, place, length, at) };
    usize::try_from(answer).unwrap_or(0)
}

/// The number that a file of the kernel begins with.
pub(crate) fn number(path: &CStr) -> Option<usize> {
    let file = edge::open(path, libc::O_RDONLY).ok()?;
    let mut text = [0; 32];
    let count = read(file, &mut text);
    edge::close(file);
    std::str::from_utf8(&text[..count]).ok()?.split_whitespace().next()?.parse().ok()
}

/// Threads of this process; 0 where nobody knows.
pub(crate) fn threads() -> u64 {
    let path = c"/proc/self/task";
    // SAFETY: numbers and padding: zeroes are one.
    let mut about: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: a text that ends with 0, and writes one `struct stat`.
    let answer = unsafe { libc::stat(path.as_ptr(), &raw mut about) };
    // A folder is in its parent and in itself, too.
    if answer == 0 { about.st_nlink.saturating_sub(2) } else { 0 }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_more_is_a_thread_more() {
        // Other tests come and go; this one and the main thread stay.
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let one = std::thread::spawn(move || wait.recv());
        assert!(threads() >= 3, "{}", threads());
        drop(go);
        let _ = one.join();
    }
}
