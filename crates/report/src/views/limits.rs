//! The limits of the machine, as a section.
//!
//! The one idea: limits of an emulated machine are said to mean nothing, and no share is drawn from
//! them.

use pagelab_record::{
    units,
    vocabulary::workload::{CLEAR, COPY, READ, SYSCALL, TIMER},
};

use crate::{
    chart::{Key, Lanes, Row, hue},
    document::{Block, Cell, Column, Headline, Note, Section, Table, Tone},
    entry::{Entry, Standing},
    headline::with_interval,
    limits::{Level, Limits, OPERATIONS},
    quantity::Quantity,
    run::Run,
};

/// The workloads that measure a limit.
pub(crate) const WORKLOADS: [&str; 5] = [CLEAR, COPY, READ, TIMER, SYSCALL];

/// Whether a workload measures a limit.
fn is_limit(workload: &str) -> bool {
    WORKLOADS.contains(&workload)
}

/// The section on limits, where there are any.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let Run { entries, limits, .. } = run;
    let notes = entries.iter().filter(|entry| is_limit(&entry.record.workload));
    let mut notes: Vec<Block> = notes.flat_map(|entry| entry.notes(&[])).map(Block::Note).collect();
    notes.extend(emulated(entries).map(Block::Note));
    if limits.levels.is_empty() && limits.costs.is_empty() && notes.is_empty() {
        return None;
    }
    let mut section = Section::new("limits", "Limits of this machine");
    if !limits.levels.is_empty() {
        section.blocks.extend(lanes(limits));
        section.blocks.push(Block::Table(table(limits)));
    }
    if !limits.costs.is_empty() {
        section.blocks.push(Block::Table(costs_table(limits)));
    }
    section.blocks.extend(notes);
    Some(section)
}

/// Bandwidth of each level and operation, side by side.
fn lanes(limits: &Limits) -> Option<Block> {
    let keys = OPERATIONS.iter().enumerate();
    let keys = keys.map(|(nth, (.., heading))| Key::new(*heading, Some(hue(nth)))).collect();
    let row = |level: &Level| -> Row {
        let best = level.best.iter().enumerate();
        let bars = best.filter_map(|(nth, best)| Some((nth, best.as_ref()?.bandwidth)));
        (level.name.clone(), bars.collect())
    };
    let title = ["Bandwidth of one thread, by level", "The best way of doing it."];
    Lanes::bars(title, keys, limits.levels.iter().map(row).collect(), None)
        .shown()
        .map(Block::Lanes)
}

/// What bounds a fault that must clear.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let headline = |clear: Quantity| Headline {
        value: clear.display(),
        label: "clear limit, one thread, DRAM".to_owned(),
        detail: with_interval(clear, ""),
        tone: Tone::Plain,
    };
    run.limits.clear().map(headline).into_iter().collect()
}

/// What is said instead of the limits of an emulated machine, which have no rows.
fn emulated(entries: &[Entry]) -> Option<Note> {
    let mine = entries
        .iter()
        .filter(|entry| is_limit(&entry.record.workload) && entry.standing == Standing::Emulated);
    let count = mine.count();
    (count > 0).then(|| Note {
        tone: Tone::Warn,
        tag: "EMULATED",
        text: format!(
            "limits of an emulated machine ({count} here) mean nothing and are withheld; no share \
             is drawn from them"
        ),
        cure: String::new(),
    })
}

fn table(limits: &Limits) -> Table {
    let mut columns = vec![Column::words("level"), Column::number("buffer").rank(1)];
    for (_, _, heading) in OPERATIONS {
        columns.push(Column::number(heading));
        columns.push(Column::words("by").rank(2));
    }
    let row = |level: &Level| {
        let buffer = match level.buffer_bytes {
            0 => Cell::none(),
            bytes => units::display_bytes(bytes as f64).into(),
        };
        let mut row = vec![Cell::from(level.name.clone()), buffer];
        for best in &level.best {
            let best = best.as_ref();
            row.push(Cell::maybe(best.map(|best| best.bandwidth.display_with_spread())));
            let arm = best.map(|best| best.arm.as_str()).unwrap_or_default();
            row.push(Cell::toned(arm, Tone::Quiet));
        }
        row
    };
    Table { columns, rows: limits.levels.iter().map(row).collect() }
}

fn costs_table(limits: &Limits) -> Table {
    let columns =
        vec![Column::words("cost"), Column::number("median"), Column::words("meaning").rank(1)];
    let row = |(name, quantity, meaning): &(&str, Quantity, &str)| {
        let median = quantity.display_with_spread();
        vec![Cell::from(*name), median.into(), Cell::toned(*meaning, Tone::Quiet)]
    };
    Table { columns, rows: limits.costs.iter().map(row).collect() }
}
