#![expect(unsafe_code, reason = "fork, and signal handlers")]
//! Several workers at once: threads of one address space, or processes with one each.
//!
//! The one idea: both run the same function and meet at the same barrier, so that what differs
//! between a `threads` case and a `processes` case is the address space and nothing else.
//!
//! Rules for forked workers: the caller has one thread; the worker returns plain numbers, which it
//! leaves in shared memory; it dies when its parent dies.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
};

use rustix::{
    process::{Pid, Signal, WaitOptions, set_parent_process_death_signal, wait},
    time::Timespec,
};

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{Called, SysError, memory::map::Words, process::Pinned};

/// Meets all workers of a crew, whether they share an address space or not.
#[derive(Debug)]
pub struct Barrier {
    shared: Words,
    workers: u32,
}

impl Barrier {
    /// A barrier for so many workers.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn new(workers: u32) -> Result<Self, SysError> {
        Ok(Self { shared: Words::shared(1)?, workers })
    }

    /// Waits for all workers. Spins first: a worker that sleeps would start late.
    pub fn wait(&self) {
        if self.workers == 1 {
            return;
        }
        let word = &self.shared.get()[0];
        // Arrivals in the low half, rounds in the high half.
        let arrived = word.fetch_add(1, Ordering::AcqRel) + 1;
        let round = arrived >> 32;
        if arrived & u64::from(u32::MAX) == u64::from(self.workers) {
            word.store((round + 1) << 32, Ordering::Release);
            return;
        }
        let mut spins = 0_u32;
        while word.load(Ordering::Acquire) >> 32 == round {
            spins += 1;
            if spins < 10_000 {
                std::hint::spin_loop();
            } else {
                // More workers than CPUs: the others need this one.
                let _ = rustix::thread::nanosleep(&Timespec { tv_sec: 0, tv_nsec: 20_000 });
            }
        }
    }
}

/// Runs `body(0..workers)` in threads of this process: in all of them, or in none.
///
/// # Errors
/// When there cannot be so many threads.
///
/// # Panics
/// When a worker panicked.
pub fn threads<R: Send>(
    workers: usize,
    body: impl Fn(usize) -> R + Sync,
) -> Result<Vec<R>, SysError> {
    if workers == 1 {
        return Ok(vec![body(0)]);
    }
    // Whoever meets the others at a barrier would wait for one that there is not.
    let may_go = OnceLock::<bool>::new();
    thread::scope(|scope| {
        let (body, may_go) = (&body, &may_go);
        let start = |worker| {
            let work = move || (*may_go.wait()).then(|| body(worker));
            thread::Builder::new().spawn_scoped(scope, work)
        };
        let started: io::Result<Vec<_>> = (0..workers).map(start).collect();
        let _ = may_go.set(started.is_ok());
        let started = started.called("clone", format_args!("{workers} threads"))?.into_iter();
        let done = started.filter_map(|worker| worker.join().expect("a worker panicked"));
        Ok(done.collect())
    })
}

/// Runs `body` on each of these CPUs at once, each in a thread of its own that is bound to it; they
/// start together, and nobody starts where one could not be bound.
pub(crate) fn pinned<R: Send + Default>(
    cpus: &[usize],
    body: impl Fn(usize, &Barrier) -> R + Sync,
) -> Result<Vec<R>, SysError> {
    let barrier = Barrier::new(u32::try_from(cpus.len()).expect("fewer CPUs than 2^32"))?;
    let failed = AtomicBool::new(false);
    let results = threads(cpus.len(), |index| {
        let pinned = Pinned::to(cpus[index]);
        failed.fetch_or(pinned.is_err(), Ordering::Relaxed);
        // Whoever has no CPU still meets the others here: nobody waits for one that is gone.
        barrier.wait();
        let is_off = failed.load(Ordering::Relaxed);
        let result = if is_off { R::default() } else { body(index, &barrier) };
        pinned.map(|_| result)
    })?;
    results.into_iter().collect()
}

