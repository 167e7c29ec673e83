#![expect(unsafe_code, reason = "the program's own allocations; the rules are in lib.rs")]
//! Blocks of the heap that grew large: each is a map of its own, which grows as a map does.
//!
//! The allocator would copy such a block each time, and have both meanwhile. The kernel moves page
//! tables. A block begins [`HEAD`] bytes into its map; the first word of the map is its length.

use std::{ffi::c_void, ptr};

use pagelab_interpose::{
    Map, aside,
    kernel::{self, USABLE},
};

use crate::{area::PMD, begin, demand, maps, pages::AREA};

/// What `realloc` makes so long is a map.
const LEAST: usize = 1 << 20;
/// A line of the caches, so that a block begins as aligned as any.
const HEAD: usize = 64;
/// What grew will grow again: so large a part more of it is mapped, which nobody touches yet.
const ROOM: usize = 8;

/// Whether a block is one of these: no program frees a map that it made itself.
pub(crate) fn has(at: usize) -> bool {
    AREA.has(at)
}

/// Whether a block that grows to so many bytes is to be one.
pub(crate) fn wants(bytes: usize) -> bool {
    bytes >= LEAST && begin::maps() && AREA.is_on_demand()
}

/// The length of a map for so many bytes, with room and without.
fn lengths(bytes: usize) -> Option<[usize; 2]> {
    let least = bytes.checked_add(HEAD)?;
    let room = least.checked_add(bytes / ROOM)?.checked_next_multiple_of(PMD)?;
    Some([room, least.next_multiple_of(PMD)])
}

/// A new one; null where the segment of maps has no room.
pub(crate) fn new(bytes: usize) -> *mut c_void {
    let Some(lengths) = lengths(bytes) else { return ptr::null_mut() };
    for length in lengths {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let map = Map::new(length, USABLE, flags);
        // SAFETY: a new place.
        let Ok(at) = aside(|| unsafe { maps::made(&map) }) else { continue };
        if has(at.addr()) {
            maps::handed_over(length);
            return begun(at, length);
        }
        kernel::forgotten(at.addr(), length);
    }
    ptr::null_mut()
}

/// The block of a map.
fn begun(map: *mut c_void, length: usize) -> *mut c_void {
    // SAFETY: mapped to be written, and this word is ours.
    unsafe { map.cast::<usize>().write(length) };
    map.wrapping_byte_add(HEAD)
}

/// The map of a block, and its length.
///
/// # Safety
/// It is one of these.
unsafe fn map(at: *mut c_void) -> (usize, usize) {
    let map = at.wrapping_byte_sub(HEAD);
    // SAFETY: the caller's: `begun` wrote it.
    (map.addr(), unsafe { map.cast::<usize>().read() })
}

/// How many bytes a block has.
///
/// # Safety
/// It is one of these.
pub(crate) unsafe fn usable_size(at: *mut c_void) -> usize {
    // SAFETY: the caller's.
    unsafe { map(at) }.1 - HEAD
}

/// Gives a block back.
///
/// # Safety
/// It is one of these, and nobody uses it any more.
pub(crate) unsafe fn free(at: *mut c_void) {
    // SAFETY: the caller's.
    let (start, length) = unsafe { map(at) };
    // SAFETY: the caller's.
    let _ = aside(|| unsafe { maps::unmapped(start, length) });
}

/// Makes a block longer or shorter, where it is or elsewhere in the segment; null where it cannot,
/// and it is as it was.
///
/// # Safety
/// It is one of these, and whoever uses it will do so where it lies then.
pub(crate) unsafe fn resized(at: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    let (start, had) = unsafe { map(at) };
    let Some(lengths) = lengths(bytes) else { return ptr::null_mut() };
    if lengths[1] <= had && had <= lengths[0] {
        return at;
    }
    for length in lengths {
        // SAFETY: the caller's.
        let came = aside(|| unsafe { demand::resized(&(start..start + had), length) });
        if let Some(map) = came {
            return begun(map, length);
        }
    }
    ptr::null_mut()
}
