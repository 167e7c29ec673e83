//! The data that the page draws.
//!
//! The one idea: distributions travel as the recorded steps of their histograms, never as samples,
//! so that a million faults are a few hundred pairs; everything else is points with intervals that
//! stand in the tables as well. How it looks is the page's business.

use std::cmp::Reverse;

use serde::Serialize;

use crate::{
    distributions::{self, Family},
    entry::Entry,
    fit::{FOLLOW_PAGE, Fit},
    latency,
    limits::Limits,
    memtype::{self, charts::Grouped},
    numbers::{cpu, elapsed},
    parameters,
    quantity::Quantity,
    replay, throughput,
    tier::charts::TierCharts,
    trace::charts::TraceCharts,
};

/// Everything that is drawn.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Charts {
    /// Latency distributions that are drawn together.
    distributions: Vec<Family>,
    /// Page sizes in the order of their axis.
    pages: Vec<String>,
    /// Bandwidth by page size.
    bandwidth: Vec<Line>,
    /// Cost of a fault by page size.
    cost: Vec<Cost>,
    /// Bandwidth of clearing DRAM, bytes a second.
    clear: Option<f64>,
    /// Backends of each replay.
    replay: Vec<Backends>,
    /// Traces.
    pub(crate) trace: TraceCharts,
    /// Rates of stores and loads by memory type.
    pub(crate) memtype_bandwidth: Grouped,
    /// One operation by memory type.
    pub(crate) memtype_latency: Grouped,
    /// Simulated tiers.
    pub(crate) tier: TierCharts,
}

/// Points along the page sizes.
#[derive(Debug, Clone, Serialize)]
struct Line {
    label: String,
    /// Position on the axis of pages; value and ends of its interval.
    points: Vec<(usize, f64, f64, f64)>,
}

/// Cost by page size, and the line through it.
#[derive(Debug, Clone, Serialize)]
struct Cost {
    label: String,
    /// KiB of the page; value and ends of its interval, nanoseconds.
    points: Vec<(f64, f64, f64, f64)>,
    /// Nanoseconds at no size, and for each KiB.
    line: Option<(f64, f64)>,
}

/// What an operation takes, backend by backend.
#[derive(Debug, Clone, Serialize)]
struct Backends {
    /// Nanoseconds of decoding alone.
    floor: Option<f64>,
    arms: Vec<Backend>,
}

#[derive(Debug, Clone, Serialize)]
struct Backend {
    name: String,
    /// Whose it is: `floor`, `fast-mem`, `base`, `peer` or `ours`.
    family: &'static str,
    /// Nanoseconds and the ends of their interval.
    ns: (f64, f64, f64),
}

impl Charts {
    pub(crate) fn of(
        entries: &[Entry],
        published: &[Entry],
        limits: &Limits,
        fits: &[Fit],
    ) -> Self {
        let (pages, bandwidth) = bandwidth(entries);
        let both = fits.iter().any(|fit| fit.workload != fits[0].workload);
        let cost = |fit: &Fit| Cost {
            label: match (both, fit.workload) {
                (true, latency::WORKLOAD) => format!("{}, one fault", fit.label),
                (true, _) => format!("{}, in bulk", fit.label),
                (false, _) => fit.label.clone(),
            },
            points: fit
                .points
                .iter()
                .map(|(x, Quantity { value, low, high, .. })| (*x, *value, *low, *high))
                .collect(),
            line: fit.line.map(|line| (line.intercept, line.slope)),
        };
        Self {
            distributions: distributions::families(entries),
            pages,
            bandwidth,
            cost: fits.iter().filter(|fit| fit.points.len() > 1).map(cost).collect(),
            clear: limits.clear().map(|clear| clear.value),
            replay: replay::drawn(entries).into_iter().map(backends).collect(),
            trace: TraceCharts::of(entries, published),
            memtype_bandwidth: memtype::charts::bandwidth(entries, published),
            memtype_latency: memtype::charts::latency(entries),
            tier: TierCharts::of(entries),
        }
    }

    /// What the latency distributions of each chart have in common.
    pub(crate) fn families(&self) -> Vec<&str> {
        self.distributions.iter().map(|family| family.name.as_str()).collect()
    }

    pub(crate) fn has_bandwidth(&self) -> bool {
        self.bandwidth.iter().any(|line| line.points.len() > 1)
    }

    pub(crate) fn has_cost(&self) -> bool {
        self.cost.iter().any(|cost| cost.line.is_some())
    }
}

fn backends(entry: &Entry) -> Backends {
    let each = |arm: &str| entry.numbers.get(cpu(arm, replay::REPLAY), "ns_per_op");
    let arms = entry.measured().map(|m| replay::arms(entry.case(), m)).unwrap_or_default();
    let base = replay::base_of(&arms);
    let arm = |name: &str| {
        let Quantity { value, low, high, .. } = each(name)?;
        let family = match name {
            name if name.starts_with(replay::NOOP) => "floor",
            name if Some(name) == base => "base",
            name if name.starts_with("paged-") => "fast-mem",
            name if name.starts_with("peer-") => "peer",
            _ => "ours",
        };
        Some(Backend { name: name.to_owned(), family, ns: (value, low, high) })
    };
    Backends {
        floor: each(replay::NOOP).map(|floor| floor.value),
        arms: arms.iter().filter_map(|name| arm(name)).collect(),
    }
}

fn bandwidth(entries: &[Entry]) -> (Vec<String>, Vec<Line>) {
    let of = |entry: &Entry| {
        entry.numbers.get(elapsed(throughput::ARM, throughput::FAULT_IN), "bandwidth")
    };
    let mine = entries.iter().filter(|entry| entry.record.workload == throughput::WORKLOAD);
    let mine: Vec<(&Entry, Quantity)> = mine.filter_map(|e| Some((e, of(e)?))).collect();
    let mut pages: Vec<String> = mine.iter().map(|(e, _)| e.parameter("page").to_owned()).collect();
    pages.sort_by_key(|page| parameters::page_rank(page));
    pages.dedup();
    let group = |entry: &Entry| parameters::without(entry.case(), &FOLLOW_PAGE);
    let mut groups: Vec<_> = mine.iter().map(|(entry, _)| group(entry)).collect();
    groups.sort_unstable();
    groups.dedup();
    let labels = parameters::labels(&groups.iter().collect::<Vec<_>>(), "fresh memory");
    let line = |(label, key): (String, _)| {
        let same = mine.iter().filter(|(entry, _)| group(entry) == key);
        let point = |(entry, q): &(&Entry, Quantity)| {
            let at = pages.iter().position(|page| page == entry.parameter("page"))?;
            Some((at, q.value, q.low, q.high))
        };
        let mut points: Vec<_> = same.filter_map(point).collect();
        points.sort_by_key(|(at, ..)| *at);
        Line { label, points }
    };
    let mut lines: Vec<Line> = labels.into_iter().zip(groups).map(line).collect();
    // The line with most page sizes leads the legend.
    lines.sort_by_key(|line| Reverse(line.points.len()));
    (pages, lines)
}
