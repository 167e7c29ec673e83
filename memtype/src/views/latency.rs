//! The table of `memtype/latency`: one load, one store, one store with its fence.
//!
//! The one idea: arms are operations, so a row is an operation of a case, as a distribution; the
//! same operation on WB memory stands beside it, of other processes.

use super::{LATENCY, OP, arms, charts, mine, number, over_wb, withheld};
use pagelab_record::vocabulary::parameter;
use pagelab_report::{
    Cell, Entry, Grid, Headline, Quantity, Run, Section, Table, all_rows, columns, elapsed,
    headline, parameters::display_type,
};

/// The table of latency cases, where there are any.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = mine(&run.entries, LATENCY);
    mine.first()?;
    let mut section = Section::new("memtype-latency", "Memory types: one operation");
    section.all(charts::latency(run));
    let shown = columns(&mine, &["type"]);
    section.add(table(&mine, &shown));
    section.add(format!(
        "{}The median empty timer pair is subtracted. A store ends when it has been \
         issued, a store with a fence when the fence has completed. × WB: the median over that of \
         the same operation on WB memory whose lines are in the cache.",
        all_rows(&mine, &shown)
    ));
    section.all(withheld(&mine));
    Some(section)
}

fn table(entries: &[&Entry], shown: &[String]) -> Table {
    let arms = |entry: &'_ Entry| match arms(entry, "op") {
        none if none.is_empty() => vec!["–".to_owned()],
        some => some.into_iter().map(ToOwned::to_owned).collect(),
    };
    let rows = entries.iter().flat_map(|entry| {
        arms(entry).into_iter().enumerate().map(move |(nth, arm)| (*entry, arm, nth == 0))
    });
    let of =
        |(entry, arm, _): &(&Entry, String, bool), statistic| number(entry, arm, OP, statistic);
    shown
        .iter()
        .fold(Grid::<(&Entry, String, bool)>::new(), |grid, name| {
            let rank = if ["type", "state"].contains(&name.as_str()) { 0 } else { 5 };
            grid.words(name, rank, |(entry, ..)| entry.parameter_cell(name))
        })
        .words("operation", 0, |(_, arm, _)| arm.clone())
        .number("n", 6, move |row| Cell::of(of(row, "n")).quiet())
        .number("min", 2, move |row| of(row, "min"))
        .number("p50", 0, move |row| Cell::spread(of(row, "p50")).strong())
        .number("p90", 7, move |row| of(row, "p90"))
        .number("p99", 0, move |row| of(row, "p99"))
        .number("p99.9", 4, move |row| of(row, "p99.9"))
        .number("max", 4, move |row| of(row, "max"))
        .number("mean", 8, move |row| Cell::of(of(row, "mean")).quiet())
        .number("× WB", 1, |(entry, arm, _)| {
            over_wb(entry, [arm, OP, "p50"], entries).map(|ratio| format!("{:.2}", ratio.value))
        })
        .number("proc×rep", 9, |(entry, arm, _)| entry.counts(elapsed(arm, OP)))
        .words("witness", 0, |(entry, _, first)| entry.proof().only_if(*first))
        .told(rows)
}

/// The first operation that was asked for, by memory type.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let mine = mine(&run.entries, LATENCY);
    let Some(arm) = mine.iter().find_map(|entry| arms(entry, "op").into_iter().next()) else {
        return Vec::new();
    };
    let known =
        mine.iter().filter_map(|e| Some((e.value(parameter::TYPE), number(e, arm, OP, "p50")?)));
    let mut known: Vec<(&str, Quantity)> = known.collect();
    known.dedup_by_key(|(memory_type, _)| *memory_type);
    let Some(((first, median), others)) = known.split_first() else { return Vec::new() };
    let other =
        |(other, q): &(&str, Quantity)| Some(format!("{} {}", display_type(other), q.display()));
    let label = format!("median of one {arm}, {} memory", display_type(first));
    vec![headline(*median, label, &others.iter().map(other).collect::<Vec<_>>())]
}
