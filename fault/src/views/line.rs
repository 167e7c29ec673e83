//! What a fault costs before it clears a byte, and what each KiB adds.
//!
//! The one idea: cost = fixed + slope · size, fitted over the page sizes of otherwise equal cases
//! with relative weights, separates the price of entering the kernel from the price of clearing.
//! A hugetlb page comes from a pool by another path and takes no part. Where the sizes do not lie
//! on a line there is none: its number at size 0 would be of no fault.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{latency::NAME as LATENCY, throughput::NAME as THROUGHPUT};
use pagelab_record::{
    Case,
    stats::{self, Line},
    vocabulary::{
        arm::OURS,
        series::{FAULT, TOUCH},
    },
};

use pagelab_record::vocabulary::parameter;
use pagelab_report::{
    Entry, Quantity, Run,
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
    /// The line, where there are points enough and they lie on one.
    pub(crate) line: Option<Line>,
    /// R² of the line that was refused.
    pub(crate) refused: Option<f64>,
    /// How many parameters are not what most groups have: 0 is the case that people ask for.
    pub(crate) unusual: usize,
}

/// The least R² of points that lie on a line.
const R_SQUARED_MIN: f64 = 0.98;

/// Whether some costs by size lie on a line. A fault of no size cannot cost more than one that was
/// measured, so neither can the line's value there.
fn is_line(line: &Line, costs: impl Iterator<Item = f64>) -> bool {
    let least = costs.fold(f64::INFINITY, f64::min);
    line.r_squared >= R_SQUARED_MIN && line.intercept <= least
}

/// Every group of otherwise equal cases.
pub(crate) fn fits(entries: &[Entry]) -> Vec<Fit> {
    let throughput = |entry: &Entry| {
        let cost = entry.numbers.get(elapsed(OURS, TOUCH), "per_fault");
        cost.filter(|_| touches_fault(entry.case()))
    };
    let latency = |entry: &Entry| {
        // A read maps the zero page, whatever its size: there is no cost by size to fit.
        let clears = entry.value(parameter::KIND) == "write";
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
        let page = entry.value(parameter::PAGE);
        let bytes = parameters::page_bytes(page).filter(|_| !page.starts_with("hugetlb-"));
        if let (Some(bytes), Some(cost)) = (bytes, cost(entry)) {
            let group = groups.entry(parameters::without(entry.case(), &FOLLOW_PAGE)).or_default();
            group.push((bytes as f64 / 1024.0, cost));
        }
    }
    let cases: Vec<&Case> = groups.keys().collect();
    let alone =
        cases.first().and_then(|case| case.get(parameter::BACKING).or(case.get(parameter::KIND)));
    let labels = parameters::labels(&cases, alone.unwrap_or("all"));
    let usual = parameters::usual(&cases);
    let unusual = cases.iter().map(|case| parameters::unusual(case, &usual, &[]));
    let unusual: Vec<usize> = unusual.collect();
    let fit = |((label, unusual), mut points): ((String, usize), Vec<(f64, Quantity)>)| {
        points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let medians: Vec<(f64, f64)> = points.iter().map(|(x, q)| (*x, q.value)).collect();
        let found = stats::fit_relative(&medians);
        let line = found.filter(|line| is_line(line, medians.iter().map(|(_, cost)| *cost)));
        let refused = found.filter(|_| line.is_none()).map(|line| line.r_squared);
        Fit { workload, label, points, line, refused, unusual }
    };
    labels.into_iter().zip(unusual).zip(groups.into_values()).map(fit).collect()
}

/// The same for programs.
pub(crate) fn json(run: &Run) -> Value {
    fits(&run.entries).iter().map(fit_value).collect()
}

fn fit_value(fit: &Fit) -> Value {
    let line = fit.line.map(|line| {
        json!({
            "fixed_ns": line.intercept,
            "fixed_ns_error": line.intercept_error,
            "ns_per_kib": line.slope,
            "r_squared": line.r_squared,
        })
    });
    let points: Vec<Value> =
        fit.points.iter().map(|(kib, cost)| json!({"kib": kib, "cost": cost})).collect();
    let mut value =
        json!({"workload": fit.workload, "label": fit.label, "points": points, "line": line});
    if let Some(r_squared) = fit.refused {
        let why = format!("the sizes do not lie on a line (R² {r_squared:.3})");
        value["why"] = why.into();
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_line_through(points: &[(f64, f64)]) -> bool {
        let line = stats::fit_relative(points).unwrap();
        is_line(&line, points.iter().map(|(_, cost)| *cost))
    }

    #[test]
    fn sizes_that_lie_on_a_line_have_one() {
        let points = [4.0, 64.0, 2048.0].map(|kib| (kib, 500.0 + 50.0 * kib));
        assert!(is_line_through(&points));
    }

    #[test]
    fn scattered_sizes_have_none() {
        let points = [(4.0, 1000.0), (16.0, 800.0), (64.0, 5000.0), (2048.0, 60_000.0)];
        assert!(stats::fit_relative(&points).unwrap().r_squared < R_SQUARED_MIN);
        assert!(!is_line_through(&points));
    }

    #[test]
    fn a_line_that_begins_above_the_smallest_fault_is_none() {
        // 1.66 µs at size 0 beside 1.44 µs for 4 KiB, whatever its R².
        let line = Line { intercept: 1660.0, intercept_error: 40.0, slope: 40.0, r_squared: 0.995 };
        assert!(!is_line(&line, [1440.0, 4000.0, 90_000.0].into_iter()));
        assert!(is_line(&line, [1700.0, 4000.0, 90_000.0].into_iter()));
    }
}
