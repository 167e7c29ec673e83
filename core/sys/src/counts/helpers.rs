//! CPU time of the kernel's own threads that work on memory for others.
//!
//! The one idea: what a program saves may be paid elsewhere: khugepaged collapses, kcompactd moves
//! pages, kswapd reclaims, ksmd merges. Their time is the machine's, whoever caused it, so that a
//! difference is an upper bound of what one process caused.

use crate::{machine::Tree, time::usage::process_cpu_ns};

/// How the names of the threads begin.
const NAMES: [&str; 4] = ["khugepaged", "kcompactd", "kswapd", "ksmd"];

/// The threads, found once.
#[derive(Debug, Clone, Default)]
pub struct KernelHelpers(Vec<u32>);

impl KernelHelpers {
    /// Those of this kernel; none where `/proc` hides them.
    pub fn find() -> Self {
        let tree = Tree::machine();
        let is_helper = |pid: &usize| {
            let name = tree.text(format!("/proc/{pid}/comm")).unwrap_or_default();
            let has_command =
                tree.text(format!("/proc/{pid}/cmdline")).is_none_or(|c| !c.is_empty());
            !has_command && NAMES.iter().any(|known| name.starts_with(known))
        };
        let pids = tree.numbered("/proc", "").into_iter().filter(is_helper);
        Self(pids.filter_map(|pid| u32::try_from(pid).ok()).collect())
    }

    /// Nanoseconds of CPU time that they have had so far, all together.
    pub fn cpu_ns(&self) -> u64 {
        self.0.iter().filter_map(|pid| process_cpu_ns(*pid)).sum()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_those_that_are_seen_never_goes_back() {
        let helpers = KernelHelpers::find();
        // One that has ended meanwhile (khugepaged, whose setting is never) takes its time with it.
        crate::until("a moment in which none of them ends", || {
            let times = || helpers.0.iter().map(|pid| process_cpu_ns(*pid)).collect::<Vec<_>>();
            let (before, sum, after) = (times(), helpers.cpu_ns(), times());
            let seen = |times: &[Option<u64>]| times.iter().flatten().sum::<u64>();
            let is_steady = before.iter().zip(&after).all(|(a, b)| a.is_some() == b.is_some());
            assert!(!is_steady || (seen(&before)..=seen(&after)).contains(&sum));
            is_steady
        });
        assert_eq!(KernelHelpers::default().cpu_ns(), 0);
    }
}
