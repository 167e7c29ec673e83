//! The limits of the machine, as a section.
//!
//! The one idea: limits of an emulated machine are said to mean nothing, and no share is drawn from
//! them.

use pagelab_record::units;

use crate::limit::{self, syscall::NAME as SYSCALL, timer::NAME as TIMER};
use pagelab_report::{
    Cell, Column, Entry, Grid, Headline, Key, Lanes, Limits, Note, Quantity, Run, Section,
    Standing, Table, Time, Tone,
    chart::Row,
    headline, hue,
    limits::{Best, Ceilings, Level},
};

/// What every result is set against.
pub(crate) const CEILINGS: Ceilings = Ceilings {
    operations: [(CLEAR, "clear", "clear"), (COPY, "copy", "copy"), (READ, "read", "read")],
    costs: &[
        (TIMER, "pair", "empty timer pair", "median subtracted from every latency sample"),
        (
            TIMER,
            "sample",
            "latency loop, per sample",
            "pair, recording and loop; only the pair is in a sample",
        ),
        (TIMER, "record", "recording a sample", "the histogram's part of that"),
        (SYSCALL, "getppid", "system call", "getppid: the way into the kernel and back"),
    ],
};
const CLEAR: &str = limit::bulk::CLEAR.about.name;
const COPY: &str = limit::bulk::COPY.about.name;
const READ: &str = limit::bulk::READ.about.name;
/// The workloads that measure a limit.
pub(crate) const WORKLOADS: [&str; 5] = [CLEAR, COPY, READ, TIMER, SYSCALL];
/// The series of each.
pub(crate) const SERIES: [(&str, Time); 5] =
    [("clear", BY), ("copy", BY), ("read", BY), ("sample", BY), ("getppid", BY)];
const BY: Time = Time::Elapsed;

/// Whether a workload measures a limit.
fn is_limit(workload: &str) -> bool {
    WORKLOADS.contains(&workload)
}

/// The section on limits, where there are any.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let Run { entries, limits, .. } = run;
    let notes = entries.iter().filter(|entry| is_limit(&entry.record.workload));
    let mut notes: Vec<Note> = notes.flat_map(Entry::notes).collect();
    notes.extend(emulated(entries));
    if limits.levels.is_empty() && limits.costs.is_empty() && notes.is_empty() {
        return None;
    }
    let mut section = Section::new("limits", "Limits of this machine");
    if !limits.levels.is_empty() {
        section.all(lanes(limits));
        section.add(table(limits));
    }
    if !limits.costs.is_empty() {
        section.add(costs_table(limits));
    }
    section.all(notes);
    Some(section)
}

/// Bandwidth of each level and operation, side by side.
fn lanes(limits: &Limits) -> Option<Lanes> {
    let keys = CEILINGS.operations.iter().enumerate();
    let keys = keys.map(|(nth, (.., heading))| Key::new(*heading, Some(hue(nth)))).collect();
    let row = |level: &Level| -> Row {
        let best = level.best.iter().enumerate();
        let bars = best.filter_map(|(nth, best)| Some((nth, best.as_ref()?.bandwidth)));
        (level.name.clone(), bars.collect())
    };
    let title = ["Bandwidth of one thread, by level", "The best way of doing it."];
    Lanes::bars(title, keys, limits.levels.iter().map(row).collect(), None).shown()
}

/// What bounds a fault that must clear; where only something else was asked for, that.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let Run { limits, .. } = run;
    let clear = limits.clear().map(|q| (q, "clear limit, one thread, DRAM".to_owned()));
    let level = limits.levels.last().and_then(|level| {
        let (best, (_, _, operation)) = level
            .best
            .iter()
            .zip(CEILINGS.operations)
            .find_map(|(best, of)| Some((best.as_ref()?, of)))?;
        Some((best.bandwidth, format!("{operation} limit, one thread, {}", level.name)))
    });
    let cost = limits.costs.first().map(|(name, median, _)| (*median, (*name).to_owned()));
    let told = |(quantity, label)| Headline { tone: Tone::Plain, ..headline(quantity, label, &[]) };
    clear.or(level).or(cost).map(told).into_iter().collect()
}

/// What is said instead of the limits of an emulated machine, which have no rows.
fn emulated(entries: &[Entry]) -> Option<Note> {
    let mine = entries
        .iter()
        .filter(|entry| is_limit(&entry.record.workload) && entry.standing == Standing::Emulated);
    let count = mine.count();
    let text = format!(
        "limits of an emulated machine ({count} here) mean nothing and are withheld; no share is \
         drawn from them"
    );
    (count > 0).then(|| Note::warn("EMULATED", text, ""))
}

fn table(limits: &Limits) -> Table {
    let buffer = |level: &Level| match level.buffer_bytes {
        0 => None,
        bytes => Some(units::display_bytes(bytes as f64)),
    };
    let rows = limits.levels.iter().flat_map(|level| {
        let all = level.best.iter().zip(CEILINGS.operations);
        all.filter_map(move |(best, (_, _, word))| Some((level, best.as_ref()?, word)))
    });
    Grid::<(&Level, &Best, &str)>::new()
        .words("level", 0, |(level, ..)| level.name.clone())
        .number("buffer", 1, |(level, ..)| buffer(level))
        .words("operation", 0, |(.., operation)| *operation)
        .number("bandwidth", 0, |(_, best, _)| Cell::spread(Some(best.bandwidth)).strong())
        .words("by", 0, |(_, best, _)| best.arm.clone())
        .table(rows)
}

fn costs_table(limits: &Limits) -> Table {
    Grid::<&(&str, Quantity, &str)>::new()
        .words("cost", 0, |(name, ..)| *name)
        .number("median", 0, |(_, median, _)| median.display_with_spread())
        .with(Column::words("meaning").explains(), |(.., meaning)| {
            Cell::toned(*meaning, Tone::Quiet)
        })
        .table(&limits.costs)
}
