//! What a fault costs before it clears a byte, and what each KiB adds.
//!
//! The one idea: cost = fixed + slope · size, fitted over the page sizes of otherwise equal cases
//! with relative weights, separates the price of entering the kernel from the price of clearing.
//! A hugetlb page comes from a pool by another path and takes no part.

use std::collections::BTreeMap;

use pagelab_record::{
    Case,
    stats::{self, Line},
    vocabulary::{
        arm::OURS,
        series::{FAULT, TOUCH},
        workload::{LATENCY, THROUGHPUT},
    },
};

use crate::{
    Entry, Quantity,
    cases::touches_fault,
    elapsed,
    parameters::{self, FOLLOW_PAGE},
};

/// Page sizes of otherwise equal cases, and the line through their costs.
#[derive(Debug, Clone)]
pub(crate) struct Fit {
    /// The workload.
    pub(crate) workload: &'static str,
    /// What tells this group from the others.
    pub(crate) label: String,
    /// KiB of the page and cost of one fault, by size.
    pub(crate) points: Vec<(f64, Quantity)>,
    /// The line, where there are points enough.
    pub(crate) line: Option<Line>,
    /// How many parameters are not what most groups have: 0 is the case that people ask for.
    pub(crate) unusual: usize,
}

/// Every group of otherwise equal cases.
pub(crate) fn fits(entries: &[Entry]) -> Vec<Fit> {
    let throughput = |entry: &Entry| {
        let cost = entry.numbers.get(elapsed(OURS, TOUCH), "per_fault");
        cost.filter(|_| touches_fault(entry.case()))
    };
    let latency = |entry: &Entry| {
        // A read maps the zero page, whatever its size: there is no cost by size to fit.
        let clears = entry.parameter("kind") == "write";
        let cost = entry.numbers.get(elapsed(OURS, FAULT), "p50");
        cost.filter(|_| clears)
    };
    let mut fits = groups(entries, THROUGHPUT, &throughput);
    fits.extend(groups(entries, LATENCY, &latency));
    fits
}

fn groups(
    entries: &[Entry],
    workload: &'static str,
    cost: &dyn Fn(&Entry) -> Option<Quantity>,
) -> Vec<Fit> {
    let mut groups: BTreeMap<Case, Vec<(f64, Quantity)>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.record.workload == workload) {
        let page = entry.parameter("page");
        let bytes = parameters::page_bytes(page).filter(|_| !page.starts_with("hugetlb-"));
        if let (Some(bytes), Some(cost)) = (bytes, cost(entry)) {
            let group = groups.entry(parameters::without(entry.case(), &FOLLOW_PAGE)).or_default();
            group.push((bytes as f64 / 1024.0, cost));
        }
    }
    let cases: Vec<&Case> = groups.keys().collect();
    let alone = cases.first().and_then(|case| case.get("backing").or(case.get("kind")));
    let labels = parameters::labels(&cases, alone.unwrap_or("all"));
    let usual = parameters::usual(&cases);
    let unusual = cases.iter().map(|case| parameters::unusual(case, &usual, &[]));
    let unusual: Vec<usize> = unusual.collect();
    let fit = |((label, unusual), mut points): ((String, usize), Vec<(f64, Quantity)>)| {
        points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let medians: Vec<(f64, f64)> = points.iter().map(|(x, q)| (*x, q.value)).collect();
        let line = stats::fit_relative(&medians);
        Fit { workload, label, points, line, unusual }
    };
    labels.into_iter().zip(unusual).zip(groups.into_values()).map(fit).collect()
}
