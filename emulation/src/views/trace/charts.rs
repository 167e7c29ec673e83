//! What the page draws of traces.
//!
//! The one idea: every trace is a curve of one plane for each statistic, so that two traces, or a
//! trace and the published one of its name, can be compared by eye; shares only, because lengths
//! differ. Points stand in the tables as well.

use super::{WORKLOAD, published_of};
use pagelab_report::{
    Axis, Block, Curve, Entry, Key, Lanes, Mark, Plane, Quantity, Run, Scale, Unit,
    chart::{Dash, Row},
    hue,
    numbers::counted,
    titles,
};

/// A trace to draw. What was published of one has its colour, and is dotted or hollow.
struct Drawn<'a> {
    label: String,
    hue: f64,
    published: bool,
    entries: Vec<&'a Entry>,
}

impl Drawn<'_> {
    fn share(&self, series: &str, statistic: &str) -> Option<Quantity> {
        self.entries.iter().find_map(|e| e.numbers.get(counted(series), statistic))
    }

    /// The shares of a family of series by the number at the beginning of the rest of their names:
    /// `reuse/8-15` lies at 8.
    fn points(&self, prefix: &str, statistic: &str) -> Vec<(f64, f64)> {
        let numbers = self.entries.iter().flat_map(|entry| &entry.numbers.0);
        let mut names: Vec<&str> =
            numbers.filter_map(|number| number.series.strip_prefix(prefix)).collect();
        names.dedup();
        let point = |name: &str| {
            let share = self.share(&format!("{prefix}{name}"), statistic)?;
            Some((name.split(['-', '+']).next()?.parse().ok()?, share.value))
        };
        let mut points: Vec<(f64, f64)> = names.into_iter().filter_map(point).collect();
        points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        points
    }

    fn curve(&self, suffix: &str, mark: Mark, points: Vec<(f64, f64)>) -> Curve {
        let curve = Curve::new(format!("{}{suffix}", self.label), Some(self.hue), mark, points);
        if self.published { curve.drawn(Dash::Dotted) } else { curve }
    }
}

/// The traces of a run, each followed by what was published of it.
fn drawn(run: &Run) -> Vec<Drawn<'_>> {
    let mut all = Vec::new();
    let mine = run.valid(WORKLOAD);
    for (nth, (&entry, label)) in mine.iter().zip(titles(&mine, &[])).enumerate() {
        let theirs = published_of(entry, &run.published);
        let beside = format!("{label}, published");
        let hue = hue(nth);
        all.push(Drawn { label, hue, published: false, entries: vec![entry] });
        if !theirs.is_empty() {
            all.push(Drawn { label: beside, hue, published: true, entries: theirs });
        }
    }
    all
}

/// What is drawn of the traces of a run.
pub(super) fn blocks(run: &Run) -> impl Iterator<Item = Block> {
    let all = drawn(run);
    let share = |name: &str, scale| Axis::new(name, Unit::Share, scale);
    let along = |name: &str| Axis::new(name, Unit::Count, Scale::Doublings);
    let plane = |title: &str, caption: &str, prefix: &str, x: &str, scale| {
        let curves = all.iter().map(|one| one.curve("", Mark::Knots, one.points(prefix, "share")));
        let curves = curves.collect();
        Plane::new(title, caption, [along(x), share("share", scale)], curves)
            .shown()
            .map(Block::Plane)
    };
    let hits = |one: &Drawn<'_>| one.points("cache/", "hit_rate");
    let rates = all.iter().flat_map(hits).map(|(_, rate)| rate);
    let least = (rates.fold(1.0, f64::min) * 20.0 - 0.2).floor().max(0.0) / 20.0;
    let hit_rates = all.iter().map(|one| one.curve("", Mark::Points, hits(one))).collect();
    let misses = |one: &Drawn<'_>| {
        // A direct-mapped cache says most beside the curve of the same trace.
        let lru = one.points("lru/", "miss_ratio");
        let direct = hits(one).into_iter().filter(|_| !lru.is_empty());
        let direct = direct.map(|(size, rate)| (size, 1.0 - rate)).collect();
        [one.curve(", LRU", Mark::Line, lru), one.curve(", direct-mapped", Mark::Points, direct)]
    };
    let miss_ratios = all.iter().flat_map(misses).collect();
    [
        widths(&all),
        plane(
            "Run lengths",
            "How many operations follow each other on one page: shares of all runs.",
            "runs/",
            "operations on one page, from",
            Scale::Linear,
        ),
        plane(
            "Reuse distance",
            "How many operations ago the page was used last: shares of all reuses, on a \
             logarithmic scale.",
            "reuse/",
            "operations since the last use, from",
            Scale::Decades,
        ),
        plane(
            "Reuse distance of absent reads",
            "The same for reads of pages that nothing was written to, over all operations.",
            "absent-reuse/",
            "operations since the last use, from",
            Scale::Decades,
        ),
        Plane::new(
            "What a direct-mapped cache of pages would hit",
            "Share of the operations that find their page, by the size of the cache.",
            [
                along("pages"),
                share("share of operations that hit", Scale::Linear).between(least, 1.0),
            ],
            hit_rates,
        )
        .shown()
        .map(Block::Plane),
        Plane::new(
            "Miss-ratio curve",
            "Share of the operations that an LRU cache of so many pages misses; points are \
             direct-mapped caches.",
            [along("pages"), share("share of operations that miss", Scale::Decades)],
            miss_ratios,
        )
        .shown()
        .map(Block::Plane),
    ]
    .into_iter()
    .flatten()
}

/// Shares of reads and of writes by width.
fn widths(all: &[Drawn<'_>]) -> Option<Block> {
    let keys =
        all.iter().map(|one| Key::new(one.label.clone(), Some(one.hue)).hollow(one.published));
    let row = |(statistic, word): (&str, &str), width: &str| -> Row {
        let of = |one: &Drawn<'_>| one.share(&format!("width/{width}"), statistic);
        let bars = all.iter().enumerate().filter_map(|(nth, one)| Some((nth, of(one)?)));
        (format!("{word} {width} B"), bars.collect())
    };
    let rows = [("read_share", "read"), ("write_share", "write")];
    let rows = rows.iter().flat_map(|said| ["1", "2", "4", "8"].map(|width| row(*said, width)));
    let title = ["Widths of reads and writes", "Shares of all reads and of all writes."];
    Lanes::bars(title, keys.collect(), rows.collect(), None).shown().map(Block::Lanes)
}
