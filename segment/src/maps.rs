#![expect(unsafe_code, reason = "the program's own maps; the rules are in lib.rs")]
//! Maps that a program makes, served out of the segment of maps.
//!
//! Private anonymous memory that may lie anywhere takes free pages of the segment. Where these are
//! mapped on demand ([`crate::demand`]) a map is the kernel's at an address that is chosen here.
//! Where all are mapped at once, giving pages back throws their contents away, and pages of which
//! somebody changed the rights or the advice, or that were mapped over, are noted: they are made
//! anew then. What must lie elsewhere, or is of another kind, goes to the kernel as it was asked
//! for, and is counted.

use std::{
    ffi::{c_int, c_void},
    ops::Range,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering},
};

use pagelab_sys::process::{
    preload::edge::Errno,
    segment::{Backed, Counted, Leaf, Reason, Variable, Wish},
};

use crate::{
    area::{Area, Grows, PAGE, PMD, PUD},
    back, begin, count, demand, kept,
    kernel::{self, Map, OWN, USABLE},
    lock::{Held, Lock},
    orders,
    ranges::{self, Ranges},
    splits,
};

/// The segment.
pub(crate) static AREA: Area = Area::cut_where(is_plain);
/// Of both tables of its pages.
pub(crate) static LOCK: Lock = Lock::new();
/// A word for 64 pages: those that are taken, those that were changed, and those that are free and
/// mapped.
static TABLES: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());
/// Whether any page ever was changed: few programs change one.
static IS_CHANGED: AtomicBool = AtomicBool::new(false);
static TOPS: [AtomicUsize; TABLE_COUNT] = [const { AtomicUsize::new(0) }; TABLE_COUNT];
const TABLE_COUNT: usize = 3;

/// Kinds of memory that a segment has not.
const OTHERS: c_int =
    libc::MAP_HUGETLB | libc::MAP_LOCKED | libc::MAP_STACK | libc::MAP_GROWSDOWN | libc::MAP_32BIT;
/// At an address, and nowhere else.
pub(crate) const FIXED: c_int = libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE;

/// Reserves the segment, and a bit of each table for each of its pages.
pub(crate) fn begin(bytes: usize, wish: &Wish) -> Result<(), Errno> {
    let pages = bytes.next_multiple_of(PUD) / PAGE;
    let words = TABLE_COUNT * ranges::words(pages);
    let length = (words * size_of::<u64>()).next_multiple_of(PAGE);
    let map = Map { address: 0, length, access: USABLE, flags: OWN, file: -1, offset: 0 };
    // SAFETY: a new place, which the kernel chooses; it is kept for good.
    let tables = unsafe { kernel::map(&map) }?;
    AREA.reserve(bytes, wish, Grows::Down, back::lay)?;
    let pages = AREA.range().len() / PAGE;
    for top in &TOPS {
        top.store(pages, Ordering::Relaxed);
    }
    TABLES.store(tables.cast(), Ordering::Release);
    Ok(())
}

/// The pages of the segment, while nobody else looks at them.
pub(crate) struct Pages<'h> {
    pub(crate) taken: Ranges<'h>,
    pub(crate) changed: Ranges<'h>,
    /// Free, and mapped to be read and written.
    pub(crate) open: Ranges<'h>,
    _held: Held<'h>,
}

/// Looks at the pages; an error where this thread does already, or there is no segment.
pub(crate) fn pages() -> Result<Pages<'static>, Reason> {
    let tables = TABLES.load(Ordering::Acquire);
    if tables.is_null() {
        return Err(Reason::MmapFull);
    }
    let held = LOCK.hold().ok_or(Reason::Busy)?;
    let range = AREA.range();
    let (pages, skew) = (range.len() / PAGE, range.start % PUD / PAGE);
    let count = ranges::words(pages);
    // SAFETY: `begin` mapped all tables, zero, for good and for at least so many words.
    let all = unsafe { std::slice::from_raw_parts(tables.cast_const(), TABLE_COUNT * count) };
    let (taken, rest) = all.split_at(count);
    let (changed, open) = rest.split_at(count);
    Ok(Pages {
        taken: Ranges::of(taken, pages, &TOPS[0]).askew(skew),
        changed: Ranges::of(changed, pages, &TOPS[1]),
        open: Ranges::of(open, pages, &TOPS[2]),
        _held: held,
    })
}

