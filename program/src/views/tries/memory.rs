//! Memory in large pages: one figure of a variant, and where its memory lies by mapping.
//!
//! Looks see what is there at that moment, so that the figure is what the look that saw most saw;
//! the mappings in the record are those of that look.

use pagelab_record::{Clock, units::display_bytes, vocabulary::tried};

use super::{Row, Tried, took::Took};
use pagelab_report::{Block, Cell, Column, Grid, Tone};

/// The page of a variant that brings base pages.
const BASE: u64 = 4096;

/// Mappings that the table shows.
const MAPPINGS: usize = 8;

impl Row<'_> {
    /// Bytes in pages of its size or larger, at the look that saw most: the one figure for it.
    pub(super) fn large(&self) -> Option<f64> {
        if self.rung.page == BASE {
            // Its series counts what was made present, in whatever pages.
            let tables = self.entry.measured().into_iter().flat_map(|measured| &measured.tables);
            let pages = tables.filter(|table| table.name == tried::PAGES);
            let kinds = pages.flat_map(|table| &table.rows).map(|row| row.iter().skip(1).sum());
            return kinds.max().map(|bytes: i64| bytes as f64);
        }
        self.values(tried::LARGE, Clock::Wall).into_values().reduce(f64::max)
    }
}

/// The same in a table.
pub(super) fn cell(row: &Row<'_>) -> Cell {
    match row.large() {
        // They came, by the faults that were spared.
        Some(0.0) if row.took == Took::Yes && row.rung.page > BASE => {
            Cell::toned("not seen", Tone::Quiet)
        }
        large => Cell::maybe(large.map(display_bytes)),
    }
}

/// Where the memory of the best rung lies, beside base pages.
pub(super) fn mappings(tried: &Tried<'_>) -> Vec<Block> {
    let Some((_, best)) = tried.answers().first().copied() else { return Vec::new() };
    let of = |row: &Row<'_>, name: &str, at: usize| -> Option<f64> {
        let measured = row.entry.measured()?;
        let table = measured.table(name)?;
        Some(*table.rows.first()?.get(at)? as f64)
    };
    let Some(measured) = best.entry.measured() else { return Vec::new() };
    let names = measured.tables.iter().filter(|table| table.name.starts_with(tried::MAPPING));
    let mut rows: Vec<_> =
        names.map(|table| (table, of(best, &table.name, 1).unwrap_or(0.0))).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    rows.sort_by(|one, other| other.1.total_cmp(&one.1));
    rows.truncate(MAPPINGS);
    let plain = |name: &str| of(tried.named(tried.base())?, name, 1);
    let name = |name: &str| name.strip_prefix(tried::MAPPING).unwrap_or_default().to_owned();
    let table = Grid::<(&pagelab_record::Table, f64)>::new()
        .with(Column::words("mapping").explains(), |(table, _)| name(&table.name))
        .number("held", 0, |(_, held)| display_bytes(*held))
        .number(&format!("more than {}", tried.base()), 0, |(table, held)| {
            plain(&table.name).map(|plain| display_bytes((held - plain).max(0.0)))
        })
        .number("in large pages", 0, |(table, _)| of(best, &table.name, 2).map(display_bytes))
        .told(rows);
    let heading =
        format!("Where {} holds memory, at the look that saw most in large pages", best.rung.name);
    vec![Block::Heading(heading), Block::Table(table)]
}
