#![expect(unsafe_code, reason = "the program's own maps; the rules are in lib.rs")]
//! What a program does to memory that it has: rights, advice, growing and moving.
//!
//! The one idea: the kernel does it, to a segment's pages as to any others; what is noted is only
//! that they are no longer as they were reserved. A map that grows does so in place where the pages
//! behind it are free, and is copied where they are not: its pages belong to their addresses.

use std::{
    ffi::{c_int, c_void},
    ops::Range,
    ptr,
};

use pagelab_interpose::segment::{Counted, Reason};
use pagelab_interpose::{Errno, Map, kernel};

use crate::{
    area::{Area, PAGE},
    back, breaks, copies, count, demand,
    ground::Ground,
    heap, maps,
    pages::{self, AREA, rounded},
};

/// The segment that is mapped at once in which some addresses of a call lie, all of these, and
/// which of them do; `None` also where the kernel refuses such addresses.
fn cut(at: usize, length: usize) -> Option<(&'static Area, Range<usize>, Range<usize>)> {
    let whole = pages::valid(at, length)?;
    let areas = [&AREA, &heap::AREA].into_iter().filter(|area| !area.is_on_demand());
    let (area, part) = areas.into_iter().find_map(|area| Some(area).zip(area.part(&whole)))?;
    Some((area, whole, part))
}

/// Lets the kernel find only what the program has at some addresses, and notes a change of these;
/// whether all of them lie in a segment.
fn noted(at: usize, length: usize, is_change: bool) -> Result<bool, Errno> {
    let Some(end) = at.checked_add(rounded(length)) else { return Ok(false) };
    if let Some(part) = AREA.part(&(at..end)) {
        demand::close(&part);
        if is_change && AREA.is_on_demand() {
            pages::changed(&AREA, &part)?;
        }
    }
    let whole = at..end;
    let is_all = |area: &&Area| area.part(&whole).is_some_and(|part| part == whole);
    Ok([&AREA, &heap::AREA, &breaks::AREA].iter().any(is_all))
}

/// Lets the kernel find only what the program has at some addresses.
pub(crate) fn look(at: usize, length: usize) {
    let _ = noted(at, length, false);
}

/// The same, for a call that changes what is there.
pub(crate) fn note(at: usize, length: usize) -> Result<(), Errno> {
    noted(at, length, true).map(drop)
}

/// Whether an advice is about the sizes of pages.
fn is_size(advice: c_int) -> bool {
    [libc::MADV_HUGEPAGE, libc::MADV_NOHUGEPAGE].contains(&advice)
}

/// `pkey_mprotect(2)`; with the key -1 it is `mprotect(2)`.
///
/// # Safety
/// As the call.
pub(crate) unsafe fn protect(
    at: usize,
    length: usize,
    access: c_int,
    key: c_int,
) -> Result<(), Errno> {
    // SAFETY: the caller's.
    let by_kernel =
        |run: &Range<usize>| unsafe { kernel::protect_by(run.start, run.len(), access, key) };
    let is_change = access != kernel::USABLE || key != -1;
    let Some((area, whole, part)) = cut(at, length) else {
        noted(at, length, is_change)?;
        // SAFETY: the caller's.
        return unsafe { kernel::protect_by(at, length, access, key) };
    };
    let is_map = ptr::eq(area, &raw const AREA);
    if is_map && !pages::is_taken(&part) {
        return Err(libc::ENOMEM);
    }
    for rest in [whole.start..part.start, part.end..whole.end] {
        if !rest.is_empty() {
            by_kernel(&rest)?;
        }
    }
    if is_change {
        pages::changed(area, &part)?;
    } else if is_map && pages::is_plain(&part) {
        return Ok(());
    }
    area.runs(&part, |ground, run| match ground {
        // As they all are: what has other rights has become ordinary.
        Ground::Pool(_) => Ok(()),
        Ground::Ordinary | Ground::Module => by_kernel(run),
    })
}

/// Advice that leaves a mapping as it is, and changes what is in it.
const OF_CONTENTS: [c_int; 8] = [
    libc::MADV_WILLNEED,
    libc::MADV_FREE,
    libc::MADV_REMOVE,
    libc::MADV_COLD,
    libc::MADV_PAGEOUT,
    libc::MADV_POPULATE_READ,
    libc::MADV_POPULATE_WRITE,
    libc::MADV_COLLAPSE,
];

/// `madvise(2)`.
///
/// # Safety
/// As the call.
pub(crate) unsafe fn advise(at: usize, length: usize, advice: c_int) -> Result<(), Errno> {
    let Some((area, whole, part)) = cut(at, length) else {
        let is_change = advice != libc::MADV_DONTNEED && !OF_CONTENTS.contains(&advice);
        let is_in = noted(at, length, is_change && !is_size(advice))?;
        // A segment has its own pages, whatever a program thinks is good for it. What is asked in
        // its place does nothing to private memory, and fails as that would.
        let advice = if is_in && is_size(advice) {
            count::add(Counted::Ignored, 1);
            libc::MADV_WILLNEED
        } else {
            advice
        };
        // SAFETY: the caller's.
        return unsafe { kernel::advise(at, length, advice) };
    };
    for rest in [whole.start..part.start, part.end..whole.end] {
        if !rest.is_empty() {
            // SAFETY: the caller's.
            unsafe { kernel::advise(rest.start, rest.len(), advice) }?;
        }
    }
    match advice {
        _ if is_size(advice) => {
            count::add(Counted::Ignored, 1);
            Ok(())
        }
        libc::MADV_DONTNEED => back::zero(area, &part),
        _ if OF_CONTENTS.contains(&advice) => area.runs(&part, |ground, run| {
            let is_moved = [libc::MADV_POPULATE_READ, libc::MADV_POPULATE_WRITE].contains(&advice);
            match ground {
                Ground::Pool(_) if !is_moved => count::add(Counted::Ignored, 1),
                // Its pages are there for good.
                Ground::Module => count::add(Counted::Ignored, 1),
                // SAFETY: the caller's.
                _ => unsafe { kernel::advise(run.start, run.len(), advice) }?,
            }
            Ok(())
        }),
        _ => {
            pages::changed(area, &part)?;
            // SAFETY: the caller's.
            unsafe { kernel::advise(part.start, part.len(), advice) }
        }
    }
}