/// The pages of some addresses of the segment.
pub(crate) fn span(of: &Range<usize>) -> Range<usize> {
    let start = AREA.range().start;
    (of.start - start) / PAGE..(of.end - start).div_ceil(PAGE)
}

/// Whether the segment is for such a map, if it may lie anywhere.
pub(crate) fn fits(map: &Map) -> Result<(), Reason> {
    match map.flags & libc::MAP_TYPE {
        _ if map.flags & libc::MAP_ANONYMOUS == 0 => Err(Reason::File),
        libc::MAP_PRIVATE if map.flags & OTHERS == 0 => Ok(()),
        libc::MAP_PRIVATE => Err(Reason::Own),
        _ => Err(Reason::Shared),
    }
}

/// Makes a map as asked.
///
/// # Safety
/// As `mmap(2)`.
pub(crate) unsafe fn made(map: &Map) -> Result<*mut c_void, Errno> {
    let is_fixed = map.flags & FIXED != 0;
    // A hint is an address where nothing is, and the kernel rounds it.
    let start = if is_fixed { map.address } else { map.address / PAGE * PAGE };
    let whole = start..start.saturating_add(rounded(map.length));
    if (is_fixed || AREA.is_on_demand())
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
    let came = fits(map).and_then(|()| match map.address {
        0 if !begin::maps() => Err(Reason::MmapFull),
        // Each page of a pool would have to be copied first.
        0 if map.access != USABLE && AREA.has_pool() => Err(Reason::Rights),
        0 => taken(map.length),
        _ => Err(Reason::Placed),
    });
    match came {
        Ok(at) => usable(map, at),
        Err(reason) => {
            let at = fell_back(map, reason)?;
            if reason == Reason::MmapFull {
                orders::full(c"the segment of maps", Variable::Mmap);
            }
            Ok(at)
        }
    }
}

/// Lets the kernel make a map, and counts that.
pub(crate) fn fell_back(map: &Map, reason: Reason) -> Result<*mut c_void, Errno> {
    // SAFETY: the caller's of `made`.
    let at = unsafe { kernel::map(map) }?;
    count::fell_back(reason, map.length);
    Ok(at)
}

/// Whole pages.
pub(crate) fn rounded(length: usize) -> usize {
    length.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX)
}

/// Takes free pages for so many bytes, and makes sure that nothing else is kept there.
pub(crate) fn taken(length: usize) -> Result<usize, Reason> {
    let at = picked(length)?;
    kept::ready(&(at..at + rounded(length)));
    Ok(at)
}

/// Takes free pages for so many bytes, aligned to the largest leaf that they fill.
pub(crate) fn picked(length: usize) -> Result<usize, Reason> {
    // The kernel says what is wrong with such a length.
    if length == 0 || length > AREA.range().len() {
        return Err(Reason::MmapFull);
    }
    let leaves = [Leaf::Pud, Leaf::Pmd].map(|leaf| (leaf, leaf.bytes()));
    let fills = |(leaf, bytes): &(Leaf, u64)| {
        *leaf <= orders::leaf().max(Leaf::Pmd) && length as u64 >= *bytes
    };
    let align = leaves.into_iter().find(fills).map_or(PAGE as u64, |(_, bytes)| bytes);
    let align = usize::try_from(align).unwrap_or(PAGE) / PAGE;
    let count = rounded(length) / PAGE;
    let start = AREA.range().start;
    let range = |first: usize| start + first * PAGE..start + (first + count) * PAGE;
    let pages = pages()?;
    let mut first = pages.taken.take(count, align).ok_or(Reason::MmapFull)?;
    // What was cleaned is better than what is higher, where it is leaves.
    if length >= PMD
        && kept::is_given(&range(first))
        && let Some(clean) = kept::clean_ones(count * PAGE).map(|at| (at - start) / PAGE)
        && (start + clean * PAGE).is_multiple_of(align * PAGE)
        && pages.taken.take_at(clean, clean + count)
    {
        pages.taken.free(first, first + count);
        first = clean;
    }
    Ok(start + first * PAGE)
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
    Ok(served(map, at))
}

