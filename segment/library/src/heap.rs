#![expect(unsafe_code, reason = "hands memory to the allocator; the rules are in lib.rs")]
//! The heap's segment, and the allocators that have it.
//!
//! The one idea: two allocators have a part of this segment each and no other memory, so an address
//! says whose it is: dlmalloc at the bottom ([`crate::fine`]), and mimalloc. Its tables lie at the
//! beginning, a word here and there of many MiB: they get small pages, and leaves begin where
//! memory does that programs are given.

use std::{
    ffi::{c_int, c_void},
    ptr,
    sync::atomic::{AtomicBool, Ordering},
};

use libmimalloc_sys as mi;
use pagelab_interpose::{Errno, aside, segment::Wish};

use crate::{
    area::{Area, Grows},
    back,
    fine::{self, FINE},
    leaves,
};

/// The segment.
pub(crate) static AREA: Area = Area::new();
/// Whether the allocators have it.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// What the allocator calls when it takes a piece, and when it gives it up.
type Wants = unsafe extern "C" fn(bool, *mut c_void, usize, *mut bool, *mut c_void) -> bool;

unsafe extern "C" {
    // Of `internal.h` of mimalloc 3: what begins it otherwise, when it is loaded.
    fn _mi_auto_process_init();

    // Of `mimalloc.h`; the crate has no name for it.
    fn mi_manage_memory(
        start: *mut c_void,
        size: usize,
        is_committed: bool,
        is_pinned: bool,
        is_zero: bool,
        numa_node: c_int,
        exclusive: bool,
        commit: Option<Wants>,
        argument: *mut c_void,
        arena: *mut *mut c_void,
    ) -> bool;
}

unsafe extern "C" fn wants(
    takes: bool,
    start: *mut c_void,
    size: usize,
    is_zero: *mut bool,
    _: *mut c_void,
) -> bool {
    if !takes {
        aside(|| leaves::given_up(start.addr(), size));
        return true;
    }
    let Ok(was_zero) = aside(|| leaves::had(start.addr(), size)) else { return false };
    if !is_zero.is_null() {
        // SAFETY: where the allocator wants to know, it is a place for the answer.
        unsafe { is_zero.write(was_zero) };
    }
    true
}

/// Reserves the segment, and hands it to the allocators.
pub(crate) fn begin(bytes: usize, wish: &Wish) -> Result<(), Errno> {
    /// `mi_option_purge_delay`, which the crate has no name for.
    const PURGE_DELAY: c_int = 15;
    AREA.reserve(bytes, wish, Grows::Up, back::lay)?;
    // What was mapped at once stays, whatever it has freed.
    let stays = !AREA.is_on_demand();
    if !stays {
        leaves::begin(&AREA.range())?;
    }
    // SAFETY: takes nothing, and does its work once.
    unsafe { _mi_auto_process_init() };
    // Memory of this segment and no other; and what is given up is told at once.
    for (option, value) in [(mi::mi_option_limit_os_alloc, 1), (PURGE_DELAY, 0)] {
        // SAFETY: numbers.
        unsafe { mi::mi_option_set(option, value) };
    }
    let range = AREA.range();
    let part = fine::part(&range);
    let at = ptr::with_exposed_provenance_mut(part.end);
    let mut arena = ptr::null_mut();
    // Not committed, so that it asks for each piece.
    let [is_committed, is_pinned, is_zero, is_exclusive] = [stays, stays, true, false];
    let wants = (!stays).then_some(wants as Wants);
    let (size, node, nothing) = (range.end - part.end, -1, ptr::null_mut());
    // SAFETY: mapped for good, zero, and nobody else's.
    let is_taken = unsafe {
        mi_manage_memory(
            at,
            size,
            is_committed,
            is_pinned,
            is_zero,
            node,
            is_exclusive,
            wants,
            nothing,
            &raw mut arena,
        )
    };
    if !is_taken {
        return Err(libc::ENOMEM);
    }
    // SAFETY: takes a number.
    let first = unsafe { mi::mi_malloc(1) };
    // SAFETY: it was had just now, and nobody else has it.
    unsafe { mi::mi_free(first) };
    if !stays && AREA.has(first.addr()) {
        leaves::first_is(first.addr());
    }
    FINE.begin(&part);
    IS_ON.store(true, Ordering::Release);
    Ok(())
}

/// Whether there is a heap.
pub(crate) fn is_on() -> bool {
    IS_ON.load(Ordering::Acquire)
}
