#![expect(unsafe_code, reason = "system calls; rules below")]
//! System calls, by number.
//!
//! Rules for the unsafe blocks:
//! 1. A text that is passed ends with 0, a buffer is passed with its length, and a number is only a
//!    number.
//! 2. A structure that the kernel fills is as large as it says, and zeroes are one.
//! 3. What a call promises about memory its caller promises.

use std::{
    ffi::{CStr, c_char, c_int, c_long, c_void},
    mem,
};

use crate::{
    Map,
    errno::{Errno, checked},
};

/// Memory that may be read and written.
pub const USABLE: c_int = libc::PROT_READ | libc::PROT_WRITE;
/// Private memory for which the kernel reserves nothing.
pub const OWN: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

/// An argument of a system call, widened to a whole word: the upper half of an `int` that is passed
/// on the stack is undefined.
trait Word {
    fn word(self) -> c_long;
}

macro_rules! words {
    ($($kind:ty, $value:ident => $word:expr;)+) => {
        $(impl Word for $kind {
            fn word(self) -> c_long {
                let $value = self;
                $word
            }
        })+
    };
}

words! {
    c_int, number => number.into();
    u32, number => number.into();
    i64, number => number;
    usize, number => number.cast_signed() as c_long;
    *const c_char, at => at.expose_provenance().word();
    *mut u8, at => at.expose_provenance().word();
    *mut c_void, at => at.expose_provenance().word();
}

/// A system call: its name, and its words.
macro_rules! call {
    ($name:ident $(, $word:expr)*) => {
        checked(libc::syscall(libc::$name $(, Word::word($word))*))
    };
}

#[inline]
fn int(answer: c_long) -> c_int {
    c_int::try_from(answer).unwrap_or(-1)
}

/// `mmap(2)`.
///
/// # Safety
/// As the call: what lies there already is gone.
#[inline]
pub unsafe fn map(map: &Map) -> Result<*mut c_void, Errno> {
    let Map { address, length, access, flags, file, offset } = *map;
    // SAFETY: rule 3.
    let answer = unsafe { call!(SYS_mmap, address, length, access, flags, file, offset) };
    answer.map(|at| at as *mut c_void)
}

/// Maps a table that is zero and stays mapped.
///
/// # Errors
/// With the error number of the call.
pub fn table<T>(count: usize) -> Result<*mut T, Errno> {
    let length = (count * size_of::<T>()).next_multiple_of(4096);
    // SAFETY: a new place, which the kernel chooses.
    unsafe { map(&Map::new(length, USABLE, OWN)) }.map(<*mut c_void>::cast)
}

/// Maps a file for reading and writing, shared with other processes.
///
/// # Errors
/// With the error number of the call.
#[inline]
pub fn shared(file: c_int, length: usize) -> Result<*mut c_void, Errno> {
    // SAFETY: a new place, which the kernel chooses.
    unsafe { map(&Map { file, ..Map::new(length, USABLE, libc::MAP_SHARED) }) }
}

/// `munmap(2)`.
///
/// # Safety
/// As the call: nothing points into it.
pub unsafe fn unmap(at: usize, length: usize) -> Result<(), Errno> {
    // SAFETY: rule 3.
    unsafe { call!(SYS_munmap, at, length) }.map(drop)
}

/// `mremap(2)`.
///
/// # Safety
/// As the call.
pub unsafe fn remap(
    at: usize,
    old: usize,
    new: usize,
    flags: c_int,
    to: usize,
) -> Result<*mut c_void, Errno> {
    // SAFETY: rule 3.
    unsafe { call!(SYS_mremap, at, old, new, flags, to) }.map(|at| at as *mut c_void)
}

/// `mprotect(2)`.
///
/// # Safety
/// As the call: nobody relies on the rights that are gone then.
pub unsafe fn protect(at: usize, length: usize, access: c_int) -> Result<(), Errno> {
    // SAFETY: rule 3.
    unsafe { call!(SYS_mprotect, at, length, access) }.map(drop)
}

