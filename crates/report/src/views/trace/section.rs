//! The tables of `trace/stats`, with the published numbers of a trace of that name beside.
//!
//! The one idea: a table asks for a name in this trace and in the published ones, so that a column
//! of differences costs nothing; where nothing is published, the columns are not there. Differences
//! of shares are in points: 34.7 % less 34.2 % is 0.5.

use std::collections::BTreeSet;

use pagelab_record::units;

use super::{WHOLE, WORKLOAD, percent, published_of};
use crate::{
    cases::{all_rows, titles},
    document::{Block, Cell, Column, Section, Table, Tone},
    entry::Entry,
    numbers::{counted, cpu},
    quantity::{Quantity, group_thousands},
    run::Run,
};

/// Pages of the list that a table shows; the JSON has all.
const TOP_ROWS: usize = 20;

/// A trace, and what was published of it.
struct Traced<'a> {
    entry: &'a Entry,
    published: Vec<&'a Entry>,
}

impl Traced<'_> {
    fn number(&self, series: &str, statistic: &str) -> Option<Quantity> {
        self.entry.numbers.get(counted(series), statistic)
    }

    fn published(&self, series: &str, statistic: &str) -> Option<Quantity> {
        self.published.iter().find_map(|entry| entry.numbers.get(counted(series), statistic))
    }

    fn is_published(&self) -> bool {
        !self.published.is_empty()
    }

    /// What follows a prefix in the names of this trace's numbers, in their order, each once.
    fn names(&self, prefix: &str) -> Vec<&str> {
        let numbers = self.entry.numbers.0.iter();
        let mut names: Vec<&str> =
            numbers.filter_map(|number| number.series.strip_prefix(prefix)).collect();
        names.dedup();
        names
    }

    /// A share, the published one, and how far they are apart.
    fn compared(&self, series: &str, statistic: &str) -> Vec<Cell> {
        let (here, there) = (self.number(series, statistic), self.published(series, statistic));
        let mut cells = vec![Cell::maybe(here.map(percent))];
        if self.is_published() {
            let quiet = |cell| Cell { tone: Tone::Quiet, ..cell };
            cells.push(quiet(Cell::maybe(there.map(percent))));
            cells.push(quiet(Cell::maybe(here.zip(there).map(points))));
        }
        cells
    }

    /// The headings of [`Traced::compared`].
    fn compared_columns(&self, name: &str, rank: u8) -> Vec<Column> {
        let mut columns = vec![Column::number(name)];
        if self.is_published() {
            columns.push(Column::number("published").rank(rank));
            columns.push(Column::number("apart").rank(rank + 1));
        }
        columns
    }
}

/// How far two shares are apart, in points of a hundred.
fn points((here, there): (Quantity, Quantity)) -> String {
    let points = (here.value - there.value) * 100.0;
    // No sign where there is no difference to show.
    if points.abs() < 0.005 { "0.00".to_owned() } else { format!("{points:+.2}") }
}

/// The tables of every trace, where there is one.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = run.rows(WORKLOAD);
    if mine.is_empty() {
        return None;
    }
    let mut section = Section::new("trace-stats", "Trace statistics");
    section.blocks.extend(super::charts::blocks(run));
    for (entry, title) in mine.iter().zip(titles(&mine, &[])) {
        let traced = Traced { entry, published: published_of(entry, &run.published) };
        section.blocks.push(Block::Heading(title));
        section.blocks.push(Block::Text(conditions(&traced)));
        if !entry.is_valid() {
            section.blocks.extend(entry.notes());
            continue;
        }
        let tables = [
            Some(totals(&traced)),
            histograms(&traced),
            caches(&traced),
            top_pages(&traced),
            miss_ratio(&traced),
            reach(&traced),
        ];
        section.blocks.extend(tables.into_iter().flatten().map(Block::Table));
    }
    let said = "Shares of reads and writes by width are of all reads and of all writes; runs are \
                stretches of operations on one page; a reuse distance counts the operations since \
                the page was used last, 1 for the next one; an absent read is one of a page that \
                nothing was written to yet; a direct-mapped cache puts page p into slot p mod N, \
                and a conflict is a miss on a slot that is not empty. Apart: in points of a \
                hundred.";
    Some(section.with(Block::Text(said.to_owned())))
}

