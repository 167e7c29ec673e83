//! What a fork needs of this library: locks that nobody holds, and memory that is the child's own.
//!
//! The one idea: ordinary memory the kernel copies on a write. Of a pool that would be another page
//! at any later write, and a SIGBUS where the pool is empty; frames of the module no child has. So
//! neither is passed on (`VM_DONTCOPY`): what was touched is copied to ordinary memory before the
//! fork, and moved to its place in the child before `fork` returns. All of the child's segments are
//! ordinary from then on.
//!
//! Other threads that write to a pool ([`crate::freeze`]) or touch frames of the module wait
//! meanwhile, so that the child finds all of its memory as it was at one moment. The module lets
//! them go on a few seconds after the copy at the latest: the fork may wait for a lock of libc's
//! that one of these threads has. That, and a module that cannot do it, is counted.
//!
//! Who makes a child by another way than libc's (`clone` by number) has a child whose first touch
//! of either ends it with a segmentation fault.
//!
//! One moment of the allocator the fork cannot wait for: [`crate::careful`].
//!
//! # Order of locks
//! A thread may allocate while it holds any other lock, so the locks of malloc come last: whoever
//! forks holds them and waits for no other lock any more. libc's own malloc has them locked behind
//! the handlers, and behind its list of streams; here a handler does it. So this handler is the
//! first that is registered, which runs last ([`register`]), and it takes the list before.

use std::{
    ffi::{c_int, c_void},
    ops::Range,
    ptr,
    sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicUsize, Ordering},
};

use pagelab_interpose::{Errno, Next, aside, kernel, next, segment::Backed};

use crate::{
    area::Area,
    begin, careful, copies, count, filtered,
    fine::FINE,
    fork_wait,
    freeze::Frozen,
    ground::{Ground, is_present},
    heap, helper, kept,
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
/// Whether the module keeps its frames frozen.
static IS_MODULE_FROZEN: AtomicBool = AtomicBool::new(false);
/// Milliseconds that the module keeps others waiting at most: for a fork, and for copying 1 MiB.
const FORK_MS: u64 = 3000;
const COPY_MS: u64 = 4;

/// Whether whoever forks has the locks: where it is alone nobody else could.
static HAS_LOCKS: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    // libc's list of open streams, with a lock that its thread may take again.
    fn _IO_list_lock();
    fn _IO_list_unlock();
    fn _IO_list_resetlock();
}

/// A handler of `pthread_atfork(3)`.
type Handler = extern "C" fn();

/// Registers the handlers of this library, unless they are.
pub(crate) fn register() {
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    if !IS_DONE.swap(true, Ordering::Relaxed) {
        // Of the program itself, as what is preloaded stays.
        registered(Some(before), Some(after), Some(after_in_child), ptr::null_mut());
    }
}

fn registered(
    before: Option<Handler>,
    after: Option<Handler>,
    in_child: Option<Handler>,
    object: *mut c_void,
) -> c_int {
    let call = next!(__register_atfork: fn(
        Option<Handler>,
        Option<Handler>,
        Option<Handler>,
        *mut c_void,
    ) -> c_int);
    // SAFETY: functions that stay as long as their object does, which the caller answers for.
    call.find().map_or(libc::ENOSYS, |call| unsafe { call(before, after, in_child, object) })
}

/// What `pthread_atfork(3)` calls, which is a part of every object that uses it.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn __register_atfork(
    before: Option<Handler>,
    after: Option<Handler>,
    in_child: Option<Handler>,
    object: *mut c_void,
) -> c_int {
    register();
    registered(before, after, in_child, object)
}

/// Before a fork, in the thread that forks.
extern "C" fn before() {
    let has_others = !aside(is_alone);
    // What is written here the parent copies afterwards, page by page.
    if HAS_LOCKS.load(Ordering::Relaxed) != has_others {
        HAS_LOCKS.store(has_others, Ordering::Relaxed);
    }
    if has_others {
        // SAFETY: a lock, which `after` and `after_in_child` give back.
        unsafe { _IO_list_lock() };
        pages::LOCK.enter();
        pool::DEMOTING.enter();
        ALLOCATOR.enter();
        FINE.before_fork();
        fork_wait::before_fork();
    }
    careful::before_fork(has_others);
    if AREAS.into_iter().any(Area::is_set_aside) {
        aside(copy_all);
    }
}

/// Whether this thread is the only one of its process. Who has forbidden itself calls is not asked.
fn is_alone() -> bool {
    // What libc itself goes by, since 2.32.
    static SINGLE: Next<&AtomicU8> =
        // SAFETY: libc has a byte of this name, for as long as the process is there.
        unsafe { Next::new("__libc_single_threaded\0") };
    let is_single = SINGLE.find().is_some_and(|single| single.load(Ordering::Relaxed) != 0);
    is_single || (!filtered::is_set() && kernel::threads() == 1)
}

