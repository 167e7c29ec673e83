//! The lock of a segment's pages.
//!
//! The one idea: it is held for the time of a look at some words, never across a call into the
//! program or the kernel, so waiting is short. Whoever comes in the midst of its own holding, as a
//! signal handler may, is told so instead of waiting for itself.

use std::sync::atomic::{AtomicUsize, Ordering};

use pagelab_interpose::thread;

use crate::filtered;

/// Looks at a lock so many times before the processor is left to others.
const SPINS: u32 = 100;

/// A lock; 0, or the thread that holds it.
#[derive(Debug)]
pub(crate) struct Lock(AtomicUsize);

/// The lock is held.
#[derive(Debug)]
pub(crate) struct Held<'l>(&'l Lock);

impl Lock {
    pub(crate) const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Takes it; `None` where this thread has it already.
    pub(crate) fn hold(&self) -> Option<Held<'_>> {
        let me = thread();
        let mut spins = 0;
        while let Err(owner) =
            self.0.compare_exchange_weak(0, me, Ordering::Acquire, Ordering::Relaxed)
        {
            if owner == me {
                return None;
            }
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
            } else {
                filtered::wait();
            }
        }
        Some(Held(self))
    }

    /// Takes it, if nobody has it.
    pub(crate) fn try_hold(&self) -> Option<Held<'_>> {
        let me = thread();
        let came = self.0.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed);
        came.is_ok().then(|| Held(self))
    }

    /// Takes it, until it is given back by [`Lock::free`]: for a fork, so that the child finds it
    /// whole.
    pub(crate) fn keep(&self) {
        std::mem::forget(self.hold());
    }

    /// Gives it back, on both sides of a fork.
    pub(crate) fn free(&self) {
        self.0.store(0, Ordering::Release);
    }
}

/// A lock that its thread may take again.
///
/// It stands for all locks of the allocator at once, which are taken rarely, so that a fork can
/// wait until nobody is within one: the child would find it held by a thread that it has not.
#[derive(Debug)]
pub(crate) struct Gate {
    lock: Lock,
    /// How often its thread took it again.
    again: AtomicUsize,
}

impl Gate {
    pub(crate) const fn new() -> Self {
        Self { lock: Lock::new(), again: AtomicUsize::new(0) }
    }

    /// Takes it, if nobody has it.
    pub(crate) fn try_hold(&self) -> Option<Held<'_>> {
        self.lock.try_hold()
    }

    /// Takes it.
    pub(crate) fn enter(&self) {
        match self.lock.hold() {
            Some(held) => std::mem::forget(held),
            None => drop(self.again.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Gives it back.
    pub(crate) fn leave(&self) {
        if self.again.load(Ordering::Relaxed) == 0 {
            self.lock.free();
        } else {
            self.again.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.0.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_holds_it_is_told_and_another_waits() {
        static LOCK: Lock = Lock::new();
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let held = LOCK.hold().unwrap();
        assert!(LOCK.hold().is_none());
        drop(held);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let _held = LOCK.hold().unwrap();
                        let seen = COUNT.load(Ordering::Relaxed);
                        COUNT.store(seen + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(COUNT.load(Ordering::Relaxed), 4000);
    }

    #[test]
    fn a_gate_is_free_when_its_thread_left_as_often_as_it_came() {
        static GATE: Gate = Gate::new();
        GATE.enter();
        GATE.enter();
        GATE.leave();
        let is_held = || GATE.lock.0.load(Ordering::Relaxed) != 0;
        assert!(is_held());
        GATE.leave();
        assert!(!is_held());
    }
}