/// `mremap(2)`.
///
/// # Safety
/// As the call.
pub(crate) unsafe fn remap(
    at: usize,
    old: usize,
    new: usize,
    flags: c_int,
    to: usize,
) -> Result<*mut c_void, Errno> {
    if AREA.is_on_demand() {
        // SAFETY: the caller's.
        return unsafe { demand::moved([at, old, new, to], flags) };
    }
    let whole = at..at.saturating_add(rounded(old));
    let Some(part) = AREA.part(&whole).filter(|_| at.is_multiple_of(PAGE) && old > 0 && new > 0)
    else {
        // SAFETY: the caller's.
        return unsafe { by_kernel(&(0..0), [at, old, new, to], flags) };
    };
    if part != whole || !pages::is_taken(&part) {
        return Err(libc::EFAULT);
    }
    if flags & !libc::MREMAP_MAYMOVE != 0 {
        // SAFETY: the caller's.
        return unsafe { elsewhere(&part, [at, old, new, to], flags) };
    }
    let end = at.checked_add(rounded(new)).ok_or(libc::ENOMEM)?;
    if end <= part.end {
        if end < part.end {
            maps::give_back(&(end..part.end))?;
        }
        return Ok(ptr::with_exposed_provenance_mut(at));
    }
    let is_plain = pages::is_plain(&part);
    if is_plain && end <= AREA.range().end && pages::take_at(&(part.end..end)) {
        return Ok(ptr::with_exposed_provenance_mut(at));
    }
    if flags & libc::MREMAP_MAYMOVE == 0 {
        return Err(libc::ENOMEM);
    }
    match pages::taken(new) {
        Ok(place) if is_plain => {
            copies::copy(&part, place);
            maps::give_back(&part)?;
            Ok(ptr::with_exposed_provenance_mut(place))
        }
        came => {
            if let Ok(place) = came {
                maps::give_back(&(place..place + rounded(new)))?;
            }
            count::fell_back(came.err().unwrap_or(Reason::Moved), new);
            // SAFETY: the caller's.
            unsafe { elsewhere(&part, [at, old, new, to], flags) }
        }
    }
}

/// Moves memory of the segment out of it.
///
/// # Safety
/// As `mremap(2)`.
unsafe fn elsewhere(
    part: &Range<usize>,
    [at, old, new, to]: [usize; 4],
    flags: c_int,
) -> Result<*mut c_void, Errno> {
    if AREA.file().is_none() {
        // SAFETY: the caller's.
        return unsafe { by_kernel(part, [at, old, new, to], flags) };
    }
    // Frames of the module belong to their addresses: what is moved is a copy.
    let is_fixed = flags & libc::MREMAP_FIXED != 0;
    let goal = to..to.saturating_add(rounded(new));
    if !pages::is_plain(part) || (is_fixed && AREA.part(&goal).is_some()) {
        return Err(libc::EINVAL);
    }
    let (address, place) = if is_fixed { (to, libc::MAP_FIXED) } else { (0, 0) };
    let map = Map { address, ..Map::new(new, kernel::USABLE, kernel::OWN | place) };
    // SAFETY: the caller's.
    let came = unsafe { kernel::map(&map) }?;
    copies::copy(&(part.start..part.start + part.len().min(rounded(new))), came.addr());
    if flags & libc::MREMAP_DONTUNMAP == 0 {
        maps::give_back(part)?;
    } else {
        back::zero(&AREA, part)?;
    }
    Ok(came)
}

/// Lets the kernel move memory, of which a part lies in the segment: that part is given back.
///
/// # Safety
/// As `mremap(2)`.
unsafe fn by_kernel(
    part: &Range<usize>,
    [at, old, new, to]: [usize; 4],
    flags: c_int,
) -> Result<*mut c_void, Errno> {
    let is_fixed = flags & libc::MREMAP_FIXED != 0;
    let goal = if is_fixed { AREA.part(&(to..to.saturating_add(rounded(new)))) } else { None };
    for part in goal.iter().chain(Some(part).filter(|part| !part.is_empty())) {
        pages::changed(&AREA, part)?;
    }
    // SAFETY: the caller's.
    let came = unsafe { kernel::remap(at, old, new, flags, to) }?;
    if let Some(goal) = &goal {
        pages::hold(goal);
    }
    if !part.is_empty() && came.addr() != at {
        // What it left behind is a hole in the segment, unless it was asked to stay.
        if flags & libc::MREMAP_DONTUNMAP == 0 {
            maps::give_back(part)?;
        } else {
            back::renew(&AREA, part)?;
        }
    }
    Ok(came)
}
