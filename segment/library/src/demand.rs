#![expect(unsafe_code, reason = "the program's own maps; the rules are in lib.rs")]
//! Maps of a segment whose pages are mapped when they are taken.
//!
//! The kernel has each map, with the program's own flags and rights, so whatever a program does
//! with it the kernel answers; only its place is chosen here. Giving it back unmaps it.
//!
//! One thing is mapped ahead: once a program has many maps, a leaf of which a small one is the
//! first, so that a large page can serve it. The rest of that leaf is open: free, and mapped. It is
//! unmapped before a call that would find it is made for a program ([`close`]). With `--zero ahead`
//! all of the segment is open when the program begins, as one mapping, and nothing is opened later.

use std::{
    ffi::{c_int, c_void},
    ops::Range,
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
};

use pagelab_interpose::{
    Errno, Map,
    kernel::{self, USABLE},
    segment::{Counted, Reason},
};

use crate::{
    area::{self, PAGE, PMD},
    copies, count, kept, orders,
    pages::{self, AREA, rounded},
};

/// Kinds of memory that a segment has not.
const OTHERS: c_int =
    libc::MAP_HUGETLB | libc::MAP_LOCKED | libc::MAP_STACK | libc::MAP_GROWSDOWN | libc::MAP_32BIT;
/// At an address, and nowhere else.
pub(crate) const FIXED: c_int = libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE;

/// A program that never had more in maps has small pages in small ones.
const SMALL: usize = 32 << 20;
/// The lowest address that was ever taken: maps begin at the end of the segment.
static LOWEST: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Whether the segment is for such a map, if it may lie anywhere.
pub(crate) fn fits(map: &Map) -> Result<(), Reason> {
    match map.flags & libc::MAP_TYPE {
        _ if map.flags & libc::MAP_ANONYMOUS == 0 => Err(Reason::File),
        libc::MAP_PRIVATE if map.flags & OTHERS == 0 => Ok(()),
        libc::MAP_PRIVATE => Err(Reason::Own),
        _ => Err(Reason::Shared),
    }
}

/// Lets the kernel make a map, and counts that.
pub(crate) fn fell_back(map: &Map, reason: Reason) -> Result<*mut c_void, Errno> {
    // SAFETY: the caller's of `made`.
    let at = unsafe { kernel::map(map) }?;
    count::fell_back(reason, map.length);
    Ok(at)
}

/// Counts a map of the segment.
pub(crate) fn served(map: &Map, at: usize) -> *mut c_void {
    count::take();
    count::add(Counted::Maps, 1);
    count::add(Counted::MapBytes, map.length);
    ptr::with_exposed_provenance_mut(at)
}

/// Maps pages that were just taken, as a program asked for them.
pub(crate) fn laid(map: &Map, range: &Range<usize>) -> Result<*mut c_void, Errno> {
    let lowest = LOWEST.fetch_min(range.start, Ordering::Relaxed).min(range.start);
    let is_small = range.len() < PMD;
    let is_plain = map.access == USABLE && map.flags & libc::MAP_NORESERVE == 0;
    let is_due = is_small && AREA.range().end - lowest > SMALL && !orders::is_ahead();
    let is_served = is_plain && is_due && open(range);
    // A map is one mapping of the kernel, or calls that go over all of it would fail; leaves that
    // were kept are mappings of their own.
    let mut at = if is_served { range.end } else { range.start };
    while at < range.end {
        let end = if kept::is_on() { (at / PMD + 1) * PMD } else { range.end };
        let part = at..end.min(range.end);
        at = part.end;
        let is_open = claimed(&part);
        if is_open && is_plain {
            continue;
        }
        if let Err(errno) = lay(map, &part, is_open) {
            kernel::forgotten(range.start, part.start - range.start);
            // What somebody else has there is left alone, now and later.
            let end = if errno == libc::EEXIST { part.start } else { range.end };
            release(&(range.start..end));
            return fell_back(map, Reason::MmapFull);
        }
    }
    if map.access != USABLE {
        pages::changed(&AREA, range)?;
    }
    // All of the segment alike, small maps too: the kernel joins what is alike, and a program may
    // map over a part of what it has.
    area::advise_leaf(range.start, range.len(), orders::leaf());
    if map.flags & libc::MAP_POPULATE != 0 {
        // As with the kernel's own, what cannot be made present is no error.
        // SAFETY: it makes pages present, which changes none.
        let _ = unsafe { kernel::advise(range.start, range.len(), libc::MADV_POPULATE_WRITE) };
    }
    Ok(served(map, range.start))
}

/// Maps pages as a program asked for them, over what is open or where nobody has any.
fn lay(map: &Map, range: &Range<usize>, is_open: bool) -> Result<(), Errno> {
    let place = if is_open { libc::MAP_FIXED } else { libc::MAP_FIXED_NOREPLACE };
    let flags = map.flags & !(FIXED | libc::MAP_POPULATE) | place;
    let map = Map { address: range.start, length: range.len(), flags, ..*map };
    // SAFETY: free until now.
    unsafe { kernel::map(&map) }.map(drop)
}

