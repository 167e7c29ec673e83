#![expect(unsafe_code, reason = "the program's own memory; the rules are in lib.rs")]
//! Memory that the program has and gives back: what of it is looked at.
//!
//! The one idea: large memory that it asks for by name is a place, from the call that makes it on
//! to the one that takes it away. What is small, or asked for otherwise, passes through.

use std::{
    ffi::{c_int, c_void},
    sync::atomic::{AtomicU64, Ordering},
};

use pagelab_interpose::{
    Map, aside,
    behind::{self, Beside},
    done, kernel, malloc_calls, mmap_calls, place,
};

use crate::{places, sampler, yard};

const PAGE: usize = 4096;

/// From how many bytes on memory is looked at; before that is known, none.
static LEAST: AtomicU64 = AtomicU64::new(u64::MAX);

/// Looks at memory of so many bytes and more from now on.
pub(crate) fn look_from(least: u64) {
    LEAST.store(least, Ordering::Release);
}

struct Places;

impl Beside for Places {
    fn had(at: *mut c_void, bytes: usize) {
        if bytes as u64 >= LEAST.load(Ordering::Relaxed) && !at.is_null() {
            aside(|| sampler::begin(at.addr(), bytes));
        }
    }

    fn given_back(at: *mut c_void) {
        // Not whole pages begin a place: the first of it lies behind the address.
        places::forget(at.addr(), PAGE + 1);
    }
}

malloc_calls!(Places);

/// # Safety
/// As `mmap(2)`.
unsafe fn mapped(map: &Map) -> *mut c_void {
    if map.has(libc::MAP_FIXED) {
        places::forget(map.address, map.length);
    }
    // SAFETY: rule 1.
    place(unsafe { kernel::map(map) }.inspect(|at| {
        yard::mapped(at.addr(), map.length);
        if map.is_used() && map.access == kernel::USABLE {
            Places::had(*at, map.length);
        }
    }))
}

mmap_calls!(mapped);

/// `munmap(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn munmap(at: *mut c_void, length: usize) -> c_int {
    places::forget(at.addr(), length);
    // SAFETY: rule 1.
    done(unsafe { kernel::unmap(at.addr(), length) })
}
