#![expect(unsafe_code, reason = "the allocator's own maps; the rules are in lib.rs")]
//! What the allocator's own code calls, by the names that `build.rs` gives it: the kernel, one lock
//! in place of its locks ([`crate::fork::ALLOCATOR`]), and its wait for another thread.

use std::ffi::{c_int, c_uint, c_void};

use pagelab_interpose::{Map, done, kernel, mmap_calls, place};

use crate::{careful, fork::ALLOCATOR};

#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn __wrap_pthread_mutex_lock(_: *mut c_void) -> c_int {
    ALLOCATOR.enter();
    0
}

#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn __wrap_pthread_mutex_unlock(_: *mut c_void) -> c_int {
    ALLOCATOR.leave();
    0
}

#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn __wrap_sleep(_: c_uint) -> c_uint {
    careful::waits();
    0
}

mmap_calls!(mapped; __wrap_mmap);

/// # Safety
/// As `mmap(2)`.
unsafe fn mapped(map: &Map) -> *mut c_void {
    // SAFETY: the allocator's.
    place(unsafe { kernel::map(map) })
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn __wrap_munmap(at: *mut c_void, length: usize) -> c_int {
    // SAFETY: the allocator's.
    done(unsafe { kernel::unmap(at.addr(), length) })
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn __wrap_mprotect(at: *mut c_void, length: usize, access: c_int) -> c_int {
    // SAFETY: the allocator's.
    done(unsafe { kernel::protect(at.addr(), length, access) })
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn __wrap_madvise(at: *mut c_void, length: usize, advice: c_int) -> c_int {
    // SAFETY: the allocator's.
    done(unsafe { kernel::advise(at.addr(), length, advice) })
}
