//! Page faults of two builds of a program, as `explain` counted them.
//!
//! `explain` receives every fault of a program, so that two runs are compared as counts: there is
//! no interval and no verdict, and a threshold (`--fail-on faults:1%`) is on the sum. Several runs
//! of a side give the median of each number. The machine's facts forbid a comparison as they do
//! for times: settings decide how many faults a program takes.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use pagelab_record::{Record, stats::median};
use serde_json::{Value, json};

use super::{cell, counts};
use pagelab_record::vocabulary::parameter;
use pagelab_report::{
    Cell, Counting, Counts, Grid, Heading, Headline, Most, Pair, Section, Standing, Tone,
    group_thousands,
};

/// Page faults side by side. How long a program takes that is watched is no number of the program.
pub(crate) const COUNTING: Counting = Counting {
    name: "faults",
    threshold: ("faults", Most::Share),
    lacks: Some("its faults were not received: perf is not allowed"),
    has: |pair| Faults::of(pair).is_some(),
    of: |pairs| Arc::new(All(pairs.iter().filter_map(|(pair, _)| Faults::of(pair)).collect())),
};

/// Every program of one side.
#[derive(Debug)]
struct All<'r>(Vec<Faults<'r>>);

impl Counts for All<'_> {
    fn example(&self) -> Option<[&Record; 2]> {
        self.0.first().map(|faults| [faults.pair.a, faults.pair.b])
    }

    fn is_worse(&self, most: f64) -> bool {
        self.0.iter().any(|faults| faults.is_worse(most))
    }

    fn headlines(&self) -> Vec<Headline> {
        self.0.iter().map(Faults::headline).collect()
    }

    fn sections(&self, heading: &Heading<'_>) -> Vec<Section> {
        let section = |(nth, faults): (usize, &Faults<'_>)| {
            let id = heading.id("faults");
            let id = if nth == 0 { id } else { format!("{id}-{nth}") };
            faults.section(heading.names, id, &heading.title("Page faults"))
        };
        self.0.iter().enumerate().map(section).collect()
    }

    fn json(&self) -> Vec<Value> {
        self.0.iter().map(Faults::json).collect()
    }

    fn mail(&self, _columns: usize) -> Vec<String> {
        self.0.iter().map(Faults::line).collect()
    }
}

/// Call sites that are shown, and the least difference of one, in faults and as a share of all of
/// the program: what the loader does differs by a few from run to run. `--format json` has all.
const SITES: usize = 12;
const SITE_LEAST: f64 = 10.0;
const SITE_LEAST_SHARE: f64 = 0.001;

/// Faults of each group or call site, before and after.
type Both = BTreeMap<String, [f64; 2]>;

/// A program whose faults were counted on both sides.
#[derive(Debug, Clone)]
struct Faults<'r> {
    pair: Pair<'r>,
    /// By kind, page and place.
    groups: Both,
    /// By call site, as far as the report of each run names it.
    sites: Both,
}

impl<'r> Faults<'r> {
    /// The faults of a pair of valid records of `explain`.
    fn of(pair: &Pair<'r>) -> Option<Self> {
        let all = pair.all();
        let is_valid = |record: &&Record| Standing::of(record) != Standing::Invalid;
        if !all.iter().flatten().all(is_valid) {
            return None;
        }
        let middles_of = |what: fn(&Record) -> BTreeMap<String, f64>| {
            let mut runs: BTreeMap<String, [Vec<f64>; 2]> = BTreeMap::new();
            for (side, records) in all.iter().enumerate() {
                for record in records {
                    for (name, faults) in what(record) {
                        runs.entry(name).or_default()[side].push(faults);
                    }
                }
            }
            let middle = |side: usize, mut told: Vec<f64>| {
                // A run that does not name it took none.
                told.resize(all[side].len(), 0.0);
                median(told)
            };
            let middles = |[a, b]: [Vec<f64>; 2]| [middle(0, a), middle(1, b)];
            runs.into_iter().map(|(name, runs)| (name, middles(runs))).collect::<Both>()
        };
        let faults =
            Self { pair: pair.clone(), groups: middles_of(groups), sites: middles_of(sites) };
        faults.all().iter().all(|all| *all > 0.0).then_some(faults)
    }

    /// All faults of both sides.
    fn all(&self) -> [f64; 2] {
        self.groups.values().fold([0.0; 2], |[a, b], [more, other]| [a + more, b + other])
    }

    /// Whether the second side takes more, by more than this share.
    fn is_worse(&self, most: f64) -> bool {
        let [a, b] = self.all();
        b > a * (1.0 + most)
    }

    fn headline(&self) -> Headline {
        let [a, b] = self.all();
        let tone = if b > a { Tone::Bad } else { Tone::Plain };
        let change = change([a, b]).map_or_else(String::new, |change| format!(" · {change}"));
        Headline {
            value: difference([a, b]),
            label: "page faults".to_owned(),
            detail: format!("{} → {}{change}", group_thousands(a), group_thousands(b)),
            tone,
        }
    }

