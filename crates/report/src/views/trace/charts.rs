//! What the page draws of traces.
//!
//! The one idea: every trace is a series of one chart for each statistic, so that two traces, or a
//! trace and the published one of its name, can be compared by eye; shares only, because lengths
//! differ. Points stand in the tables as well.

use serde::Serialize;
use serde_json::{Value, json};

use super::WORKLOAD;
use crate::{
    cases::{name_of, titles},
    document::{Block, ChartPlace},
    entry::Entry,
    numbers::counted,
    run::Run,
};

/// What is drawn of the traces of a run.
pub(crate) fn charts(run: &Run) -> Vec<(&'static str, Value)> {
    vec![("trace", json!(TraceCharts::of(run)))]
}

/// Everything that is drawn of traces.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct TraceCharts {
    /// Shares of reads and writes by width.
    widths: Bars,
    /// Run lengths by powers of two.
    runs: Bars,
    /// Reuse distances by powers of two.
    reuse: Bars,
    /// Reuse distances of absent reads.
    absent: Bars,
    /// Hit rates of direct-mapped caches by their pages.
    hits: Vec<Curve>,
    /// Miss ratios of fully associative LRU caches by their pages, and of direct-mapped ones.
    misses: Vec<Curve>,
}

/// Shares by category.
#[derive(Debug, Clone, Default, Serialize)]
struct Bars {
    categories: Vec<String>,
    series: Vec<Values>,
}

#[derive(Debug, Clone, Serialize)]
struct Values {
    label: String,
    published: bool,
    /// One for each category; nothing where nothing is known.
    shares: Vec<Option<f64>>,
}

/// Shares by a number.
#[derive(Debug, Clone, Serialize)]
struct Curve {
    label: String,
    published: bool,
    /// Whether the points are measurements of their own, not samples of a curve.
    apart: bool,
    points: Vec<(f64, f64)>,
}

/// A trace to draw.
struct Drawn<'a> {
    label: String,
    published: bool,
    entries: Vec<&'a Entry>,
}

impl Drawn<'_> {
    fn share(&self, series: &str, statistic: &str) -> Option<f64> {
        let found = self.entries.iter().find_map(|e| e.numbers.get(counted(series), statistic));
        found.map(|share| share.value)
    }

    fn names(&self, prefix: &str) -> Vec<&str> {
        let numbers = self.entries.iter().flat_map(|entry| &entry.numbers.0);
        let mut names: Vec<&str> =
            numbers.filter_map(|number| number.series.strip_prefix(prefix)).collect();
        names.dedup();
        names
    }

    fn points(&self, prefix: &str, statistic: &str) -> Vec<(f64, f64)> {
        let point = |name: &&str| {
            let share = self.share(&format!("{prefix}{name}"), statistic)?;
            Some((name.parse().ok()?, share))
        };
        self.names(prefix).iter().filter_map(point).collect()
    }
}

impl TraceCharts {
    /// Of the traces of a run, each followed by what was published of it.
    pub(super) fn of(run: &Run) -> Self {
        let mut all = Vec::new();
        let mine = run.valid(WORKLOAD);
        for (&entry, label) in mine.iter().zip(titles(&mine, &[])) {
            let shift = entry.parameter("page-shift");
            let theirs = run.published.iter().filter(|other| {
                other.record.workload == WORKLOAD
                    && name_of(other.case()) == name_of(entry.case())
                    && other.case().get("page-shift").is_none_or(|theirs| theirs == shift)
            });
            let theirs: Vec<&Entry> = theirs.collect();
            let beside = format!("{label}, published");
            all.push(Drawn { label, published: false, entries: vec![entry] });
            if !theirs.is_empty() {
                all.push(Drawn { label: beside, published: true, entries: theirs });
            }
        }
        let hits = |drawn: &Drawn<'_>| points(drawn, "", "cache/", "hit_rate", true);
        let lru = |drawn: &Drawn<'_>| points(drawn, ", LRU", "lru/", "miss_ratio", false);
        let direct = |drawn: &Drawn<'_>| {
            let Curve { label, published, apart, points } = hits(drawn)?;
            let points = points.into_iter().map(|(size, rate)| (size, 1.0 - rate)).collect();
            Some(Curve { label: format!("{label}, direct-mapped"), published, apart, points })
        };
        // A direct-mapped cache says most beside the curve of the same trace.
        let curves = all.iter().filter(|drawn| lru(drawn).is_some());
        let misses = curves.flat_map(|drawn| [lru(drawn), direct(drawn)]).flatten().collect();
        Self {
            widths: widths(&all),
            runs: histogram(&all, "runs/"),
            reuse: histogram(&all, "reuse/"),
            absent: histogram(&all, "absent-reuse/"),
            hits: all.iter().filter_map(hits).collect(),
            misses,
        }
    }

    /// Where they stand in the section.
    pub(super) fn places(&self) -> Vec<Block> {
        let place = |id, is_there: bool, title: &str, caption: &str| {
            let (title, caption) = (title.to_owned(), caption.to_owned());
            is_there.then_some(Block::Chart(ChartPlace { id, nth: 0, title, caption }))
        };
        let bars = |bars: &Bars| !bars.series.is_empty();
        let blocks = [
            place(
                "widths",
                bars(&self.widths),
                "Widths of reads and writes",
                "Shares of all reads and of all writes. Hollow: published.",
            ),
            place(
                "runs",
                bars(&self.runs),
                "Run lengths",
                "How many operations follow each other on one page: shares of all runs.",
            ),
            place(
                "reuse",
                bars(&self.reuse),
                "Reuse distance",
                "How many operations ago the page was used last: shares of all reuses, on a \
                 logarithmic scale.",
            ),
            place(
                "absent",
                bars(&self.absent),
                "Reuse distance of absent reads",
                "The same for reads of pages that nothing was written to, over all operations.",
            ),
            place(
                "hits",
                !self.hits.is_empty(),
                "What a direct-mapped cache of pages would hit",
                "Share of the operations that find their page, by the size of the cache.",
            ),
            place(
                "misses",
                !self.misses.is_empty(),
                "Miss-ratio curve",
                "Share of the operations that an LRU cache of so many pages misses; points are \
                 direct-mapped caches.",
            ),
        ];
        blocks.into_iter().flatten().collect()
    }
}

