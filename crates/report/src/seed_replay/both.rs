//! This run and the published one, asked for the same things.
//!
//! The one idea: an answer names a trace and an arm, and gets a number, a ratio inside processes,
//! or a sentence that says which case is missing. What is not valid is missing, too.

use pagelab_record::units::display_number;

use crate::{
    entry::Entry,
    limits::Limits,
    numbers::{At, Time, clock_of, counted, cpu, elapsed},
    quantity::Quantity,
    ratio,
    replay::{REPLAY, WORKLOAD},
    trace,
};

/// The two traces of the worklog, the telling one first.
pub(super) const TRACES: [&str; 2] = [EXEC, FIB];
pub(super) const EXEC: &str = "exec-block";
pub(super) const FIB: &str = "fib";

/// An answer, or which case it lacks.
pub(super) type Answer = Result<String, String>;

/// This run, what was published, and the limits of this machine.
pub(super) struct Both<'a> {
    pub(super) entries: &'a [Entry],
    pub(super) published: &'a [Entry],
    pub(super) limits: &'a Limits,
}

impl<'a> Both<'a> {
    fn replays(&self, trace: &str) -> impl Iterator<Item = &'a Entry> {
        let entries = self.entries.iter().filter(|e| e.record.workload == WORKLOAD && e.is_valid());
        entries.filter(move |entry| trace::name_of(entry.case()) == trace)
    }

    /// The case that replays a trace from memory with all of these arms.
    pub(super) fn arms_case(&self, trace: &str, arms: &[&str]) -> Option<&'a Entry> {
        let timed = |entry: &&Entry| {
            let each = |arm: &&str| entry.numbers.get(cpu(arm, REPLAY), "ns_per_op").is_some();
            arms.iter().all(each)
        };
        // Other parameters than the reader may differ: the case with most arms tells most.
        let from_memory = self.replays(trace).filter(|e| e.parameter("reader") == "memory");
        from_memory.filter(timed).max_by_key(|entry| entry.numbers.arms(REPLAY).len())
    }

    /// The case that replays a trace by a reader with `noop`, its file in the page cache.
    pub(super) fn reader_case(&self, trace: &str, reader: &str) -> Option<&'a Entry> {
        let timed = |e: &&Entry| e.numbers.get(elapsed("noop", REPLAY), "ns_per_op").is_some();
        let mine = self.replays(trace).filter(|entry| {
            entry.parameter("reader") == reader && entry.parameter("cache") != "cold"
        });
        // The one that was measured beside the other readers, not beside other arms.
        mine.filter(timed).min_by_key(|entry| entry.numbers.arms(REPLAY).len())
    }

    /// CPU time of an arm over that of another, or which case is missing.
    pub(super) fn ratio(&self, trace: &str, arm: &str, other: &str) -> Result<Quantity, String> {
        let missing = || format!("needs {arm} and {other} as arms of one case of {trace}");
        let entry = self.arms_case(trace, &[arm, other]).ok_or_else(missing)?;
        let series = &entry.measured().ok_or_else(missing)?.series;
        let clock = clock_of(series, REPLAY, arm, Time::Cpu).ok_or_else(missing)?;
        ratio::of_arms(series, REPLAY, clock, [arm, other]).ok_or_else(missing)
    }

    /// CPU nanoseconds of an operation, of arms of one case.
    pub(super) fn cpu_ns<const N: usize>(&self, trace: &str, arms: [&str; N]) -> Option<[f64; N]> {
        let entry = self.arms_case(trace, &arms)?;
        let each = |arm| entry.numbers.get(cpu(arm, REPLAY), "ns_per_op").map(|q| q.value);
        let all: Option<Vec<f64>> = arms.iter().map(|arm| each(arm)).collect();
        all?.try_into().ok()
    }

    /// A number of a reader's case, or that it is missing.
    pub(super) fn read(
        &self,
        trace: &str,
        reader: &str,
        (at, statistic): (At<'_>, &str),
    ) -> Result<Quantity, String> {
        let missing = || format!("needs noop with reader={reader} on {trace}");
        let entry = self.reader_case(trace, reader).ok_or_else(missing)?;
        entry.numbers.get(at, statistic).ok_or_else(missing)
    }

    /// A share of this run's trace, by its statistics.
    pub(super) fn share(&self, trace: &str, series: &str, statistic: &str) -> Option<f64> {
        share(self.entries, trace, series, statistic)
    }

    /// The same of the published trace.
    pub(super) fn published_share(&self, trace: &str, series: &str, stat: &str) -> Option<f64> {
        share(self.published, trace, series, stat)
    }

    /// A published step of the worklog; of several the one with this reader.
    pub(super) fn step(&self, step: &str, trace: &str, reader: Option<&str>) -> Option<&'a Entry> {
        self.published.iter().find(|entry| {
            entry.record.workload == WORKLOAD
                && entry.parameter("generation") == step
                && entry.parameter("trace") == trace
                && reader.is_none_or(|reader| entry.parameter("reader") == reader)
        })
    }

    /// Nanoseconds of a whole published replay.
    pub(super) fn published_total(&self, step: &str, trace: &str, arm: &str) -> Option<f64> {
        let entry = self.step(step, trace, None)?;
        entry.numbers.get(elapsed(arm, REPLAY), "total").map(|total| total.value)
    }

    /// One published time over another, of the same step.
    pub(super) fn published_ratio(
        &self,
        step: &str,
        trace: &str,
        [arm, other]: [&str; 2],
    ) -> Option<f64> {
        let of = |arm| self.published_total(step, trace, arm);
        Some(of(arm)? / of(other)?)
    }
}

fn share(entries: &[Entry], trace: &str, series: &str, statistic: &str) -> Option<f64> {
    let mut mine = entries.iter().filter(|entry| {
        entry.record.workload == trace::WORKLOAD && trace::name_of(entry.case()) == trace
    });
    let found = mine.find_map(|entry| entry.numbers.get(counted(series), statistic));
    found.map(|share| share.value)
}

/// A ratio with its interval: `1.30 (1.27–1.33)`.
pub(super) fn told(ratio: Quantity) -> String {
    if ratio.display_spread().is_empty() {
        return format!("{:.2}", ratio.value);
    }
    format!("{:.2} ({:.2}–{:.2})", ratio.value, ratio.low, ratio.high)
}

/// A share of a hundred.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Nanoseconds: `2.29 ns`.
pub(super) fn ns(value: f64) -> String {
    format!("{} ns", display_number(value))
}

/// What was published of the same, in brackets.
pub(super) fn published(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!(" (published {value:.2})"))
}
