//! What took the CPU away from a thread, as the kernel counts it: steal, interrupts, switches,
//! waiting.
//!
//! The one idea: read before and after, never inside; the difference bounds what may have happened
//! to the work between. Steal, interrupts and softirqs are counted for a CPU, so they speak of a
//! thread only while it is bound there. Reading costs some hundred microseconds and is interrupted
//! like anything else: the counts contain what happened while they were read.
//!
//! A count that the kernel does not export (no `CONFIG_SCHED_INFO`, a `/proc` without these files)
//! is `None`, never 0.

use std::fs;

use rustix::param::clock_ticks_per_second;

use crate::machine::{Tree, proc};

/// Readings for one CPU and the calling thread, since boot and since the thread began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disturbance {
    /// Nanoseconds that the hypervisor gave the CPU to others: `/proc/stat`, in whole ticks of
    /// [`tick_ns`]; the kernel carries the remainder on, so that nothing is lost over time.
    pub steal_ns: Option<u64>,
    /// Interrupts that the CPU took, the timer's included: `/proc/interrupts`.
    pub interrupts: Option<u64>,
    /// Softirq handlers that ran there: `/proc/softirqs`.
    pub softirqs: Option<u64>,
    /// Times that the CPU was taken away from the thread: `/proc/thread-self/status`, and not
    /// `getrusage`, which the measuring arms read around their loops and nowhere else.
    pub preemptions: u64,
    /// Nanoseconds that the thread was ready and waited for a CPU: `/proc/thread-self/schedstat`.
    pub waited_ns: Option<u64>,
}

impl Disturbance {
    /// Reads everything. Without a CPU (the thread is not bound) only what concerns the thread.
    pub fn read(cpu: Option<usize>) -> Self {
        let of_cpu = |path: &str, sum: fn(&str, usize) -> Option<u64>| {
            cpu.and_then(|cpu| sum(&fs::read_to_string(path).ok()?, cpu))
        };
        let schedstat = fs::read_to_string("/proc/thread-self/schedstat");
        let switches = "nonvoluntary_ctxt_switches"; // since Linux 2.6.23
        let preemptions = Tree::machine().field_number("proc/thread-self/status", switches);
        Self {
            steal_ns: of_cpu("/proc/stat", steal_ticks).map(|ticks| ticks * tick_ns()),
            interrupts: of_cpu("/proc/interrupts", column_sum),
            softirqs: of_cpu("/proc/softirqs", column_sum),
            preemptions: preemptions.unwrap_or(0),
            waited_ns: schedstat.ok().and_then(|text| waited_ns(&text)),
        }
    }

    /// What was counted between `earlier` and this.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let both = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            steal_ns: both(self.steal_ns, earlier.steal_ns),
            interrupts: both(self.interrupts, earlier.interrupts),
            softirqs: both(self.softirqs, earlier.softirqs),
            preemptions: self.preemptions.saturating_sub(earlier.preemptions),
            waited_ns: both(self.waited_ns, earlier.waited_ns),
        }
    }
}

/// Nanoseconds of one tick of `/proc/stat`: 10 ms where the kernel counts 100 a second.
pub fn tick_ns() -> u64 {
    1_000_000_000 / clock_ticks_per_second().max(1)
}

/// The eighth number of a CPU's line in `/proc/stat` (since Linux 2.6.11).
fn steal_ticks(text: &str, cpu: usize) -> Option<u64> {
    proc::field(text, &format!("cpu{cpu}"))?.split_whitespace().nth(7)?.parse().ok()
}

/// The sum of a CPU's column. Offline CPUs have none, so the head of the table is read too; rows
/// without a number for each CPU (`ERR`, `MIS`) are of no CPU.
fn column_sum(text: &str, cpu: usize) -> Option<u64> {
    let name = format!("CPU{cpu}");
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next()?.split_whitespace().collect();
    let column = head.iter().position(|title| *title == name)?;
    let count = |line: &str| -> Option<u64> {
        let numbers: Vec<u64> =
            line.split_whitespace().skip(1).map_while(|word| word.parse().ok()).collect();
        (numbers.len() >= head.len()).then(|| numbers[column])
    };
    Some(lines.filter_map(count).sum())
}

/// The second number of `schedstat`.
fn waited_ns(text: &str) -> Option<u64> {
    text.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_found_on_the_line_of_its_cpu() {
        let text = "cpu  1 2 3 4 5 6 7 800 9 10\ncpu1 1 0 3 4 5 6 7 31 0 0\n\
                    cpu10 1 2 3 4 5 6 7 8 9\nintr 99\n";
        assert_eq!(steal_ticks(text, 1), Some(31));
        assert_eq!(steal_ticks(text, 10), Some(8));
        assert_eq!(steal_ticks(text, 0), None);
    }

    #[test]
    fn a_cpu_is_a_column_and_rows_of_no_cpu_do_not_count() {
        let text = "           CPU0       CPU2       \n  4:   16    1   IO-APIC   4-edge  ttyS0\n\
                    LOC:   100   2000   Local timer interrupts\nERR:   7\nMIS:   9\n";
        assert_eq!(column_sum(text, 2), Some(2001));
        assert_eq!(column_sum(text, 0), Some(116));
        assert_eq!(column_sum(text, 1), None, "it is offline");
    }

    #[test]
    fn waiting_is_the_second_number() {
        assert_eq!(waited_ns("123 71944 1\n"), Some(71944));
        assert_eq!(waited_ns(""), None);
    }

    #[test]
    fn this_machine_counts_upwards() {
        let cpu = crate::process::current_cpu();
        let before = Disturbance::read(Some(cpu));
        let after = Disturbance::read(Some(cpu));
        assert_eq!(after.since(after).preemptions, 0);
        assert!(after.preemptions >= before.preemptions);
        // Where the file is not readable there is nothing to compare.
        assert!(after.interrupts >= before.interrupts);
        let unbound = Disturbance::read(None);
        assert_eq!((unbound.steal_ns, unbound.interrupts), (None, None));
    }
}
