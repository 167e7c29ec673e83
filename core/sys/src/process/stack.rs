#![expect(unsafe_code, reason = "the mask of a thread's signals is libc's")]
//! A stack for a process that was started with a small limit (`ulimit -s`).
//!
//! The limit is for the programs that are started from here, which inherit it, so it is not
//! raised: the work moves to a thread, whose stack is memory like any other.
//!
//! Rules for the unsafe blocks:
//! 1. A set of signals is a plain array of words.

use std::{mem, panic::resume_unwind, ptr, thread};

use rustix::process::{Resource, getrlimit};

/// With less the work gets a thread.
const LEAST: u64 = 2 << 20;
/// Bytes of that thread's stack; more than an unoptimized build was seen to take.
const ROOM: usize = 4 << 20;

/// Does the work of a process with enough of a stack.
pub fn with_room<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if getrlimit(Resource::Stack).current.is_none_or(|bytes| bytes >= LEAST) {
        return work();
    }
    let mut work = Some(work);
    let taken = &mut work;
    let done = thread::scope(|scope| {
        let run = move || taken.take().map(|work| work());
        let worker = thread::Builder::new().stack_size(ROOM).spawn_scoped(scope, run).ok()?;
        // A signal is to wake whoever works.
        block_signals();
        // The panic was told where it came.
        worker.join().unwrap_or_else(|panic| resume_unwind(panic))
    });
    // No memory for a stack: what there is may do.
    done.unwrap_or_else(|| {
        let work = work.take().expect("a thread that never began took no work");
        work()
    })
}

/// Whether what this process may hold is limited (`ulimit -d`, `-v`): a thread that starts at such
/// a limit ends the process, since it has no memory for its own signal stack.
pub fn is_memory_limited() -> bool {
    [Resource::Data, Resource::As].into_iter().any(|of| getrlimit(of).current.is_some())
}

/// Leaves all signals to the other threads.
fn block_signals() {
    // SAFETY: rule 1.
    let mut all: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: fills one set.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: reads one set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, ptr::null_mut()) };
}
