#![expect(unsafe_code, reason = "memory that is looked at; the rules are in lib.rs")]
//! What tests of several files need.

use std::ffi::c_void;

use pagelab_interpose::{Map, kernel};

/// A new map, of memory that nothing points into yet.
pub(crate) fn map_new(length: usize) -> *mut c_void {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: nothing lies there.
    unsafe { kernel::map(&Map::new(length, kernel::USABLE, flags)) }.unwrap()
}

/// Whether the kernel reaches a byte.
pub(crate) fn is_readable(at: *const c_void) -> bool {
    let mut byte = 0_u8;
    let theirs = libc::iovec { iov_base: at.cast_mut(), iov_len: 1 };
    let own = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let pid = kernel::process().cast_signed();
    // SAFETY: one vector of each process, which are both this one; one byte of ours is written.
    unsafe { libc::process_vm_readv(pid, &raw const own, 1, &raw const theirs, 1, 0) == 1 }
}
