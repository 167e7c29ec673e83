//! The break: memory at its end that a program gets by `brk` and `sbrk`.
//!
//! The one idea: a segment of its own, as large as the heap's, of which the part below the break is
//! the program's. libc's own malloc has the kernel's break to itself then. A page lies below all of
//! it, as what malloc has lies below the break that a program finds without segments.

use std::{
    ffi::{c_int, c_void},
    ops::Range,
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
};

use pagelab_interpose::segment::{Backing, Reason, Wish, Zero};
use pagelab_interpose::{Errno, kernel};

use crate::{
    area::{self, Area, Grows, PAGE},
    back, count, orders,
};

/// The segment.
pub(crate) static AREA: Area = Area::new();
/// The break; 0 before it is asked for.
static BREAK: AtomicUsize = AtomicUsize::new(0);

/// Reserves the segment, of ordinary memory: few programs have a break, and none says how large.
pub(crate) fn begin(bytes: usize, wish: &Wish) -> Result<(), Errno> {
    let wish = Wish { backing: Backing::Thp, zero: Zero::Fault, ..*wish };
    AREA.reserve(bytes, &wish, Grows::Up, back::lay)?;
    mapped(&(AREA.range().start..lowest()))?;
    BREAK.store(lowest(), Ordering::Release);
    Ok(())
}

/// The lowest break.
fn lowest() -> usize {
    AREA.range().start + PAGE
}

/// Moves the break, maps what is below it and unmaps what is above; where it was.
fn moved(to: impl FnOnce(usize) -> Option<usize>) -> Result<usize, Errno> {
    let (range, was) = (AREA.range(), BREAK.load(Ordering::Acquire));
    let goal = to(was).filter(|goal| *goal <= range.end).ok_or_else(|| {
        count::fell_back(Reason::Break, 0);
        libc::ENOMEM
    })?;
    // The kernel moves nothing then, and libc takes a break that is no lower for a success.
    if goal < lowest() {
        return Ok(was);
    }
    let [had, has] = [was, goal].map(|at| at.next_multiple_of(PAGE));
    if has > had {
        grown(&(had..has))?;
    } else if has < had {
        kernel::forgotten(has, had - has);
    }
    BREAK.store(goal, Ordering::Release);
    Ok(was)
}

/// Maps pages below the break. As with the kernel's own, one page behind it belongs to nobody.
fn grown(range: &Range<usize>) -> Result<(), Errno> {
    if kernel::present(range.end, PAGE, &mut [0]) {
        return Err(libc::ENOMEM);
    }
    mapped(range)
}

fn mapped(range: &Range<usize>) -> Result<(), Errno> {
    area::map(range).map_err(|_| libc::ENOMEM)?;
    area::advise_leaf(range.start, range.len(), orders::leaf());
    Ok(())
}

/// `sbrk(2)`; `None` where there is no segment for it.
pub(crate) fn step(by: isize) -> Option<Result<*mut c_void, Errno>> {
    (BREAK.load(Ordering::Acquire) != 0)
        .then(|| moved(|at| at.checked_add_signed(by)).map(ptr::with_exposed_provenance_mut))
}

/// `brk(2)`; `None` where there is no segment for it.
pub(crate) fn set(to: usize) -> Option<Result<c_int, Errno>> {
    (BREAK.load(Ordering::Acquire) != 0).then(|| moved(|_| Some(to)).map(|_| 0))
}
