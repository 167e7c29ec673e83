//! The machine's own ceilings, against which every result is a share.
//!
//! The one idea: a limit is the best of the arms that tried, because a ceiling that a better
//! instruction breaks was none. Only valid limits of the same run count; without them a share is
//! left out, never guessed.

use pagelab_record::vocabulary::{
    counter,
    workload::{CLEAR, COPY, READ, SYSCALL, TIMER},
};

use crate::{Entry, Quantity, Unit, elapsed};

/// Levels of the memory hierarchy, nearest first.
const LEVELS: [&str; 4] = ["l1", "l2", "llc", "dram"];
/// Operations that have a ceiling: workload, series, and heading.
pub(crate) const OPERATIONS: [(&str, &str, &str); 3] =
    [(CLEAR, "clear", "clear"), (COPY, "copy", "copy"), (READ, "read", "read")];

/// A ceiling and what reached it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Best {
    /// The arm.
    pub(crate) arm: String,
    /// Its bandwidth.
    pub(crate) bandwidth: Quantity,
}

/// One level of the hierarchy.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Level {
    /// Its name, as in the case.
    pub(crate) name: String,
    /// Bytes that were worked on.
    pub(crate) buffer_bytes: u64,
    /// Clear, copy and read, in the order of [`OPERATIONS`].
    pub(crate) best: [Option<Best>; 3],
}

/// Every ceiling of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Limits {
    /// The levels that were measured.
    pub(crate) levels: Vec<Level>,
    /// The timer and the harness: name, value, and what it means.
    pub(crate) costs: Vec<(&'static str, Quantity, &'static str)>,
    /// Ticks of the time stamp counter a second.
    pub(crate) tsc_hz: Option<f64>,
}

impl Limits {
    /// Gathers the limits among the entries of a run.
    pub(crate) fn of(entries: &[Entry]) -> Self {
        let levels = LEVELS.iter().filter_map(|name| level(entries, name)).collect();
        let tsc_hz =
            entries.iter().filter_map(|entry| entry.counter(counter::TSC_HZ)).find(|hz| *hz > 0);
        let tsc_hz = tsc_hz.map(|hz| hz as f64);
        Self { levels, costs: costs(entries, tsc_hz), tsc_hz }
    }

    /// Bandwidth of clearing memory that no cache holds: what bounds a fault that must clear.
    pub(crate) fn clear(&self) -> Option<Quantity> {
        let dram = self.levels.iter().find(|level| level.name == "dram")?;
        dram.best[0].as_ref().map(|best| best.bandwidth)
    }

    /// The level that [`Limits::clear`] is of, and the arm that reached it.
    pub(crate) fn clear_by(&self) -> Option<(&str, &str)> {
        let dram = self.levels.iter().find(|level| level.name == "dram")?;
        Some((&dram.name, &dram.best[0].as_ref()?.arm))
    }

    /// Bandwidth of reading memory that no cache holds.
    pub(crate) fn read(&self) -> Option<Quantity> {
        let dram = self.levels.iter().find(|level| level.name == "dram")?;
        dram.best[2].as_ref().map(|best| best.bandwidth)
    }

    /// A bandwidth as a share of [`Limits::clear`].
    pub(crate) fn share_of_clear(&self, bandwidth: Option<Quantity>) -> Option<Quantity> {
        bandwidth?.over(self.clear()?, Unit::Share)
    }
}

fn level(entries: &[Entry], name: &str) -> Option<Level> {
    let mut level = Level { name: name.to_owned(), ..Level::default() };
    for (best, (workload, series, _)) in level.best.iter_mut().zip(OPERATIONS) {
        let mine =
            |entry: &&Entry| entry.record.workload == workload && entry.parameter("level") == name;
        for entry in entries.iter().filter(mine) {
            level.buffer_bytes =
                level.buffer_bytes.max(entry.counter(counter::BUFFER_BYTES).unwrap_or(0));
            for arm in entry.numbers.arms(series) {
                let Some(bandwidth) = entry.numbers.get(elapsed(arm, series), "bandwidth") else {
                    continue;
                };
                if best.as_ref().is_none_or(|best| bandwidth.value > best.bandwidth.value) {
                    *best = Some(Best { arm: arm.to_owned(), bandwidth });
                }
            }
        }
    }
    level.best.iter().any(Option::is_some).then_some(level)
}

fn costs(entries: &[Entry], tsc_hz: Option<f64>) -> Vec<(&'static str, Quantity, &'static str)> {
    const COSTS: [(&str, &str, &str, &str); 4] = [
        (TIMER, "pair", "empty timer pair", "median subtracted from every latency sample"),
        (
            TIMER,
            "sample",
            "latency loop, per sample",
            "pair, recording and loop; only the pair is in a sample",
        ),
        (TIMER, "record", "recording a sample", "the histogram's part of that"),
        (SYSCALL, "getppid", "system call", "getppid: the way into the kernel and back"),
    ];
    let cost = |(workload, series, name, meaning)| {
        let entry = entries.iter().find(|entry| entry.record.workload == workload)?;
        let arm = entry.numbers.arms(series).into_iter().next()?;
        let median = entry.numbers.get(elapsed(arm, series), "p50")?;
        let median = match (median.unit, tsc_hz) {
            (Unit::Ticks, Some(hz)) => median.times(1e9 / hz, Unit::Ns),
            _ => median,
        };
        Some((name, median, meaning))
    };
    COSTS.into_iter().filter_map(cost).collect()
}