/// Whether pages that were taken are mapped, all of them as one mapping; else none is from now on.
fn claimed(range: &Range<usize>) -> bool {
    let is_open = {
        let Ok(pages) = pages::pages() else { return false };
        let span = pages::span(range);
        let is_one = orders::is_ahead() || range.start / PMD == (range.end - 1) / PMD;
        let is_open = is_one && pages.open.are_all_taken(span.start, span.end);
        if is_open {
            pages.open.free(span.start, span.end);
        }
        is_open
    };
    if !is_open {
        while let Some(open) = first_open(range) {
            kernel::forgotten(open.start, open.len());
        }
    }
    is_open
}

/// Maps the leaf around some pages that were taken, if nobody has anything else of it; whether
/// it did.
fn open(range: &Range<usize>) -> bool {
    let whole = range.start / PMD * PMD..range.end.next_multiple_of(PMD);
    let own = AREA.range();
    if whole.len() != PMD || whole.start < own.start || whole.end > own.end {
        return false;
    }
    let rest = [whole.start..range.start, range.end..whole.end];
    let rest = rest.map(|part| pages::span(&part));
    {
        let Ok(pages) = pages::pages() else { return false };
        let is_used = |part: &Range<usize>| {
            pages.taken.is_any_taken(part.start, part.end)
                || pages.open.is_any_taken(part.start, part.end)
        };
        let own = pages::span(range);
        if rest.iter().any(is_used) || pages.open.is_any_taken(own.start, own.end) {
            return false;
        }
        for part in &rest {
            pages.taken.hold(part.start, part.end);
        }
    }
    let is_open = area::map(&whole).is_ok();
    if is_open {
        area::advise_leaf(whole.start, PMD, orders::leaf());
    }
    // Nobody is in the midst of a call here: it was not so above.
    let Ok(pages) = pages::pages() else { return false };
    // Under one lock: who takes one of them next finds that it is mapped.
    for part in &rest {
        pages.taken.free(part.start, part.end);
        if is_open {
            pages.open.hold(part.start, part.end);
        }
    }
    is_open
}

/// Unmaps what is open of some addresses, so that the kernel finds what the program has there.
pub(crate) fn close(range: &Range<usize>) {
    let Some(mut part) = AREA.part(range).filter(|_| AREA.is_on_demand()) else { return };
    while let Some(open) = first_open(&part) {
        part.start = open.end;
        kernel::forgotten(open.start, open.len());
        release(&open);
    }
}

/// The first open pages of some addresses, which are taken from now on.
fn first_open(part: &Range<usize>) -> Option<Range<usize>> {
    let pages = pages::pages().ok()?;
    let span = pages::span(part);
    if !pages.open.is_any_taken(span.start, span.end) {
        return None;
    }
    let is_open = |page: &usize| pages.open.is_any_taken(*page, *page + 1);
    let first = (span.start..span.end).find(is_open)?;
    let end = (first..span.end).find(|page| !is_open(page)).unwrap_or(span.end);
    pages.open.free(first, end);
    pages.taken.hold(first, end);
    let start = AREA.range().start;
    Some(start + first * PAGE..start + end * PAGE)
}

/// Pages are free from now on, and were unmapped.
pub(crate) fn release(part: &Range<usize>) {
    if part.is_empty() {
        return;
    }
    let span = pages::span(part);
    // In the midst of another call they stay taken, which is no harm.
    if let Ok(pages) = pages::pages() {
        pages.taken.free(span.start, span.end);
        pages.open.free(span.start, span.end);
        pages.changed.free(span.start, span.end);
    }
}

/// Makes a map at an address of which a part lies in the segment, or with that address as a hint.
///
/// # Safety
/// As `mmap(2)`.
pub(crate) unsafe fn fixed(map: &Map, part: &Range<usize>) -> Result<*mut c_void, Errno> {
    close(part);
    let was_free = pages::take_at(part);
    // SAFETY: the caller's.
    let at = unsafe { kernel::map(map) }.inspect_err(|_| {
        if was_free {
            release(part);
        }
    })?;
    if at.addr() != map.address / PAGE * PAGE {
        if was_free {
            release(part);
        }
        count::fell_back(Reason::Placed, map.length);
        return Ok(at);
    }
    pages::hold(part);
    let fits = fits(map).and_then(|()| {
        if part.len() == rounded(map.length) { Ok(()) } else { Err(Reason::Placed) }
    });
    if let Err(reason) = fits {
        let _ = pages::changed(&AREA, part);
        count::fell_back(reason, map.length);
        return Ok(at);
    }
    area::advise_leaf(part.start, part.len(), orders::leaf());
    if map.access != USABLE {
        let _ = pages::changed(&AREA, part);
    }
    Ok(served(map, part.start))
}

