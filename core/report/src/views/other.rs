//! Workloads that have no section of their own.
//!
//! The one idea: a record is never left out of its report. Until somebody writes a section for a
//! workload, its medians stand in one plain table.

use crate::{At, Cell, Entry, Grid, Run, Section, Time, numbers::Number};

/// The medians of every other workload, where there are any.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = || {
        let ran = run.entries.iter().filter(|entry| entry.has_row());
        ran.filter(|entry| run.views.of(&entry.record.workload).workloads.is_empty())
    };
    mine().next()?;
    let beside = |(entry, number): &Row<'_>, statistic| {
        let Number { arm, series, time, .. } = (*number)?;
        entry.numbers.get(At { arm, series, time: *time }, statistic)
    };
    let table = Grid::<Row<'_>>::new()
        .words("workload", 0, |(entry, _)| entry.record.workload.clone())
        .words("case", 0, |(entry, _)| entry.case().to_string())
        .words("arm", 0, |(_, number)| number.map(|number| number.arm.clone()))
        .words("series", 0, |(_, number)| number.map(series))
        .number("median", 0, |(_, number)| match number {
            Some(number) => Cell::spread(Some(number.quantity)).strong(),
            None => Cell::none(),
        })
        .number("bandwidth", 1, move |row| beside(row, "bandwidth"))
        .number("n", 2, move |row| beside(row, "n"))
        .words("witness", 0, |(entry, _)| entry.proof())
        .table(mine().flat_map(rows));
    let section = Section::new("other", "Other workloads");
    Some(section.with(table))
}

/// A case and one of its medians, where it has any.
type Row<'a> = (&'a Entry, Option<&'a Number>);

fn rows(entry: &Entry) -> Vec<Row<'_>> {
    let medians = entry.numbers.0.iter().filter(|number| number.statistic == "p50");
    let rows: Vec<Row<'_>> = medians.map(|number| (entry, Some(number))).collect();
    if rows.is_empty() { vec![(entry, None)] } else { rows }
}

fn series(number: &Number) -> String {
    match number.time {
        Time::Elapsed | Time::None => number.series.clone(),
        Time::Cpu => format!("{} (CPU)", number.series),
    }
}
