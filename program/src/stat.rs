//! What the kernel counts of a process for everybody: `/proc/PID/stat`.

use pagelab_sys::machine::proc;

/// Counts of a process so far, its ended threads included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Minor faults, and major ones.
    pub(crate) faults: (u64, u64),
    /// Nanoseconds on the CPU, user and system.
    pub(crate) cpu_ns: (u64, u64),
}

/// Nanoseconds of a tick of `USER_HZ`, which is 100 on every architecture that there is.
const TICK_NS: u64 = 1_000_000_000 / 100;

impl Stat {
    /// `None` of one that is gone.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let stat = proc::Stat::of(pid)?;
        let ns = |field| Some(stat.number(field)? * TICK_NS);
        Some(Self { faults: (stat.number(10)?, stat.number(12)?), cpu_ns: (ns(14)?, ns(15)?) })
    }
}
