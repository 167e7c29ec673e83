#![expect(unsafe_code, reason = "errno, the environment and pages that others read; rules below")]
//! What every preloaded library of ours needs of C and of the kernel, without allocating.
//!
//! The one idea: safe pieces only. Calls go to the kernel by number, never by the names that such a
//! library has itself, and what is mapped here is mapped for good.
//!
//! Rules for the unsafe blocks:
//! 1. A text that is passed ends with 0, and a number is only a number.
//! 2. The place of `errno` is the thread's own, for as long as the thread lives.
//! 3. A file is mapped only where it has the bytes that are looked at, and never unmapped.

use std::{
    ffi::{CStr, c_int, c_long, c_void},
    ptr,
    sync::atomic::{AtomicPtr, AtomicU64, Ordering},
};

/// An error number.
pub type Errno = c_int;

fn place_of_errno() -> *mut c_int {
    // SAFETY: rule 2.
    unsafe { libc::__errno_location() }
}

/// The error number of the last call that failed.
pub fn errno() -> Errno {
    // SAFETY: rule 2.
    unsafe { *place_of_errno() }
}

/// Sets the error number that the program is to see.
pub fn set_errno(errno: Errno) {
    // SAFETY: rule 2.
    unsafe { *place_of_errno() = errno };
}

/// What `errno` of this thread was at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Saved {
    place: *mut Errno,
    errno: Errno,
}

impl Saved {
    /// What it is now.
    #[inline]
    pub fn now() -> Self {
        let place = place_of_errno();
        // SAFETY: rule 2.
        Self { place, errno: unsafe { *place } }
    }

    /// Sets it to what it was.
    #[inline]
    pub fn put_back(self) {
        // SAFETY: rule 2; it is not sent to another thread.
        unsafe { *self.place = self.errno };
    }
}

/// Does something, and leaves `errno` as it was.
#[inline]
pub fn aside<T>(act: impl FnOnce() -> T) -> T {
    let saved = Saved::now();
    let came = act();
    saved.put_back();
    came
}

/// This thread, which is never 0.
pub fn thread() -> usize {
    place_of_errno().addr()
}

/// What a call answered; -1 is an error.
///
/// # Errors
/// With the number of the call's error.
pub fn checked(answer: c_long) -> Result<c_long, Errno> {
    if answer == -1 { Err(errno()) } else { Ok(answer) }
}

/// A variable of the environment, as long as nobody changes it.
pub fn variable(name: &str) -> Option<&'static CStr> {
    let mut bytes = [0; 64];
    bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    let name = CStr::from_bytes_until_nul(&bytes).ok()?;
    // SAFETY: rule 1.
    let found = unsafe { libc::getenv(name.as_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: it ends with 0, and is read before the program can change it.
    Some(unsafe { CStr::from_ptr(found) })
}

/// Opens a file.
///
/// # Errors
/// With the number of the call's error.
pub fn open(path: &CStr, flags: c_int) -> Result<c_int, Errno> {
    let flags = c_long::from(flags | libc::O_CLOEXEC);
    let folder = c_long::from(libc::AT_FDCWD);
    // SAFETY: rule 1.
    let answer = unsafe { libc::syscall(libc::SYS_openat, folder, path.as_ptr(), flags, 0) };
    checked(answer).map(|number| c_int::try_from(number).unwrap_or(-1))
}

/// Closes a file that was opened here.
pub fn close(file: c_int) {
    // SAFETY: rule 1.
    unsafe { libc::syscall(libc::SYS_close, c_long::from(file)) };
}

/// The bytes of a file.
///
/// # Errors
/// With the number of the call's error.
pub fn size(file: c_int) -> Result<i64, Errno> {
    // SAFETY: numbers and padding: zeroes are one.
    let mut about: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: writes one `struct stat`.
    let answer = unsafe { libc::syscall(libc::SYS_fstat, c_long::from(file), &raw mut about) };
    checked(answer).map(|_| about.st_size)
}

/// This process.
pub fn process() -> u64 {
    // SAFETY: rule 1.
    let pid = unsafe { libc::syscall(libc::SYS_getpid) };
    u64::try_from(pid).unwrap_or(0)
}

/// Bytes of memory that this machine has; 0 where the kernel does not say.
pub fn memory_bytes() -> u64 {
    // SAFETY: numbers and padding: zeroes are one.
    let mut about: libc::sysinfo = unsafe { std::mem::zeroed() };
    // SAFETY: writes one `struct sysinfo`.
    let answer = unsafe { libc::syscall(libc::SYS_sysinfo, &raw mut about) };
    if answer == 0 { about.totalram.saturating_mul(about.mem_unit.into()) } else { 0 }
}

/// A map of a file that was made for all to write, or of nothing but memory where there is none.
///
/// # Errors
/// With the number of the call's error.
pub fn shared(file: c_int, length: usize) -> Result<*mut c_void, Errno> {
    let access = c_long::from(libc::PROT_READ | libc::PROT_WRITE);
    let [flags, file] = [libc::MAP_SHARED, file].map(c_long::from);
    // A whole word: it goes by the stack, where the upper half of an `int` is whatever was there.
    let start: c_long = 0;
    // SAFETY: a new place, which the kernel chooses.
    let answer = unsafe { libc::syscall(libc::SYS_mmap, 0, length, access, flags, file, start) };
    checked(answer).map(|at| at as *mut c_void)
}

/// Words that all processes share which map the same file: where something is counted.
///
/// Where there is no such file nothing is counted, and all else is the same.
#[derive(Debug)]
pub struct Words<const N: usize>(AtomicPtr<[AtomicU64; N]>);

impl<const N: usize> Words<N> {
    /// Not open yet.
    #[expect(clippy::new_without_default, reason = "a static")]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Opens the file that a variable names, of exactly so many bytes; whether it is open.
    pub fn open(&self, name: &str, bytes: usize) -> bool {
        let Some(file) = variable(name).and_then(|path| open(path, libc::O_RDWR).ok()) else {
            return false;
        };
        // A shorter one would be a SIGBUS, a longer one is somebody else's.
        let is_whole =
            size(file).is_ok_and(|size| usize::try_from(size).is_ok_and(|size| size == bytes));
        if is_whole
            && size_of::<[AtomicU64; N]>() <= bytes
            && let Ok(at) = shared(file, bytes)
        {
            self.0.store(at.cast(), Ordering::Release);
        }
        close(file);
        self.get().is_some()
    }

    /// The words, where they are open.
    pub fn get(&self) -> Option<&'static [AtomicU64; N]> {
        // SAFETY: rule 3: null, or mapped for good, aligned, and long enough.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Counts something.
    pub fn add(&self, nth: usize, more: u64) {
        if let Some(word) = self.get().and_then(|words| words.get(nth)) {
            word.fetch_add(more, Ordering::Relaxed);
        }
    }
}
