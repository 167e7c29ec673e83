//! What the headlines of several views have in common.
//!
//! The one idea: each headline is a number that stands in a table below, with its interval and one
//! thing to set it against. What was not measured, or is not valid, has no headline. Which there
//! are, each view says itself.

use crate::{cases::is_parallel, entry::Entry, numbers::At, quantity::Quantity};

/// The first case of a workload with the base page and one worker that has the number.
pub(crate) fn base_case<'a>(
    entries: &'a [Entry],
    workload: &str,
    kind: Option<&str>,
    (at, statistic): (At<'_>, &str),
) -> Option<(&'a Entry, Quantity)> {
    let mine = |entry: &&Entry| {
        entry.record.workload == workload
            && entry.parameter("page") == "4k"
            && kind.is_none_or(|kind| entry.parameter("kind") == kind)
            && !is_parallel(entry.case())
    };
    let with_number = |entry: &'a Entry| Some((entry, entry.numbers.get(at, statistic)?));
    entries.iter().filter(mine).find_map(with_number)
}

/// The interval of a headline's number, and what to set it against.
pub(crate) fn with_interval(quantity: Quantity, against: &str) -> String {
    let interval = quantity.display_interval();
    let interval = match (interval.as_str(), quantity.coverage) {
        ("", _) => interval,
        (_, coverage) if coverage > 0.0 => format!("{:.0} %: {interval}", coverage * 100.0),
        _ => format!("in one process: {interval}"),
    };
    let parts = [interval, against.to_owned()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}
