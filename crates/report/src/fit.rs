//! What a fault costs before it clears a byte, and what each KiB adds.
//!
//! The one idea: cost = fixed + slope · size, fitted over the page sizes of otherwise equal cases
//! with relative weights, separates the price of entering the kernel from the price of clearing.
//! A hugetlb page comes from a pool by another path and takes no part.

use std::collections::BTreeMap;

use pagelab_record::{
    Case,
    stats::{self, Line},
    units,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    document::{Block, Cell, ChartPlace, Column, Headline, Section, Table, Tone},
    entry::Entry,
    numbers::elapsed,
    parameters,
    quantity::{Quantity, Unit},
    views::Run,
    views::latency,
    views::throughput,
};

/// Parameters that change with the page size by themselves, so that they do not tell cases apart.
pub(crate) const FOLLOW_PAGE: [&str; 3] = ["page", "size", "rounds"];

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
        let touches_fault = throughput::touches_fault(entry.case());
        let cost = entry.numbers.get(elapsed(throughput::ARM, "touch"), "per_fault");
        cost.filter(|_| touches_fault)
    };
    let latency = |entry: &Entry| {
        // A read maps the zero page, whatever its size: there is no cost by size to fit.
        let clears = entry.parameter("kind") == "write";
        let cost = entry.numbers.get(elapsed(latency::ARM, latency::FAULT), "p50");
        cost.filter(|_| clears)
    };
    let mut fits = groups(entries, throughput::WORKLOAD, &throughput);
    fits.extend(groups(entries, latency::WORKLOAD, &latency));
    fits
}

fn groups(
    entries: &[Entry],
    workload: &'static str,
    cost: &dyn Fn(&Entry) -> Option<Quantity>,
) -> Vec<Fit> {
    let mut groups: BTreeMap<BTreeMap<String, String>, Vec<(f64, Quantity)>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.record.workload == workload) {
        let page = entry.parameter("page");
        let bytes = parameters::page_bytes(page).filter(|_| !page.starts_with("hugetlb-"));
        if let (Some(bytes), Some(cost)) = (bytes, cost(entry)) {
            let group = groups.entry(parameters::without(entry.case(), &FOLLOW_PAGE)).or_default();
            group.push((bytes as f64 / 1024.0, cost));
        }
    }
    let keys: Vec<&BTreeMap<String, String>> = groups.keys().collect();
    let alone = keys.first().and_then(|key| key.get("backing").or(key.get("kind")));
    let labels = parameters::labels(&keys, alone.map_or("all", String::as_str));
    let cases: Vec<Case> = keys.iter().map(|key| Case((*key).clone())).collect();
    let usual = parameters::usual(&cases.iter().collect::<Vec<_>>());
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

/// Cost by page size, and the line through it.
#[derive(Debug, Clone, Serialize)]
struct Cost {
    label: String,
    /// KiB of the page; value and ends of its interval, nanoseconds.
    points: Vec<(f64, f64, f64, f64)>,
    /// Nanoseconds at no size, and for each KiB.
    line: Option<(f64, f64)>,
}

/// Cost by page size, of every group that has two.
pub(crate) fn charts(run: &Run) -> Vec<(&'static str, Value)> {
    let fits = &run.fits;
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
    let drawn: Vec<Cost> = fits.iter().filter(|fit| is_drawn(fit)).map(cost).collect();
    vec![("cost", json!(drawn))]
}

fn is_drawn(fit: &Fit) -> bool {
    fit.points.len() > 1
}

/// The fixed cost of the case that people ask for.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let fitted = run.fits.iter().filter_map(|fit| Some((fit, fit.line?)));
    let headline = |(fit, line): (&Fit, Line)| Headline {
        value: units::display_ns(line.intercept),
        label: format!("fixed cost of a fault ({})", fit.label),
        detail: format!("+ {} ns/KiB, R² {:.3}", units::display_number(line.slope), line.r_squared),
        tone: Tone::Plain,
    };
    fitted.min_by_key(|(fit, _)| fit.unusual).map(headline).into_iter().collect()
}

/// The table of lines, where there is at least one.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let fits = &run.fits;
    let fitted: Vec<(&Fit, Line)> = fits.iter().filter_map(|fit| Some((fit, fit.line?))).collect();
    if fitted.is_empty() {
        return None;
    }
    let mut section = Section::new("fit", "Fixed cost and cost by size");
    if fitted.iter().any(|(fit, _)| is_drawn(fit)) {
        section.blocks.push(Block::Chart(ChartPlace {
            id: "cost",
            nth: 0,
            title: "What a fault adds to each KiB, by page size".to_owned(),
            caption: "The cost of a fault divided by the size of its page: points are medians, \
                      lines the fixed cost spread over the page plus the cost by size; the \
                      dashed line is clearing alone."
                .to_owned(),
        }));
    }
    let columns = vec![
        Column::words("workload"),
        Column::words("cases"),
        Column::number("fixed"),
        Column::number("by size"),
        Column::number("which is").rank(2),
        Column::number("R²").rank(1),
        Column::number("sizes").rank(3),
    ];
    let rows = fitted.iter().map(|(fit, line)| row(fit, *line)).collect();
    Some(section.with(Block::Table(Table { columns, rows })).with(Block::Text(
        "cost = fixed + by size · KiB, least squares with relative weights over the page sizes \
         of otherwise equal cases."
            .to_owned(),
    )))
}

fn row(fit: &Fit, line: Line) -> Vec<Cell> {
    let slope = Quantity::exact(line.slope, Unit::NsPerKib);
    let rate = slope.under(1024.0 * 1e9, Unit::BytesPerSecond).map(Quantity::display);
    vec![
        fit.workload.into(),
        fit.label.clone().into(),
        Cell::toned(Quantity::exact(line.intercept, Unit::Ns).display(), Tone::Strong),
        Cell::toned(slope.display(), Tone::Strong),
        Cell::maybe(rate),
        format!("{:.4}", line.r_squared).into(),
        Cell::toned(fit.points.len().to_string(), Tone::Quiet),
    ]
}
