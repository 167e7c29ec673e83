//! `fault/throughput` with several workers, and with calls made beside them.
//!
//! The one idea: the same case with one worker is the measure of all others. Efficiency is the rate
//! of N workers over N times the rate of one; threads and processes of the same number stand side
//! by side, because what differs between them is the address space. What calls and faults do to
//! each other are ratios between the arms of one case, taken inside each process.

use std::collections::{BTreeMap, BTreeSet};

use pagelab_record::{Case, Series};

use crate::views::throughput::{ARM, WORKLOAD};
use pagelab_record::vocabulary::parameter;
use pagelab_report::{
    Cell, Entry, Grid, Quantity, Run, Section, Time, Unit, columns, elapsed,
    limits::{is_over, over_cell, over_note},
    parameters, ratio,
};

/// What differs between the cases of one line.
const WORKERS: [&str; 4] = ["threads", "processes", "vmas", "size"];
/// Faults without calls beside them.
pub(crate) use pagelab_record::vocabulary::arm::ALONE;
use pagelab_record::vocabulary::{arm::IDLE, arm::PRESENT, series::BESIDE};

pagelab_record::named! {
    /// How the workers of a case are made.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    enum Way {
        Threads = "threads",
        ThreadsApart = "threads, a VMA each",
        Processes = "processes",
    }
}

impl Way {
    fn of(entry: &Entry) -> (u32, Vec<Self>) {
        let count = |name| entry.value(name).parse::<u32>().unwrap_or(1);
        let (threads, processes) = (count("threads"), count("processes"));
        match (threads, processes, entry.value(parameter::VMAS)) {
            (1, 1, _) => (1, Self::ALL.to_vec()),
            (1, _, _) => (processes, vec![Self::Processes]),
            (_, _, "each") => (threads, vec![Self::ThreadsApart]),
            _ => (threads, vec![Self::Threads]),
        }
    }
}

/// Rates of otherwise equal cases, by number of workers and how they are made.
type Rates = BTreeMap<(u32, Way), Quantity>;

/// So many workers of otherwise equal cases.
struct Row<'g> {
    label: &'g str,
    workers: u32,
    rates: &'g Rates,
}

impl Row<'_> {
    fn rate(&self, way: Way) -> Option<Quantity> {
        self.rates.get(&(self.workers, way)).copied()
    }
}