fn conditions(traced: &Traced<'_>) -> String {
    let rest = all_rows(&[traced.entry], &["trace".to_owned()]);
    let beside = match traced.published.first() {
        Some(entry) if traced.is_published() => {
            let ops = entry.numbers.get(counted(WHOLE), "ops");
            let ops = ops.map(|ops| format!(" ({} operations)", group_thousands(ops.value)));
            format!(" Beside it the published trace of that name{}.", ops.unwrap_or_default())
        }
        _ => String::new(),
    };
    let proof = traced.entry.proof().text;
    // What looking costs, not what the trace costs.
    let collected = traced.entry.numbers.get(cpu("pagelab", "collect"), "p50");
    let collected = collected.map(|each| format!(" Looking took {} an operation.", each.display()));
    format!("{rest}Claims: {proof}.{}{beside}", collected.unwrap_or_default())
}

fn totals(traced: &Traced<'_>) -> Table {
    let mut columns = vec![Column::words("statistic"), Column::number("count")];
    columns.extend(traced.compared_columns("share", 2));
    if traced.is_published() {
        columns.insert(2, Column::number("published").rank(1));
    }
    let mut rows = Vec::new();
    let mut row = |name: String, series: &str, count: &str, share: &str| {
        let (here, there) = (traced.number(series, count), traced.published(series, count));
        if here.is_none() && traced.number(series, share).is_none() {
            return;
        }
        let whole = |q: Option<Quantity>| Cell::maybe(q.map(|q| group_thousands(q.value)));
        let mut cells = vec![name.into(), Cell { tone: Tone::Strong, ..whole(here) }];
        if traced.is_published() {
            cells.push(Cell { tone: Tone::Quiet, ..whole(there) });
        }
        cells.extend(traced.compared(series, share));
        rows.push(cells);
    };
    let mut whole = |name: &str, count, share| row(name.to_owned(), WHOLE, count, share);
    whole("operations", "ops", "");
    whole("bytes", "bytes", "");
    whole("reads", "reads", "read_share");
    whole("writes", "writes", "write_share");
    whole("straddles", "straddles", "straddle_share");
    whole("page transitions", "transitions", "transition_share");
    whole("distinct pages", "pages", "");
    whole("absent reads", "absent_reads", "absent_share");
    whole("pages of absent reads", "absent_pages", "");
    for width in traced.names("width/") {
        let series = format!("width/{width}");
        row(format!("reads of {width} B"), &series, "reads", "read_share");
    }
    for width in traced.names("width/") {
        let series = format!("width/{width}");
        row(format!("writes of {width} B"), &series, "writes", "write_share");
    }
    Table { columns, rows }
}

/// Run lengths and reuse distances by powers of two, side by side.
fn histograms(traced: &Traced<'_>) -> Option<Table> {
    const HISTOGRAMS: [(&str, &str); 3] =
        [("runs", "runs"), ("reuse", "reuse"), ("absent-reuse", "absent reuse")];
    let first = |name: &str| name.split(['-', '+']).next().and_then(|from| from.parse().ok());
    let buckets: BTreeSet<(u64, &str)> = HISTOGRAMS
        .iter()
        .flat_map(|(name, _)| {
            let prefix: &'static str = match *name {
                "runs" => "runs/",
                "reuse" => "reuse/",
                _ => "absent-reuse/",
            };
            traced.names(prefix)
        })
        .filter_map(|bucket| Some((first(bucket)?, bucket)))
        .collect();
    if buckets.is_empty() {
        return None;
    }
    let mut columns = vec![Column::words("operations")];
    for (at, (_, heading)) in HISTOGRAMS.iter().enumerate() {
        columns.extend(traced.compared_columns(heading, if at == 1 { 1 } else { 3 }));
    }
    let row = |(_, bucket): &(u64, &str)| {
        let mut row = vec![Cell::from(bucket.replace('-', "–"))];
        for (name, _) in HISTOGRAMS {
            row.extend(traced.compared(&format!("{name}/{bucket}"), "share"));
        }
        row
    };
    Some(Table { columns, rows: buckets.iter().map(row).collect() })
}

fn caches(traced: &Traced<'_>) -> Option<Table> {
    let sizes = traced.names("cache/");
    if sizes.is_empty() {
        return None;
    }
    let mut columns = vec![Column::words("direct-mapped")];
    columns.extend(traced.compared_columns("hits", 1));
    columns.push(Column::number("conflicts").rank(2));
    columns.push(Column::number("absent hits"));
    if traced.is_published() {
        columns.push(Column::number("published").rank(3));
    }
    let ends = ["hit_rate_low", "hit_rate_high"].map(|end| traced.published("absent-cache", end));
    let row = |size: &&str| {
        let series = format!("cache/{size}");
        let mut row = vec![Cell::from(format!("{size} pages"))];
        row.extend(traced.compared(&series, "hit_rate"));
        let conflicts = traced.number(&series, "conflicts");
        row.push(Cell::maybe(conflicts.map(|count| group_thousands(count.value))));
        let absent = traced.number(&format!("absent-cache/{size}"), "hit_rate");
        row.push(Cell::maybe(absent.map(percent)));
        if traced.is_published() {
            let range = match ends {
                [Some(low), Some(high)] => {
                    Some(format!("{:.1}–{:.1} %", low.value * 100.0, high.value * 100.0))
                }
                _ => None,
            };
            row.push(Cell { tone: Tone::Quiet, ..Cell::maybe(range) });
        }
        row
    };
    Some(Table { columns, rows: sizes.iter().map(row).collect() })
}