/// `munmap(2)` of addresses that the kernel takes, of which a part lies in the segment.
///
/// # Safety
/// As the call.
pub(crate) unsafe fn unmapped(whole: &Range<usize>, part: &Range<usize>) -> Result<(), Errno> {
    if pages::is_plain(part) {
        kept::keep(part);
    }
    // SAFETY: the caller's.
    unsafe { kernel::unmap(whole.start, whole.len()) }?;
    release(part);
    Ok(())
}

/// `mremap(2)`: a map that grows stays in the segment, in its place or in another one.
///
/// # Safety
/// As the call.
pub(crate) unsafe fn moved(
    [at, old, new, to]: [usize; 4],
    flags: c_int,
) -> Result<*mut c_void, Errno> {
    let own = |at: usize, length| pages::valid(at, length).and_then(|whole| AREA.part(&whole));
    let source = own(at, old);
    let goal = own(to, new).filter(|_| flags & libc::MREMAP_FIXED != 0);
    for part in [own(at, old.max(new)), goal.clone()].into_iter().flatten() {
        close(&part);
    }
    let may_move = flags == libc::MREMAP_MAYMOVE;
    if let Some(part) = source.as_ref().filter(|part| part.len() == rounded(old))
        && rounded(new) > part.len()
        && (may_move || flags == 0)
    {
        // SAFETY: the caller's.
        if let Some(came) = unsafe { grown(part, old, new, may_move) } {
            return Ok(came);
        }
    }
    // SAFETY: the caller's.
    let came = unsafe { kernel::remap(at, old, new, flags, to) }?;
    let is_inside = source.is_some();
    if let Some(part) = source
        && flags & libc::MREMAP_DONTUNMAP == 0
    {
        let stays = if came.addr() == at { at + rounded(new) } else { part.start };
        release(&(stays.clamp(part.start, part.end)..part.end));
    }
    // Wherever it lies now, whoever asked for it.
    if let Some(part) = AREA.part(&(came.addr()..came.addr() + rounded(new))) {
        pages::hold(&part);
        pages::changed(&AREA, &part)?;
        if !is_inside {
            // As what lies beside it, or the kernel does not join them.
            area::advise_leaf(part.start, part.len(), orders::leaf());
        }
    }
    Ok(came)
}

/// Makes a map of whole pages longer or shorter within the segment; `None` where it cannot.
///
/// # Safety
/// As `mremap(2)`.
pub(crate) unsafe fn resized(part: &Range<usize>, length: usize) -> Option<*mut c_void> {
    if length > part.len() {
        // SAFETY: the caller's.
        return unsafe { grown(part, part.len(), length, true) };
    }
    // SAFETY: the caller's.
    let came = unsafe { kernel::remap(part.start, part.len(), length, 0, 0) }.ok()?;
    release(&(part.start + length..part.end));
    Some(came)
}

/// Lets a map grow; `None` where it cannot, and the kernel says why.
///
/// # Safety
/// As `mremap(2)`.
unsafe fn grown(
    part: &Range<usize>,
    old: usize,
    new: usize,
    may_move: bool,
) -> Option<*mut c_void> {
    let more = part.end..part.start.checked_add(rounded(new))?;
    if more.end <= AREA.range().end && pages::take_at(&more) {
        // SAFETY: the caller's.
        if let Ok(came) = unsafe { kernel::remap(part.start, old, new, 0, 0) } {
            return Some(came);
        }
        release(&more);
    }
    let place = if may_move { pages::picked(new).ok()? } else { return None };
    let goal = place..place + rounded(new);
    // Nothing of anybody else is there, or it stays.
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    let mapped = if claimed(&goal) { Ok(()) } else { area::map(&goal) };
    // Both together may be more than a limit allows, where one of them is not.
    let mapped = mapped.or_else(|errno| if is_vacant(&goal) { Ok(()) } else { Err(errno) });
    let came = mapped.and_then(|()| {
        // SAFETY: the caller's, and nobody has seen what is there.
        match unsafe { kernel::remap(part.start, old, new, flags, place) } {
            // Leaves that were kept are mappings of their own: before Linux 6.17 none moves them.
            Err(libc::EFAULT) if kept::is_on() && pages::is_plain(part) => {
                copies::copy(part, place);
                kernel::forgotten(part.start, part.len());
                Ok(ptr::with_exposed_provenance_mut(place))
            }
            came => came.inspect_err(|_| kernel::forgotten(place, goal.len())),
        }
    });
    if came.is_err() {
        release(&goal);
        return None;
    }
    let _ = pages::changed(&AREA, &goal);
    release(part);
    came.ok()
}

/// Whether nobody has any of some addresses: leaf by leaf, as all may be more than a limit allows.
fn is_vacant(range: &Range<usize>) -> bool {
    range.clone().step_by(PMD).all(|start| {
        let leaf = start..range.end.min(start + PMD);
        let is_free = area::map(&leaf).is_ok();
        if is_free {
            kernel::forgotten(leaf.start, leaf.len());
        }
        is_free
    })
}
