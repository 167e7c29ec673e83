//! What WB, UC and WC memory do to stores, loads and fences: the three workloads of `memtype`.
//!
//! The one idea: a store has two ends, the moment it was issued and the moment it is complete, and
//! a test says which one it timed; so every rate stands in a column that names its end. Rates of
//! several memory types are of several processes, and their ratios carry the worst of both.
//!
//! What memcachetest published is in `published/memory-types`; each workload has its section in a
//! file below.

mod bandwidth;
mod charts;
mod latency;
mod order;

use pagelab_record::{Case, Measured, Series, units};

use pagelab_record::vocabulary::parameter;
use pagelab_report::{
    At, Derive, Entry, Headline, Limits, Note, Numbers, Quantity, Run, Sections, Standing, Time,
    Tone, Unit, View,
    cases::test_of,
    distinct, elapsed,
    entry::display_claim,
    group_thousands, grouped,
    limits::{OF_READ, add_share},
    numbers::Number,
    parameters::{self, display_type},
    ratio,
};

/// The arm of the same loop in C.
use pagelab_record::vocabulary::arm::TWIN;
pub(crate) use pagelab_record::vocabulary::{
    arm::OURS as ARM, series::COMPLETION, series::ISSUE, series::OP, series::TEST,
};

use crate::workloads::{
    bandwidth::NAME as BANDWIDTH, latency::NAME as LATENCY, order::NAME as ORDER,
};

/// Memory types, in the order of memcachetest.
pub(crate) const TYPES: [&str; 4] = ["wb", "uc", "wc", "wt"];
/// The tests that have names, in the order of memcachetest's source.
pub(crate) const TESTS: [&str; 9] = [
    "write",
    "write_nofence",
    "write_ucfence",
    "ntwrite",
    "ntwrite_nofence",
    "ntwrite_nofence_deferred",
    "ntwrite_ucfence",
    "ntwrite_readback",
    "read",
];
const MIB: f64 = 1_048_576.0;

/// In the order of reading.
pub(crate) const VIEWS: &[View] = &[
    View {
        workloads: &[BANDWIDTH],
        main: &[(TEST, Time::Elapsed)],
        short: &["type", "test"],
        derive: &[Derive::Alone(derive), Derive::Limits(derive_shares)],
        sections: Sections::Each(&[bandwidth::section]),
        headlines,
        ..View::NONE
    },
    View {
        workloads: &[LATENCY],
        main: &[(OP, Time::Elapsed)],
        short: &["type"],
        sections: Sections::Each(&[latency::section]),
        headlines: latency::headlines,
        ..View::NONE
    },
    View {
        workloads: &[ORDER],
        short: &["type", "store", "fence"],
        sections: Sections::Each(&[order::section]),
        headlines: order::headlines,
        ..View::NONE
    },
];

/// Where a memory type stands in tables.
pub(crate) fn type_rank(memory_type: &str) -> usize {
    TYPES.iter().position(|known| *known == memory_type).unwrap_or(TYPES.len())
}

/// Where a test stands in tables: named ones first.
fn test_rank(test: &str) -> usize {
    TESTS.iter().position(|known| *known == test).unwrap_or(TESTS.len())
}

/// The arms of a case: as asked for, then whatever else has a series.
fn arms<'a>(entry: &'a Entry, list: &str) -> Vec<&'a str> {
    let Some(measured) = entry.measured() else { return Vec::new() };
    let has = |arm: &&str| measured.series.iter().any(|series| series.arm == *arm);
    let ran = measured.series.iter().map(|series| series.arm.as_str());
    distinct(entry.value(list).split(',').filter(has).chain(ran))
}

/// Adds what a bandwidth case implies by itself: the time of a round, and the share of C.
pub(crate) fn derive(case: &Case, measured: &Measured, numbers: &mut Numbers) {
    let does = |name| !matches!(case.get(name), None | Some("none"));
    if does("store") && does("load") {
        // Its completion counts the bytes that were stored, over a time that also loads them.
        let is_rate = |n: &Number| n.series == COMPLETION && n.statistic == "bandwidth";
        numbers.0.retain(|number| !is_rate(number));
    }
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for Series { name, arm, ops, .. } in &measured.series {
        if seen.contains(&(name, arm)) {
            continue;
        }
        seen.push((name, arm));
        let at = elapsed(arm, name);
        let round = numbers.get(at, "p50").map(|each| each.times(*ops as f64, Unit::Ns));
        numbers.add(at, "round", round);
    }
    // Rates are compared, so time stands below: more is better.
    let share = ratio::of_times(&measured.series, TEST, Time::Elapsed, [TWIN, ARM]);
    let share = share.map(|ratio| Quantity { unit: Unit::Share, ..ratio });
    numbers.add(elapsed(ARM, TEST), "share_of_c", share);
}

/// Adds what it implies beside the limits: stores against clearing, loads against reading.
pub(crate) fn derive_shares(case: &Case, _: &Measured, limits: &Limits, numbers: &mut Numbers) {
    // A limit is one thread's, and of ordinary memory.
    if case.get(parameter::THREADS).is_some_and(|threads| threads != "1") {
        return;
    }
    let of = |numbers: &Numbers, series| numbers.get(elapsed(ARM, series), "bandwidth");
    if of(numbers, ISSUE).is_some() {
        let bandwidth = of(numbers, COMPLETION);
        limits.add_share_of_clear(elapsed(ARM, COMPLETION), bandwidth, numbers);
    } else {
        let share = of(numbers, TEST).zip(limits.read());
        let share = share.and_then(|(rate, limit)| rate.over(limit, Unit::Share));
        add_share(elapsed(ARM, TEST), OF_READ, share, numbers);
    }
}

