#![expect(unsafe_code, reason = "tables of pages; the rules are in lib.rs")]
//! The pages of the segment of maps: which are taken, which were changed, and which are open.
//!
//! A bit for each in three tables, under one lock. A page that is open is free and mapped: see
//! [`crate::demand`]. One that was changed has rights or advice of its own, or something was mapped
//! over it: where pages stay mapped when they are given back, it is made anew.

use std::{
    ops::Range,
    ptr,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering},
};

use pagelab_interpose::segment::{Backing, Leaf, Reason, Wish, Zero};
use pagelab_interpose::{Errno, kernel};

use crate::{
    area::{Area, Grows, PAGE, PMD, PUD},
    back, kept,
    lock::{Held, Lock},
    orders,
    ranges::{self, Ranges},
    splits,
};

/// The segment.
pub(crate) static AREA: Area = Area::new();
/// Of all tables of its pages.
pub(crate) static LOCK: Lock = Lock::new();
/// A word for 64 pages: those that are taken, those that were changed, and those that are free and
/// mapped.
static TABLES: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());
/// Whether any page ever was changed: few programs change one.
static IS_CHANGED: AtomicBool = AtomicBool::new(false);
static TOPS: [AtomicUsize; TABLE_COUNT] = [const { AtomicUsize::new(0) }; TABLE_COUNT];
const TABLE_COUNT: usize = 3;

/// Reserves the segment, and a bit of each table for each of its pages.
pub(crate) fn begin(bytes: usize, wish: &Wish) -> Result<(), Errno> {
    let pages = bytes.next_multiple_of(PUD) / PAGE;
    let tables = kernel::table(TABLE_COUNT * ranges::words(pages))?;
    let mut wish = *wish;
    if wish.backing == Backing::Thp {
        // What is zeroed ahead is open: mapped, and nobody's until it is taken.
        wish.zero = Zero::Fault;
    }
    AREA.reserve(bytes, &wish, Grows::Down, back::lay)?;
    let pages = AREA.range().len() / PAGE;
    for top in &TOPS {
        top.store(pages, Ordering::Relaxed);
    }
    TABLES.store(tables, Ordering::Release);
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

/// Whole pages.
pub(crate) fn rounded(length: usize) -> usize {
    length.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX)
}

/// Addresses of a call, if the kernel takes them (`munmap(2)`: `mm/vma.c` of Linux 6.18).
pub(crate) fn valid(at: usize, length: usize) -> Option<Range<usize>> {
    /// The end of a process's addresses: 47 bits without the last page (x86-64, four levels).
    const TASK_SIZE: usize = (1 << 47) - PAGE;
    let whole = at..at.checked_add(length.checked_next_multiple_of(PAGE)?)?;
    (at.is_multiple_of(PAGE) && length > 0 && whole.end <= TASK_SIZE).then_some(whole)
}

/// Takes free pages for so many bytes, and makes sure that nothing else is kept there.
pub(crate) fn taken(length: usize) -> Result<usize, Reason> {
    let at = picked(length)?;
    kept::ready(&(at..at + rounded(length)), opened);
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

/// Notes that some pages are to be made anew when they are given back, and lets the kernel change
/// them; an error where it cannot.
pub(crate) fn changed(area: &Area, part: &Range<usize>) -> Result<(), Errno> {
    back::loosen(area, part)?;
    if !ptr::eq(area, &raw const AREA) || (area.is_on_demand() && !kept::is_on()) {
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

/// Pages that somebody took are mapped, to be read and written, and zero.
pub(crate) fn opened(part: &Range<usize>) {
    let span = span(part);
    if let Ok(pages) = pages() {
        pages.open.hold(span.start, span.end);
    }
}
