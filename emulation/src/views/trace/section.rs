//! The tables of `trace/stats`, with the published numbers of a trace of that name beside.
//!
//! The one idea: a table asks for a name in this trace and in the published ones, so that a column
//! of differences costs nothing; where nothing is published, the columns are not there. Differences
//! of shares are in points: 34.7 % less 34.2 % is 0.5.

use std::collections::BTreeSet;

use pagelab_record::units;

use super::{WHOLE, WORKLOAD, percent, published_of};
use pagelab_record::vocabulary::parameter;
use pagelab_report::{
    Cell, Entry, Grid, Quantity, Run, Section, Table, Tone, all_rows, cpu, distinct,
    group_thousands, numbers::counted, titles,
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

    /// Columns of a share, of the published one, and of how far they are apart.
    fn compared<'a, R: 'a>(
        &'a self,
        grid: Grid<'a, R>,
        (name, rank): (&str, u8),
        of: impl Fn(&R) -> (String, &'static str) + Copy + 'a,
    ) -> Grid<'a, R> {
        let here = move |row: &R| {
            let (series, statistic) = of(row);
            self.number(&series, statistic)
        };
        let there = move |row: &R| {
            let (series, statistic) = of(row);
            self.published(&series, statistic)
        };
        let apart = move |row: &R| here(row).zip(there(row)).map(points);
        grid.number(name, 0, move |row| here(row).map(percent)).only_if(
            self.is_published(),
            |grid| {
                grid.number("published", rank, move |row| {
                    Cell::maybe(there(row).map(percent)).quiet()
                })
                .number("apart", rank + 1, move |row| Cell::maybe(apart(row)).quiet())
            },
        )
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
    let mine = run.any(WORKLOAD)?;
    let mut section = Section::new("trace-stats", "Trace statistics");
    section.all(super::charts::blocks(run));
    for (entry, title) in mine.iter().zip(titles(&mine, &[])) {
        let traced = Traced { entry, published: published_of(entry, &run.published) };
        section.head(title);
        section.add(conditions(&traced));
        if !entry.is_valid() {
            section.all(entry.notes());
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
        section.all(tables.into_iter().flatten());
    }
    let said = "Shares of reads and writes by width are of all reads and of all writes; runs are \
                stretches of operations on one page; a reuse distance counts the operations since \
                the page was used last, 1 for the next one; an absent read is one of a page that \
                nothing was written to yet; a direct-mapped cache puts page p into slot p mod N, \
                and a conflict is a miss on a slot that is not empty. Apart: in points of a \
                hundred.";
    Some(section.with(said))
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
    let whole = [
        ("operations", "ops", ""),
        ("bytes", "bytes", ""),
        ("reads", "reads", "read_share"),
        ("writes", "writes", "write_share"),
        ("straddles", "straddles", "straddle_share"),
        ("page transitions", "transitions", "transition_share"),
        ("distinct pages", "pages", ""),
        ("absent reads", "absent_reads", "absent_share"),
        ("pages of absent reads", "absent_pages", ""),
    ];
    let whole = whole.map(|(name, count, share)| (name.to_owned(), WHOLE.to_owned(), count, share));
    let by_width = [("reads", "read_share"), ("writes", "write_share")];
    let by_width = by_width.into_iter().flat_map(|(what, share)| {
        let of = move |width: &str| {
            (format!("{what} of {width} B"), format!("width/{width}"), what, share)
        };
        traced.names("width/").into_iter().map(of)
    });
    let rows = whole.into_iter().chain(by_width).filter(|(_, series, count, share)| {
        [count, share].into_iter().any(|statistic| traced.number(series, statistic).is_some())
    });
    let shown = |count: Option<Quantity>| Cell::maybe(count.map(|q| group_thousands(q.value)));
    let grid = Grid::<(String, String, &str, &str)>::new()
        .words("statistic", 0, |(name, ..)| name.clone())
        .number("count", 0, |(_, of, count, _)| shown(traced.number(of, count)).strong())
        .only_if(traced.is_published(), |grid| {
            grid.number("published", 1, |(_, of, count, _)| {
                shown(traced.published(of, count)).quiet()
            })
        });
    traced.compared(grid, ("share", 2), |(_, of, _, share)| (of.clone(), share)).table(rows)
}

/// Run lengths and reuse distances by powers of two, side by side.
fn histograms(traced: &Traced<'_>) -> Option<Table> {
    const HISTOGRAMS: [(&str, &str, u8); 3] =
        [("runs/", "runs", 3), ("reuse/", "reuse", 1), ("absent-reuse/", "absent reuse", 3)];
    let first = |name: &str| name.split(['-', '+']).next().and_then(|from| from.parse().ok());
    let buckets = HISTOGRAMS.iter().flat_map(|(prefix, ..)| traced.names(prefix));
    let buckets: BTreeSet<(u64, &str)> =
        buckets.filter_map(|bucket| Some((first(bucket)?, bucket))).collect();
    buckets.first()?;
    let grid =
        Grid::<(u64, &str)>::new().words("operations", 0, |(_, bucket)| bucket.replace('-', "–"));
    let add = |grid, (prefix, heading, rank): (&'static str, &str, u8)| {
        let of = move |(_, bucket): &(u64, &str)| (format!("{prefix}{bucket}"), "share");
        traced.compared(grid, (heading, rank), of)
    };
    Some(HISTOGRAMS.into_iter().fold(grid, add).table(buckets))
}

fn caches(traced: &Traced<'_>) -> Option<Table> {
    let sizes = traced.names("cache/");
    sizes.first()?;
    let [low, high] = ["hit_rate_low", "hit_rate_high"]
        .map(|end| traced.published("absent-cache", end).map(|share| share.value * 100.0));
    let range = low.zip(high).map(|(low, high)| format!("{low:.1}–{high:.1} %"));
    let grid = Grid::<&str>::new().words("direct-mapped", 0, |size| format!("{size} pages"));
    let grid = traced
        .compared(grid, ("hits", 1), |size| (format!("cache/{size}"), "hit_rate"))
        .number("conflicts", 2, |size| {
            let conflicts = traced.number(&format!("cache/{size}"), "conflicts");
            conflicts.map(|count| group_thousands(count.value))
        })
        .number("absent hits", 0, |size| {
            traced.number(&format!("absent-cache/{size}"), "hit_rate").map(percent)
        })
        .only_if(traced.is_published(), |grid| {
            grid.number("published", 3, move |_| Cell::maybe(range.clone()).quiet())
        });
    Some(grid.table(sizes))
}

fn top_pages(traced: &Traced<'_>) -> Option<Table> {
    let mut pages = traced.names("page/");
    let more = pages.len().saturating_sub(TOP_ROWS);
    pages.truncate(TOP_ROWS);
    pages.first()?;
    let grid = Grid::<&str>::new().words("page", 0, |page| *page).number("operations", 0, |page| {
        traced.number(&format!("page/{page}"), "count").map(|count| group_thousands(count.value))
    });
    let of = |page: &&str| (format!("page/{page}"), "share");
    let mut table = traced.compared(grid, ("share", 1), of).table(pages);
    if more > 0 {
        let mut last = vec![Cell::toned(format!("{more} more in JSON"), Tone::Quiet)];
        last.resize_with(table.columns.len(), Cell::default);
        table.rows.push(last);
    }
    Some(table)
}

/// The miss-ratio curve at the powers of two, and where it ends.
fn miss_ratio(traced: &Traced<'_>) -> Option<Table> {
    let sizes = traced.names("lru/");
    let last = *sizes.last()?;
    let page =
        traced.entry.value(parameter::PAGE_SHIFT).parse().map_or(4096.0, |s: i32| 2f64.powi(s));
    let sampled = traced.number(WHOLE, "sampled_one_in").filter(|one_in| one_in.value > 1.0);
    let heading = match sampled {
        Some(one_in) => format!("pages, LRU, one in {:.0} sampled", one_in.value),
        None => "pages, LRU, exact".to_owned(),
    };
    let shown = |size: &&str| {
        let pages: Option<u64> = size.parse().ok();
        pages.is_some_and(u64::is_power_of_two) || *size == last
    };
    let bytes = |size: &str| size.parse().ok().map(|pages: f64| units::display_bytes(pages * page));
    let of = |size: &str, statistic| traced.number(&format!("lru/{size}"), statistic);
    let grid = Grid::<&str>::new()
        .words(&heading, 0, |size| *size)
        .number("which is", 0, |size| Cell::maybe(bytes(size)).quiet())
        .number("misses", 0, |size| of(size, "misses").map(|q| group_thousands(q.value)))
        .number("miss ratio", 0, |size| of(size, "miss_ratio").map(percent));
    Some(grid.table(sizes.into_iter().filter(shown)))
}

/// What fully associative LRU TLBs reach and miss, by page size.
fn reach(traced: &Traced<'_>) -> Option<Table> {
    let names = traced.names("tlb/");
    let both = names.iter().filter_map(|name| name.split_once('/'));
    let (pages, entries): (Vec<&str>, Vec<&str>) = both.unzip();
    let (pages, entries) = (distinct(pages), distinct(entries));
    pages.first()?;
    let mut grid = Grid::<&str>::new().words("TLB, LRU", 0, |count| format!("{count} entries"));
    for page in &pages {
        let of = move |count: &str, name| traced.number(&format!("tlb/{page}/{count}"), name);
        let reach =
            move |count: &str| of(count, "reach_bytes").map(|q| units::display_bytes(q.value));
        let misses = move |count: &str| of(count, "miss_ratio").map(percent);
        grid = grid
            .number(&format!("reach, {page} pages"), 1, move |count| {
                Cell::maybe(reach(count)).quiet()
            })
            .number(&format!("misses, {page} pages"), 0, move |count| misses(count));
    }
    Some(grid.table(entries))
}
