//! The author's summary table with ours beside, and what it leaves out.
//!
//! The one idea: the table keeps his columns and his two decimals, a row for each machine and their
//! ratio below; completion, verification and sums have tables of their own.

use super::both::Both;
use crate::{
    document::{Cell, Column, Table, Tone},
    entry::Entry,
    memtype::{
        ARM, BANDWIDTH, COMPLETION, ISSUE, TEST, TESTS, TYPES, display_mib, mib, sum_of, test_of,
    },
    numbers::elapsed,
    quantity::{Quantity, Unit, group_thousands},
};

/// The tests of the summary, in its order; the deferred one is in the log only.
pub(super) const SUMMARY: [&str; 8] = [
    "write",
    "write_nofence",
    "write_ucfence",
    "ntwrite",
    "ntwrite_nofence",
    "ntwrite_nofence_deferred",
    "ntwrite_ucfence",
    "read",
];
/// The memory types of the original.
pub(super) const PUBLISHED_TYPES: [&str; 3] = ["wb", "uc", "wc"];
/// The load-back that the original documents and its source leaves out, as tests without a name.
pub(super) const LOAD_BACK: [&str; 2] = ["plain uc-store-load", "nt uc-store-load"];

/// Unit of the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// 2^20 bytes a second.
    Mib,
    /// 10^9 bytes a second.
    Gb,
}

impl Scale {
    fn display(self, rate: Quantity) -> String {
        match self {
            Self::Mib => format!("{:.2}", mib(rate)),
            Self::Gb => format!("{:.3}", rate.value / 1e9),
        }
    }
}

/// His table, ours, and the ratio.
pub(super) fn summary(both: &Both<'_>, scale: Scale) -> Table {
    let unit = if scale == Scale::Mib { "MiB/s" } else { "GB/s" };
    let mut columns = vec![Column::words("Memory type"), Column::words(unit)];
    columns.extend(SUMMARY.map(|test| {
        let rank = match test {
            "write" | "ntwrite" | "read" => 0,
            "write_ucfence" | "ntwrite_ucfence" => 1,
            "ntwrite_nofence_deferred" => 3,
            _ => 2,
        };
        Column::number(test).rank(rank)
    }));
    let mut rows = Vec::new();
    for memory_type in PUBLISHED_TYPES {
        let row = |what: &str, tone: Tone, cell: &dyn Fn(&str) -> Cell| {
            let mut row = vec![Cell::from(memory_type.to_uppercase()), Cell::toned(what, tone)];
            row.extend(SUMMARY.map(cell));
            row
        };
        rows.push(row("here", Tone::Plain, &|test| match both.rate(memory_type, test) {
            Ok(rate) => Cell::toned(scale.display(rate), Tone::Strong),
            Err(_) => absent(both.case(memory_type, test)),
        }));
        rows.push(row("published", Tone::Quiet, &|test| {
            let rate = both.published_rate(memory_type, test);
            Cell { tone: Tone::Quiet, ..Cell::maybe(rate.map(|rate| scale.display(rate))) }
        }));
        if scale == Scale::Mib {
            rows.push(row("here / published", Tone::Quiet, &|test| {
                let rates = both.rate(memory_type, test).ok();
                let rates = rates.zip(both.published_rate(memory_type, test));
                let ratio = rates.and_then(|(here, there)| here.over(there, Unit::Ratio));
                Cell::maybe(ratio.map(|ratio| format!("{:.2}", ratio.value)))
            }));
        }
    }
    Table { columns, rows }
}

/// What stands where a rate would: why there is none, in a word.
fn absent(entry: Option<&Entry>) -> Cell {
    use crate::entry::Standing;
    match entry.map(|entry| entry.standing) {
        Some(Standing::Invalid) => Cell::toned("INVALID", Tone::Bad),
        Some(Standing::Emulated) => Cell::toned("EMULATED", Tone::Warn),
        Some(Standing::Skipped) => Cell::toned("skipped", Tone::Quiet),
        Some(Standing::Failed) => Cell::toned("FAILED", Tone::Bad),
        Some(Standing::Valid) | None => Cell::none(),
    }
}

/// A row for each case: when its stores were issued, when they were complete, and whether what was
/// stored was found again.
pub(super) fn ends(both: &Both<'_>) -> Table {
    let columns = vec![
        Column::words("type"),
        Column::words("test"),
        Column::words("ends with"),
        Column::number("issue MiB/s"),
        Column::number("as timed MiB/s"),
        Column::number("complete MiB/s"),
        Column::number("issue to complete").rank(1),
        Column::number("rounds").rank(2),
        Column::number("wrong words"),
        Column::words("verify"),
        Column::words("published").rank(1),
        Column::words("witness"),
    ];
    let mut rows = Vec::new();
    for memory_type in TYPES {
        for test in TESTS.iter().chain(&LOAD_BACK) {
            let Some(entry) = both.case(memory_type, test) else { continue };
            rows.push(end(both, entry, [memory_type, test]));
        }
    }
    Table { columns, rows }
}

