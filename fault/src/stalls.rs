//! Where the long samples of a repetition came from, as far as the kernel lets us know.
//!
//! The one idea: the kernel counts, for the time of the whole loop, how often the thread lost its
//! CPU and how long it waited to get it back, how long the hypervisor gave the CPU to others, and
//! how many interrupts came. None of it says which sample was hit. So the longest samples are
//! charged to these accounts one after the other, each at most once, and an account that is spent
//! explains no more. What is left over is unexplained: the fault itself (a full free list, a lock),
//! the host without saying so, or a system management interrupt.
//!
//! It is an upper bound of what each cause *could* explain, not an observation of it, and it runs
//! after the loop.

use hdrhistogram::Histogram;
use pagelab_bench::Witness;
use pagelab_record::vocabulary::counter;
use pagelab_sys::{
    process::current_cpu,
    time::{Disturbance, monotonic_raw_ns, tick_ns},
};

/// A sample is a stall above this many medians ...
const MEDIANS: u64 = 20;
/// ... and above this many nanoseconds.
const FLOOR_NS: u64 = 20_000;
/// The longest that an interrupt with its softirqs keeps a thread from running: the kernel leaves
/// the rest to a thread after 2 ms (`MAX_SOFTIRQ_TIME`, `kernel/softirq.c`, since Linux 3.9).
const INTERRUPT_NS_MAX: u64 = 2_000_000;

/// Stalls of a repetition by what could explain them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stalls {
    /// All of them.
    pub count: u64,
    /// Their time above the median, in nanoseconds.
    pub ns: u64,
    /// The thread was switched out, and waited at least as long.
    pub preempted: u64,
    /// The hypervisor took the CPU for at least as long.
    pub stolen: u64,
    /// An interrupt came, and it is short enough.
    pub interrupted: u64,
    /// Nothing that the kernel counts.
    pub unexplained: u64,
}

/// Above which a sample is a stall.
pub fn threshold_ns(p50: u64) -> u64 {
    (p50.saturating_mul(MEDIANS)).max(FLOOR_NS)
}

/// Charges the stalls of a repetition (nanoseconds of each sample above [`threshold_ns`], in any
/// order) to what was counted meanwhile.
pub fn attribute(stalls: &[u64], p50: u64, counted: &Disturbance) -> Stalls {
    let mut above: Vec<u64> = stalls.iter().map(|ns| ns.saturating_sub(p50)).collect();
    above.sort_unstable_by(|a, b| b.cmp(a));
    // A kernel without the account of waiting still counts the switches.
    let mut waited = counted.waited_ns.unwrap_or(u64::MAX);
    let mut switches = counted.preemptions;
    // Steal is told in whole ticks: when one has passed, almost another may have.
    let mut stolen = counted.steal_ns.filter(|ns| *ns > 0).map_or(0, |ns| ns + tick_ns());
    let mut interrupts = counted.interrupts.unwrap_or(0);
    let mut found = Stalls { count: above.len() as u64, ..Stalls::default() };
    for ns in above {
        found.ns = found.ns.saturating_add(ns);
        if switches > 0 && waited >= ns {
            (switches, waited) = (switches - 1, waited - ns);
            found.preempted += 1;
        } else if stolen >= ns {
            stolen -= ns;
            found.stolen += 1;
        } else if interrupts > 0 && ns <= INTERRUPT_NS_MAX {
            interrupts -= 1;
            found.interrupted += 1;
        } else {
            found.unexplained += 1;
        }
    }
    found
}

/// What disturbed one loop, from the reading before it to the one after it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Watch {
    cpu: Option<usize>,
    start_ns: u64,
    before: Disturbance,
    counted: Disturbance,
    took_ns: u64,
    stalls: Stalls,
}

impl Watch {
    /// Reads the counts; those of the CPU only where the thread stays on it.
    pub fn start(&mut self, is_pinned: bool) {
        self.cpu = is_pinned.then(current_cpu);
        self.before = Disturbance::read(self.cpu);
        self.start_ns = monotonic_raw_ns();
    }

    /// Reads them again, right after the loop.
    pub fn stop(&mut self) {
        self.took_ns = monotonic_raw_ns() - self.start_ns;
        self.counted = Disturbance::read(self.cpu).since(self.before);
    }

