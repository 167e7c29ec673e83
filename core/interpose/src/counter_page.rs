#![expect(unsafe_code, reason = "the environment and pages that others read; rules below")]
//! Words of a file that all processes map which a command started: where they count.
//!
//! Rules for the unsafe blocks:
//! 1. A text that is passed ends with 0.
//! 2. A file is mapped only where it has the bytes that are looked at, and never unmapped.
//! 3. The environment is words with a null at their end, each a text, and is read before the
//!    program can change it.

use std::{
    ffi::{CStr, c_char},
    ptr,
    sync::atomic::{AtomicPtr, AtomicU64, Ordering},
};

use crate::kernel;

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// A variable of the environment, valid until the program changes it.
///
/// libc's own search would be pages of libc that many programs never touch.
#[inline]
pub fn variable(name: &str) -> Option<&'static CStr> {
    // SAFETY: rule 3.
    let mut next = unsafe { environ };
    while !next.is_null() {
        // SAFETY: rule 3: the null at its end was not reached yet.
        let entry = unsafe { next.read() };
        if entry.is_null() {
            break;
        }
        let byte = |nth: usize| {
            // SAFETY: rule 3: all bytes before it are those of the name, so none is the 0.
            unsafe { entry.cast::<u8>().wrapping_add(nth).read() }
        };
        let is_name = name.bytes().enumerate().all(|(nth, wanted)| byte(nth) == wanted);
        if is_name && byte(name.len()) == b'=' {
            // SAFETY: rule 3.
            return Some(unsafe { CStr::from_ptr(entry.wrapping_add(name.len() + 1)) });
        }
        next = next.wrapping_add(1);
    }
    None
}

/// Words that all processes share which map the same file.
///
/// Where there is no such file nothing is counted, and all else is the same.
#[derive(Debug)]
pub struct CounterPage<const N: usize>(AtomicPtr<[AtomicU64; N]>);

impl<const N: usize> CounterPage<N> {
    /// Not open yet.
    #[expect(clippy::new_without_default, reason = "a static")]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Opens the file that a variable names and that has exactly this size; whether it is open.
    pub fn open(&self, name: &str, bytes: usize) -> bool {
        let file = variable(name).and_then(|path| kernel::open(path, libc::O_RDWR).ok());
        let Some(file) = file else { return false };
        // A shorter one would be a SIGBUS, a longer one is another file.
        let is_whole = kernel::size(file) == Ok(bytes) && size_of::<[AtomicU64; N]>() <= bytes;
        if is_whole && let Ok(at) = kernel::shared(file, bytes) {
            self.0.store(at.cast(), Ordering::Release);
        }
        kernel::close(file);
        self.get().is_some()
    }

    /// The words, where they are open.
    pub fn get(&self) -> Option<&'static [AtomicU64; N]> {
        // SAFETY: rule 2: null, or mapped for good, aligned, and long enough.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Counts something.
    pub fn add(&self, nth: usize, more: u64) {
        if let Some(word) = self.get().and_then(|words| words.get(nth)) {
            word.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Notes a number, over what was noted before.
    pub fn set(&self, nth: usize, value: u64) {
        if let Some(word) = self.get().and_then(|words| words.get(nth)) {
            word.store(value, Ordering::Release);
        }
    }
}
