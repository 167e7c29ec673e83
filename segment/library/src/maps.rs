#![expect(unsafe_code, reason = "the program's own maps; the rules are in lib.rs")]
//! Maps that a program makes, served out of the segment of maps.
//!
//! Private anonymous memory that may lie anywhere takes free pages of the segment. Where these are
//! mapped on demand ([`crate::demand`]) a map is the kernel's at an address that is chosen here.
//! Where all are mapped at once, giving pages back throws their contents away, and pages of which
//! somebody changed the rights or the advice, or that were mapped over, are noted: they are made
//! anew then. What must lie elsewhere, or is of another kind, goes to the kernel as it was asked
//! for, and is counted.

use std::{ffi::c_void, ops::Range};

use pagelab_interpose::{
    Errno, Map,
    kernel::{self, USABLE},
    segment::{Backed, Reason, Variable},
};

use crate::{
    area::PAGE,
    back, begin, count, demand, orders,
    pages::{AREA, changed, hold, is_plain, pages, rounded, span, taken, valid},
    splits,
};

/// Makes a map as asked.
///
/// # Safety
/// As `mmap(2)`.
pub(crate) unsafe fn made(map: &Map) -> Result<*mut c_void, Errno> {
    let is_fixed = map.flags & demand::FIXED != 0;
    // A hint is an address where nothing is, and the kernel rounds it; none is 0.
    let start = if is_fixed { map.address } else { map.address / PAGE * PAGE };
    let is_placed = is_fixed || (start != 0 && AREA.is_on_demand());
    if let Some(whole) = valid(start, map.length).filter(|_| is_placed)
        && let Some(part) = AREA.part(&whole)
    {
        let fixed = if AREA.is_on_demand() { demand::fixed } else { fixed };
        // SAFETY: the caller's.
        return unsafe { fixed(map, &part) };
    }
    if !begin::has_maps() {
        // SAFETY: the caller's.
        return unsafe { kernel::map(map) };
    }
    let came = demand::fits(map).and_then(|()| match map.address {
        // At 0, too.
        _ if is_fixed => Err(Reason::Placed),
        // Another thread is about to begin it, or a filter forbids it.
        0 if !begin::maps() => Err(Reason::Busy),
        // Each page of a pool would have to be copied first.
        0 if map.access != USABLE && AREA.has_pool() => Err(Reason::Rights),
        0 => taken(map.length),
        _ => Err(Reason::Placed),
    });
    match came {
        Ok(at) => usable(map, at),
        Err(reason) => {
            let at = demand::fell_back(map, reason)?;
            if reason == Reason::MmapFull && !AREA.range().is_empty() {
                orders::full(c"the segment of maps", Variable::Mmap);
            }
            Ok(at)
        }
    }
}

/// Gives a program what was taken for it, with the rights that it asked for.
fn usable(map: &Map, at: usize) -> Result<*mut c_void, Errno> {
    let range = at..at + rounded(map.length);
    if AREA.is_on_demand() {
        return demand::laid(map, &range);
    }
    if map.access != USABLE {
        // SAFETY: free until now, so nobody relies on its rights.
        let protect = || unsafe { kernel::protect(at, range.len(), map.access) };
        if let Err(errno) = changed(&AREA, &range).and_then(|()| protect()) {
            give_back(&range)?;
            return Err(errno);
        }
    }
    if map.flags & libc::MAP_POPULATE != 0 {
        // As with the kernel's own, what cannot be made present is no error.
        // SAFETY: it makes pages present, which changes none.
        let _ = unsafe { kernel::advise(at, range.len(), libc::MADV_POPULATE_WRITE) };
    }
    Ok(demand::served(map, at))
}

/// A program has a map of so many bytes, wherever it came from.
pub(crate) fn handed_over(length: usize) {
    if begin::has_maps() {
        count::add(Backed::Believed, length);
    }
}

/// Makes a map at an address of which a part lies in the segment.
///
/// # Safety
/// As `mmap(2)`.
unsafe fn fixed(map: &Map, part: &Range<usize>) -> Result<*mut c_void, Errno> {
    let span = span(part);
    // All addresses of a segment are mapped, so the kernel would never see one that is free.
    let mut asked = *map;
    if map.flags & libc::MAP_FIXED_NOREPLACE == libc::MAP_FIXED_NOREPLACE {
        if part.len() < rounded(map.length) {
            // Nothing comes of it, as the segment is in its way: the kernel says why.
            // SAFETY: the caller's.
            return unsafe { kernel::map(map) };
        }
        let Ok(pages) = pages() else { return Err(libc::EEXIST) };
        if !pages.taken.take_at(span.start, span.end) {
            return Err(libc::EEXIST);
        }
        asked.flags = (map.flags & !libc::MAP_FIXED_NOREPLACE) | libc::MAP_FIXED;
    }
    if demand::fits(map).is_ok() && part.len() == rounded(map.length) {
        // What is there already, as it was: zero.
        hold(part);
        renewed(part)?;
        return usable(map, part.start);
    }
    changed(&AREA, part)?;
    // SAFETY: the caller's.
    let at = unsafe { kernel::map(&asked) }?;
    hold(part);
    count::fell_back(demand::fits(map).err().unwrap_or(Reason::Placed), map.length);
    Ok(at)
}

/// Gives pages back; they are zero when they are taken again.
pub(crate) fn give_back(part: &Range<usize>) -> Result<(), Errno> {
    let span = span(part);
    renewed(part)?;
    // In the midst of another call they stay taken, which is no harm.
    if let Ok(pages) = pages() {
        pages.taken.free(span.start, span.end);
    }
    Ok(())
}

/// Makes some pages what they were when they were reserved: zero, and with the same rights.
fn renewed(part: &Range<usize>) -> Result<(), Errno> {
    if is_plain(part) {
        return back::zero(&AREA, part);
    }
    back::renew(&AREA, part)?;
    let span = span(part);
    if let Ok(pages) = pages() {
        let before = pages.changed.runs(span.start, span.end);
        pages.changed.free(span.start, span.end);
        splits::became(before, pages.changed.runs(span.start, span.end));
    }
    Ok(())
}

/// `munmap(2)`: what lies in the segment is given back to it, the rest to the kernel.
///
/// # Safety
/// As the call.
pub(crate) unsafe fn unmapped(at: usize, length: usize) -> Result<(), Errno> {
    let whole = valid(at, length);
    let Some((part, whole)) = whole.and_then(|whole| Some((AREA.part(&whole)?, whole))) else {
        // SAFETY: the caller's.
        return unsafe { kernel::unmap(at, length) };
    };
    if AREA.is_on_demand() {
        // SAFETY: the caller's.
        return unsafe { demand::unmapped(&whole, &part) };
    }
    for rest in [whole.start..part.start, part.end..whole.end] {
        if !rest.is_empty() {
            // SAFETY: the caller's.
            unsafe { kernel::unmap(rest.start, rest.len()) }?;
        }
    }
    give_back(&part)
}
