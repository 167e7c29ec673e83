//! Parts of a program as tables of its record: sites, stacks, mappings, threads.
//!
//! The one idea: a part is a table of one row, a column for each group of faults; the heaviest are
//! told one by one, and what the others are together.

use std::{borrow::Cow, cmp::Reverse};

use pagelab_record::Table;

use super::counts::Part;

/// Parts of a kind that are told one by one.
pub(super) const SHOWN: usize = 40;

/// A table of one row.
pub(super) fn row(name: String, cells: &[(&str, &str, u64)]) -> Table {
    let columns = cells.iter().map(|(name, unit, _)| (*name, *unit));
    Table::new(name, columns, [cells.iter().map(|(_, _, value)| *value)])
}

/// The heaviest parts, so many of them, each a row of its groups and the time from exception to
/// handled, and what the others are together.
pub(super) fn part_tables<'n>(
    (what, most): (&str, usize),
    named: impl IntoIterator<Item = (impl Into<Cow<'n, str>>, Part)>,
    (others, mut rest): (&'n str, Part),
    size: Option<(&str, &str)>,
) -> Vec<Table> {
    let named = named.into_iter().map(|(name, part)| (name.into(), part));
    let mut parts: Vec<(Cow<'_, str>, Part)> = named.collect();
    parts.sort_by_key(|(_, part)| Reverse(part.weight()));
    for (_, part) in parts.drain(parts.len().min(most)..) {
        rest.add(&part);
    }
    if !rest.groups.is_empty() {
        parts.push((others.into(), rest));
    }
    let table = |(name, Part { size: of_part, groups }): &(Cow<'_, str>, Part)| {
        let columns: Vec<String> = groups.keys().map(ToString::to_string).collect();
        let faults = columns.iter().zip(groups.values());
        let mut cells: Vec<(&str, &str, u64)> =
            faults.map(|(name, count)| (name.as_str(), "faults", count.faults)).collect();
        cells.push(("seen_ns", "ns", groups.values().map(|count| count.seen_ns).sum()));
        cells.extend(size.map(|(name, unit)| (name, unit, *of_part)));
        row(format!("{what}/{name}"), &cells)
    };
    parts.iter().map(table).collect()
}
