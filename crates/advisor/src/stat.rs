//! What the kernel counts of a process for everybody: `/proc/PID/stat`.

use std::fs;

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
        Self::read(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn read(text: &str) -> Option<Self> {
        // The name may hold anything, parentheses too.
        let (_, fields) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        let ns = |index| Some(number(index)? * TICK_NS);
        Some(Self { faults: (number(7)?, number(9)?), cpu_ns: (ns(11)?, ns(12)?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_behind_any_name() {
        let line = "7 (a ) b) S 1 7 7 0 -1 4194560 320 5 2 1 30 4 0 0 20 0 1 0 9";
        let stat = Stat { faults: (320, 2), cpu_ns: (300_000_000, 40_000_000) };
        assert_eq!(Stat::read(line), Some(stat));
        assert_eq!(Stat::read("7 (gone"), None);
        assert_eq!(Stat::read("7 (short) S 1"), None);
    }

    #[test]
    fn this_process_has_taken_faults_and_a_missing_one_has_none() {
        assert!(Stat::of(std::process::id()).is_some_and(|stat| stat.faults.0 > 0));
        assert_eq!(Stat::of(u32::MAX), None);
    }
}
