//! The table of `memtype/latency`: one load, one store, one store with its fence.
//!
//! The one idea: arms are operations, so a row is an operation of a case, as a distribution; the
//! same operation on WB memory stands beside it, of other processes.

use super::{LATENCY, OP, TYPES, arms, charts, mine, number, withheld};
use crate::{
    cases::{all_rows, columns},
    document::{Block, Cell, Column, Headline, Section, Table},
    entry::Entry,
    headline::headline,
    numbers::elapsed,
    parameters::{self, display_type},
    quantity::{Quantity, Unit},
    run::Run,
};

/// What differs between types without being compared.
const PLACE: [&str; 4] = ["type", "frames", "leaf", "samples"];

/// The table of latency cases, where there are any.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = mine(&run.entries, LATENCY);
    if mine.is_empty() {
        return None;
    }
    let mut section = Section::new("memtype-latency", "Memory types: one operation");
    section.blocks.extend(charts::latency(run));
    let shown = columns(&mine, &["type"]);
    section.blocks.push(Block::Table(table(&mine, &shown)));
    section.blocks.push(Block::Text(format!(
        "{}The median empty timer pair is subtracted. A store ends when it has been \
         issued, a store with a fence when the fence has completed. × WB: the median over that of \
         the same operation on WB memory whose lines are in the cache.",
        all_rows(&mine, &shown)
    )));
    section.blocks.extend(withheld(&mine));
    Some(section)
}

fn table(entries: &[&Entry], shown: &[String]) -> Table {
    let parameter = |name: &String| match name.as_str() {
        "type" | "state" => Column::words(name),
        name => Column::words(name).rank(5),
    };
    let mut columns: Vec<Column> = shown.iter().map(parameter).collect();
    columns.extend([
        Column::words("operation"),
        Column::number("n").rank(6),
        Column::number("min").rank(2),
        Column::number("p50"),
        Column::number("p90").rank(7),
        Column::number("p99"),
        Column::number("p99.9").rank(4),
        Column::number("max").rank(4),
        Column::number("mean").rank(8),
        Column::number("× WB").rank(1),
        Column::number("proc×rep").rank(9),
        Column::words("witness"),
    ]);
    let row = |entry: &Entry, arm: &str, first: bool| {
        let of = |statistic| number(entry, arm, OP, statistic);
        let plain = |statistic| Cell::of(of(statistic));
        let mut row = entry.head(shown);
        row.extend([arm.into(), plain("n").quiet(), plain("min")]);
        row.push(Cell::spread(of("p50")).strong());
        row.extend(["p90", "p99", "p99.9", "max"].map(plain));
        row.push(plain("mean").quiet());
        let ratio = over_wb(entry, arm, entries);
        row.push(Cell::maybe(ratio.map(|ratio| format!("{:.2}", ratio.value))));
        row.push(entry.counts(elapsed(arm, OP)));
        row.push(if first { entry.proof() } else { Cell::default() });
        row
    };
    let mut rows = Vec::new();
    for entry in entries {
        let mut arms = arms(entry, "op");
        if arms.is_empty() {
            arms.push("–");
        }
        let numbered = arms.iter().enumerate();
        rows.extend(numbered.map(|(nth, arm)| row(entry, arm, nth == 0)));
    }
    Table::of(columns, rows)
}

/// The first operation that was asked for, by memory type.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let mine = mine(&run.entries, LATENCY);
    let Some(arm) = mine.iter().find_map(|entry| arms(entry, "op").into_iter().next()) else {
        return Vec::new();
    };
    let known = mine.iter().filter_map(|e| Some((e.parameter("type"), number(e, arm, OP, "p50")?)));
    let mut known: Vec<(&str, Quantity)> = known.collect();
    known.dedup_by_key(|(memory_type, _)| *memory_type);
    let Some(((first, median), others)) = known.split_first() else { return Vec::new() };
    let other =
        |(other, q): &(&str, Quantity)| Some(format!("{} {}", display_type(other), q.display()));
    let label = format!("median of one {arm}, {} memory", display_type(first));
    vec![headline(*median, label, &others.iter().map(other).collect::<Vec<_>>())]
}

/// The median over that of the same operation on cached WB memory.
fn over_wb(entry: &Entry, arm: &str, entries: &[&Entry]) -> Option<Quantity> {
    let ignored = [&PLACE[..], &["state"]].concat();
    let rest = |entry: &Entry| parameters::without(entry.case(), &ignored);
    let hot = |entry: &Entry| {
        entry.parameter("type") == TYPES[0] && entry.parameter("state") != "flushed"
    };
    if hot(entry) {
        return None;
    }
    let wb = entries.iter().filter(|other| hot(other) && rest(other) == rest(entry));
    let mut medians = wb.filter_map(|other| number(other, arm, OP, "p50"));
    number(entry, arm, OP, "p50")?.over(medians.next()?, Unit::Ratio)
}
