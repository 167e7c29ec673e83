//! What the page draws of memory types.
//!
//! The one idea: types differ by a factor of a hundred, so bars stand on a logarithmic scale, a
//! group for each test or operation and a bar for each type; the published run is hollow beside.

use serde::Serialize;
use serde_json::{Value, json};

use super::{ARM, BANDWIDTH, LATENCY, OP, TEST, TESTS, TYPES, arms, display_type, mine, number};
use crate::{cases::test_of, entry::Entry, numbers::elapsed, run::Run};

/// Rates of stores and loads by memory type.
pub(crate) fn bandwidth_chart(run: &Run) -> Vec<(&'static str, Value)> {
    vec![("memtype_bandwidth", json!(bandwidth(run)))]
}

/// One operation by memory type.
pub(crate) fn latency_chart(run: &Run) -> Vec<(&'static str, Value)> {
    vec![("memtype_latency", json!(latency(run)))]
}

/// Bars in groups.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Grouped {
    categories: Vec<String>,
    series: Vec<Bars>,
}

/// The bars of one memory type.
#[derive(Debug, Clone, Serialize)]
struct Bars {
    label: String,
    published: bool,
    /// Value and ends of the whisker for each category, where there is one.
    points: Vec<Option<(f64, f64, f64)>>,
}

impl Grouped {
    pub(super) fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    fn of(categories: &[String], mut series: Vec<Bars>) -> Self {
        series.retain(|bars| bars.points.iter().any(Option::is_some));
        let kept: Vec<bool> = (0..categories.len())
            .map(|at| series.iter().any(|bars| bars.points[at].is_some()))
            .collect();
        let keep = |at: &usize| kept[*at];
        for bars in &mut series {
            bars.points = (0..kept.len()).filter(keep).map(|at| bars.points[at]).collect();
        }
        let categories = (0..kept.len()).filter(keep).map(|at| categories[at].clone()).collect();
        Self { categories, series }
    }
}

/// Rates in bytes a second of the tests that have names, by memory type.
pub(super) fn bandwidth(run: &Run) -> Grouped {
    let Run { entries, published, .. } = run;
    let of = |entries: &[Entry], memory_type: &str, test: &str, arm: &str| {
        let mine = mine(entries, BANDWIDTH);
        let mut rates = mine.iter().filter_map(|entry| {
            let same = entry.parameter("type") == memory_type && test_of(entry.case()) == test;
            same.then(|| entry.numbers.get(elapsed(arm, TEST), "bandwidth")).flatten()
        });
        rates.next().map(|rate| (rate.value, rate.low, rate.high))
    };
    let mut series = Vec::new();
    for memory_type in TYPES {
        let bars = |label: String, published: bool, entries: &[Entry], arm: &str| Bars {
            label,
            published,
            points: TESTS.iter().map(|test| of(entries, memory_type, test, arm)).collect(),
        };
        let label = display_type(memory_type);
        series.push(bars(label.clone(), false, entries, ARM));
        series.push(bars(format!("{label}, published"), true, published, "published"));
    }
    let ours = series.iter().any(|bars| !bars.published && bars.points.iter().any(Option::is_some));
    if !ours {
        return Grouped::default();
    }
    Grouped::of(&TESTS.map(str::to_owned), series)
}

/// Medians in nanoseconds of operations, by memory type and state.
pub(super) fn latency(run: &Run) -> Grouped {
    let mine = mine(&run.entries, LATENCY);
    let mut operations: Vec<String> = Vec::new();
    for arm in mine.iter().flat_map(|entry| arms(entry, "op")) {
        if !operations.iter().any(|known| known == arm) {
            operations.push(arm.to_owned());
        }
    }
    let mut series: Vec<Bars> = Vec::new();
    for entry in mine.iter().filter(|entry| entry.is_valid()) {
        let state = match entry.parameter("state") {
            "flushed" => ", flushed",
            _ => "",
        };
        let label = format!("{}{state}", display_type(entry.parameter("type")));
        if series.iter().any(|bars| bars.label == label) {
            continue;
        }
        let point = |arm: &String| {
            let of = |statistic| number(entry, arm, OP, statistic).map(|q| q.value);
            let median = of("p50")?;
            Some((median, of("min").unwrap_or(median), of("p99").unwrap_or(median)))
        };
        let points = operations.iter().map(point).collect();
        series.push(Bars { label, published: false, points });
    }
    Grouped::of(&operations, series)
}
