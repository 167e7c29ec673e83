//! Whether a program has forbidden itself system calls: [`crate::filter`].

use std::sync::atomic::{AtomicBool, Ordering};

static IS_SET: AtomicBool = AtomicBool::new(false);

/// A filter is about to be set.
pub(crate) fn set() {
    IS_SET.store(true, Ordering::Relaxed);
}

/// Whether a filter may be in force.
pub(crate) fn is_set() -> bool {
    IS_SET.load(Ordering::Relaxed)
}

/// Leaves the processor to others while somebody else holds what this thread needs.
pub(crate) fn wait() {
    if is_set() {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}