fn points(
    drawn: &Drawn<'_>,
    suffix: &str,
    prefix: &str,
    statistic: &str,
    apart: bool,
) -> Option<Curve> {
    let points = drawn.points(prefix, statistic);
    let label = format!("{}{suffix}", drawn.label);
    (!points.is_empty()).then_some(Curve { label, published: drawn.published, apart, points })
}

fn widths(all: &[Drawn<'_>]) -> Bars {
    const STATISTICS: [(&str, &str); 2] = [("read_share", "read"), ("write_share", "write")];
    const WIDTHS: [&str; 4] = ["1", "2", "4", "8"];
    let category = |(_, word): (&str, &str)| WIDTHS.map(|width| format!("{word} {width} B"));
    let shares = |drawn: &Drawn<'_>| -> Vec<Option<f64>> {
        let of = |statistic: &'static str| {
            WIDTHS.map(|width| drawn.share(&format!("width/{width}"), statistic))
        };
        STATISTICS.iter().flat_map(|(statistic, _)| of(statistic)).collect()
    };
    Bars {
        categories: STATISTICS.into_iter().flat_map(category).collect(),
        series: all.iter().filter_map(|drawn| values(drawn, shares(drawn))).collect(),
    }
}

fn histogram(all: &[Drawn<'_>], prefix: &str) -> Bars {
    let from = |name: &str| -> u64 {
        name.split(['-', '+']).next().and_then(|from| from.parse().ok()).unwrap_or(u64::MAX)
    };
    let named = all.iter().flat_map(|drawn| drawn.names(prefix)).map(ToOwned::to_owned);
    let mut categories: Vec<String> = named.collect();
    // A record leaves out buckets that are empty; an axis must not.
    let ends = categories.iter().map(|name| from(name)).filter(|from| *from < u64::MAX);
    let (low, high) = (ends.clone().min().unwrap_or(1), ends.max().unwrap_or(0));
    let powers = (0..u64::BITS - 1).map(|power| 1 << power);
    let within: Vec<u64> = powers.filter(|power: &u64| (low..=high).contains(power)).collect();
    categories.extend(within.into_iter().map(|power| match power {
        1 => "1".to_owned(),
        power => format!("{power}-{}", power * 2 - 1),
    }));
    categories.sort_unstable_by_key(|name| from(name));
    categories.dedup();
    let shares = |drawn: &Drawn<'_>| -> Vec<Option<f64>> {
        let share = |name: &String| drawn.share(&format!("{prefix}{name}"), "share");
        categories.iter().map(share).collect()
    };
    let series = all.iter().filter_map(|drawn| values(drawn, shares(drawn))).collect();
    Bars { categories: categories.iter().map(|name| name.replace('-', "–")).collect(), series }
}

fn values(drawn: &Drawn<'_>, shares: Vec<Option<f64>>) -> Option<Values> {
    let known = shares.iter().any(Option::is_some);
    known.then(|| Values { label: drawn.label.clone(), published: drawn.published, shares })
}