/// Runs `body(0..workers)` in forked processes; each returns plain numbers, of whole words.
///
/// # Errors
/// When a process cannot be made, or one of them died.
pub fn processes<T: FromBytes + IntoBytes + Immutable>(
    workers: usize,
    body: impl Fn(usize) -> T,
) -> Result<Vec<T>, SysError> {
    const WORD: usize = size_of::<u64>();
    const { assert!(size_of::<T>().is_multiple_of(WORD), "only whole words cross") };
    let each = size_of::<T>() / WORD;
    let shared = Words::shared(workers * each)?;
    let mut children = Vec::with_capacity(workers);
    let mut failure = None;
    for worker in 0..workers {
        match fork(|| {
            let numbers = body(worker);
            let words = numbers.as_bytes().as_chunks::<WORD>().0.iter();
            for (slot, word) in shared.get()[worker * each..].iter().zip(words) {
                slot.store(u64::from_ne_bytes(*word), Ordering::Release);
            }
            0
        }) {
            Ok(child) => children.push(child),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    // In the order in which they end: one that dies leaves the others waiting at a barrier.
    while !children.is_empty() {
        if failure.is_some() {
            for child in &children {
                let _ = rustix::process::kill_process(*child, Signal::KILL);
            }
        }
        let Ok(Some((child, status))) = wait(WaitOptions::empty()) else { break };
        children.retain(|other| *other != child);
        if status.exit_status() != Some(0) && failure.is_none() {
            let why = io::Error::other(format!("it ended with {status:?}"));
            failure = Some(SysError::new("wait", "a worker process", why));
        }
    }
    if let Some(error) = failure {
        return Err(error);
    }
    let words = shared.get().iter().map(|slot| slot.load(Ordering::Acquire).to_ne_bytes());
    let bytes: Vec<u8> = words.take(workers * each).flatten().collect();
    let read = |worker: &[u8]| T::read_from_bytes(worker).expect("as many bytes as it has");
    Ok(bytes.chunks_exact(size_of::<T>()).map(read).collect())
}

/// Forks a child of this process, which has one thread: it runs `body`, dies when its parent does,
/// and exits with what `body` returns; with 101 after a panic.
pub(crate) fn fork(body: impl FnOnce() -> u8) -> Result<Pid, SysError> {
    let parent = rustix::process::getpid();
    // SAFETY: the process has one thread (rule of this file), so no lock is held by a thread that
    // the child would not have.
    let child = unsafe { libc::fork() };
    match child {
        -1 => Err(SysError::last("fork", "a worker")),
        0 => {
            let code = catch_unwind(AssertUnwindSafe(|| {
                let _ = set_parent_process_death_signal(Some(Signal::KILL));
                // The parent may have died before the line above.
                if rustix::process::getppid() == Some(parent) { body() } else { 0 }
            }));
            // SAFETY: ends the child at once, without the parent's exit handlers and buffers.
            unsafe { libc::_exit(code.unwrap_or(101).into()) }
        }
        pid => Ok(Pid::from_raw(pid).expect("fork returned a positive pid")),
    }
}

/// A flag that a signal sets.
static INTERRUPTED: AtomicU32 = AtomicU32::new(0);

/// Asks a process to end, as Ctrl-C does; one that has ended is not asked.
pub fn interrupt(pid: u32) {
    if let Some(pid) = super::tree::number(pid) {
        let _ = rustix::process::kill_process(pid, Signal::INT);
    }
}

/// Whether SIGINT or SIGTERM came since [`catch_interrupts`].
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed) > 0
}

/// The interrupts so far were meant for somebody else.
pub fn forget_interrupts() {
    INTERRUPTED.store(0, Ordering::Relaxed);
}

/// From now on SIGINT and SIGTERM only set a flag; a third one kills as usual.
pub fn catch_interrupts() {
    extern "C" fn note(signal: i32) {
        if INTERRUPTED.fetch_add(1, Ordering::Relaxed) >= 2 {
            // SAFETY: restoring the default disposition is allowed in a handler.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
            // SAFETY: raising a signal is allowed in a handler.
            unsafe { libc::raise(signal) };
        }
    }
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let handler = note as *const () as libc::sighandler_t;
        // SAFETY: the handler touches one atomic and calls async-signal-safe functions only.
        unsafe { libc::signal(signal, handler) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_meet_at_the_barrier_in_every_round() {
        let barrier = Barrier::new(3).unwrap();
        let count = AtomicU32::new(0);
        let seen = threads(3, |_| {
            (0..100_u32).all(|round| {
                count.fetch_add(1, Ordering::SeqCst);
                barrier.wait();
                let seen = count.load(Ordering::SeqCst) == 3 * (round + 1);
                barrier.wait();
                seen
            })
        });
        assert_eq!(seen.unwrap(), [true; 3]);
    }
}
