//! Whether a program has forbidden itself system calls: [`crate::filter`].

use std::sync::atomic::{AtomicU8, Ordering};

/// 0: no filter. 1: one that may let through what libc's malloc needs. 2: one that does not.
static FILTER: AtomicU8 = AtomicU8::new(0);

/// A filter is about to be set.
pub(crate) fn set(is_strict: bool) {
    FILTER.fetch_max(if is_strict { 2 } else { 1 }, Ordering::Relaxed);
}

/// Whether a filter may be in force.
pub(crate) fn is_set() -> bool {
    FILTER.load(Ordering::Relaxed) > 0
}

/// Whether only `read`, `write` and the end may be called: no memory can be had of the kernel, nor
/// given back.
pub(crate) fn is_strict() -> bool {
    FILTER.load(Ordering::Relaxed) > 1
}

/// Leaves the processor to others while somebody else holds what this thread needs.
pub(crate) fn wait() {
    if is_set() {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}