/// A program has a map of so many bytes, wherever it came from.
pub(crate) fn handed_over(length: usize) {
    if begin::has_maps() {
        count::backed(Backed::Believed, length);
    }
}

/// Counts a map of the segment.
pub(crate) fn served(map: &Map, at: usize) -> *mut c_void {
    count::take();
    count::add(Counted::Maps, 1);
    count::add(Counted::MapBytes, map.length);
    std::ptr::with_exposed_provenance_mut(at)
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
        let Ok(pages) = pages() else { return Err(libc::EEXIST) };
        if part.len() < rounded(map.length) || !pages.taken.take_at(span.start, span.end) {
            return Err(libc::EEXIST);
        }
        asked.flags = (map.flags & !libc::MAP_FIXED_NOREPLACE) | libc::MAP_FIXED;
    }
    if fits(map).is_ok() && part.len() == rounded(map.length) {
        // What is there already, as it was: zero.
        hold(part);
        renewed(part)?;
        return usable(map, part.start);
    }
    changed(&AREA, part)?;
    // SAFETY: the caller's.
    let at = unsafe { kernel::map(&asked) }?;
    hold(part);
    count::fell_back(fits(map).err().unwrap_or(Reason::Placed), map.length);
    Ok(at)
}

/// Notes that some pages are to be made anew when they are given back, and lets the kernel change
/// them; an error where it cannot.
pub(crate) fn changed(area: &Area, part: &Range<usize>) -> Result<(), Errno> {
    back::loosen(area, part)?;
    if !std::ptr::eq(area, &raw const AREA) || (area.is_on_demand() && !kept::is_on()) {
        return Ok(());
    }
    IS_CHANGED.store(true, Ordering::Release);
    let span = span(part);
    let Ok(pages) = pages() else { return Ok(()) };
    if area.is_on_demand() {
        // The kernel bounds the mappings of a process itself.
        pages.changed.hold(span.start, span.end);
        return Ok(());
    }
    let before = pages.changed.runs(span.start, span.end);
    splits::may(usize::from(before == 0))?;
    pages.changed.hold(span.start, span.end);
    splits::became(before, 1);
    Ok(())
}

/// Whether some pages are as the segment was reserved.
pub(crate) fn is_plain(part: &Range<usize>) -> bool {
    if part.is_empty() {
        return true;
    }
    let span = span(part);
    !IS_CHANGED.load(Ordering::Acquire)
        || pages().is_ok_and(|pages| !pages.changed.is_any_taken(span.start, span.end))
}

/// Whether a program has all of these addresses.
pub(crate) fn is_taken(part: &Range<usize>) -> bool {
    let span = span(part);
    pages().is_ok_and(|pages| pages.taken.are_all_taken(span.start, span.end))
}

/// These addresses are the program's, whatever they were.
pub(crate) fn hold(part: &Range<usize>) {
    kept::forget(part);
    let span = span(part);
    if let Ok(pages) = pages() {
        pages.taken.hold(span.start, span.end);
    }
}

/// Takes the pages of some addresses, if all of them are free.
pub(crate) fn take_at(part: &Range<usize>) -> bool {
    let span = span(part);
    let is_free = pages().is_ok_and(|pages| pages.taken.take_at(span.start, span.end));
    if is_free {
        kept::forget(part);
    }
    is_free
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

/// Addresses of a call, if the kernel takes them (`munmap(2)`: `mm/vma.c` of Linux 6.18).
pub(crate) fn valid(at: usize, length: usize) -> Option<Range<usize>> {
    /// The end of a process's addresses: 47 bits without the last page (x86-64, four levels).
    const TASK_SIZE: usize = (1 << 47) - PAGE;
    let whole = at..at.checked_add(length.checked_next_multiple_of(PAGE)?)?;
    (at.is_multiple_of(PAGE) && length > 0 && whole.end <= TASK_SIZE).then_some(whole)
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
