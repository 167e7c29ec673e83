//! Changes of the heap that a fork waits for, so that a child finds none half done.
//!
//! Memory of the module is copied while other threads go on, so that what a change writes there and
//! what it writes to this library's own memory would be of two moments in the child.
//!
//! A fork waits for other threads only: a signal handler may fork in the midst of a change of its
//! own thread, which goes on after the handler, in the child, too.

use std::{
    cell::Cell,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use crate::filtered;

/// How many changes there are, and whether a fork waits for them.
static CHANGES: AtomicUsize = AtomicUsize::new(0);
static FORKING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// How many of them are this thread's.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

/// Does something to the heap, before a fork or after it.
pub(crate) fn changing<T>(act: impl FnOnce() -> T) -> T {
    while !begins() {
        ends();
        filtered::wait();
    }
    let came = act();
    ends();
    came
}

/// Does something that sends leaves, unless a fork waits.
pub(crate) fn sending(act: impl FnOnce()) {
    if begins() {
        act();
    }
    ends();
}

/// A fork waits for this thread until [`ends`]; whether none waits already.
pub(crate) fn begins() -> bool {
    OWN.set(OWN.get() + 1);
    CHANGES.fetch_add(1, Ordering::SeqCst);
    !FORKING.load(Ordering::SeqCst)
}

/// The change is done.
pub(crate) fn ends() {
    // Of what began in the parent there is no count here: see `after_fork_in_child`.
    let less = |count: usize| count.checked_sub(1);
    let _ = CHANGES.fetch_update(Ordering::SeqCst, Ordering::Relaxed, less);
    OWN.set(OWN.get() - 1);
}

/// Waits until no other thread changes leaves.
pub(crate) fn before_fork() {
    FORKING.store(true, Ordering::SeqCst);
    while CHANGES.load(Ordering::SeqCst) > OWN.get() {
        filtered::wait();
    }
}

/// On both sides of a fork.
pub(crate) fn after_fork() {
    FORKING.store(false, Ordering::SeqCst);
}

/// In the child, which has none of the threads that waited meanwhile. This thread may be in the
/// midst of a change, of which a signal handler forked, or about to begin or to end one: so nothing
/// is counted of it, as nobody else is here for whom it would have to be.
pub(crate) fn after_fork_in_child() {
    // Written to only where it differs: the page is shared with the parent until then.
    if CHANGES.load(Ordering::Relaxed) != 0 {
        CHANGES.store(0, Ordering::SeqCst);
    }
}
