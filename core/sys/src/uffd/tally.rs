//! What resolving did, counted where it happens.
//!
//! The one idea: one writer, so a count is a load and a store, never a locked instruction; atomics
//! only because a signal may come between, and because another thread reads it afterwards.

use std::sync::atomic::{AtomicU64, Ordering};

use linux_raw_sys::general as uapi;

/// A row for each count: what the writer has of it, what a reader gets, and how counts add up.
macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts of one resolving thread.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub struct Tally {
            $($name: AtomicU64,)*
            errno: AtomicU64,
        }

        /// The counts at one moment; those of several threads add up.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
            /// Why resolving ended early; 0 where it did not.
            pub errno: u64,
        }

        impl Tally {
            /// The counts so far.
            pub fn counts(&self) -> Counts {
                let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
                Counts { $($name: read(&self.$name),)* errno: read(&self.errno) }
            }
        }

        impl std::ops::Add for Counts {
            type Output = Self;

            fn add(self, other: Self) -> Self {
                let errno = self.errno.max(other.errno);
                Self { $($name: self.$name + other.$name,)* errno }
            }
        }
    };
}

counts! {
    /// Messages of faults that were read.
    messages,
    /// Those that say the access was a store.
    written,
    /// Those that say a page was write-protected.
    protected,
    /// Those that say the page was in the page cache already.
    minor,
    /// Messages of anything but a fault.
    strange,
    /// `SIGBUS` in place of messages.
    signals,
    /// `SIGBUS` of poisoned pages (`BUS_MCEERR_AR`), each stepped over.
    poisoned,
    /// Faults that were resolved.
    resolved,
    /// Bytes that the kernel says were resolved.
    bytes,
    /// Calls that had to be repeated because the address space was changing.
    retries,
    /// Faults whose page was there already when they were to be resolved.
    duplicates,
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
}

/// One writer: no other thread adds to the same count.
#[inline(always)]
fn add(count: &AtomicU64, by: u64) {
    count.store(count.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}
