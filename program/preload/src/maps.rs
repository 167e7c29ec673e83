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

use pagelab_interpose::preload::{Counted, Order, log::Way};
use pagelab_interpose::{Errno, Map, aside, kernel, place};

use crate::{count, count_result, is_ordered, pool_page, units};

/// Shared anonymous memory that lies anywhere, in whole pages of so many bytes, and is no address
/// space that is set aside: what is of the pool can be cut at its pages only.
fn is_shared(map: &Map, page: usize) -> bool {
    map.is_plain(libc::MAP_SHARED)
        && map.flags & libc::MAP_NORESERVE == 0
        && map.access & libc::PROT_WRITE != 0
        && map.address == 0
        && map.length.is_multiple_of(page)
}

/// Makes a map as asked, and does what is ordered.
///
/// # Safety
/// As `mmap(2)`.
pub(crate) unsafe fn made(map: &Map) -> *mut c_void {
    let page = pool_page(map.length).filter(|page| is_shared(map, *page));
    if let Some(at) = page.and_then(|page| aside(|| in_pool(map, page))) {
        return at;
    }
    // SAFETY: rule 1.
    let at = place(unsafe { kernel::map(map) });
    if at != libc::MAP_FAILED {
        aside(|| follow(map, at));
    }
    at
}

/// Shared memory in pages of the pool; all of them are reserved, or there is none.
fn in_pool(map: &Map, page: usize) -> Option<*mut c_void> {
    count(Counted::Asked, 1);
    let size = page.trailing_zeros().cast_signed() << libc::MAP_HUGE_SHIFT;
    let flags = (map.flags & !libc::MAP_NORESERVE) | libc::MAP_HUGETLB | size;
    // SAFETY: no address is asked for, so nothing lies there.
    let came = unsafe { kernel::map(&Map { flags, ..*map }) };
    count_result(came.map(|_| map.length));
    came.ok()
}

/// Does what is ordered for memory that was mapped.
fn follow(map: &Map, at: *mut c_void) {
    let Map { length, .. } = *map;
    if units::is_large(length) && map.is_own() {
        units::begin(Way::Map, at, length);
    }
    if is_ordered(Order::Huge, length) && map.is_own() {
        count(Counted::Asked, 1);
        count_result(advise(at, length, libc::MADV_HUGEPAGE).map(|()| length));
    }
    let collapsed = is_ordered(Order::Collapse, length);
    if (is_ordered(Order::Populate, length) || collapsed) && map.is_used() && is_room(length) {
        count(Counted::Asked, 1);
        count_result(present(at, length, collapsed).map(|()| length));
    }
}

/// Whether all that was made present, with so many bytes more, is no more than half of the
/// machine's memory: a program may map far more than it touches.
fn is_room(length: usize) -> bool {
    static POPULATED: AtomicU64 = AtomicU64::new(0);
    let before = POPULATED.fetch_add(length as u64, Ordering::Relaxed);
    before.saturating_add(length as u64) <= kernel::memory_bytes() / 2
}

/// Makes memory present, in huge pages where that was ordered.
fn present(at: *mut c_void, length: usize, collapsed: bool) -> Result<(), Errno> {
    advise(at, length, libc::MADV_POPULATE_WRITE)?;
    if collapsed { advise(at, length, libc::MADV_COLLAPSE) } else { Ok(()) }
}

/// Advises the kernel.
pub(crate) fn advise(at: *mut c_void, length: usize, advice: c_int) -> Result<(), Errno> {
    // SAFETY: no advice that is given here changes what memory holds.
    unsafe { kernel::advise(at.addr(), length, advice) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USED: Map = Map::new(4 << 20, kernel::USABLE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);

    #[test]
    fn shared_memory_is_of_the_pool_in_whole_pages_and_anywhere() {
        let shared = Map { flags: libc::MAP_SHARED | libc::MAP_ANONYMOUS, ..USED };
        assert!(is_shared(&shared, 2 << 20) && !is_shared(&USED, 2 << 20));
        assert!(!is_shared(&Map { length: 3 << 20, ..shared }, 2 << 20));
        assert!(!is_shared(&Map { address: 1 << 40, ..shared }, 2 << 20));
        let unreserved = Map { flags: shared.flags | libc::MAP_NORESERVE, ..shared };
        assert!(!is_shared(&unreserved, 2 << 20));
        assert!(!is_shared(&Map { access: libc::PROT_NONE, ..shared }, 2 << 20));
        let known = Map { flags: libc::MAP_SHARED_VALIDATE | libc::MAP_ANONYMOUS, ..USED };
        assert!(!is_shared(&known, 2 << 20), "whoever has it validated asks for what it is");
    }

    #[test]
    fn memory_is_made_present_and_a_range_that_is_not_mapped_is_refused() {
        // SAFETY: a new place, which the kernel chooses.
        let at = unsafe { kernel::map(&USED) }.unwrap();
        assert_eq!(present(at, USED.length, false), Ok(()));
        kernel::forgotten(at.addr(), USED.length);
        // Its place may be another thread's by now; below `vm.mmap_min_addr` there is never a page.
        assert_eq!(present(std::ptr::without_provenance_mut(4096), 4096, false), Err(libc::ENOMEM));
    }
}
