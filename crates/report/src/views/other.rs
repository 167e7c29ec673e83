//! Workloads that have no section of their own.
//!
//! The one idea: a record is never left out of its report. Until somebody writes a section for a
//! workload, its medians stand in one plain table.

use crate::{
    document::{Block, Cell, Column, Section, Table, Tone},
    entry::Entry,
    numbers::{At, Number, Time},
    quantity::Quantity,
    run::Run,
};

/// The medians of every other workload, where there are any.
pub(crate) fn section(run: &Run, is_shown: fn(&str) -> bool) -> Option<Section> {
    let mine = || {
        let ran = run.entries.iter().filter(|entry| entry.has_row());
        ran.filter(|entry| !is_shown(&entry.record.workload))
    };
    mine().next()?;
    let columns = vec![
        Column::words("workload"),
        Column::words("case"),
        Column::words("arm"),
        Column::words("series"),
        Column::number("median"),
        Column::number("bandwidth").rank(1),
        Column::number("n").rank(2),
        Column::words("witness"),
    ];
    let rows = mine().flat_map(rows).collect();
    let section = Section::new("other", "Other workloads");
    Some(section.with(Block::Table(Table { columns, rows })))
}

fn rows(entry: &Entry) -> Vec<Vec<Cell>> {
    let head = || [entry.record.workload.clone().into(), entry.case().to_string().into()];
    let medians = entry.numbers.0.iter().filter(|number| number.statistic == "p50");
    let row = |number: &Number| {
        let at = At { arm: &number.arm, series: &number.series, time: number.time };
        let of = |statistic| entry.numbers.get(at, statistic).map(Quantity::display);
        let series = match number.time {
            Time::Elapsed | Time::None => number.series.clone(),
            Time::Cpu => format!("{} (CPU)", number.series),
        };
        let mut row = Vec::from(head());
        row.extend([
            number.arm.clone().into(),
            series.into(),
            Cell::toned(number.quantity.display_with_spread(), Tone::Strong),
            Cell::maybe(of("bandwidth")),
            Cell::maybe(of("n")),
            entry.proof(),
        ]);
        row
    };
    let mut rows: Vec<Vec<Cell>> = medians.map(row).collect();
    if rows.is_empty() {
        let mut row = Vec::from(head());
        row.extend(std::iter::repeat_n(Cell::none(), 5));
        row.push(entry.proof());
        rows.push(row);
    }
    rows
}
