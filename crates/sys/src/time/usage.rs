#![expect(unsafe_code, reason = "getrusage fills a C struct")]
//! What the kernel counted for the calling thread: faults, context switches, and on whose account
//! its CPU time went.

use std::mem::MaybeUninit;

/// Counts since the thread began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Faults that needed no I/O, those taken inside a populating call included.
    pub minor_faults: u64,
    /// Faults that did.
    pub major_faults: u64,
    /// Times that the thread gave the CPU away.
    pub voluntary_switches: u64,
    /// Times that it was taken away.
    pub involuntary_switches: u64,
    /// Nanoseconds of CPU time in user mode; the kernel splits what it measured by samples.
    pub user_ns: u64,
    /// Nanoseconds of CPU time in the kernel.
    pub system_ns: u64,
}

impl Usage {
    /// What was counted between `earlier` and this.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            minor_faults: self.minor_faults - earlier.minor_faults,
            major_faults: self.major_faults - earlier.major_faults,
            voluntary_switches: self.voluntary_switches - earlier.voluntary_switches,
            involuntary_switches: self.involuntary_switches - earlier.involuntary_switches,
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
        }
    }
}

/// `getrusage(RUSAGE_THREAD)`.
pub fn thread() -> Usage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one struct rusage at the pointer.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    assert_eq!(result, 0, "getrusage of the calling thread cannot fail");
    // SAFETY: zeroed at first, and filled by the call that succeeded.
    of_rusage(&unsafe { usage.assume_init() })
}

/// From the kernel's form.
pub(crate) fn of_rusage(usage: &libc::rusage) -> Usage {
    Usage {
        minor_faults: usage.ru_minflt.cast_unsigned(),
        major_faults: usage.ru_majflt.cast_unsigned(),
        voluntary_switches: usage.ru_nvcsw.cast_unsigned(),
        involuntary_switches: usage.ru_nivcsw.cast_unsigned(),
        user_ns: nanoseconds(usage.ru_utime),
        system_ns: nanoseconds(usage.ru_stime),
    }
}

fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_usec.cast_unsigned() * 1000
}
