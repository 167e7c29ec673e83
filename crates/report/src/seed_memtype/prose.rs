//! The author's prose beside his own table: figures that he left from earlier runs.
//!
//! The one idea: both are in the published records, so that which figures contradict each other is
//! computed, not asserted.

use super::both::{Both, MIB};
use crate::{
    document::{Cell, Column, Table, Tone},
    entry::Entry,
    quantity::Quantity,
};

/// Up to this part, a figure may be another run's of the same kind.
const CLOSE: f64 = 0.02;
/// How far a figure in thousands, of two digits, may be rounded.
const TWO_DIGITS: f64 = 0.05;

/// What the table below the summary is about.
pub(super) const EXPLANATION: &str = "The prose describes earlier runs than the table. \"The four \
    ways to write UC differ little\" and \"in WB ntwrite is close to write\" have no figure and \
    contradict the table, too: see 1 and 4. GB/s in the prose are the thousands of what the table \
    calls MB/s, which are MiB/s.";

/// Each figure of the prose with what his table has in its place.
pub(super) fn table(both: &Both<'_>) -> Option<Table> {
    let said = both.published.iter().filter(|entry| entry.parameter("part") == "analysis");
    let rows: Vec<Vec<Cell>> = said.filter_map(|entry| row(both, entry)).collect();
    let columns = vec![
        Column::words("Memory type"),
        Column::words("test"),
        Column::number("prose"),
        Column::number("its table"),
        Column::number("apart"),
        Column::words("verdict"),
    ];
    (!rows.is_empty()).then_some(Table { columns, rows })
}

fn row(both: &Both<'_>, entry: &Entry) -> Option<Vec<Cell>> {
    let (memory_type, test) = (entry.parameter("type"), entry.parameter("test"));
    let table = both.published_rate(memory_type, test)?;
    let [low, high] = ["min", "max"].map(|end| {
        entry.counter(&format!("prose_bytes_per_second_{end}")).unwrap_or_default() as f64
    });
    let is_gb = entry.counter("prose_in_gb").unwrap_or_default() == 1;
    let scale = if is_gb { 1e9 } else { MIB };
    let unit = if is_gb { "GB/s" } else { "MiB/s" };
    let range = if low < high {
        format!("{:.0}–{:.0} {unit}", low / scale, high / scale)
    } else {
        format!("{:.0} {unit}", low / scale)
    };
    let decimals = if is_gb { 1 } else { 2 };
    let mut apart = apart(table, [low, high]);
    let verdict = if entry.counter("prose_is_order").unwrap_or_default() == 1 {
        Cell::toned("an order of magnitude", Tone::Quiet)
    } else if apart == 0.0 {
        Cell::toned("holds", Tone::Good)
    } else if is_gb && self::apart(table, [low, high].map(|end| end * MIB / 1e6)).abs() < TWO_DIGITS
    {
        Cell::toned("holds for thousands of MiB/s", Tone::Quiet)
    } else if apart.abs() < CLOSE {
        Cell::toned("contradicts: another run's", Tone::Warn)
    } else {
        Cell::toned("contradicts", Tone::Warn)
    };
    apart *= 100.0;
    Some(vec![
        memory_type.to_uppercase().into(),
        test.into(),
        range.into(),
        format!("{:.decimals$} {unit}", table.value / scale).into(),
        format!("{apart:+.1} %").into(),
        verdict,
    ])
}

/// How far the nearest end of a figure is from its table's number, as a part of that.
fn apart(table: Quantity, [low, high]: [f64; 2]) -> f64 {
    table.value.clamp(low, high) / table.value - 1.0
}
