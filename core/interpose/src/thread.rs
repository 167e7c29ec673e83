#![expect(unsafe_code, reason = "threads without the standard library; rules below")]
//! A thread that the program does not know of.
//!
//! Rules for the unsafe blocks:
//! 1. A call fills or reads what it is passed, which is of its type; zeroes are one.

use std::{
    ffi::{c_int, c_long, c_void},
    mem, ptr,
};

use crate::kernel;

/// What a thread runs.
pub type Run = extern "C" fn(*mut c_void) -> *mut c_void;

/// Starts a detached thread with all signals blocked; whether it runs.
///
/// # Safety
/// `run` may be passed this argument, on a stack as `prepare` chooses it.
pub unsafe fn start(
    prepare: impl FnOnce(&mut libc::pthread_attr_t) -> bool,
    run: Run,
    with: *mut c_void,
) -> bool {
    // SAFETY: rule 1.
    let mut attributes: libc::pthread_attr_t = unsafe { mem::zeroed() };
    // SAFETY: rule 1.
    if unsafe { libc::pthread_attr_init(&raw mut attributes) } != 0 {
        return false;
    }
    let detached = libc::PTHREAD_CREATE_DETACHED;
    // SAFETY: rule 1.
    unsafe { libc::pthread_attr_setdetachstate(&raw mut attributes, detached) };
    let is_started = prepare(&mut attributes) && {
        let mut thread = 0;
        let before = blocked(ALL);
        // SAFETY: the caller's.
        let answer =
            unsafe { libc::pthread_create(&raw mut thread, &raw const attributes, run, with) };
        blocked(before);
        answer == 0
    };
    // SAFETY: rule 1.
    unsafe { libc::pthread_attr_destroy(&raw mut attributes) };
    is_started
}

/// Waits until a thread of this process is gone, half a minute at most: it may have no processor
/// for seconds.
pub fn gone(thread: c_int) {
    const LOOKS: usize = 60_000;
    const LOOK_NS: i64 = 500_000;
    let (process, thread) = (c_long::from(kernel::process()), c_long::from(thread));
    for _ in 0..LOOKS {
        // SAFETY: takes numbers, and sends nothing.
        if unsafe { libc::syscall(libc::SYS_tgkill, process, thread, c_long::from(0_i32)) } != 0 {
            break;
        }
        kernel::sleep_ns(LOOK_NS);
    }
}

/// Every signal but 32 and 33, by which threads of glibc speak with each other.
const ALL: u64 = !(3 << 31);

/// Sets the signals that this thread blocks, which a new thread inherits; returns the former set.
fn blocked(set: u64) -> u64 {
    let mut before = 0_u64;
    let (how, bytes) = (i64::from(libc::SIG_SETMASK), size_of::<u64>());
    let (set, former) = (ptr::from_ref(&set), &raw mut before);
    // SAFETY: rule 1.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, set, former, bytes) };
    before
}