/// Copies what the kernel passes on to no child.
fn copy_all() {
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
    freeze_module();
    for (area, place) in AREAS.into_iter().zip(&COPIES) {
        if !area.is_set_aside() {
            continue;
        }
        match copied(area) {
            Ok(copy) => place.store(copy, Ordering::Relaxed),
            Err(errno) => WRONG.store(errno, Ordering::Relaxed),
        }
    }
    if IS_MODULE_FROZEN.load(Ordering::Relaxed) && !each_file(|area| module::freeze(area, FORK_MS))
    {
        count::add(Backed::Torn, 1);
    }
}

/// Freezes frames of the module, unless this thread is alone with them.
fn freeze_module() {
    let bytes: usize = AREAS.into_iter().map(|area| area.range().len()).sum();
    let milliseconds = FORK_MS + COPY_MS * (bytes as u64 >> 20);
    let is_any = AREAS.into_iter().any(|area| area.file().is_some());
    let is_due = is_any && HAS_LOCKS.load(Ordering::Relaxed);
    let is_frozen = is_due && each_file(|area| module::freeze(area, milliseconds));
    IS_MODULE_FROZEN.store(is_frozen, Ordering::Relaxed);
    if is_due && !is_frozen {
        each_file(module::thaw);
        count::add(Backed::Torn, 1);
    }
}

/// Does something to every segment of the module; whether it could with all.
fn each_file(act: impl Fn(&Area) -> bool) -> bool {
    let has_failed = |area: &&Area| area.file().is_some() && !act(area);
    AREAS.into_iter().filter(has_failed).count() == 0
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
        let goal = place + (run.start - range.start);
        let is_there = |at: usize| match ground {
            Ground::Module => module::may_hold(area, at),
            Ground::Ordinary | Ground::Pool(_) => is_present(at),
        };
        let by_module = match ground {
            // SAFETY: taken above, as long as all of it.
            Ground::Module => unsafe { module::copy(area, run, goal) },
            Ground::Ordinary | Ground::Pool(_) => None,
        };
        count::add(Backed::Copied, by_module.unwrap_or_else(|| copies::fill(goal, run, is_there)));
        Ok(())
    })?;
    Ok(place)
}

/// After it, in the parent.
extern "C" fn after() {
    if AREAS.into_iter().any(Area::is_set_aside) {
        aside(thaw_all);
    }
    if HAS_LOCKS.load(Ordering::Relaxed) {
        free();
        // SAFETY: `before` took it.
        unsafe { _IO_list_unlock() };
    }
}

/// Lets those go on who wait for what was copied, and unmaps the copies, which are the child's.
fn thaw_all() {
    if IS_MODULE_FROZEN.swap(false, Ordering::Relaxed) && !each_file(module::thaw) {
        count::add(Backed::Torn, 1);
    }
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
}

/// After it, in the child.
extern "C" fn after_in_child() {
    careful::after_fork_in_child();
    aside(|| {
        if own().is_err() {
            count::add(Backed::Lost, 1);
            kernel::say(
                b"pagelab: a child of fork ends: there is no memory for a copy of its own\n",
            );
            kernel::abort();
        }
        // Not before: what a thread has of its own may lie in the heap, by way of the loader.
        fork_wait::after_fork_in_child();
        begin::after_fork_in_child();
        helper::after_fork_in_child();
        kept::after_fork_in_child();
        told::after_fork_in_child();
        if FROZEN.load(Ordering::Relaxed) >= 0 {
            // Its pages are the parent's.
            drop(Frozen::again(FROZEN.swap(-1, Ordering::Relaxed)));
        }
    });
    if HAS_LOCKS.load(Ordering::Relaxed) {
        free();
        // Not given back: where there were several threads libc has made it anew already.
        // SAFETY: no other thread is here.
        unsafe { _IO_list_resetlock() };
    }
}

/// Makes all of this process's segments its own.
fn own() -> Result<(), Errno> {
    match WRONG.load(Ordering::Relaxed) {
        0 => {}
        errno => return Err(errno),
    }
    for (area, copy) in AREAS.into_iter().zip(&COPIES) {
        let place = copy.load(Ordering::Relaxed);
        if place == 0 {
            continue;
        }
        copy.store(0, Ordering::Relaxed);
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
    fork_wait::after_fork();
    FINE.after_fork();
    ALLOCATOR.leave();
    pool::DEMOTING.leave();
    pages::LOCK.leave();
}