/// `pkey_mprotect(2)`; with the key -1 it is `mprotect`.
///
/// # Safety
/// As [`protect`].
pub unsafe fn protect_by(at: usize, length: usize, access: c_int, key: c_int) -> Result<(), Errno> {
    if key == -1 {
        // SAFETY: rule 3.
        return unsafe { protect(at, length, access) };
    }
    // SAFETY: rule 3.
    unsafe { call!(SYS_pkey_mprotect, at, length, access, key) }.map(drop)
}

/// `madvise(2)`.
///
/// # Safety
/// As the call: nobody needs what an advice throws away.
pub unsafe fn advise(at: usize, length: usize, advice: c_int) -> Result<(), Errno> {
    // SAFETY: rule 3.
    unsafe { call!(SYS_madvise, at, length, advice) }.map(drop)
}

/// Unmaps memory to which nothing points; a failure leaves only addresses.
pub fn forgotten(at: usize, length: usize) {
    // SAFETY: nothing points into it.
    let _ = unsafe { unmap(at, length) };
}

/// `mincore(2)`: one byte per page; false where the kernel refuses.
pub fn present(at: usize, length: usize, answer: &mut [u8]) -> bool {
    debug_assert!(answer.len() * 4096 >= length, "a byte for each page");
    // SAFETY: as many bytes as the call writes.
    unsafe { call!(SYS_mincore, at, length, answer.as_mut_ptr()) }.is_ok()
}

/// Opens a file.
///
/// # Errors
/// With the error number of the call.
#[inline]
pub fn open(path: &CStr, flags: c_int) -> Result<c_int, Errno> {
    let flags = flags | libc::O_CLOEXEC;
    // SAFETY: rule 1.
    unsafe { call!(SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0) }.map(int)
}

/// Closes a file that was opened here.
#[inline]
pub fn close(file: c_int) {
    // SAFETY: rule 1.
    let _ = unsafe { call!(SYS_close, file) };
}

/// The bytes of a file.
///
/// # Errors
/// With the error number of the call.
#[inline]
pub fn size(file: c_int) -> Result<usize, Errno> {
    // SAFETY: rule 2.
    let mut about: libc::stat = unsafe { mem::zeroed() };
    let place: *mut c_void = (&raw mut about).cast();
    // SAFETY: rule 2.
    unsafe { call!(SYS_fstat, file, place) }
        .map(|_| usize::try_from(about.st_size).unwrap_or(usize::MAX))
}

/// Moves a file to a number of at least `least`, where one is free.
pub fn moved_to(file: c_int, least: c_int) -> c_int {
    // SAFETY: rule 1.
    let Ok(moved) = (unsafe { call!(SYS_fcntl, file, libc::F_DUPFD_CLOEXEC, least) }) else {
        return file;
    };
    close(file);
    int(moved)
}

/// Reads from a file; returns 0 at its end and on failure.
pub fn read(file: c_int, buffer: &mut [u8]) -> usize {
    let (at, length) = (buffer.as_mut_ptr(), buffer.len());
    // SAFETY: rule 1.
    count(unsafe { call!(SYS_read, file, at, length) })
}

/// Reads from an offset of a file; returns 0 at its end and on failure.
pub fn read_at(file: c_int, buffer: &mut [u8], from: usize) -> usize {
    let (at, length) = (buffer.as_mut_ptr(), buffer.len());
    // SAFETY: rule 1.
    count(unsafe { call!(SYS_pread64, file, at, length, from) })
}

/// Reads the target of a link; returns its length, 0 on failure.
pub fn link(path: &CStr, buffer: &mut [u8]) -> usize {
    let (at, length) = (buffer.as_mut_ptr(), buffer.len());
    // SAFETY: rule 1.
    count(unsafe { call!(SYS_readlinkat, libc::AT_FDCWD, path.as_ptr(), at, length) })
}

fn count(came: Result<c_long, Errno>) -> usize {
    came.ok().and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
}

/// The number that a file of the kernel begins with.
pub fn number_in(path: &CStr) -> Option<usize> {
    let file = open(path, libc::O_RDONLY).ok()?;
    let mut text = [0; 32];
    let count = read(file, &mut text);
    close(file);
    std::str::from_utf8(&text[..count]).ok()?.split_whitespace().next()?.parse().ok()
}

