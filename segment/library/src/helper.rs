#![expect(unsafe_code, reason = "a thread that the program does not know; the rules are in lib.rs")]
//! The thread that zeroes what programs give back.
//!
//! The one idea: nobody is to notice it. It begins when there is work, takes no signal, and is gone
//! a while after the last work; a child of fork has none, and begins its own when it has work. Who
//! must be the only thread of its process (`unshare`, `setns`) waits until it is gone.

use std::{
    ffi::{c_int, c_long, c_void},
    ptr,
    sync::atomic::{AtomicI32, AtomicU8, Ordering},
};

use pagelab_interpose::{
    self as interpose, checked, done,
    kernel::{self, process},
    segment::Counted,
};

use crate::{count, own::OWN};

/// What there is to do.
#[derive(Debug)]
pub(crate) struct Work {
    /// Whether something waits.
    pub(crate) is_due: fn() -> bool,
    /// Does it, until it is done or somebody says stop.
    pub(crate) act: fn(fn() -> bool),
    /// Whether anything may come of what was done.
    pub(crate) is_any: fn() -> bool,
    /// Called now and then.
    pub(crate) tick: fn(),
}

const NONE: u8 = 0;
const BEGINS: u8 = 1;
const RUNS: u8 = 2;
const STOPS: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(NONE);
/// Its number.
static THREAD: AtomicI32 = AtomicI32::new(0);

/// A look for work, and how long a leaf waits for being taken again, at least.
const LOOK_NS: i64 = 500_000;
const WAIT_NS: usize = 500_000_000;
/// Its stack, of which it needs a page.
const STACK: usize = 256 << 10;

/// This is the process in which a helper may be, from now on.
pub(crate) fn begin() {
    OWN.process.store(process(), Ordering::Relaxed);
}

/// Whether this is the process that began here, and not one that borrows its memory (`vfork`).
pub(crate) fn is_own_process() -> bool {
    OWN.process.load(Ordering::Relaxed) == process()
}

/// Whether it is there, which it is from now on if it can be.
pub(crate) fn is_there(work: &'static Work) -> bool {
    match STATE.load(Ordering::Acquire) {
        RUNS | BEGINS => true,
        NONE => is_own_process() && start(work),
        _ => false,
    }
}

#[cold]
fn start(work: &'static Work) -> bool {
    if STATE.compare_exchange(NONE, BEGINS, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return false;
    }
    let stack = |attributes: &mut libc::pthread_attr_t| {
        // SAFETY: sets a number.
        unsafe { libc::pthread_attr_setstacksize(attributes, STACK) == 0 }
    };
    // SAFETY: a function that takes what is passed, on a stack that it has room on.
    let is_started =
        unsafe { interpose::start(stack, helps, ptr::from_ref(work).cast_mut().cast()) };
    if is_started {
        count::add(Counted::Helpers, 1);
    } else {
        STATE.store(NONE, Ordering::Release);
    }
    is_started
}

fn stops() -> bool {
    STATE.load(Ordering::Acquire) == STOPS
}

extern "C" fn helps(with: *mut c_void) -> *mut c_void {
    // SAFETY: what `start` passed, which is there for good.
    let work: &'static Work = unsafe { &*with.cast_const().cast() };
    // SAFETY: takes a text that ends with 0.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"pagelab-zero".as_ptr()) };
    // SAFETY: takes nothing.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) };
    THREAD.store(i32::try_from(thread).unwrap_or(0), Ordering::Release);
    let _ = STATE.compare_exchange(BEGINS, RUNS, Ordering::AcqRel, Ordering::Acquire);
    let (mut told, mut aged, mut busy) = (0, now_ns(), now_ns());
    loop {
        if (work.is_due)() {
            (work.act)(stops);
        }
        let now = now_ns();
        if (work.is_any)() {
            busy = now;
        }
        if now - aged >= WAIT_NS {
            (work.tick)();
            aged = now;
        }
        let cpu = cpu_ns();
        count::add(Counted::HelperNs, cpu - told);
        told = cpu;
        let changes = |from, to| {
            STATE.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
        };
        let goes = now - busy >= WAIT_NS && changes(RUNS, NONE);
        // Who gave something back just before counts on this thread, unless there is another.
        if stops() || goes && !((work.is_any)() && changes(NONE, RUNS)) {
            return ptr::null_mut();
        }
        if !(work.is_due)() {
            nap();
        }
    }
}

fn nap() {
    kernel::sleep_ns(LOOK_NS);
}

fn clock(which: libc::clockid_t) -> usize {
    usize::try_from(kernel::clock_ns(which)).unwrap_or(0)
}

fn now_ns() -> usize {
    clock(libc::CLOCK_MONOTONIC)
}

/// What this thread has had of a processor.
pub(crate) fn cpu_ns() -> usize {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Ends it, for whoever must be alone; it begins again when there is work.
pub(crate) fn rest() {
    if STATE.load(Ordering::Acquire) == NONE && THREAD.load(Ordering::Acquire) == 0 {
        return;
    }
    while STATE.load(Ordering::Acquire) == BEGINS {
        nap();
    }
    let stopped = STATE.compare_exchange(RUNS, STOPS, Ordering::AcqRel, Ordering::Acquire).is_ok();
    interpose::gone(THREAD.load(Ordering::Acquire));
    THREAD.store(0, Ordering::Release);
    if stopped {
        STATE.store(NONE, Ordering::Release);
    }
}

/// In a child of fork, which has no other thread than the one that forked.
pub(crate) fn after_fork_in_child() {
    if STATE.load(Ordering::Acquire) != NONE || THREAD.load(Ordering::Acquire) != 0 {
        STATE.store(NONE, Ordering::Release);
        THREAD.store(0, Ordering::Release);
    }
    begin();
}

/// `unshare(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn unshare(what: c_int) -> c_int {
    rest();
    // SAFETY: takes a number.
    done(checked(unsafe { libc::syscall(libc::SYS_unshare, c_long::from(what)) }).map(drop))
}

/// `setns(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn setns(file: c_int, kind: c_int) -> c_int {
    rest();
    // SAFETY: takes numbers.
    let answer = unsafe { libc::syscall(libc::SYS_setns, c_long::from(file), c_long::from(kind)) };
    done(checked(answer).map(drop))
}
