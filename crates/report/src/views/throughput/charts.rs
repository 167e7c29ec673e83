//! What the page draws of throughput: fresh memory by page size.
//!
//! The one idea: a line is a group of cases that differ in the page size alone, so that what a
//! larger page gains can be read off against the clear limit. Points stand in the table.

use std::cmp::Reverse;

use serde::Serialize;

use super::{ARM, FAULT_IN, WORKLOAD};
use crate::{
    entry::Entry,
    numbers::elapsed,
    parameters::{self, FOLLOW_PAGE},
    quantity::Quantity,
};

/// Points along the page sizes.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Line {
    label: String,
    /// Position on the axis of pages; value and ends of its interval.
    pub(super) points: Vec<(usize, f64, f64, f64)>,
}

/// The page sizes, and the bandwidth of each group along them.
pub(super) fn bandwidth(entries: &[Entry]) -> (Vec<String>, Vec<Line>) {
    let of = |entry: &Entry| entry.numbers.get(elapsed(ARM, FAULT_IN), "bandwidth");
    let mine = entries.iter().filter(|entry| entry.record.workload == WORKLOAD);
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
