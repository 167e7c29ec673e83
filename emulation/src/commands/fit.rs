//! How well a generated trace fits what was published of the trace that it imitates.
//!
//! Published results are records of `trace/stats` that hold what their source states: counts, or
//! shares in hundredths of a percent. Both sides become percentages under the same names, and the
//! table has a row for each that was published.

use crate::trace::{stats_counters, stats_tables};
use pagelab_record::{Measured, Nature, Outcome, units::whole};
use pagelab_trace::{
    decode,
    stats::{Collector, Options},
};

use pagelab_cli::published;

/// The published results that generators imitate.
const PUBLISHED: &str = "fast-memory";

/// Collects the statistics of a trace while it is written.
#[derive(Debug)]
pub(super) struct Fit {
    collector: Collector,
    published: Measured,
}

impl Fit {
    /// Ready to look at a trace of the generator of this name.
    ///
    /// # Errors
    /// When nothing was published that it imitates.
    pub(super) fn of(name: &str) -> Result<Self, String> {
        let mut published = Measured::default();
        for record in published::published(PUBLISHED)? {
            let is_ours = record.workload == crate::trace::stats::NAME
                && record.nature == Nature::Published
                && record.case.get("trace") == Some(name);
            if let Outcome::Measured(measured) = record.outcome
                && is_ours
            {
                published.counters.extend(measured.counters);
                published.tables.extend(measured.tables);
            }
        }
        if published.counters.is_empty() {
            return Err(format!("--fit: nothing was published that {name} imitates"));
        }
        let collector = Collector::new(&Options::default()).map_err(|bad| bad.to_string())?;
        Ok(Self { collector, published })
    }

    /// Looks at a piece of whole records.
    pub(super) fn take(&mut self, piece: &[u8]) {
        decode::visit(piece, 0, &mut self.collector).expect("a generator makes whole records");
    }

    /// The statistics beside the published ones, in a table.
    pub(super) fn text(self) -> String {
        let stats = self.collector.finish(0);
        let counters = stats_counters(&stats).into_iter();
        let fitted = Measured {
            tables: stats_tables(&stats),
            counters: counters.map(|(name, value)| (name.to_owned(), value)).collect(),
            ..Measured::default()
        };
        let fitted = percentages(&fitted);
        let mut text = format!("{:<32} {:>10} {:>10}\n", "", "fitted", "published");
        for (name, published) in percentages(&self.published) {
            let found = fitted.iter().find(|(other, _)| *other == name);
            let found = found.map_or_else(|| "-".to_owned(), |(_, value)| format!("{value:.2} %"));
            text.push_str(&format!("{name:<32} {found:>10} {:>10}\n", format!("{published:.2} %")));
        }
        text
    }
}

/// Everything that is a share of something, in percent, by name.
fn percentages(of: &Measured) -> Vec<(String, f64)> {
    let mut all = Vec::new();
    let count = |name: &str| of.counters.get(name).map(|count| *count as f64);
    if let Some(ops) = count("ops") {
        for (name, label, whole) in [
            ("reads", "reads of operations", ops),
            ("writes", "writes of operations", ops),
            ("straddles", "straddles of operations", ops),
            ("transitions", "page transitions", ops - 1.0),
            ("absent_reads", "absent reads of operations", ops),
        ] {
            all.extend(count(name).map(|part| (label.to_owned(), 100.0 * part / whole.max(1.0))));
        }
    }
    // Counts as shares of their whole, and shares as they were stated, in hundredths of a percent.
    let mut add = |counts: &str, shares: &str, column: usize, label: &Label, whole: &Whole| {
        let counted = rows(of, counts).into_iter();
        all.extend(counted.map(|row| (label(row), 100.0 * row[column] / whole(row).max(1.0))));
        all.extend(rows(of, shares).into_iter().map(|row| (label(row), row[column] / 100.0)));
    };
    let sum =
        |table: &str, column: usize| -> f64 { rows(of, table).iter().map(|row| row[column]).sum() };
    for (column, kind) in [(1, "reads"), (2, "writes")] {
        let whole = sum("widths", column);
        let label = |row: Row| format!("{kind} of {} bytes", row[0]);
        add("widths", "width-shares", column, &label, &|_| whole);
    }
    for (counts, shares, label) in [
        ("runs", "run-shares", "runs of"),
        ("reuse", "reuse-shares", "reuse distance"),
        ("absent-reuse", "absent-reuse-shares", "absent reuse distance"),
    ] {
        let whole = sum(counts, 2);
        let range = |[from, to, _]: Row| {
            if from < to { format!("{label} {from} to {to}") } else { format!("{label} {from}") }
        };
        add(counts, shares, 2, &range, &|_| whole);
    }
    let pages = |row: Row| format!("hits in {} pages", row[0]);
    add("caches", "cache-hit-rates", 1, &pages, &|[_, hits, misses]| hits + misses);
    let ops = count("ops").unwrap_or(0.0);
    add("top-pages", "top-page-shares", 1, &|row| page(row[0]), &|_| ops);
    all
}

/// What a row of a table is called.
type Label<'l> = dyn Fn(Row) -> String + 'l;
/// What a count of a row is a share of.
type Whole<'w> = dyn Fn(Row) -> f64 + 'w;
/// A row of a table; cells that it does not have are 0.
type Row = [f64; 3];

fn page(number: f64) -> String {
    format!("operations on page {:#x}", whole(number))
}

/// The rows of a table; none where there is no such table. Each has at least three cells.
fn rows(of: &Measured, name: &str) -> Vec<Row> {
    let tables = of.tables.iter().filter(|table| table.name == name);
    let cell = |row: &[i64], at: usize| row.get(at).map_or(0.0, |cell| *cell as f64);
    let row = |row: &Vec<i64>| [cell(row, 0), cell(row, 1), cell(row, 2)];
    tables.flat_map(|table| table.rows.iter().map(row)).collect()
}

#[cfg(test)]
mod tests {
    use pagelab_trace::synth::Spec;

    use super::*;

    fn of(trace: &str) -> Result<Fit, String> {
        pagelab_cli::part::set(&[&crate::PART]);
        Fit::of(trace)
    }

    #[test]
    fn the_published_fib_fits_itself() {
        let mut fit = of("fib").unwrap();
        let mut spec = Spec::parse("fib").unwrap();
        spec.ops = 200_000;
        let mut piece = Vec::new();
        let mut stream = spec.stream();
        while stream.next_into(&mut piece) {
            fit.take(&piece);
        }
        let text = fit.text();
        for name in ["reads of 2 bytes", "writes of 8 bytes", "operations on page 0x11"] {
            let row = text.lines().find(|line| line.starts_with(name)).expect(name);
            let shares: Vec<&str> = row[name.len()..].split(" %").map(str::trim).collect();
            assert_eq!(shares, ["100.00", "100.00", ""], "{text}");
        }
    }

    #[test]
    fn what_was_not_published_has_no_fit() {
        assert!(of("zipf").unwrap_err().contains("zipf"));
    }
}
