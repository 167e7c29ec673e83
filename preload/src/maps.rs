#![expect(unsafe_code, reason = "the program's own maps; the rules are in lib.rs")]
//! Maps that a program makes: what is ordered for one, and whether it came.
//!
//! The one idea: what a map is follows from how it was asked for. Private anonymous memory is
//! populated and advised behind the call; shared anonymous memory is asked for in pages of the pool
//! first, and had as it was asked for where there are none.

use std::{
    ffi::{c_int, c_void},
    sync::atomic::{AtomicU64, Ordering},
};

use pagelab_sys::process::preload::{Counted, Order, log::Way};

use crate::{
    calls::{self, Errno, Map},
    is_ordered, places, pool_page, sheet, units,
};

/// Memory that somebody knows how it shall be.
const CHOSEN: c_int = libc::MAP_HUGETLB
    | libc::MAP_POPULATE
    | libc::MAP_LOCKED
    | libc::MAP_STACK
    | libc::MAP_GROWSDOWN;

impl Map {
    fn has(&self, flags: c_int) -> bool {
        self.flags & flags == flags
    }

    /// Private anonymous memory that may have huge pages.
    fn is_own(&self) -> bool {
        self.has(libc::MAP_ANONYMOUS)
            && self.flags & libc::MAP_TYPE == libc::MAP_PRIVATE
            && self.flags & CHOSEN == 0
    }

    /// The same where it is meant to be used: no address space that is set aside, and no more than
    /// half of the machine's memory.
    fn is_used(&self) -> bool {
        self.is_own()
            && self.flags & libc::MAP_NORESERVE == 0
            && self.access & libc::PROT_WRITE != 0
            && self.length as u64 <= calls::memory_bytes() / 2
    }

    /// Shared anonymous memory that lies anywhere, in whole pages of so many bytes, and is no
    /// address space that is set aside: what is of the pool can be cut at its pages only.
    fn is_shared(&self, page: usize) -> bool {
        self.has(libc::MAP_ANONYMOUS)
            && self.flags & libc::MAP_TYPE == libc::MAP_SHARED
            && self.flags & CHOSEN == 0
            && self.flags & libc::MAP_NORESERVE == 0
            && self.access & libc::PROT_WRITE != 0
            && self.address == 0
            && self.length.is_multiple_of(page)
    }
}

/// Makes a map as asked, and does what is ordered.
///
/// # Safety
/// As `mmap(2)`.
pub(crate) unsafe fn made(map: &Map) -> *mut c_void {
    let page = pool_page(map.length).filter(|page| map.is_shared(*page));
    if let Some(at) = page.and_then(|page| calls::aside(|| in_pool(map, page))) {
        return at;
    }
    if map.has(libc::MAP_FIXED) {
        places::forget(map.address, map.length);
    }
    // SAFETY: rule 1.
    let at = unsafe { calls::map(map, map.flags) };
    if at != libc::MAP_FAILED {
        calls::aside(|| follow(map, at));
    }
    at
}

/// Shared memory in pages of the pool; all of them are reserved, or there is none.
fn in_pool(map: &Map, page: usize) -> Option<*mut c_void> {
    sheet::add(Counted::Asked, 1);
    let size = page.trailing_zeros().cast_signed() << libc::MAP_HUGE_SHIFT;
    let flags = (map.flags & !libc::MAP_NORESERVE) | libc::MAP_HUGETLB | size;
    // SAFETY: no address is asked for, so nothing lies there.
    let at = unsafe { calls::map(map, flags) };
    let came = if at == libc::MAP_FAILED { Err(calls::errno()) } else { Ok(map.length) };
    sheet::note(came);
    came.is_ok().then_some(at)
}

