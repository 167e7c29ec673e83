#![expect(unsafe_code, reason = "maps what programs get; the rules are in lib.rs")]
//! Frames of the kernel module behind a segment.
//!
//! The one idea: one open file is one segment, mapped once, and its faults add an offset. What is
//! given back the module forgets; what was split is mapped anew in its place, which loses nothing,
//! as contents belong to frames. A program may close every file that it finds: what needs the file
//! is done by hand then.

mod ioctl;

use std::{
    ffi::c_int,
    ops::Range,
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

use pagelab_interpose::{
    Errno, Map,
    kernel::{self, USABLE},
    segment::{Backed, Wish, Zero},
};

use self::ioctl::{Mapped, Wanted};
use crate::{
    area::{Area, Grows, PAGE, PMD, PUD},
    copies, count,
};

/// Bytes of the largest leaf that the module maps.
static LEAF: AtomicU64 = AtomicU64::new(PMD as u64);
/// The file has a number that programs do not count on.
const FILE_LEAST: c_int = 700;

/// Lays frames over all of it; nothing where the module gives none.
pub(crate) fn lay(
    area: &Area,
    range: &Range<usize>,
    wish: &Wish,
    _grows: Grows,
) -> Result<Range<usize>, Errno> {
    let wanted = Wanted {
        bytes: range.len() as u64,
        leaf: wish.leaf.bytes(),
        zero_at_fault: wish.zero != Zero::Ahead,
    };
    let claimed = ioctl::claim(&wanted);
    let Ok((file, leaf)) = claimed else {
        count::add(Backed::Short, range.len());
        return Ok(range.clone());
    };
    let file = kernel::moved_to(file, FILE_LEAST);
    area.mark_by(range)?;
    map(file, range.start, range)?;
    area.is_of(file);
    LEAF.store(leaf, Ordering::Relaxed);
    let mut rest = range.len();
    for (size, counted) in [(PUD, Backed::Giant), (PMD, Backed::Large), (PAGE, Backed::Small)] {
        if size as u64 <= leaf {
            count::add(counted, rest / size * size);
            rest %= size;
        }
    }
    Ok(range.end..range.end)
}

/// Maps the frames of some addresses of a segment that begins at one.
fn map(file: c_int, first: usize, range: &Range<usize>) -> Result<(), Errno> {
    let flags = libc::MAP_SHARED | libc::MAP_FIXED;
    let offset = i64::try_from(range.start - first).unwrap_or(0);
    let map = Map { file, offset, ..Map::at(range, USABLE, flags) };
    // SAFETY: reserved for this, or mapped like this before, with the same contents.
    unsafe { kernel::map(&map) }.map(drop)
}

/// What is mapped at an address; an error where the file is not ours any more.
pub(crate) fn mapped(area: &Area, at: usize) -> Result<Option<Mapped>, Errno> {
    area.file().map_or(Err(libc::EBADF), |file| ioctl::mapped(file, at))
}

/// The file, where it is still ours.
fn file(area: &Area) -> Option<c_int> {
    let range = area.range();
    let is_ours = |at: usize| mapped(area, at).is_ok();
    // The program may have mapped something else over one of them.
    (is_ours(range.start) || is_ours(range.end - PAGE)).then(|| area.file()).flatten()
}

/// The leaves around some addresses.
fn around(area: &Area, part: &Range<usize>) -> Range<usize> {
    let leaf = usize::try_from(LEAF.load(Ordering::Relaxed)).unwrap_or(PMD).max(PMD);
    let own = area.range();
    let start = part.start / leaf * leaf;
    start.max(own.start)..part.end.next_multiple_of(leaf).min(own.end)
}

/// Forgets what is in some pages; they are zero when they are touched.
pub(crate) fn forget(area: &Area, part: &Range<usize>) {
    // A leaf of which a part is forgotten is mapped no more, though it holds the rest.
    area.mark(&around(area, part));
    let (start, length) = ((part.start - area.range().start) as u64, part.len() as u64);
    let is_done = file(area).is_some_and(|file| ioctl::forget(file, start, length).is_ok());
    // The program's own mappings over it, where there are any; the module's refuse that.
    // SAFETY: whoever gave it back needs nothing of it.
    let is_own = unsafe { kernel::advise(part.start, part.len(), libc::MADV_DONTNEED) }.is_err();
    if !is_done && is_own && area.is_plain(part) {
        let at = ptr::with_exposed_provenance_mut::<u8>(part.start);
        // SAFETY: mapped to be written, and whoever gave it back needs nothing of it.
        unsafe { at.write_bytes(0, part.len()) };
    }
}

/// Maps pages anew that somebody changed, with the leaves around them where nobody changed more.
pub(crate) fn renew(area: &Area, part: &Range<usize>) -> Result<(), Errno> {
    let whole = around(area, part);
    let is_alone =
        area.is_plain(&(whole.start..part.start)) && area.is_plain(&(part.end..whole.end));
    let goal = if is_alone { &whole } else { part };
    match file(area) {
        Some(file) => map(file, area.range().start, goal)?,
        // SAFETY: as the segment was reserved.
        None => unsafe { kernel::protect(part.start, part.len(), USABLE) }?,
    }
    forget(area, part);
    Ok(())
}

/// Keeps other threads from a segment for some time, or until [`thaw`]; whether it does. Asked once
/// more it sets the time anew.
pub(crate) fn freeze(area: &Area, milliseconds: u64) -> bool {
    area.file().is_none_or(|file| ioctl::freeze(file, milliseconds).is_ok())
}

/// Lets them go on; whether they waited until now.
pub(crate) fn thaw(area: &Area) -> bool {
    freeze(area, 0)
}

/// Copies what was touched of some addresses, by the module; how many bytes that were. `None` of an
/// older module, and where the file is not ours any more.
///
/// # Safety
/// `place` is memory for all of it, which nobody else uses.
pub(crate) unsafe fn copy(area: &Area, run: &Range<usize>, place: usize) -> Option<usize> {
    let file = area.file()?;
    // SAFETY: a part of what the caller has.
    let by_module = |part: &Range<usize>| unsafe {
        ioctl::copy(file, part.start, part.len(), place + (part.start - run.start))
    };
    let pieces = |of: Range<usize>, step: usize| {
        of.clone().step_by(step).map(move |at| at..of.end.min(at + step))
    };
    let mut copied = 0;
    for piece in pieces(run.clone(), PMD) {
        match by_module(&piece) {
            Ok(bytes) => copied += bytes,
            // The program has mapped something else over a part of it.
            Err(libc::EFAULT) => {
                for page in pieces(piece, PAGE) {
                    copied += match by_module(&page) {
                        Ok(bytes) => bytes,
                        Err(_) => copies::fill(place + (page.start - run.start), &page, |_| true),
                    };
                }
            }
            Err(_) => return None,
        }
    }
    Some(copied)
}

/// Whether one of the pages around an address may hold something.
pub(crate) fn may_hold(area: &Area, at: usize) -> bool {
    let is_there = |at: usize| mapped(area, at).map_or(true, |mapped| mapped.is_some());
    area.is_marked(at)
        || is_there(at)
        || (may_be_cut(area, at) && (at + PAGE..at + PMD).step_by(PAGE).any(is_there))
}

/// Whether pages around an address may be mapped one by one.
pub(crate) fn may_be_cut(area: &Area, at: usize) -> bool {
    area.is_marked(at) || LEAF.load(Ordering::Relaxed) < PMD as u64
}

/// Nobody maps it any more in this process.
pub(crate) fn leave(area: &Area) {
    if let Some(file) = area.file() {
        kernel::close(file);
    }
}
