#![expect(unsafe_code, reason = "getrusage and clock_gettime fill C structs")]
//! What the kernel counted for the calling thread: faults, context switches, and on whose account
//! its CPU time went; and the CPU time of any process.

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

/// Nanoseconds that all threads of a process have had on the CPU, those that have ended included;
/// of one that runs, up to its last tick. `None` where there is no such process.
pub fn process_cpu_ns(pid: u32) -> Option<u64> {
    /// `CPUCLOCK_SCHED`, the account of the scheduler, of a process.
    const SCHED: libc::clockid_t = 2;
    let number = libc::clockid_t::try_from(pid).ok().filter(|pid| *pid > 0 && *pid < 1 << 28)?;
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the kernel writes one struct timespec at the pointer.
    let result = unsafe { libc::clock_gettime((!number << 3) | SCHED, time.as_mut_ptr()) };
    // SAFETY: zeroed at first, and no pointer is in it.
    let time = unsafe { time.assume_init() };
    (result == 0)
        .then(|| time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_had_time_and_one_that_is_not_there_has_not() {
        let before = process_cpu_ns(std::process::id()).unwrap();
        assert!(before > 0 && process_cpu_ns(std::process::id()).unwrap() >= before);
        assert_eq!(process_cpu_ns(u32::MAX), None);
        assert_eq!(process_cpu_ns(0), None);
    }
}
