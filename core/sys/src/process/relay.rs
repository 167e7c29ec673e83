#![expect(unsafe_code, reason = "signal handlers")]
//! Signals that are meant for the program that we started, and its end as ours.
//!
//! The one idea: whoever started us knows our number only, so what is sent to us goes on to the
//! program. What a terminal sends to all of its foreground, the kernel itself, the program has got
//! already.
//!
//! Rules for the unsafe blocks:
//! 1. A handler touches atomics and makes plain system calls only.
//! 2. A disposition is one that `sigaction` filled, or zeroes with a handler and its flags.

use std::{
    ffi::{c_int, c_void},
    mem, ptr,
    sync::atomic::{AtomicI32, Ordering},
};

/// Those that are handed on.
const HANDED: [c_int; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2];

/// Who gets them; 0 before there is somebody.
static TO: AtomicI32 = AtomicI32::new(0);
/// The last one that came before.
static EARLY: AtomicI32 = AtomicI32::new(0);

extern "C" fn hand_on(signal: c_int, about: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel passes what it filled.
    let is_kernels = unsafe { about.as_ref() }.is_some_and(|about| about.si_code > 0);
    let to = TO.load(Ordering::Acquire);
    if to == 0 {
        EARLY.store(signal, Ordering::Release);
    } else if !is_kernels {
        // SAFETY: rule 1.
        unsafe { libc::kill(to, signal) };
    }
}

/// From now on signals are kept for the program that [`to`] names. What whoever started us ignores
/// stays ignored, for us and for the program.
pub fn begin() {
    for signal in HANDED {
        // SAFETY: numbers and padding: zeroes are one.
        let mut now: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: rule 2.
        unsafe { libc::sigaction(signal, ptr::null(), &raw mut now) };
        if now.sa_sigaction == libc::SIG_IGN {
            continue;
        }
        now.sa_sigaction = hand_on as *const () as libc::sighandler_t;
        now.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: rules 1 and 2.
        unsafe { libc::sigaction(signal, &raw const now, ptr::null_mut()) };
    }
}

/// This process gets them.
pub fn to(pid: u32) {
    let Ok(pid) = c_int::try_from(pid) else { return };
    TO.store(pid, Ordering::Release);
    let early = EARLY.swap(0, Ordering::AcqRel);
    if early != 0 {
        // SAFETY: takes numbers.
        unsafe { libc::kill(pid, early) };
    }
}

/// Ends this process as the program ended, by a signal; without a dump, which the program has left.
pub fn end_as(signal: c_int) {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: reads one `struct rlimit`.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
    // SAFETY: the default disposition of a signal.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // SAFETY: takes a number.
    unsafe { libc::raise(signal) };
}
