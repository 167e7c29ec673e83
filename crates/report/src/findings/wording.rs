//! How ratios, pages and kinds read in a sentence.

use pagelab_record::verdict::Ratio;

use crate::parameters;

/// A ratio as people say it: a factor above 1, percent below, and a fraction where those are few.
#[derive(Clone, Copy)]
enum Style {
    Times,
    Percent,
    Fraction,
}

impl Style {
    fn of(value: f64) -> Self {
        match value {
            large if large >= 1.0 => Self::Times,
            small if small < 0.1 => Self::Fraction,
            _ => Self::Percent,
        }
    }

    /// A number as the value of its ratio is written.
    fn number(self, number: f64, value: f64) -> String {
        match self {
            Self::Times if value < 1.995 => format!("{number:.2}"),
            Self::Times if value < 9.95 => format!("{number:.1}"),
            Self::Times => format!("{number:.0}"),
            Self::Percent => format!("{:.0}", number * 100.0),
            Self::Fraction => format!("1/{:.0}", 1.0 / number),
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Times => " times",
            Self::Percent => " %",
            Self::Fraction => "",
        }
    }
}

/// `2.1 times`, `85 %`, `1/26`.
fn ratio(ratio: &Ratio) -> String {
    let style = Style::of(ratio.value);
    format!("{}{}", style.number(ratio.value, ratio.value), style.unit())
}

/// The ends of its interval in the same way: `82–88 %`.
pub(super) fn interval(ratio: &Ratio) -> String {
    let style = Style::of(ratio.value);
    let [low, high] = [ratio.low, ratio.high].map(|end| style.number(end, ratio.value));
    if low == high {
        return format!("{low}{}", style.unit());
    }
    format!("{low}–{high}{}", style.unit())
}

/// `80 % of the clear limit`; of what beats it `1.04 times the clear limit`.
pub(super) fn of_limit(told: &Ratio) -> String {
    let of = if told.value >= 1.0 { "" } else { "of " };
    format!("{} {of}the clear limit", ratio(told))
}

/// `2.1 times the bandwidth of`, `85 % of the bandwidth of`, `1/26 of the bandwidth of`.
pub(super) fn of_the(what: &str, told: &Ratio) -> String {
    let of = if told.value >= 1.0 { "" } else { "of " };
    format!("{} {of}the {what} of", ratio(told))
}

/// `2.1 times as long as`, `85 % of the time of`, `1/26 of the time of`.
pub(super) fn as_long_as(told: &Ratio) -> String {
    if told.value >= 1.0 { format!("{} as long as", ratio(told)) } else { of_the("time", told) }
}

/// `64 KiB`, of a hugetlb page too.
fn bytes(page: &str) -> String {
    parameters::page_bytes(page).map_or_else(|| page.to_owned(), crate::headline::whole)
}

/// Pages of a size: what the kernel calls base pages, folios, and huge pages of two sorts.
pub(super) fn pages(page: &str) -> String {
    const BASE: u64 = 4096;
    const PMD: u64 = 2 << 20;
    let bytes = bytes(page);
    match parameters::page_bytes(page) {
        _ if page.starts_with("hugetlb-") => format!("{bytes} hugetlb pages"),
        Some(size) if size <= BASE || size >= PMD => format!("{bytes} pages"),
        _ => format!("{bytes} folios"),
    }
}