/// The table of several workers, where otherwise equal cases differ in them.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mut groups: BTreeMap<Case, Rates> = BTreeMap::new();
    for entry in run.rows(WORKLOAD) {
        let Some(rate) = entry.numbers.get(elapsed(ARM, "touch"), "faults_per_second") else {
            continue;
        };
        let (workers, ways) = Way::of(entry);
        let rates = groups.entry(parameters::without(entry.case(), &WORKERS)).or_default();
        rates.extend(ways.into_iter().map(|way| ((workers, way), rate)));
    }
    groups.retain(|_, rates| rates.keys().any(|(workers, _)| *workers > 1));
    groups.first_key_value()?;
    let labels = parameters::labels(&groups.keys().collect::<Vec<_>>(), "all cases");
    let ways: BTreeSet<Way> = groups
        .values()
        .flat_map(|rates| rates.keys().filter(|(workers, _)| *workers > 1).map(|(_, way)| *way))
        .collect();
    let efficiency = |row: &Row<'_>, way| {
        let one = row.rates.get(&(1, way))?.times(f64::from(row.workers), Unit::PerSecond);
        row.rate(way).filter(|_| row.workers > 1)?.over(one, Unit::Share)
    };
    let mut grid =
        Grid::<Row<'_>>::new()
            .words("cases", 0, |row| row.label)
            .number("workers", 0, |row| row.workers.to_string());
    for way in ways.iter().copied() {
        grid = grid.number(way.name(), 0, move |row| row.rate(way)).number(
            "efficiency",
            0,
            move |row| match efficiency(row, way) {
                Some(share) if is_over(share) => over_cell(),
                share => Cell::spread(share).strong(),
            },
        );
    }
    let both = ways.contains(&Way::Threads) && ways.contains(&Way::Processes);
    let grid = grid.only_if(both, |grid| {
        grid.number("threads over processes", 0, |row| {
            let of = |way| row.rate(way).filter(|_| row.workers > 1);
            let ratio = of(Way::Threads).zip(of(Way::Processes));
            Cell::spread(ratio.and_then(|(threads, other)| threads.over(other, Unit::Ratio)))
        })
    });
    let mut rows = Vec::new();
    for (label, rates) in labels.iter().zip(groups.values()) {
        let counts: BTreeSet<u32> = rates.keys().map(|(workers, _)| *workers).collect();
        rows.extend(counts.into_iter().map(|workers| Row { label, workers, rates }));
    }
    let over = rows.iter().flat_map(|row| ways.iter().map(move |way| (row, *way)));
    let over = over.filter_map(|(row, way)| {
        let share = efficiency(row, way).filter(|share| is_over(*share))?;
        Some((format!("{}, {} {}", row.label, row.workers, way.name()), share))
    });
    let over: Vec<(String, Quantity)> = over.collect();
    let text =
        "Faults a second of all workers together. Efficiency: that rate over as many times the \
         rate of one worker. Threads share an address space; where each has a VMA of its own, they \
         share the page table and no longer the VMA's lock."
            .to_owned();
    let why = "one worker alone was slower than one of several, so its rate is no measure";
    let note = over_note(&over, why, "measure again on a quiet machine, with more --forks");
    let mut section = Section::new("workers", "Threads and processes").with(grid.table(rows));
    section.all(note);
    Some(section.with(text))
}

/// Nanoseconds of one call or touch of an arm.
fn each(entry: &Entry, series: &str, arm: &str) -> Cell {
    Cell::of(entry.numbers.get(elapsed(arm, series), "p50"))
}

/// The table of calls beside faults, where there are any.
pub(crate) fn beside_section(run: &Run) -> Option<Section> {
    let has_calls = |series: &Series| series.name == BESIDE;
    let mut mine = run.valid(WORKLOAD);
    mine.retain(|entry| entry.measured().is_some_and(|m| m.series.iter().any(has_calls)));
    mine.first()?;
    let shown = columns(&mine, &["kind", "page", "beside"]);
    let ratio = |entry: &Entry, series, arms| {
        let all = entry.measured().map_or(&[][..], |measured| &measured.series);
        Cell::spread(ratio::of_times(all, series, Time::Elapsed, arms)).strong()
    };
    let table = Grid::<&Entry>::new()
        .case(&shown, |entry| entry)
        .number("fault alone", 0, |entry| each(entry, "touch", ALONE))
        .number("with calls", 0, |entry| each(entry, "touch", ARM))
        .number("faults slow by", 0, |entry| ratio(entry, "touch", [ARM, ALONE]))
        .number("call alone", 2, |entry| each(entry, BESIDE, IDLE))
        .number("beside touches", 3, |entry| each(entry, BESIDE, PRESENT))
        .number("beside faults", 1, |entry| each(entry, BESIDE, ARM))
        .number("flushing costs", 0, |entry| ratio(entry, BESIDE, [PRESENT, IDLE]))
        .number("faulting costs", 0, |entry| ratio(entry, BESIDE, [ARM, PRESENT]))
        .told(mine.iter().copied());
    let text =
        "One more thread of the same address space calls munmap, mprotect or madvise on 16 pages \
         of its own. Faults slow by: a touch with calls beside it over one without. Flushing \
         costs: a call beside threads that touch present memory over one with nobody beside it. \
         Faulting costs: a call beside threads that fault over one beside threads that do not."
            .to_owned();
    let section = Section::new("beside", "Calls beside faults");
    Some(section.with(table).with(text))
}
