//! What resolving did, counted where it happens.
//!
//! The one idea: one writer, so a count is a load and a store, never a locked instruction; atomics
//! only because a signal may come between, and because another thread reads it afterwards.

use std::sync::atomic::{AtomicU64, Ordering};

use linux_raw_sys::general as uapi;

/// Counts of one resolving thread.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Tally {
    messages: AtomicU64,
    written: AtomicU64,
    protected: AtomicU64,
    minor: AtomicU64,
    strange: AtomicU64,
    signals: AtomicU64,
    poisoned: AtomicU64,
    resolved: AtomicU64,
    bytes: AtomicU64,
    retries: AtomicU64,
    duplicates: AtomicU64,
    errno: AtomicU64,
}

/// The counts at one moment; those of several threads add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Messages of faults that were read.
    pub messages: u64,
    /// Those that say the access was a store.
    pub written: u64,
    /// Those that say a page was write-protected.
    pub protected: u64,
    /// Those that say the page was in the page cache already.
    pub minor: u64,
    /// Messages of anything but a fault.
    pub strange: u64,
    /// `SIGBUS` in place of messages.
    pub signals: u64,
    /// `SIGBUS` of poisoned pages (`BUS_MCEERR_AR`), each stepped over.
    pub poisoned: u64,
    /// Faults that were resolved.
    pub resolved: u64,
    /// Bytes that the kernel says were resolved.
    pub bytes: u64,
    /// Calls that had to be repeated because the address space was changing.
    pub retries: u64,
    /// Faults whose page was there already when they were to be resolved.
    pub duplicates: u64,
    /// Why resolving ended early; 0 where it did not.
    pub errno: u64,
}

impl Tally {
    /// Adds a message with these flags.
    #[inline(always)]
    pub(super) fn message(&self, flags: u64) {
        add(&self.messages, 1);
        add(&self.written, u64::from(flags & u64::from(uapi::UFFD_PAGEFAULT_FLAG_WRITE) != 0));
        add(&self.protected, u64::from(flags & u64::from(uapi::UFFD_PAGEFAULT_FLAG_WP) != 0));
        add(&self.minor, u64::from(flags & u64::from(uapi::UFFD_PAGEFAULT_FLAG_MINOR) != 0));
    }

    pub(super) fn strange(&self) {
        add(&self.strange, 1);
    }

    #[inline(always)]
    pub(super) fn signal(&self) {
        add(&self.signals, 1);
    }

    #[inline(always)]
    pub(super) fn poisoned(&self) {
        add(&self.poisoned, 1);
    }

    #[inline(always)]
    pub(super) fn resolved(&self, bytes: u64) {
        add(&self.resolved, 1);
        add(&self.bytes, bytes);
    }

    pub(super) fn retried(&self) {
        add(&self.retries, 1);
    }

    pub(super) fn duplicate(&self) {
        add(&self.duplicates, 1);
    }

    pub(super) fn failed(&self, errno: i32) {
        self.errno.store(u64::from(errno.unsigned_abs()), Ordering::Relaxed);
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts {
            messages: read(&self.messages),
            written: read(&self.written),
            protected: read(&self.protected),
            minor: read(&self.minor),
            strange: read(&self.strange),
            signals: read(&self.signals),
            poisoned: read(&self.poisoned),
            resolved: read(&self.resolved),
            bytes: read(&self.bytes),
            retries: read(&self.retries),
            duplicates: read(&self.duplicates),
            errno: read(&self.errno),
        }
    }
}

/// One writer: no other thread adds to the same count.
#[inline(always)]
fn add(count: &AtomicU64, by: u64) {
    count.store(count.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}

impl std::ops::Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            written: self.written + other.written,
            protected: self.protected + other.protected,
            minor: self.minor + other.minor,
            strange: self.strange + other.strange,
            signals: self.signals + other.signals,
            poisoned: self.poisoned + other.poisoned,
            resolved: self.resolved + other.resolved,
            bytes: self.bytes + other.bytes,
            retries: self.retries + other.retries,
            duplicates: self.duplicates + other.duplicates,
            errno: self.errno.max(other.errno),
        }
    }
}
