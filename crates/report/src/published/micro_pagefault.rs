//! The frame of `micro_pagefault`, and its arithmetic.
//!
//! The one idea: the same quantities by the same definitions (CPU time of all rounds; map time
//! inside it), so that the two can be read side by side, without the three mistakes of the
//! original: its fault count is one short, its rate is in MiB/s whatever the label says, and its
//! 10 GiB are written into the formula. Faults inside `MAP_POPULATE`, which it cannot see, count.

use std::collections::BTreeSet;

use pagelab_record::{
    Clock, Data, Nature, Series,
    vocabulary::{
        arm::OURS as ARM,
        arm_counter,
        counter::FAULTS_PER_REPETITION,
        series::{COLD, CONTROL, FIRST, MAP, PROCESS, TOUCH_COLD},
        workload::{SEGMENT, THROUGHPUT as WORKLOAD},
    },
};

use super::figure::{Both, THEIRS};
use crate::{Block, Entry, Quantity, Unit, cpu, distinct, entry::display_claim, numbers::total};

/// The series under which the numbers of a whole run stand.
const ROUNDS: &str = "rounds";
/// What a published total is called: of all rounds of one variant.
const TOTALS: [&str; 2] = ["total", PROCESS];
/// What its -p is here: memory that is there before it is touched.
const POPULATED: [&str; 3] = ["map-populate", "madvise-populate", "populate-read"];
/// The original counts its rate over base pages, whatever it maps.
const BASE_PAGE: f64 = 4096.0;

/// What the original prints of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Totals {
    /// CPU seconds of all map calls.
    map_seconds: f64,
    /// CPU seconds of all rounds.
    total_seconds: f64,
    /// Faults of all rounds.
    faults: f64,
    /// Bytes touched in all rounds.
    bytes: f64,
    /// How many rounds there were.
    rounds: f64,
}

/// The arms of a record that have totals.
fn arms(entry: &Entry) -> Vec<String> {
    let Some(measured) = entry.measured() else { return Vec::new() };
    let is_published = entry.record.nature == Nature::Published;
    let has = |series: &&Series| match entry.record.workload.as_str() {
        _ if is_published => TOTALS.contains(&series.name.as_str()),
        SEGMENT => plain(&series.name) == PROCESS,
        _ => series.arm == ARM,
    };
    distinct(measured.series.iter().filter(has).map(|series| series.arm.clone()))
}

/// The name of a series, whichever memory it is of and whichever pass.
fn plain(name: &str) -> &str {
    let warm = name.strip_suffix(COLD).unwrap_or(name);
    warm.strip_prefix(FIRST).unwrap_or(warm)
}

impl Totals {
    /// Of one of our records: its first process, by CPU time. Of a published one: as it says.
    fn of(entry: &Entry, arm: &str) -> Option<Self> {
        let measured = entry.measured().filter(|_| entry.is_valid())?;
        let counter = |name: &str| measured.counter(name).unwrap_or_default() as f64;
        let mine = |s: &&Series| s.arm == arm && s.clock == Clock::Cpu;
        if entry.record.nature == Nature::Published {
            let named = |names: &[&str]| {
                measured.series.iter().filter(mine).find(|s| names.contains(&s.name.as_str()))
            };
            let (map, all) = named(&[MAP]).zip(named(&TOTALS))?;
            return Some(Self {
                map_seconds: sum(map) / 1e9,
                total_seconds: sum(all) / 1e9,
                faults: counter("faults"),
                bytes: all.bytes as f64,
                rounds: map.ops as f64,
            });
        }
        let first = measured.series.iter().map(|s| s.process).min();
        let series = || measured.series.iter().filter(mine).filter(|s| Some(s.process) == first);
        let of = |names: &[&str]| -> Vec<&Series> {
            series().filter(|s| names.contains(&plain(&s.name))).collect()
        };
        let seconds = |names: &[&str]| of(names).into_iter().map(sum).sum::<f64>() / 1e9;
        let is_segment = entry.record.workload == SEGMENT;
        let touches: Vec<&Series> = if is_segment {
            of(&[PROCESS])
        } else {
            series().filter(|s| matches!(s.name.as_str(), "touch" | TOUCH_COLD)).collect()
        };
        // A round may have both.
        let rounds = touches.iter().map(|s| s.repetition).collect::<BTreeSet<_>>().len() as f64;
        let bytes = touches.iter().map(|s| s.bytes as f64 * observations(s)).sum();
        let faults = if is_segment {
            let each = counter(&arm_counter(FAULTS_PER_REPETITION, arm));
            // Memory that is taken again is there: only its first pass faults.
            each * if of(&[CONTROL]).is_empty() { rounds } else { 1.0 }
        } else {
            counter(FAULTS_PER_REPETITION) * rounds
        };
        let all: &[&str] =
            if is_segment { &[PROCESS] } else { &[MAP, "populate", "touch", "release"] };
        (rounds > 0.0).then(|| Self {
            map_seconds: seconds(&[MAP]),
            total_seconds: seconds(all),
            faults,
            bytes,
            rounds,
        })
    }

    fn bytes_per_second(&self) -> f64 {
        self.bytes / self.total_seconds
    }
}

fn sum(series: &Series) -> f64 {
    match &series.data {
        Data::Values(values) => total(values.iter().copied()) as f64,
        Data::Histogram(_) | Data::Summary(_) => 0.0,
    }
}

