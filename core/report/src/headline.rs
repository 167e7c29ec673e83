//! What the headlines of several views have in common.
//!
//! The one idea: each headline is a number that stands in a table below, with its interval and one
//! thing to set it against. What was not measured, or is not valid, has no headline. Which there
//! are, each view says itself.

use pagelab_record::units::display_bytes;

use crate::{At, Entry, Headline, Quantity, Tone, cases::is_parallel, parameter, parameters};

/// Kinds of fault up to which each has its headline; of more, `write` has, or else the first.
const KINDS_MAX: usize = 3;

/// Of each kind that was asked for, the case with the base page, or else the smallest, and one
/// worker that has the number.
pub fn base_cases<'a>(
    entries: &'a [Entry],
    workload: &str,
    (at, statistic): (At<'_>, &str),
) -> Vec<(&'a Entry, Quantity)> {
    let mine = entries.iter().filter(|entry| entry.record.workload == workload);
    let mut found: Vec<(&Entry, Quantity)> =
        mine.filter_map(|entry| Some((entry, entry.numbers.get(at, statistic)?))).collect();
    let kind = |entry: &Entry| entry.value(parameter::KIND).to_owned();
    found.sort_by_key(|(entry, _)| {
        let page = parameters::page_rank(entry.value(parameter::PAGE));
        (kind(entry) != "write", kind(entry), is_parallel(entry.case()), page)
    });
    found.dedup_by_key(|(entry, _)| kind(entry));
    if found.len() > KINDS_MAX {
        found.truncate(1);
    }
    found
}

/// `4 KiB write fault`.
pub fn fault(entry: &Entry) -> String {
    let page = match entry.value(parameter::PAGE) {
        page if page.starts_with("hugetlb-") => page.to_owned(),
        page => parameters::page_bytes(page).map_or_else(String::new, whole),
    };
    format!("{page} {} fault", entry.value(parameter::KIND)).replace("  ", " ").trim().to_owned()
}

/// Bytes of a page, `4 KiB`: all that there are are whole.
pub fn whole(bytes: u64) -> String {
    display_bytes(bytes as f64).replace(".00", "").replace(".0 ", " ")
}

/// A number with what it is, its interval, and what to set it against.
pub fn headline(quantity: Quantity, label: String, against: &[Option<String>]) -> Headline {
    let interval = Some(quantity.told_interval()).filter(|interval| !interval.is_empty());
    let parts: Vec<String> = [interval].iter().chain(against).flatten().cloned().collect();
    let detail = parts.join(" · ");
    Headline { value: quantity.display(), label, detail, tone: Tone::Strong }
}
