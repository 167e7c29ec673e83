//! An independent count of faults: the perf software event.
//!
//! It counts what the exception handler saw of user accesses, while `getrusage` counts what the
//! fault handler did, populating calls included. Asked about a touch, they must agree. While the
//! event is open every fault of the thread is dearer (by a tenth of a 4 KiB fault where it was
//! measured), so that it is asked in warm-up repetitions only.

use perf_event::{Builder, Counter, events::Software};

/// Counts the user-space page faults of the calling thread.
#[derive(Debug)]
pub struct FaultCounter(Counter);

impl FaultCounter {
    /// Opens and starts it; `None` where perf is not allowed (`perf_event_paranoid` above 2, or a
    /// seccomp filter).
    pub fn open() -> Option<Self> {
        let mut counter = Builder::new(Software::PAGE_FAULTS).exclude_kernel(true).build().ok()?;
        counter.enable().ok()?;
        Some(Self(counter))
    }

    /// Faults since it was opened.
    pub fn faults(&mut self) -> Option<u64> {
        self.0.read().ok()
    }
}
