#![expect(unsafe_code, reason = "signal handlers; the rules are in lib.rs")]
//! The signal of memory that cannot be reached: ours first, and else the program's as it set it.
//!
//! The one idea: the kernel knows one handler, which is ours for as long as the program runs; what
//! the program sets is kept here, told to it when it asks, and called as the kernel would have. A
//! thread that blocks the signal would be killed by the next closed page, so nobody blocks it: the
//! calls that set masks leave it out.

use std::{
    ffi::{c_int, c_void},
    mem, ptr,
    sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering},
};

use pagelab_interpose::{Next, aside, heat::Kind, next};

use crate::{places, yard};

type Mask = unsafe extern "C-unwind" fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int;

/// `pthread_sigmask(3)` as the program had it.
fn threads() -> &'static Next<Mask> {
    next!(pthread_sigmask: fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int)
}

/// What the program has set, a place for each time; the last ones are kept.
const KEPT: usize = 64;
struct Kept {
    handler: AtomicUsize,
    flags: AtomicI32,
    mask: AtomicU64,
}
#[expect(clippy::declare_interior_mutable_const, reason = "the pattern that statics begin with")]
const DEFAULT: Kept =
    Kept { handler: AtomicUsize::new(0), flags: AtomicI32::new(0), mask: AtomicU64::new(0) };
static THEIRS: [Kept; KEPT] = [DEFAULT; KEPT];
static NOW: AtomicUsize = AtomicUsize::new(0);

/// The signals of a set, as the kernel counts them.
fn bits(set: &libc::sigset_t) -> u64 {
    // SAFETY: a set begins with the word of the first 64 signals.
    unsafe { (&raw const *set).cast::<u64>().read() }
}

fn set_of(bits: u64) -> libc::sigset_t {
    // SAFETY: a set is a plain array of words.
    let mut set: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: as in `bits`.
    unsafe { (&raw mut set).cast::<u64>().write(bits) };
    set
}

const OURS: u64 = 1 << (libc::SIGSEGV - 1);

fn theirs() -> libc::sigaction {
    let kept = &THEIRS[NOW.load(Ordering::Acquire) % KEPT];
    // SAFETY: numbers and an optional function: zeroes are one.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = kept.handler.load(Ordering::Relaxed);
    action.sa_flags = kept.flags.load(Ordering::Relaxed);
    action.sa_mask = set_of(kept.mask.load(Ordering::Relaxed));
    action
}

fn keep(action: &libc::sigaction) {
    let next = NOW.load(Ordering::Acquire) + 1;
    let kept = &THEIRS[next % KEPT];
    kept.handler.store(action.sa_sigaction, Ordering::Relaxed);
    kept.flags.store(action.sa_flags, Ordering::Relaxed);
    kept.mask.store(bits(&action.sa_mask) & !OURS, Ordering::Relaxed);
    NOW.store(next, Ordering::Release);
}

/// `sigaction(2)` as the program had it.
///
/// # Safety
/// As the call.
unsafe fn real_action(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    let next =
        next!(sigaction: fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int).find();
    // SAFETY: the caller's.
    next.map_or(-1, |call| unsafe { call(signal, new, old) })
}

static TAKEN: AtomicI32 = AtomicI32::new(0);

/// Whether the handler is ours.
fn is_ours() -> bool {
    TAKEN.load(Ordering::Acquire) != 0
}

/// Makes ours the handler; what was there is the program's.
pub(crate) fn take_over() -> bool {
    // SAFETY: numbers and an optional function: zeroes are one.
    let (mut ours, mut former): (libc::sigaction, libc::sigaction) = unsafe { mem::zeroed() };
    ours.sa_sigaction = on_fault as *const () as libc::sighandler_t;
    // Not deferred: a handler of the program's that runs in ours may meet a closed page, too.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER | libc::SA_RESTART;
    // SAFETY: reads one action and fills the other.
    let set = unsafe { real_action(libc::SIGSEGV, &raw const ours, &raw mut former) };
    keep(&former);
    TAKEN.store(i32::from(set == 0), Ordering::Release);
    set == 0
}

/// Makes the program's the handler again.
pub(crate) fn give_back() {
    if TAKEN.swap(0, Ordering::AcqRel) != 0 {
        let action = theirs();
        // SAFETY: reads one action.
        unsafe { real_action(libc::SIGSEGV, &raw const action, ptr::null_mut()) };
    }
}

/// `SEGV_ACCERR` of siginfo.h: memory that is mapped and may not be accessed like that.
const NOT_LIKE_THAT: c_int = 2;

