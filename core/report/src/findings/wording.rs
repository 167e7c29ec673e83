//! How ratios, pages and kinds read in a sentence.

use pagelab_record::verdict::Ratio;

use crate::parameters;

/// How numbers are written beside a ratio, and their unit: a factor above 1, percent below, and a
/// fraction where those are few.
fn style(ratio: f64) -> (fn(f64) -> String, &'static str) {
    match ratio {
        large if large >= 9.95 => (|number| format!("{number:.0}"), " times"),
        large if large >= 1.995 => (|number| format!("{number:.1}"), " times"),
        large if large >= 1.0 => (|number| format!("{number:.2}"), " times"),
        small if small < 0.1 => (|number| format!("1/{:.0}", 1.0 / number), ""),
        _ => (|number| format!("{:.0}", number * 100.0), " %"),
    }
}

/// `2.1 times`, `85 %`, `1/26`.
fn ratio(ratio: &Ratio) -> String {
    let (number, unit) = style(ratio.value);
    format!("{}{unit}", number(ratio.value))
}

/// The ends of its interval in the same way: `82–88 %`.
pub(super) fn interval(ratio: &Ratio) -> String {
    let (number, unit) = style(ratio.value);
    let [low, high] = [ratio.low, ratio.high].map(number);
    if low == high { format!("{low}{unit}") } else { format!("{low}–{high}{unit}") }
}

/// `80 % of the clear limit`; of what beats it `1.04 times the clear limit`.
pub(super) fn of_limit(told: &Ratio) -> String {
    format!("{} {}the clear limit", ratio(told), part_of(told))
}

/// `2.1 times the bandwidth of`, `85 % of the bandwidth of`, `1/26 of the bandwidth of`.
pub(super) fn of_the(what: &str, told: &Ratio) -> String {
    format!("{} {}the {what} of", ratio(told), part_of(told))
}

fn part_of(told: &Ratio) -> &'static str {
    if told.value >= 1.0 { "" } else { "of " }
}

/// `2.1 times as long as`, `85 % of the time of`, `1/26 of the time of`.
pub(super) fn as_long_as(told: &Ratio) -> String {
    if told.value >= 1.0 { format!("{} as long as", ratio(told)) } else { of_the("time", told) }
}

/// Pages of a size: what the kernel calls base pages, folios, and huge pages of two sorts.
pub(super) fn pages(page: &str) -> String {
    const BASE: u64 = 4096;
    const PMD: u64 = 2 << 20;
    let size = parameters::page_bytes(page);
    let bytes = size.map_or_else(|| page.to_owned(), crate::headline::whole);
    match size {
        _ if page.starts_with("hugetlb-") => format!("{bytes} hugetlb pages"),
        Some(size) if size <= BASE || size >= PMD => format!("{bytes} pages"),
        _ => format!("{bytes} folios"),
    }
}
