//! The frame of `micro_pagefault`, filled from our records, and its published numbers beside.
//!
//! The one idea: the same quantities by the same definitions (CPU time of all rounds; map time
//! inside it), so that the two can be read side by side, without the three mistakes of the
//! original: its fault count is one short, its rate is in MiB/s whatever the label says, and its
//! 10 GiB are written into the formula. Faults inside `MAP_POPULATE`, which it cannot see, count.

use std::collections::BTreeSet;

use pagelab_record::{Clock, Data, Outcome, Series};

use crate::{
    document::{Block, Cell, Column, Section, Table, Tone},
    entry::Entry,
    quantity::group_thousands,
    throughput::{ARM, COLD, TOUCH_COLD, WORKLOAD},
};

/// The suite whose report this is.
pub(crate) const SUITE: &str = "micro-pagefault";
/// The arm of published records.
const PUBLISHED: &str = "published";
const MIB: f64 = 1_048_576.0;
/// The original counts its rate over base pages, whatever it maps.
const BASE_PAGE: f64 = 4096.0;

/// What the original prints of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Totals {
    /// CPU seconds of all map calls.
    pub(crate) map_seconds: f64,
    /// CPU seconds of all rounds.
    pub(crate) total_seconds: f64,
    /// Faults of all rounds.
    pub(crate) faults: f64,
    /// Bytes touched in all rounds.
    pub(crate) bytes: f64,
    /// Rounds.
    pub(crate) rounds: u64,
}

impl Totals {
    /// Of one of our records: its first process, by CPU time.
    fn of(entry: &Entry) -> Option<Self> {
        let measured = entry.measured().filter(|_| entry.is_valid())?;
        let mine = |s: &&Series| {
            let first = measured.series.iter().map(|s| s.process).min();
            s.arm == ARM && s.clock == Clock::Cpu && Some(s.process) == first
        };
        let series = || measured.series.iter().filter(mine);
        let seconds = |names: &[&str]| {
            let name = |s: &Series| s.name.strip_suffix(COLD).unwrap_or(&s.name).to_owned();
            let named = series().filter(|s| names.contains(&name(s).as_str()));
            named.map(sum).sum::<f64>() / 1e9
        };
        let touches = || series().filter(|s| matches!(s.name.as_str(), "touch" | TOUCH_COLD));
        // A round may have both.
        let rounds = touches().map(|s| s.repetition).collect::<BTreeSet<_>>().len() as u64;
        let bytes = touches().map(|s| s.bytes as f64 * observations(s) as f64).sum();
        (rounds > 0).then(|| Self {
            map_seconds: seconds(&["map"]),
            total_seconds: seconds(&["map", "populate", "touch", "release"]),
            faults: entry.counter("faults_per_repetition").unwrap_or_default() as f64
                * rounds as f64,
            bytes,
            rounds,
        })
    }

    /// Of a published record.
    fn published(entry: &Entry) -> Option<Self> {
        let Outcome::Measured(measured) = &entry.record.outcome else { return None };
        let series = |name| measured.series.iter().find(|s| s.arm == PUBLISHED && s.name == name);
        let (map, total) = (series("map")?, series("total")?);
        Some(Self {
            map_seconds: sum(map) / 1e9,
            total_seconds: sum(total) / 1e9,
            faults: entry.counter("faults").unwrap_or_default() as f64,
            bytes: total.bytes as f64,
            rounds: map.ops,
        })
    }

    /// MiB a second, over CPU time.
    pub(crate) fn bandwidth(&self) -> f64 {
        self.bytes / MIB / self.total_seconds
    }
}

fn sum(series: &Series) -> f64 {
    match &series.data {
        Data::Values(values) => values.iter().map(|value| *value as f64).sum(),
        Data::Histogram(_) | Data::Summary(_) => 0.0,
    }
}

fn observations(series: &Series) -> u64 {
    match &series.data {
        Data::Values(values) => values.len() as u64,
        Data::Histogram(_) | Data::Summary(_) => 0,
    }
}

/// The frames and the comparison, where there is a throughput case.
pub(crate) fn section(entries: &[Entry], published: &[Entry]) -> Option<Section> {
    let (ours, published) = (rows_of(entries), rows_of(published));
    if ours.is_empty() {
        return None;
    }
    let mut section = Section::new("micro-pagefault", "micro_pagefault");
    section.blocks.push(Block::Text(
        "The experiment of the original, by its definitions: CPU time of the first process over \
         all rounds, map and release inside. What it leaves out (intervals, elapsed time, limits) \
         is in the sections below."
            .to_owned(),
    ));
    section.blocks.push(Block::Table(comparison(&ours, &published)));
    let cold =
        |entry: &&Entry| entry.counter("repetitions_with_cold_memory").unwrap_or_default() > 0;
    if ours.iter().any(cold) {
        section.blocks.push(Block::Text(
            "By that definition a round counts as a whole, with what the host had to back first \
             because this kernel had handed free memory back to it. The sections below tell the \
             two apart."
                .to_owned(),
        ));
    }
    section.blocks.push(Block::Text(
        "Published rows come from another machine, which the source does not name: compare ratios \
         between rows, not rows with ours."
            .to_owned(),
    ));
    section.blocks.extend(ours.into_iter().map(frame).map(Block::Frame));
    Some(section)
}

fn rows_of(entries: &[Entry]) -> Vec<&Entry> {
    entries.iter().filter(|e| e.record.workload == WORKLOAD && e.has_row()).collect()
}

