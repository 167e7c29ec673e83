#![expect(unsafe_code, reason = "hands memory to the allocator; the rules are in lib.rs")]
//! The heap's segment, and the allocator that has it.
//!
//! The one idea: mimalloc has this segment and no other memory, so an address says whose it is.

use std::{
    ffi::c_int,
    ptr,
    sync::atomic::{AtomicBool, Ordering},
};

use libmimalloc_sys as mi;
use pagelab_sys::process::{preload::edge::Errno, segment::Leaf};

use crate::area::Area;

/// The segment.
pub(crate) static AREA: Area = Area::new();
/// Whether the allocator has it.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Reserves the segment, and hands it to the allocator.
pub(crate) fn begin(bytes: usize, leaf: Leaf) -> Result<(), Errno> {
    /// `mi_option_minimal_purge_size`, in KiB, which the crate has no name for.
    const PURGE_LEAST: c_int = 44;
    AREA.reserve(bytes, leaf)?;
    // Memory of this segment and no other; and what is thrown away is whole huge pages.
    // SAFETY: numbers.
    unsafe { mi::mi_option_set(mi::mi_option_limit_os_alloc, 1) };
    if leaf > Leaf::Base {
        // SAFETY: numbers.
        unsafe { mi::mi_option_set(PURGE_LEAST, 2048) };
    }
    let range = AREA.range();
    let at = ptr::with_exposed_provenance(range.start);
    let mut arena = ptr::null_mut();
    // SAFETY: mapped for good, zero, and nobody else's.
    let is_taken = unsafe {
        mi::mi_manage_os_memory_ex(at, range.len(), true, false, true, -1, false, &raw mut arena)
    };
    IS_ON.store(is_taken, Ordering::Release);
    if is_taken { Ok(()) } else { Err(libc::ENOMEM) }
}

/// Whether there is a heap.
pub(crate) fn is_on() -> bool {
    IS_ON.load(Ordering::Acquire)
}