    /// Every number.
    fn json(&self) -> Value {
        let told = |counts: &Both| {
            let mut told = Vec::new();
            for (name, [a, b]) in counts {
                told.push(json!({ "name": name, "a": a, "b": b, "difference": b - a }));
            }
            told
        };
        let [a, b] = self.all();
        let programs = [self.pair.a, self.pair.b].map(program);
        json!({
            "programs": programs,
            "a": a,
            "b": b,
            "difference": b - a,
            "kinds": told(&self.groups),
            "sites": told(&self.sites),
        })
    }

    /// By kind, and the call sites that differ by most.
    fn section(&self, names: [&str; 2], id: String, title: &str) -> Section {
        type Row<'f> = (&'f str, [f64; 2]);
        let grid = |what: [&str; 3], parts: fn(&str, usize) -> String| {
            let mut grid = Grid::<Row<'_>>::new();
            for (nth, name) in what.into_iter().enumerate().filter(|(_, name)| !name.is_empty()) {
                grid = grid.words(name, 0, move |(group, _)| parts(group, nth));
            }
            grid.number(names[0], 0, |(_, [a, _])| group_thousands(*a))
                .number(names[1], 0, |(_, [_, b])| group_thousands(*b))
                .number("difference", 0, |(_, counts)| {
                    let tone = if counts[1] > counts[0] { Tone::Bad } else { Tone::Plain };
                    Cell::toned(difference(*counts), tone)
                })
                .number("change", 1, |(_, counts)| change(*counts))
        };
        let part = |group: &str, nth| group.split('/').nth(nth).unwrap_or_default().to_owned();
        let all = [("all", self.all())].into_iter().chain(largest(&self.groups));
        let [a, b] = [self.pair.a, self.pair.b].map(program);
        let of = if a == b { a.to_owned() } else { format!("{a} → {b}") };
        let mut section = Section::new(id, title)
            .with(format!("{of}: page faults, each of them counted."))
            .with(grid(["kind", "page", "place"], part).table(all));
        let least = SITE_LEAST.max(self.all()[0] * SITE_LEAST_SHARE);
        let sites = largest(&self.sites).filter(|(_, [a, b])| (b - a).abs() >= least);
        let sites: Vec<_> = sites.take(SITES).collect();
        if !sites.is_empty() {
            let whole = |site: &str, _| site.to_owned();
            section.add(grid(["call site", "", ""], whole).table(sites));
        }
        section.with(
            "The loader and the C library take a few faults more or less from run to run. Call \
             sites: those that differ by 10 faults and 0.1 % of all or more. Of several runs of a \
             side: the median of each number.",
        )
    }

    /// A line for a mail.
    fn line(&self) -> String {
        let Headline { value, label, detail, .. } = self.headline();
        format!("{value} {label} ({detail})")
    }
}

/// What was explained.
fn program(record: &Record) -> &str {
    record.case.get(parameter::PROGRAM).unwrap_or_default()
}

/// The faults of a record by kind, page and place; with those that were lost on the way.
fn groups(record: &Record) -> BTreeMap<String, f64> {
    record.measured().map(counts).unwrap_or_default()
}

/// The faults of a record by call site; a function of the program itself goes by its name alone,
/// because two builds have two files.
fn sites(record: &Record) -> BTreeMap<String, f64> {
    let file = program(record).split(' ').next().map(Path::new).and_then(Path::file_name);
    let own = file.map(|file| format!(" ({})", file.to_string_lossy()));
    let tables = record.measured().into_iter().flat_map(|measured| &measured.tables);
    let mut found = BTreeMap::new();
    for table in tables {
        let Some(site) = table.name.strip_prefix("site/") else { continue };
        let site = own.as_ref().map_or_else(|| site.to_owned(), |own| site.replace(own, ""));
        let columns = table.columns.iter().filter(|column| column.name.contains('/'));
        let faults: f64 = columns.filter_map(|column| cell(table, &column.name)).sum();
        *found.entry(site).or_default() += faults;
    }
    found
}

/// By difference, the largest first.
fn largest(counts: &Both) -> impl Iterator<Item = (&str, [f64; 2])> {
    let mut told: Vec<_> = counts.iter().map(|(name, both)| (name.as_str(), *both)).collect();
    let difference = |[a, b]: [f64; 2]| (b - a).abs();
    told.sort_by(|one, other| difference(other.1).total_cmp(&difference(one.1)));
    told.into_iter()
}

fn difference([a, b]: [f64; 2]) -> String {
    let sign = if b < a { '-' } else { '+' };
    format!("{sign}{}", group_thousands((b - a).abs()))
}

fn change([a, b]: [f64; 2]) -> Option<String> {
    (a > 0.0).then(|| format!("{:+.1} %", (b / a - 1.0) * 100.0))
}