fn top_pages(traced: &Traced<'_>) -> Option<Table> {
    let mut pages = traced.names("page/");
    let more = pages.len().saturating_sub(TOP_ROWS);
    pages.truncate(TOP_ROWS);
    if pages.is_empty() {
        return None;
    }
    let mut columns = vec![Column::words("page"), Column::number("operations")];
    columns.extend(traced.compared_columns("share", 1));
    let row = |page: &&str| {
        let series = format!("page/{page}");
        let count = traced.number(&series, "count");
        let count = count.map(|count| group_thousands(count.value));
        let mut row = vec![Cell::from((*page).to_owned()), Cell::maybe(count)];
        row.extend(traced.compared(&series, "share"));
        row
    };
    let mut rows: Vec<Vec<Cell>> = pages.iter().map(row).collect();
    if more > 0 {
        let mut last = vec![Cell::toned(format!("{more} more in JSON"), Tone::Quiet)];
        last.resize_with(columns.len(), Cell::default);
        rows.push(last);
    }
    Some(Table { columns, rows })
}

/// The miss-ratio curve at the powers of two, and where it ends.
fn miss_ratio(traced: &Traced<'_>) -> Option<Table> {
    let sizes = traced.names("lru/");
    let last = *sizes.last()?;
    let page = traced.entry.parameter("page-shift").parse().map_or(4096.0, |s: i32| 2f64.powi(s));
    let sampled = traced.number(WHOLE, "sampled_one_in").filter(|one_in| one_in.value > 1.0);
    let heading = match sampled {
        Some(one_in) => format!("pages, LRU, one in {:.0} sampled", one_in.value),
        None => "pages, LRU, exact".to_owned(),
    };
    let columns = vec![
        Column::words(&heading),
        Column::number("which is"),
        Column::number("misses"),
        Column::number("miss ratio"),
    ];
    let shown = |size: &&&str| {
        let pages: Option<u64> = size.parse().ok();
        pages.is_some_and(u64::is_power_of_two) || **size == last
    };
    let row = |size: &&str| {
        let of = |statistic| traced.number(&format!("lru/{size}"), statistic);
        let bytes: Option<f64> = size.parse().ok().map(|pages: f64| pages * page);
        vec![
            Cell::from((*size).to_owned()),
            Cell { tone: Tone::Quiet, ..Cell::maybe(bytes.map(units::display_bytes)) },
            Cell::maybe(of("misses").map(|misses| group_thousands(misses.value))),
            Cell::maybe(of("miss_ratio").map(percent)),
        ]
    };
    Some(Table { columns, rows: sizes.iter().filter(shown).map(row).collect() })
}

/// What fully associative LRU TLBs reach and miss, by page size.
fn reach(traced: &Traced<'_>) -> Option<Table> {
    let mut pages: Vec<&str> = Vec::new();
    let mut entries: Vec<&str> = Vec::new();
    for (page, count) in traced.names("tlb/").iter().filter_map(|name| name.split_once('/')) {
        if !pages.contains(&page) {
            pages.push(page);
        }
        if !entries.contains(&count) {
            entries.push(count);
        }
    }
    if pages.is_empty() {
        return None;
    }
    let mut columns = vec![Column::words("TLB, LRU")];
    for page in &pages {
        columns.push(Column::number(&format!("reach, {page} pages")).rank(1));
        columns.push(Column::number(&format!("misses, {page} pages")));
    }
    let row = |count: &&str| {
        let mut row = vec![Cell::from(format!("{count} entries"))];
        for page in &pages {
            let of = |statistic| traced.number(&format!("tlb/{page}/{count}"), statistic);
            let bytes = of("reach_bytes").map(|bytes| units::display_bytes(bytes.value));
            row.push(Cell { tone: Tone::Quiet, ..Cell::maybe(bytes) });
            row.push(Cell::maybe(of("miss_ratio").map(percent)));
        }
        row
    };
    Some(Table { columns, rows: entries.iter().map(row).collect() })
}