/// A rate in MiB/s, as a number.
pub(crate) fn mib(rate: Quantity) -> f64 {
    rate.value / MIB
}

/// A rate in MiB/s for reading: `14 606`, `95.7`.
pub(crate) fn display_mib(rate: Quantity) -> String {
    let value = mib(rate);
    if value >= 999.5 { group_thousands(value) } else { format!("{value:.1}") }
}

/// A rate in GB/s for reading: `15.32`, `0.239`.
pub(crate) fn display_gb(rate: Quantity) -> String {
    let value = rate.value / 1e9;
    if value >= 9.995 { format!("{value:.2}") } else { format!("{value:.3}") }
}

/// The records of a workload that ran, by memory type and test.
fn mine<'a>(entries: &'a [Entry], workload: &str) -> Vec<&'a Entry> {
    let ran = entries.iter().filter(|e| e.record.workload == workload && e.has_row());
    let mut mine: Vec<&Entry> = ran.collect();
    mine.sort_by_key(|entry| {
        (type_rank(entry.value(parameter::TYPE)), test_rank(&test_of(entry.case())))
    });
    mine
}

/// A number over that of the same case in WB memory, which is in the cache where a case says so.
fn over_wb(entry: &Entry, of: [&str; 3], entries: &[&Entry]) -> Option<Quantity> {
    // What differs between types without being compared: rounds are bounded for slow ones.
    const FOLLOW: [&str; 6] = ["type", "frames", "leaf", "samples", "state", "iterations"];
    let rest = |entry: &Entry| parameters::without(entry.case(), &FOLLOW);
    let is_base = |entry: &Entry| {
        entry.value(parameter::TYPE) == TYPES[0] && entry.value(parameter::STATE) != "flushed"
    };
    if is_base(entry) {
        return None;
    }
    let [arm, series, statistic] = of;
    let wb = entries.iter().filter(|other| is_base(other) && rest(other) == rest(entry));
    let mut numbers = wb.filter_map(|other| number(other, arm, series, statistic));
    number(entry, arm, series, statistic)?.over(numbers.next()?, Unit::Ratio)
}

/// Why numbers are withheld. Claims that fail alike are said once, with the cases that they spoil:
/// a hypervisor that ignores a memory type spoils all of them.
fn withheld(entries: &[&Entry]) -> Vec<Note> {
    let whose = |entry: &Entry| {
        let test = match entry.record.workload.as_str() {
            BANDWIDTH => test_of(entry.case()),
            _ => String::new(),
        };
        format!("{} {test}", display_type(entry.value(parameter::TYPE))).trim_end().to_owned()
    };
    let invalid = entries.iter().filter(|entry| entry.standing == Standing::Invalid);
    let told = grouped(invalid.flat_map(|entry| {
        entry.failed_claims().map(move |claim| (display_claim(claim), whose(entry)))
    }));
    let note = |(why, cases)| {
        let text = format!("{}: {why}; not quoted", distinct(cases).join(", "));
        Note::bad("INVALID", text, "")
    };
    let mut notes: Vec<Note> = told.into_iter().map(note).collect();
    let emulated = entries.iter().filter(|entry| entry.standing == Standing::Emulated).count();
    if emulated > 0 {
        let cases = if emulated == 1 { "case".to_owned() } else { format!("{emulated} cases") };
        let text = format!(
            "{cases} of an emulated machine, which has no memory types but in its page tables: \
             times mean nothing and are withheld"
        );
        notes.push(Note::warn("EMULATED", text, ""));
    }
    notes
}

/// The rate of plain stores by memory type.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    leading(&run.entries).into_iter().collect()
}

fn leading(entries: &[Entry]) -> Option<Headline> {
    let rate = |memory_type: &str| {
        let mine = mine(entries, BANDWIDTH).into_iter();
        let mut mine = mine
            .filter(|e| e.value(parameter::TYPE) == memory_type && test_of(e.case()) == TESTS[0]);
        mine.find_map(|e| Some((e, e.numbers.get(elapsed(ARM, TEST), "bandwidth")?)))
    };
    let (memory_type, (entry, rate_of_it)) =
        TYPES.iter().find_map(|memory_type| Some((memory_type, rate(memory_type)?)))?;
    let others = TYPES.iter().filter(|other| *other != memory_type);
    let others = others.filter_map(|other| {
        Some(format!("{} {} MiB/s", display_type(other), display_mib(rate(other)?.1)))
    });
    let mib = |value| format!("{} MiB/s", display_mib(Quantity { value, ..rate_of_it }));
    let interval = Some(rate_of_it.told_interval_by(mib)).filter(|text| !text.is_empty());
    Some(Headline {
        value: format!("{} MiB/s", display_mib(rate_of_it)),
        label: format!(
            "stores to {} memory, {}",
            display_type(memory_type),
            units::parse_bytes(entry.value(parameter::SIZE))
                .map_or_else(|_| String::new(), |size| units::display_bytes(size as f64))
        ),
        detail: interval.into_iter().chain(others).collect::<Vec<_>>().join(" · "),
        tone: Tone::Strong,
    })
}

/// A number of an arm, elapsed.
fn number(entry: &Entry, arm: &str, series: &str, statistic: &str) -> Option<Quantity> {
    entry.numbers.get(At { arm, series, time: Time::Elapsed }, statistic)
}
