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

/// A lock.
#[derive(Debug)]
pub(crate) struct Lock {
    /// The thread that holds it; 0 for none.
    owner: AtomicUsize,
    /// How often its thread entered it again.
    again: AtomicUsize,
}

/// The lock is held.
#[derive(Debug)]
pub(crate) struct Held<'l>(&'l Lock);

impl Lock {
    pub(crate) const fn new() -> Self {
        Self { owner: AtomicUsize::new(0), again: AtomicUsize::new(0) }
    }

    /// Takes it; `None` where this thread has it already.
    pub(crate) fn hold(&self) -> Option<Held<'_>> {
        let me = thread();
        let mut spins = 0;
        while let Err(owner) =
            self.owner.compare_exchange_weak(0, me, Ordering::Acquire, Ordering::Relaxed)
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
        let came = self.owner.compare_exchange(0, thread(), Ordering::Acquire, Ordering::Relaxed);
        came.is_ok().then(|| Held(self))
    }

    /// Takes it until [`Lock::leave`], also where this thread has it: for a fork, so that the child
    /// finds it whole, and for the allocator's own locks, for all of which one stands.
    pub(crate) fn enter(&self) {
        match self.hold() {
            Some(held) => std::mem::forget(held),
            None => drop(self.again.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Gives it back, on both sides of a fork.
    pub(crate) fn leave(&self) {
        if self.again.load(Ordering::Relaxed) == 0 {
            self.owner.store(0, Ordering::Release);
        } else {
            self.again.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.owner.store(0, Ordering::Release);
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
    fn it_is_free_when_its_thread_left_as_often_as_it_came() {
        static LOCK: Lock = Lock::new();
        LOCK.enter();
        LOCK.enter();
        LOCK.leave();
        let is_held = || LOCK.owner.load(Ordering::Relaxed) != 0;
        assert!(is_held());
        LOCK.leave();
        assert!(!is_held());
    }
}
