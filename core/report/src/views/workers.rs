//! `fault/throughput` with several workers, and with calls made beside them.
//!
//! The one idea: the same case with one worker is the measure of all others. Efficiency is the rate
//! of N workers over N times the rate of one; threads and processes of the same number stand side
//! by side, because what differs between them is the address space. What calls and faults do to
//! each other are ratios between the arms of one case, taken inside each process.

use std::collections::{BTreeMap, BTreeSet};

use pagelab_record::{Case, Measured, Series};

use crate::{
    Cell, Column, Entry, Grid, Quantity, Run, Section, Table, Time, Unit, clock_of, columns,
    elapsed,
    limits::{is_over, over_cell, over_note},
    parameter, parameters, ratio,
    views::throughput::{ARM, WORKLOAD},
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
    let mut columns = vec![Column::words("cases"), Column::number("workers")];
    for way in &ways {
        columns.push(Column::number(way.name()));
        columns.push(Column::number("efficiency"));
    }
    let both = ways.contains(&Way::Threads) && ways.contains(&Way::Processes);
    if both {
        columns.push(Column::number("threads over processes"));
    }
    let mut table = Table { columns, rows: Vec::new() };
    let mut over = Vec::new();
    for (label, rates) in labels.iter().zip(groups.values()) {
        let counts: BTreeSet<u32> = rates.keys().map(|(workers, _)| *workers).collect();
        for workers in counts {
            let mut row = vec![Cell::from(label.as_str()), Cell::from(workers.to_string())];
            for way in &ways {
                let rate = rates.get(&(workers, *way)).copied();
                let efficiency = rate.filter(|_| workers > 1).and_then(|rate| {
                    let one = rates.get(&(1, *way))?.times(f64::from(workers), Unit::PerSecond);
                    rate.over(one, Unit::Share)
                });
                row.push(Cell::of(rate));
                row.push(match efficiency.filter(|share| is_over(*share)) {
                    Some(share) => {
                        over.push((format!("{label}, {workers} {}", way.name()), share));
                        over_cell()
                    }
                    None => Cell::spread(efficiency).strong(),
                });
            }
            if both {
                let of = |way| rates.get(&(workers, way)).copied().filter(|_| workers > 1);
                let ratio = of(Way::Threads)
                    .zip(of(Way::Processes))
                    .and_then(|(threads, processes)| threads.over(processes, Unit::Ratio));
                row.push(Cell::spread(ratio));
            }
            table.rows.push(row);
        }
    }
    let text =
        "Faults a second of all workers together. Efficiency: that rate over as many times the \
         rate of one worker. Threads share an address space; where each has a VMA of its own, they \
         share the page table and no longer the VMA's lock."
            .to_owned();
    let why = "one worker alone was slower than one of several, so its rate is no measure";
    let note = over_note(&over, why, "measure again on a quiet machine, with more --forks");
    let mut section = Section::new("workers", "Threads and processes").with(table);
    section.all(note);
    Some(section.with(text))
}

/// One arm over another, process by process.
fn over(measured: &Measured, series: &str, arms: [&str; 2]) -> Option<Quantity> {
    let clock = clock_of(&measured.series, series, arms[0], Time::Elapsed)?;
    ratio::of_arms(&measured.series, series, clock, arms)
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
        let of = entry.measured().and_then(|measured| over(measured, series, arms));
        Cell::spread(of).strong()
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
