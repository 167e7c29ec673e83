#![expect(unsafe_code, reason = "the program's own memory; the rules are in lib.rs")]
//! Memory that the program has and gives back: what of it is looked at.
//!
//! The one idea: large memory that it asks for by name is a place, from the call that makes it on
//! to the one that takes it away. What is small, or asked for otherwise, passes through.

use std::{
    ffi::{c_int, c_void},
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

use pagelab_sys::process::preload::{Map, behind::BEHIND, edge::aside};

use crate::{calls, places, sampler, yard};

const PAGE: usize = 4096;

/// From how many bytes on memory is looked at; before that is known, none.
static LEAST: AtomicU64 = AtomicU64::new(u64::MAX);

/// Looks at memory of so many bytes and more from now on.
pub(crate) fn look_from(least: u64) {
    LEAST.store(least, Ordering::Release);
}

fn had(at: *mut c_void, bytes: usize) -> *mut c_void {
    if bytes as u64 >= LEAST.load(Ordering::Relaxed) && !at.is_null() {
        aside(|| sampler::begin(at.addr(), bytes));
    }
    at
}

fn given_back(at: *mut c_void) {
    // Not whole pages begin a place: the first of it lies behind the address.
    places::forget(at.addr(), PAGE + 1);
}

/// `malloc(3)`.
#[unsafe(no_mangle)]
extern "C" fn malloc(bytes: usize) -> *mut c_void {
    had((BEHIND.malloc)(bytes), bytes)
}

/// `calloc(3)`.
#[unsafe(no_mangle)]
extern "C" fn calloc(count: usize, each: usize) -> *mut c_void {
    had((BEHIND.calloc)(count, each), count.saturating_mul(each))
}

/// `realloc(3)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(old: *mut c_void, bytes: usize) -> *mut c_void {
    given_back(old);
    // SAFETY: rule 1.
    had(unsafe { (BEHIND.realloc)(old, bytes) }, bytes)
}

/// `free(3)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn free(at: *mut c_void) {
    given_back(at);
    // SAFETY: rule 1.
    unsafe { (BEHIND.free)(at) }
}

/// `aligned_alloc(3)`.
#[unsafe(no_mangle)]
extern "C" fn aligned_alloc(to: usize, bytes: usize) -> *mut c_void {
    had((BEHIND.aligned_alloc)(to, bytes), bytes)
}

/// `memalign(3)`.
#[unsafe(no_mangle)]
extern "C" fn memalign(to: usize, bytes: usize) -> *mut c_void {
    had((BEHIND.memalign)(to, bytes), bytes)
}

/// `posix_memalign(3)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, to: usize, bytes: usize) -> c_int {
    // SAFETY: rule 1.
    let answer = unsafe { (BEHIND.posix_memalign)(place, to, bytes) };
    // SAFETY: rule 1: it was just written.
    let at = if answer == 0 { unsafe { place.read() } } else { ptr::null_mut() };
    had(at, bytes);
    answer
}

/// # Safety
/// As `mmap(2)`.
unsafe fn mapped(map: &Map) -> *mut c_void {
    if map.has(libc::MAP_FIXED) {
        places::forget(map.address, map.length);
    }
    // SAFETY: rule 1.
    let at = unsafe { calls::map(map) };
    let is_plain = map.is_used() && map.access == libc::PROT_READ | libc::PROT_WRITE;
    if at != libc::MAP_FAILED {
        yard::mapped(at.addr(), map.length);
        if is_plain {
            had(at, map.length);
        }
    }
    at
}

/// `mmap(2)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: usize,
    access: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    let map = Map { address: address.addr(), length, access, flags, file, offset };
    // SAFETY: rule 1.
    unsafe { mapped(&map) }
}

/// `mmap(2)` as programs call it that were built for large files.
#[unsafe(no_mangle)]
unsafe extern "C" fn mmap64(
    address: *mut c_void,
    length: usize,
    access: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    let map = Map { address: address.addr(), length, access, flags, file, offset };
    // SAFETY: rule 1.
    unsafe { mapped(&map) }
}

/// `munmap(2)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn munmap(at: *mut c_void, length: usize) -> c_int {
    places::forget(at.addr(), length);
    // SAFETY: rule 1.
    unsafe { calls::unmap(at, length) }
}