/// `ftruncate(2)`.
///
/// # Errors
/// With the error number of the call.
pub fn truncate(file: c_int, size: i64) -> Result<(), Errno> {
    // SAFETY: rule 1.
    unsafe { call!(SYS_ftruncate, file, size) }.map(drop)
}

/// `fcntl(2)` without an argument.
///
/// # Errors
/// With the error number of the call.
pub fn flags(file: c_int, which: c_int) -> Result<c_int, Errno> {
    // SAFETY: rule 1.
    unsafe { call!(SYS_fcntl, file, which, 0) }.map(int)
}

/// A new file in memory.
///
/// # Errors
/// With the error number of the call.
pub fn file_in_memory(name: &CStr, flags: u32) -> Result<c_int, Errno> {
    // SAFETY: rule 1.
    unsafe { call!(SYS_memfd_create, name.as_ptr(), flags) }.map(int)
}

/// `dup3(2)`: the number `old` is the file `new` from now on.
///
/// # Errors
/// With the error number of the call.
pub fn replace(old: c_int, new: c_int, flags: c_int) -> Result<(), Errno> {
    // SAFETY: rule 1.
    unsafe { call!(SYS_dup3, new, old, flags) }.map(drop)
}

/// `shmget(2)`.
///
/// # Errors
/// With the error number of the call.
pub fn segment(key: c_int, size: usize, flags: c_int) -> Result<c_int, Errno> {
    // SAFETY: rule 1.
    unsafe { call!(SYS_shmget, key, size, flags) }.map(int)
}

/// This process.
#[inline]
pub fn process() -> u32 {
    // SAFETY: rule 1.
    int(unsafe { libc::syscall(libc::SYS_getpid) }).cast_unsigned()
}

/// Bytes of memory of this machine; 0 on failure.
pub fn memory_bytes() -> u64 {
    // SAFETY: rule 2.
    let mut about: libc::sysinfo = unsafe { mem::zeroed() };
    let place: *mut c_void = (&raw mut about).cast();
    // SAFETY: rule 2.
    let came = unsafe { call!(SYS_sysinfo, place) };
    came.map_or(0, |_| about.totalram.saturating_mul(about.mem_unit.into()))
}

/// Bytes of memory that programs may take without others losing theirs (`MemAvailable`), 0 on
/// failure.
pub fn available_bytes() -> u64 {
    let Ok(file) = open(c"/proc/meminfo", libc::O_RDONLY) else { return 0 };
    let mut text = [0; 256];
    let count = read(file, &mut text);
    close(file);
    let text = text[..count].utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.map_or(0, |kilobytes| kilobytes << 10)
}

/// Number of threads of this process; 0 on failure.
pub fn threads() -> u64 {
    // SAFETY: rule 2.
    let mut about: libc::stat = unsafe { mem::zeroed() };
    // SAFETY: rules 1 and 2.
    let answer = unsafe { libc::stat(c"/proc/self/task".as_ptr(), &raw mut about) };
    // A folder is in its parent and in itself, too.
    let links: libc::nlink_t = about.st_nlink;
    if answer == 0 { links.saturating_sub(2) as u64 } else { 0 }
}

/// A clock, in nanoseconds.
pub fn clock_ns(which: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: rule 2.
    unsafe { libc::clock_gettime(which, &raw mut now) };
    let [seconds, rest] = [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds * 1_000_000_000 + rest
}

/// Sleeps, for less than a second; a signal ends it sooner.
pub fn sleep_ns(tv_nsec: i64) {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec };
    let (at, nothing): (*mut c_void, usize) = ((&raw mut time).cast(), 0);
    // SAFETY: rule 2.
    let _ = unsafe { call!(SYS_nanosleep, at, nothing) };
}

/// Prints on stderr.
pub fn say(text: &[u8]) {
    // SAFETY: rule 1.
    let _ = unsafe { call!(SYS_write, 2, text.as_ptr().cast_mut(), text.len()) };
}

/// Ends the process as an allocator does that has nothing left.
pub fn abort() -> ! {
    // SAFETY: takes nothing, and does not return.
    unsafe { libc::abort() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_available_is_a_part_of_all_memory() {
        assert!((1 << 20..=memory_bytes()).contains(&available_bytes()));
    }

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