fn observations(series: &Series) -> f64 {
    match &series.data {
        Data::Values(values) => values.len() as f64,
        Data::Histogram(_) | Data::Summary(_) => 0.0,
    }
}

/// Adds what the original's definitions give: rate, time of 4 KiB, of a fault and of a map call,
/// faults of 4 KiB.
pub(super) fn derive(entry: &mut Entry) {
    let is_published = entry.record.nature == Nature::Published;
    for arm in arms(entry) {
        let totals = Totals::of(entry, &arm);
        let Some(totals) = totals.filter(|totals| totals.total_seconds > 0.0) else { continue };
        let ns = totals.total_seconds * 1e9;
        let pages = totals.bytes / BASE_PAGE;
        let series = if is_published && arm != THEIRS { PROCESS } else { ROUNDS };
        let mut add = |statistic, value: f64, unit| {
            let number = value.is_finite().then(|| Quantity::exact(value, unit));
            entry.numbers.add(cpu(&arm, series), statistic, number);
        };
        add("bandwidth", totals.bytes_per_second(), Unit::BytesPerSecond);
        add("per_base_page", ns / pages, Unit::Ns);
        add("per_fault", ns / totals.faults, Unit::Ns);
        add("pages_per_fault", pages / totals.faults, Unit::Count);
        add("faults", totals.faults, Unit::Count);
        add("per_map", totals.map_seconds * 1e9 / totals.rounds, Unit::Ns);
    }
}

/// A frame for each case of this run and each published one, as the original prints it.
pub(super) fn blocks(both: &Both) -> Vec<Block> {
    let ours = both.here.iter().filter(|e| e.record.workload == WORKLOAD && e.has_row());
    ours.chain(&both.published).map(frame).map(Block::Frame).collect()
}

fn frame(entry: &Entry) -> String {
    let has = |name: &str, value: &str| u8::from(entry.parameter(name) == value);
    let (brk, fixed) = (has("backing", "brk"), has("backing", "fixed"));
    // Its -p; with -t that is to populate after the advice, as it was meant.
    let populate = u8::from(POPULATED.contains(&entry.parameter("populate")));
    let (giant, large) = (has("page", "hugetlb-1g"), has("page", "hugetlb-2m"));
    let thp = has("page", "2m");
    let published = entry.record.host.identity.get("source").and_then(|source| source.as_str());
    let whose = published.map_or_else(String::new, |source| format!("published: {source}\n"));
    format!(
        "{whose}{}
=========== Test Mode    =================
Brk Mode:               {brk}
Fixedaddr Mode:         {fixed}
Populate  Mode   :      {populate}
Hugetlbfs 1G Mode:      {giant}
Hugetlbfs 2M Mode:      {large}
Madvise Hugep Mode:     {thp}
=========== Test Summary =================
{}
=========== Test End     =================",
        entry.case(),
        summary(entry)
    )
}

/// The four lines of the summary, or why there are none.
fn summary(entry: &Entry) -> String {
    let arm = arms(entry).into_iter().next().unwrap_or_default();
    let Some(totals) = Totals::of(entry, &arm) else {
        let broken = entry.failed_claims().map(display_claim);
        let broken: Vec<String> = broken.map(|claim| format!("INVALID:    {claim}")).collect();
        return if broken.is_empty() {
            format!("no CPU time to show ({})", entry.standing.name())
        } else {
            broken.join("\n")
        };
    };
    let Totals { map_seconds, total_seconds, faults, .. } = totals;
    // Times were printed to the microsecond, so that a rate made of them has no more.
    let digits = if entry.record.nature == Nature::Published { 2 } else { 6 };
    format!(
        "Mmap Time:  {map_seconds:.6} seconds
Total Time: {total_seconds:.6} seconds
PageFault:  {faults:.0} times
Bandwidth:  {:.digits$} MiB/s",
        totals.bytes_per_second() / 1_048_576.0
    )
}

#[cfg(test)]
mod tests {
    use pagelab_record::journal;

    use super::*;

    fn published() -> Vec<Totals> {
        let text = include_str!("../../../../published/micro-pagefault/records.jsonl");
        let entries = journal::read_records(text).unwrap();
        let of = |entry: Entry| Totals::of(&entry, &arms(&entry)[0]).unwrap();
        entries.iter().map(|record| of(Entry::of(record))).collect()
    }

    #[test]
    fn the_published_rates_follow_from_the_published_times() {
        let printed = [3_445.492_572, 8_340.724_252, 3_940.813_233, 12_060.894_881, 16_000.870_945];
        let published = published();
        assert_eq!(published.len(), printed.len());
        for (totals, printed) in published.iter().zip(printed) {
            // Printed times are rounded to a microsecond.
            let rate = totals.bytes_per_second() / 1_048_576.0;
            assert!((rate / printed - 1.0).abs() < 1e-7, "{rate}");
        }
    }

    #[test]
    fn the_published_counts_are_those_of_a_ragged_mapping() {
        let (base, huge, giant) = (2_621_440.0, 5_119.0 + 512.0, 9.0 + 511.0 + 512.0);
        let counts = [base, huge, base, huge, giant].map(|count| 20.0 * count);
        for (totals, expected) in published().iter().zip(counts) {
            assert!((totals.faults - expected).abs() < 0.5);
        }
    }
}