    /// Charges the stalls among the samples of the loop; the median is that of the first of them.
    pub fn attribute(&mut self, samples: &[&Histogram<u64>]) {
        let p50 = samples.first().map_or(0, |samples| samples.value_at_quantile(0.5));
        let mut stalls = Vec::new();
        for step in samples.iter().flat_map(|samples| samples.iter_recorded()) {
            let (ns, count) = (step.value_iterated_to(), step.count_since_last_iteration());
            if ns > threshold_ns(p50) {
                stalls.extend((0..count).map(|_| ns));
            }
        }
        self.stalls = attribute(&stalls, p50, &self.counted);
    }

    /// Leaves the counts, and a warning where the hypervisor took more than 1 % of the time.
    pub fn testify(&self, witness: &mut Witness) {
        let Stalls { count, ns, preempted, stolen, interrupted, unexplained } = self.stalls;
        let steal = self.counted.steal_ns;
        for (name, value) in [
            ("steal_ms", steal.map(|ns| ns / 1_000_000)),
            ("interrupts", self.counted.interrupts),
            ("softirqs", self.counted.softirqs),
            ("run_delay_us", self.counted.waited_ns.map(|ns| ns / 1_000)),
            (counter::LOOP_US, Some(self.took_ns / 1_000)),
            (counter::STALLS, Some(count)),
            (counter::STALLS_US, Some(ns / 1_000)),
            ("stalls_preempted", Some(preempted)),
            ("stalls_stolen", Some(stolen)),
            ("stalls_interrupted", Some(interrupted)),
            ("stalls_unexplained", Some(unexplained)),
        ] {
            if let Some(value) = value {
                witness.count(name, value);
            }
        }
        if steal.is_some_and(|ns| ns > self.took_ns / 100) {
            witness.warn(
                "the hypervisor gave the CPU to others for more than 1 % of a repetition (counters \
                 steal_ms, loop_us): the tail is the host's; use a quieter host, or medians only"
                    .to_owned(),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counted(preemptions: u64, waited: u64, steal: u64, interrupts: u64) -> Disturbance {
        Disturbance {
            steal_ns: Some(steal),
            interrupts: Some(interrupts),
            softirqs: Some(0),
            preemptions,
            waited_ns: Some(waited),
        }
    }

    #[test]
    fn the_longest_are_charged_first_and_an_account_that_is_spent_explains_no_more() {
        let stalls = [9_000_000, 30_000, 4_000_000, 50_000, 3_000_000];
        // One switch that waited 10 ms; two interrupts; no steal.
        let found = attribute(&stalls, 1000, &counted(1, 10_000_000, 0, 2));
        let expected = Stalls {
            count: 5,
            ns: 16_075_000,
            preempted: 1,
            stolen: 0,
            interrupted: 2,
            unexplained: 2,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_stall_longer_than_the_waiting_was_no_preemption() {
        let found = attribute(&[5_000_000], 1000, &counted(3, 1_000_000, 0, 9));
        assert_eq!((found.preempted, found.unexplained), (0, 1));
        let found = attribute(&[5_000_000], 1000, &counted(3, 1_000_000, tick_ns(), 9));
        assert_eq!((found.stolen, found.unexplained), (1, 0));
    }

    #[test]
    fn what_the_kernel_does_not_count_explains_nothing() {
        let found = attribute(&[50_000, 60_000], 1000, &Disturbance::default());
        assert_eq!((found.count, found.unexplained), (2, 2));
    }

    #[test]
    fn a_stall_is_long_by_both_measures() {
        assert_eq!((threshold_ns(500), threshold_ns(200_000)), (20_000, 4_000_000));
    }

    proptest! {
        #[test]
        fn every_stall_has_one_cause_and_no_account_is_overdrawn(
            stalls in prop::collection::vec(20_000_u64..50_000_000, 0..60),
            switches in 0_u64..20, waited in 0_u64..100_000_000,
            ticks in 0_u64..5, interrupts in 0_u64..40,
        ) {
            let counted = counted(switches, waited, ticks * tick_ns(), interrupts);
            let found = attribute(&stalls, 1000, &counted);
            let causes = found.preempted + found.stolen + found.interrupted + found.unexplained;
            prop_assert_eq!(causes, found.count);
            prop_assert_eq!(found.count, stalls.len() as u64);
            prop_assert!(found.preempted <= switches && found.interrupted <= interrupts);
            if ticks == 0 {
                prop_assert_eq!(found.stolen, 0);
            }
            // More of any account never leaves more unexplained.
            let more = Disturbance {
                interrupts: Some(interrupts + 1_000), preemptions: switches + 1_000,
                waited_ns: Some(u64::MAX), ..counted
            };
            prop_assert!(attribute(&stalls, 1000, &more).unexplained <= found.unexplained);
        }
    }
}
