//! What the page draws of throughput: fresh memory by page size.
//!
//! The one idea: a line is a group of cases that differ in the page size alone, so that what a
//! larger page gains can be read off against the clear limit. Points stand in the table.

use std::cmp::Reverse;

use super::{ARM, FAULT_IN, WORKLOAD};
use pagelab_record::vocabulary::parameter;
use pagelab_report::{
    Axis, Curve, Entry, Mark, Plane, Quantity, Run, Scale, Unit, elapsed, hue,
    parameters::{self, FOLLOW_PAGE},
};

/// The bandwidth of each group of cases.
pub(super) fn bandwidth(run: &Run) -> Option<Plane> {
    let of = |entry: &Entry| entry.numbers.get(elapsed(ARM, FAULT_IN), "bandwidth");
    let mine = run.entries.iter().filter(|entry| entry.record.workload == WORKLOAD);
    let mine: Vec<(&Entry, Quantity)> = mine.filter_map(|e| Some((e, of(e)?))).collect();
    let mut pages: Vec<&str> = mine.iter().map(|(entry, _)| entry.value(parameter::PAGE)).collect();
    pages.sort_by_key(|page| parameters::page_rank(page));
    pages.dedup();
    if pages.len() < 2 {
        return None;
    }
    let group = |entry: &Entry| parameters::without(entry.case(), &FOLLOW_PAGE);
    let mut groups: Vec<_> = mine.iter().map(|(entry, _)| group(entry)).collect();
    groups.sort_unstable();
    groups.dedup();
    let labels = parameters::labels(&groups.iter().collect::<Vec<_>>(), "fresh memory");
    let points = |key: &_| {
        let same = mine.iter().filter(|(entry, _)| group(entry) == *key);
        let at = |page: &str| pages.iter().position(|known| *known == page).unwrap_or(0) as f64;
        let mut points: Vec<_> = same.map(|(e, q)| (at(e.value(parameter::PAGE)), *q)).collect();
        points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        points
    };
    let mut lines: Vec<_> = labels.into_iter().zip(groups.iter().map(points)).collect();
    // The line with most page sizes leads.
    lines.sort_by_key(|(_, points)| Reverse(points.len()));
    let curve = |(nth, (label, points)): (usize, (String, Vec<_>))| {
        Curve::of(label, Some(hue(nth)), Mark::Knots, &points)
    };
    let edge = pages.len() as f64 - 0.55;
    let places = pages.iter().enumerate().map(|(at, page)| (at as f64, (*page).to_owned()));
    let x = Axis::new("page size", Unit::Count, Scale::Linear).between(-0.45, edge);
    let plane = Plane::new(
        "Fresh memory by page size, against the clear limit",
        "Bytes a second, from mapping to the last touch, on a logarithmic scale; whiskers are \
         intervals. The dashed line is what one thread clears in DRAM.",
        [x.at(places.collect()), Axis::new("bandwidth", Unit::BytesPerSecond, Scale::Decades)],
        lines.into_iter().enumerate().map(curve).collect(),
    );
    let bound = run.limits.clear().map(|q| (q.value, format!("clear limit {}", q.display())));
    Plane { bound, ..plane }.shown()
}