/// The frame that the original prints.
fn frame(entry: &Entry) -> String {
    let has = |name: &str, value: &str| u8::from(entry.parameter(name) == value);
    let (brk, fixed) = (has("backing", "brk"), has("backing", "fixed"));
    let populate = has("populate", "map-populate");
    let (giant, large) = (has("page", "hugetlb-1g"), has("page", "hugetlb-2m"));
    let thp = has("page", "2m");
    let summary = summary(entry);
    format!(
        "{}
=========== Test Mode    =================
Brk Mode:               {brk}
Fixedaddr Mode:         {fixed}
Populate  Mode   :      {populate}
Hugetlbfs 1G Mode:      {giant}
Hugetlbfs 2M Mode:      {large}
Madvise Hugep Mode:     {thp}
=========== Test Summary =================
{summary}
=========== Test End     =================",
        entry.case()
    )
}

/// The four lines of the summary, or why there are none.
fn summary(entry: &Entry) -> String {
    let Some(totals) = Totals::of(entry) else {
        let broken = entry.failed_claims().map(crate::entry::display_claim);
        let broken: Vec<String> = broken.map(|claim| format!("INVALID:    {claim}")).collect();
        return if broken.is_empty() {
            format!("no CPU time to show ({})", entry.standing.name())
        } else {
            broken.join("\n")
        };
    };
    format!(
        "Mmap Time:  {:.6} seconds
Total Time: {:.6} seconds
PageFault:  {:.0} times
Bandwidth:  {:.6} MiB/s",
        totals.map_seconds,
        totals.total_seconds,
        totals.faults,
        totals.bandwidth()
    )
}

fn comparison(ours: &[&Entry], published: &[&Entry]) -> Table {
    let mut columns = vec![
        Column::words("page"),
        Column::words("backing"),
        Column::words("populate"),
        Column::words("machine"),
    ];
    columns.extend([
        Column::number("touched").rank(2),
        Column::number("mmap time").rank(3),
        Column::number("total time").rank(1),
        Column::number("faults"),
        Column::number("MiB/s"),
        Column::number("µs/4 KiB"),
        Column::number("µs/fault"),
    ]);
    let key = |entry: &Entry| {
        ["page", "backing", "populate"].map(|name| entry.parameter(name).to_owned())
    };
    let mut rows = Vec::new();
    let mut rest = published.to_vec();
    for entry in ours {
        rows.push(row(entry, "this one", Totals::of(entry)));
        rest.retain(|other| {
            let beside = key(other) == key(entry);
            if beside {
                rows.push(row(other, "published: another machine", Totals::published(other)));
            }
            !beside
        });
    }
    let left = rest.into_iter();
    rows.extend(left.map(|e| row(e, "published: another machine", Totals::published(e))));
    Table { columns, rows }
}

fn row(entry: &Entry, machine: &str, totals: Option<Totals>) -> Vec<Cell> {
    let ours = machine == "this one";
    let mut row: Vec<Cell> =
        ["page", "backing", "populate"].map(|name| entry.parameter(name).into()).into();
    row.push(Cell::toned(machine, if ours { Tone::Plain } else { Tone::Quiet }));
    let Some(totals) = totals else {
        row.extend([Cell::none(), Cell::none(), entry.proof()]);
        row.extend(std::iter::repeat_n(Cell::none(), 4));
        return row;
    };
    let Totals { map_seconds, total_seconds, faults, bytes, rounds } = totals;
    let each = pagelab_record::units::display_bytes(bytes / rounds as f64);
    let microseconds = |parts: f64| {
        let each = (parts > 0.0).then(|| format!("{:.3}", total_seconds * 1e6 / parts));
        Cell::maybe(each)
    };
    row.extend([
        Cell::toned(format!("{rounds} × {each}"), Tone::Quiet),
        format!("{map_seconds:.6} s").into(),
        format!("{total_seconds:.6} s").into(),
        group_thousands(faults).into(),
        Cell::toned(format!("{:.1}", totals.bandwidth()), Tone::Strong),
        microseconds(bytes / BASE_PAGE),
        microseconds(faults),
    ]);
    row
}

#[cfg(test)]
mod tests {
    use pagelab_record::journal;

    use super::*;

    fn published() -> Vec<Entry> {
        let text = include_str!("../../../published/micro-pagefault.jsonl");
        journal::read_records(text).unwrap().iter().map(Entry::of).collect()
    }

    #[test]
    fn the_published_rates_follow_from_the_published_times() {
        let printed = [3_445.492_572, 8_340.724_252, 3_940.813_233, 12_060.894_881, 16_000.870_945];
        let published = published();
        assert_eq!(published.len(), printed.len());
        for (entry, printed) in published.iter().zip(printed) {
            let totals = Totals::published(entry).unwrap();
            assert!((totals.bytes / MIB - 204_800.0).abs() < 1e-9);
            // Printed times are rounded to a microsecond.
            assert!((totals.bandwidth() / printed - 1.0).abs() < 1e-7, "{}", totals.bandwidth());
        }
    }

    #[test]
    fn the_published_counts_are_those_of_a_ragged_mapping() {
        let rounds = 20.0;
        let counts = [
            rounds * 2_621_440.0,
            rounds * (5_119.0 + 512.0),
            rounds * 2_621_440.0,
            rounds * (5_119.0 + 512.0),
            rounds * (9.0 + 511.0 + 512.0),
        ];
        for (entry, expected) in published().iter().zip(counts) {
            let totals = Totals::published(entry).unwrap();
            assert!((totals.faults - expected).abs() < 0.5);
            assert_eq!(totals.rounds, 20);
            assert_eq!(entry.parameter("align"), "ragged");
        }
    }

    #[test]
    fn the_published_map_times_are_the_printed_ones() {
        let printed = [0.000_150, 0.000_150, 0.000_105, 0.000_050, 0.000_050];
        for (entry, printed) in published().iter().zip(printed) {
            let totals = Totals::published(entry).unwrap();
            assert!((totals.map_seconds - printed).abs() < 1e-12);
        }
    }
}