fn end(both: &Both<'_>, entry: &Entry, [memory_type, test]: [&str; 2]) -> Vec<Cell> {
    let of = |series, statistic| entry.numbers.get(elapsed(ARM, series), statistic);
    let rate = |series| Cell::maybe(of(series, "bandwidth").map(display_mib));
    // Medians of different quantities of the same rounds: their difference has no interval.
    let after = of(COMPLETION, "round").zip(of(ISSUE, "round"));
    let after = after.filter(|_| of(COMPLETION, "bandwidth").is_some()).map(|(done, issued)| {
        Quantity::exact((done.value - issued.value).max(0.0), Unit::Ns).display()
    });
    let counters = entry.measured().map(|measured| &measured.counters);
    let counter = |name: &str| counters.and_then(|counters| counters.get(name)).copied();
    let (rounds, wrong) = (counter("verified_rounds"), counter("wrong_words"));
    // A read is verified by its sum.
    let sums = sum_of(entry, "sum").zip(sum_of(entry, "expected_sum"));
    let wrong = wrong.or_else(|| sums.map(|(observed, expected)| u64::from(observed != expected)));
    let verify = match (rounds, wrong) {
        _ if entry.measured().is_none() => absent(Some(entry)),
        (Some(1..), Some(0)) if test == "read" => Cell::toned("sum ok", Tone::Good),
        (Some(1..), Some(0)) => Cell::toned("ok", Tone::Good),
        (_, Some(1..)) => Cell::toned("FAILED", Tone::Bad),
        _ => Cell::toned("not verified", Tone::Warn),
    };
    let theirs = both.log(memory_type, test).map(|entry| {
        match entry.counter("verified_ok").unwrap_or_default() {
            1 => "ok",
            _ if test == "read" => "sum printed",
            _ => "failed",
        }
    });
    let count = |value: Option<u64>| Cell::maybe(value.map(|v| group_thousands(v as f64)));
    let fence = match (test, entry.parameter("fence")) {
        ("read", _) => Cell::none(),
        (_, "none" | "") => Cell::toned("nothing", Tone::Quiet),
        (_, fence) => Cell::toned(fence, Tone::Quiet),
    };
    vec![
        memory_type.to_uppercase().into(),
        test.into(),
        fence,
        rate(ISSUE),
        Cell { tone: Tone::Strong, ..rate(TEST) },
        rate(COMPLETION),
        Cell::maybe(after),
        count(rounds),
        if test == "read" { Cell::none() } else { count(wrong) },
        verify,
        Cell { tone: Tone::Quiet, ..Cell::maybe(theirs.map(Into::into)) },
        entry.proof(),
    ]
}

/// Sums that were read, with what they should be, and the published ones.
pub(super) fn sums(both: &Both<'_>) -> Table {
    let columns = vec![
        Column::words("type"),
        Column::words("machine"),
        Column::words("size").rank(2),
        Column::number("rounds").rank(2),
        Column::words("sum").rank(1),
        Column::words("fence word").rank(1),
        Column::number("observed"),
        Column::number("expected"),
        Column::words("as expected"),
    ];
    let mut rows = Vec::new();
    for memory_type in PUBLISHED_TYPES {
        let reads = both.entries.iter().filter(|entry| {
            entry.record.workload == BANDWIDTH
                && entry.parameter("type") == memory_type
                && test_of(entry.case()) == "read"
                && entry.measured().is_some()
        });
        rows.extend(reads.map(|entry| sum(entry, memory_type, "this one", None)));
        if let Some(entry) = both.log(memory_type, "read") {
            let overlaps = memory_type == "uc";
            let expected = published_sum(entry, overlaps);
            rows.push(sum(entry, memory_type, "published", expected));
        }
    }
    Table { columns, rows }
}

fn sum(entry: &Entry, memory_type: &str, machine: &str, derived: Option<u64>) -> Vec<Cell> {
    let theirs = machine == "published";
    let observed = sum_of(entry, "sum");
    let expected = derived.or_else(|| sum_of(entry, "expected_sum"));
    let parameter = |name: &str, published: &str| {
        let value = entry.parameter(name);
        let value = if value.is_empty() && theirs { published } else { value };
        Cell::toned(value, Tone::Quiet)
    };
    let hex = |sum: Option<u64>| Cell::maybe(sum.map(|sum| format!("0x{sum:x}")));
    let agrees = observed.zip(expected).map(|(observed, expected)| observed == expected);
    vec![
        memory_type.to_uppercase().into(),
        Cell::toned(machine, if theirs { Tone::Quiet } else { Tone::Plain }),
        parameter("size", ""),
        parameter("iterations", ""),
        parameter("sum", "accumulated"),
        parameter("fence-word", if memory_type == "uc" { "overlap" } else { "own" }),
        hex(observed),
        hex(expected),
        match agrees {
            Some(true) => Cell::toned("yes", Tone::Good),
            Some(false) => Cell::toned("NO", Tone::Bad),
            None => Cell::none(),
        },
    ]
}

/// The word of the UC page that the original's fence stores to.
pub(super) const FENCE_WORD: u64 = 511;

/// The sum that the original must print: the last verification's, then one for each round of
/// reading. Where the fence word lies inside the region, the verification leaves it out, and every
/// round of reading finds in it what the last fence stored: the number of the round.
pub(super) fn published_sum(entry: &Entry, overlaps: bool) -> Option<u64> {
    let bytes = pagelab_record::units::parse_bytes(entry.parameter("size")).ok()?;
    let rounds: u64 = entry.parameter("iterations").parse().ok().filter(|rounds| *rounds > 0)?;
    let (words, last) = (bytes / 8, rounds - 1);
    // Half of n(n-1), by dividing the one of the two that is even.
    let (half, whole) = if words.is_multiple_of(2) {
        (words / 2, words.wrapping_sub(1))
    } else {
        (words / 2, words)
    };
    let all = half.wrapping_mul(whole).wrapping_add(last.wrapping_mul(words));
    if !overlaps {
        return Some(all.wrapping_mul(rounds.wrapping_add(1)));
    }
    let without = all.wrapping_sub(FENCE_WORD.wrapping_add(last));
    let read = without.wrapping_add(last).wrapping_mul(rounds);
    Some(without.wrapping_add(read))
}