extern "C" fn on_fault(signal: c_int, about: *mut libc::siginfo_t, context: *mut c_void) {
    aside(|| {
        // SAFETY: the kernel passes what it filled.
        let Some(told) = (unsafe { about.as_ref() }) else { return };
        let code = told.si_code;
        // SAFETY: as above; of a signal that somebody sent it is not looked at.
        let address = unsafe { told.si_addr() }.addr();
        if code == NOT_LIKE_THAT {
            match places::faulted(address) {
                places::Fault::Seen => return yard::say(Kind::Seen, address, 1),
                places::Fault::Again => return,
                places::Fault::Theirs => {}
            }
        }
        // SAFETY: what the kernel passed to this handler.
        unsafe { forward(signal, about, context, code) };
    });
}

/// What would have happened without this library.
///
/// # Safety
/// `about` and `context` are the kernel's.
unsafe fn forward(signal: c_int, about: *mut libc::siginfo_t, context: *mut c_void, code: c_int) {
    type WithInfo = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
    type Plain = extern "C" fn(c_int);
    let action = theirs();
    let is_sent = code <= 0;
    if action.sa_sigaction == libc::SIG_IGN && is_sent {
        return;
    }
    if action.sa_sigaction == libc::SIG_DFL || action.sa_sigaction == libc::SIG_IGN {
        // SAFETY: numbers: zeroes are the default disposition.
        let default: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: reads one action. The same instruction faults again, and ends the program there.
        unsafe { real_action(signal, &raw const default, ptr::null_mut()) };
        if is_sent {
            // SAFETY: takes a number.
            unsafe { libc::raise(signal) };
        }
        return;
    }
    if action.sa_flags & libc::SA_RESETHAND != 0 {
        // SAFETY: as above.
        keep(&unsafe { mem::zeroed() });
    }
    let mut before = set_of(0);
    // SAFETY: reads one set and fills the other.
    unsafe { masked(threads(), libc::SIG_BLOCK, &raw const action.sa_mask, &raw mut before) };
    if action.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: the program set it as one that takes three arguments.
        let handler = unsafe { mem::transmute::<usize, WithInfo>(action.sa_sigaction) };
        handler(signal, about, context);
    } else {
        // SAFETY: the program set it as one that takes a number.
        let handler = unsafe { mem::transmute::<usize, Plain>(action.sa_sigaction) };
        handler(signal);
    }
    // SAFETY: reads one set.
    unsafe { masked(threads(), libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
}

/// # Safety
/// As the call.
unsafe fn masked(
    by: &Next<Mask>,
    how: c_int,
    new: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    // SAFETY: the caller's.
    by.find().map_or(-1, |call| unsafe { call(how, new, old) })
}

/// Sets a mask, without our signal where it would be blocked.
///
/// # Safety
/// As the call.
unsafe fn without_ours(
    by: &Next<Mask>,
    how: c_int,
    new: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    // SAFETY: null, or the program's own set.
    let Some(set) = (unsafe { new.as_ref() }).filter(|_| is_ours()) else {
        // SAFETY: rule 1.
        return unsafe { masked(by, how, new, old) };
    };
    let less = if how == libc::SIG_UNBLOCK { bits(set) } else { bits(set) & !OURS };
    let set = set_of(less);
    // SAFETY: rule 1.
    unsafe { masked(by, how, &raw const set, old) }
}

/// `pthread_sigmask(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn pthread_sigmask(
    how: c_int,
    new: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    // SAFETY: rule 1.
    unsafe { without_ours(threads(), how, new, old) }
}

/// `sigprocmask(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn sigprocmask(
    how: c_int,
    new: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    let by = next!(sigprocmask: fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int);
    // SAFETY: rule 1.
    unsafe { without_ours(by, how, new, old) }
}

/// `sigaction(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: null, or the program's own action.
    let action = unsafe { new.as_ref() };
    if !is_ours() {
        // SAFETY: rule 1.
        return unsafe { real_action(signal, new, old) };
    }
    if signal != libc::SIGSEGV {
        let Some(mut action) = action.copied() else {
            // SAFETY: rule 1.
            return unsafe { real_action(signal, new, old) };
        };
        action.sa_mask = set_of(bits(&action.sa_mask) & !OURS);
        // SAFETY: rule 1.
        return unsafe { real_action(signal, &raw const action, old) };
    }
    let before = theirs();
    if let Some(action) = action {
        keep(action);
    }
    // SAFETY: null, or the program's own place for an action.
    if let Some(old) = unsafe { old.as_mut() } {
        *old = before;
    }
    0
}

/// `signal(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn signal(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t {
    if signal == libc::SIGSEGV && is_ours() {
        let before = theirs().sa_sigaction;
        // SAFETY: numbers and an optional function: zeroes are one.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        (action.sa_sigaction, action.sa_flags) = (handler, libc::SA_RESTART);
        keep(&action);
        return before;
    }
    let next = next!(signal: fn(c_int, libc::sighandler_t) -> libc::sighandler_t).find();
    // SAFETY: rule 1.
    next.map_or(libc::SIG_ERR, |call| unsafe { call(signal, handler) })
}
