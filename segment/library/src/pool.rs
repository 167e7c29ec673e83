#![expect(unsafe_code, reason = "lays and copies what programs get; the rules are in lib.rs")]
//! Pages of a hugetlb pool behind a segment.
//!
//! The one idea: every page is promised to the segment when it is reserved, so that no fault finds
//! the pool empty, which would be a SIGBUS. So a page is never given back to the pool either, as
//! its promise goes with it (before Linux 6.9): it is zeroed here. The kernel splits none: where a
//! program needs an edge within one, the page is copied to ordinary memory in its place, and those
//! who write to it meanwhile wait ([`crate::freeze`]).

use std::{ffi::c_int, ops::Range, ptr};

use pagelab_interpose::{
    Errno, Map,
    kernel::{self, OWN, USABLE},
    segment::{Backed, Leaf, Wish},
};

use crate::{
    area::{Area, Grows, PMD, PUD},
    copies, count,
    freeze::Frozen,
    ground::{Ground, is_present},
    lock::Lock,
    splits,
};

/// Held by whoever makes ordinary memory of a leaf.
pub(crate) static DEMOTING: Lock = Lock::new();

/// Lays pages of 1 GiB, where they are asked for, then of 2 MiB; what is left over.
pub(crate) fn lay(
    area: &Area,
    range: &Range<usize>,
    wish: &Wish,
    grows: Grows,
) -> Result<Range<usize>, Errno> {
    let mut rest = range.clone();
    area.mark_by(range)?;
    for (leaf, size, counted) in [(Leaf::Pud, PUD, Backed::Giant), (Leaf::Pmd, PMD, Backed::Large)]
    {
        if wish.leaf < leaf {
            continue;
        }
        let before = rest.clone();
        while let Some(taken) = take(&rest, size, grows) {
            match grows {
                Grows::Up => rest.start = taken.end,
                Grows::Down => rest.end = taken.start,
            }
        }
        let laid = match grows {
            Grows::Up => before.start..rest.start,
            Grows::Down => rest.end..before.end,
        };
        area.is_pool(leaf, &laid);
        count::add(counted, laid.len());
    }
    count::add(Backed::Short, rest.len());
    Ok(rest)
}

/// Takes as many pages as the pool promises at once, at the end that is used first.
fn take(rest: &Range<usize>, size: usize, grows: Grows) -> Option<Range<usize>> {
    let mut pages = rest.len() / size;
    while pages > 0 {
        let length = pages * size;
        let start = match grows {
            Grows::Up => rest.start,
            Grows::Down => rest.end - length,
        };
        let range = start..start + length;
        if promised(&range, size) {
            return Some(range);
        }
        pages /= 2;
    }
    None
}

/// Whether the pool promises pages for all of these addresses; they stay reserved if not.
fn promised(range: &Range<usize>, size: usize) -> bool {
    let shift = c_int::try_from(size.trailing_zeros()).unwrap_or(0);
    // Not `MAP_NORESERVE`: what is promised is there when it is touched.
    let own = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    let flags = own | libc::MAP_HUGETLB | shift << libc::MAP_HUGE_SHIFT;
    let map = Map::at(range, USABLE, flags);
    // SAFETY: reserved for this, and nobody has seen it.
    let came = unsafe { kernel::map(&map) };
    if came.is_ok() {
        // A child of fork gets a copy ([`crate::fork`]), and never a page of the pool.
        // SAFETY: it changes nothing of what is there.
        let _ = unsafe { kernel::advise(range.start, range.len(), libc::MADV_DONTFORK) };
    } else {
        let flags = OWN | libc::MAP_FIXED;
        let again = Map { access: libc::PROT_NONE, flags, ..map };
        // SAFETY: as above; the kernel may have taken out what was there.
        let _ = unsafe { kernel::map(&again) };
    }
    came.is_ok()
}

/// Zeroes what is there of some addresses.
pub(crate) fn zero(run: &Range<usize>) {
    let mut start = run.start;
    while start < run.end {
        let end = ((start / PMD + 1) * PMD).min(run.end);
        if is_present(start) {
            let at = ptr::with_exposed_provenance_mut::<u8>(start);
            // SAFETY: mapped to be written, and whoever gave it back needs nothing of it.
            unsafe { at.write_bytes(0, end - start) };
        }
        start = end;
    }
}

/// Makes ordinary memory of every leaf of which some addresses are a part, with what is in it.
pub(crate) fn demote(area: &Area, leaf: Leaf, run: &Range<usize>) -> Result<(), Errno> {
    let size = if leaf == Leaf::Pud { PUD } else { PMD };
    let mut start = run.start / size * size;
    while start < run.end {
        let range = start..start + size;
        // One at a time. In the midst of that, as in a signal handler, it does not go.
        let _held = DEMOTING.hold().ok_or(libc::EINVAL)?;
        start = range.end;
        if area.ground(range.start) == Ground::Ordinary {
            continue;
        }
        splits::may(1)?;
        let Some(frozen) = Frozen::new().filter(|frozen| frozen.add(&range)) else {
            count::add(Backed::Unsplit, 1);
            return Err(libc::EINVAL);
        };
        let came = copies::replace(&range, is_present);
        if came.is_ok() {
            area.mark(&range);
        }
        frozen.thaw(&range);
        came?;
        splits::became(0, 1);
        count::add(Backed::Demoted, 1);
    }
    Ok(())
}