/// Does what is ordered for memory that was mapped.
fn follow(map: &Map, at: *mut c_void) {
    let Map { length, .. } = *map;
    if units::is_large(length) && map.is_own() {
        units::begin(Way::Map, at, length);
        if map.is_used() && map.access == libc::PROT_READ | libc::PROT_WRITE {
            units::looked_at(at, length);
        }
    }
    if is_ordered(Order::Huge, length) && map.is_own() {
        sheet::add(Counted::Asked, 1);
        sheet::note(calls::advise(at, length, libc::MADV_HUGEPAGE).map(|()| length));
    }
    let collapsed = is_ordered(Order::Collapse, length);
    if (is_ordered(Order::Populate, length) || collapsed) && map.is_used() && is_room(length) {
        sheet::add(Counted::Asked, 1);
        sheet::note(present(at, length, collapsed).map(|()| length));
    }
}

/// Whether all that was made present, with so many bytes more, is no more than half of the
/// machine's memory: a program may map far more than it touches.
fn is_room(length: usize) -> bool {
    static POPULATED: AtomicU64 = AtomicU64::new(0);
    let before = POPULATED.fetch_add(length as u64, Ordering::Relaxed);
    before.saturating_add(length as u64) <= calls::memory_bytes() / 2
}

/// Makes memory present, in huge pages where that was ordered.
fn present(at: *mut c_void, length: usize, collapsed: bool) -> Result<(), Errno> {
    calls::advise(at, length, libc::MADV_POPULATE_WRITE)?;
    if collapsed { calls::advise(at, length, libc::MADV_COLLAPSE) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USED: Map = Map {
        address: 0,
        length: 4 << 20,
        access: libc::PROT_READ | libc::PROT_WRITE,
        flags: libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        file: -1,
        offset: 0,
    };

    #[test]
    fn only_memory_that_is_meant_to_be_used_is_made_present() {
        assert!(USED.is_own() && USED.is_used());
        let aside = Map { access: libc::PROT_NONE, ..USED };
        let unreserved = Map { flags: USED.flags | libc::MAP_NORESERVE, ..USED };
        let vast = Map { length: usize::MAX / 2, ..USED };
        for map in [aside, unreserved, vast] {
            assert!(map.is_own() && !map.is_used(), "{map:?}");
        }
        let stack = Map { flags: USED.flags | libc::MAP_STACK, ..USED };
        let file = Map { flags: libc::MAP_PRIVATE, file: 3, ..USED };
        let shared = Map { flags: libc::MAP_SHARED | libc::MAP_ANONYMOUS, ..USED };
        for map in [stack, file, shared] {
            assert!(!map.is_own(), "{map:?}");
        }
    }

    #[test]
    fn shared_memory_is_of_the_pool_in_whole_pages_and_anywhere() {
        let shared = Map { flags: libc::MAP_SHARED | libc::MAP_ANONYMOUS, ..USED };
        assert!(shared.is_shared(2 << 20) && !USED.is_shared(2 << 20));
        assert!(!Map { length: 3 << 20, ..shared }.is_shared(2 << 20));
        assert!(!Map { address: 1 << 40, ..shared }.is_shared(2 << 20));
        let unreserved = Map { flags: shared.flags | libc::MAP_NORESERVE, ..shared };
        assert!(!unreserved.is_shared(2 << 20));
        assert!(!Map { access: libc::PROT_NONE, ..shared }.is_shared(2 << 20));
        let known = Map { flags: libc::MAP_SHARED_VALIDATE | libc::MAP_ANONYMOUS, ..USED };
        assert!(!known.is_shared(2 << 20), "whoever has it validated asks for what it is");
    }

    #[test]
    fn memory_is_made_present_and_a_range_that_is_not_mapped_is_refused() {
        // SAFETY: a new place, which the kernel chooses.
        let at = unsafe { calls::map(&USED, USED.flags) };
        assert_ne!(at, libc::MAP_FAILED);
        assert_eq!(present(at, USED.length, false), Ok(()));
        // SAFETY: it was mapped above, and nothing points into it.
        unsafe { calls::unmap(at, USED.length) };
        assert_eq!(present(at, USED.length, false), Err(libc::ENOMEM));
    }
}
