//! What a fork needs of this library: locks that nobody holds, and memory that is the child's own.
//!
//! The one idea: ordinary memory the kernel copies on a write. Of a pool that would be another page
//! at any later write, and a SIGBUS where the pool is empty; frames of the module no child has. So
//! neither is passed on (`VM_DONTCOPY`): what was touched is copied to ordinary memory before the
//! fork, and moved to its place in the child before `fork` returns. All of the child's segments are
//! ordinary from then on.
//!
//! Other threads that write to a pool wait meanwhile ([`crate::freeze`]), so that the child finds
//! all of its memory as it was at one moment. Nothing keeps them from writing to frames of the
//! module: those are copied one after the other. Who makes a child by another way than libc's
//! (`clone` by number) has a child whose first touch of either ends it with a segmentation fault.
//!
//! One moment of the allocator the fork cannot wait for: [`crate::careful`].

use std::{
    ops::Range,
    sync::atomic::{AtomicI32, AtomicUsize, Ordering},
};

use pagelab_interpose::{Errno, aside, kernel};
use pagelab_sys::process::segment::Backed;

use crate::{
    area::Area,
    begin, careful, copies, count,
    fine::FINE,
    freeze::Frozen,
    ground::{Ground, is_present},
    heap, helper, kept, leaves,
    lock::Lock,
    module, pages, pool, told,
};

/// Held by whoever is within a lock of the allocator.
pub(crate) static ALLOCATOR: Lock = Lock::new();

/// Segments that may be of something else than ordinary memory.
const AREAS: [&Area; 2] = [&heap::AREA, &pages::AREA];
/// Where copies of them lie; 0 where there are none.
static COPIES: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
/// The number of what went wrong with them.
static WRONG: AtomicI32 = AtomicI32::new(0);
/// What keeps pages of pools frozen.
static FROZEN: AtomicI32 = AtomicI32::new(-1);

/// Before a fork, in the thread that forks.
pub(crate) extern "C" fn before() {
    pages::LOCK.enter();
    pool::DEMOTING.enter();
    ALLOCATOR.enter();
    FINE.before_fork();
    leaves::before_fork();
    aside(|| {
        careful::before_fork();
        WRONG.store(0, Ordering::Relaxed);
        let is_any = |has: fn(&Area) -> bool| AREAS.into_iter().any(has);
        if is_any(Area::has_pool) {
            let frozen = Frozen::new().filter(|frozen| {
                AREAS.into_iter().all(|area| each(area, |_, run| freeze(frozen, run)).is_ok())
            });
            if frozen.is_none() {
                count::add(Backed::Torn, 1);
            }
            FROZEN.store(frozen.map_or(-1, Frozen::kept), Ordering::Relaxed);
        }
        for (area, place) in AREAS.into_iter().zip(&COPIES) {
            if !area.is_set_aside() {
                continue;
            }
            match copied(area) {
                Ok(copy) => place.store(copy, Ordering::Relaxed),
                Err(errno) => WRONG.store(errno, Ordering::Relaxed),
            }
        }
    });
}

fn freeze(frozen: &Frozen, run: &Range<usize>) -> Result<(), Errno> {
    if frozen.add(run) { Ok(()) } else { Err(libc::ENOTSUP) }
}

/// Goes through what the kernel passes on to no child.
fn each(
    area: &Area,
    mut act: impl FnMut(Ground, &Range<usize>) -> Result<(), Errno>,
) -> Result<(), Errno> {
    area.runs(&area.range(), |ground, run| match ground {
        Ground::Ordinary => Ok(()),
        Ground::Pool(_) | Ground::Module => act(ground, run),
    })
}

/// A copy of all that was touched of a segment, each page as far from its begin.
fn copied(area: &Area) -> Result<usize, Errno> {
    let range = area.range();
    let place = copies::staging(range.len())?;
    each(area, |ground, run| {
        let is_there = |at: usize| match ground {
            Ground::Module => module::may_hold(area, at),
            Ground::Ordinary | Ground::Pool(_) => is_present(at),
        };
        count::add(Backed::Copied, copies::fill(place + (run.start - range.start), run, is_there));
        Ok(())
    })?;
    Ok(place)
}

/// After it, in the parent.
pub(crate) extern "C" fn after() {
    aside(|| {
        let frozen = Frozen::again(FROZEN.swap(-1, Ordering::Relaxed));
        for (area, copy) in AREAS.into_iter().zip(&COPIES) {
            if let Some(frozen) = &frozen {
                let _ = each(area, |_, run| {
                    frozen.thaw(run);
                    Ok(())
                });
            }
            let place = copy.swap(0, Ordering::Relaxed);
            if place != 0 {
                kernel::forgotten(place, area.range().len());
            }
        }
    });
    free();
}

/// After it, in the child.
pub(crate) extern "C" fn after_in_child() {
    careful::after_fork_in_child();
    aside(|| {
        if own().is_err() {
            count::add(Backed::Lost, 1);
            kernel::say(
                b"pagelab: a child of fork ends: there is no memory for a copy of its own\n",
            );
            kernel::abort();
        }
        begin::after_fork_in_child();
        helper::after_fork_in_child();
        kept::after_fork_in_child();
        told::after_fork_in_child();
        // Its pages are the parent's.
        drop(Frozen::again(FROZEN.swap(-1, Ordering::Relaxed)));
    });
    free();
}

/// Makes all of this process's segments its own.
fn own() -> Result<(), Errno> {
    match WRONG.load(Ordering::Relaxed) {
        0 => {}
        errno => return Err(errno),
    }
    for (area, copy) in AREAS.into_iter().zip(&COPIES) {
        let place = copy.swap(0, Ordering::Relaxed);
        if place == 0 {
            continue;
        }
        let range = area.range();
        each(area, |_, run| copies::settle(place + (run.start - range.start), run))?;
        kernel::forgotten(place, range.len());
        module::leave(area);
        area.is_ordinary();
    }
    Ok(())
}

/// Gives the locks back.
fn free() {
    leaves::after_fork();
    FINE.after_fork();
    ALLOCATOR.leave();
    pool::DEMOTING.leave();
    pages::LOCK.leave();
}
