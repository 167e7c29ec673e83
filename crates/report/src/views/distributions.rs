//! Which latency distributions are drawn together.
//!
//! The one idea: a dozen curves can be told apart, sixty cannot. Where there are more, one pair of
//! charts compares kinds of fault and another page sizes, each with everything else as most cases
//! have it; what is left out stands in the table.

use pagelab_record::{
    Data, Measured,
    stats::Samples,
    vocabulary::{
        arm::{AS_PUBLISHED, CONTROL, OURS as ARM},
        series::FAULT,
        workload::LATENCY,
    },
};
use serde::Serialize;

use crate::{
    entry::Entry,
    numbers::{Time, clock_of},
    parameters,
};

/// More curves than this are drawn in families.
const TOGETHER_MAX: usize = 12;

/// Curves of one pair of charts.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Family {
    curves: Vec<Curve>,
}

/// One distribution.
#[derive(Debug, Clone, Serialize)]
struct Curve {
    label: String,
    kind: String,
    page: String,
    control: bool,
    /// Value in nanoseconds, and how many observations it stands for.
    steps: Vec<(u64, u64)>,
}

/// The cases that are drawn together, and what they have in common.
pub(crate) struct Members<'a> {
    /// Empty where they are all there are.
    pub(crate) name: &'static str,
    entries: Vec<&'a Entry>,
}

/// Every family of the latency cases that are valid.
pub(crate) fn members(entries: &[Entry]) -> Vec<Members<'_>> {
    let mine = entries.iter().filter(|entry| entry.record.workload == LATENCY);
    let mine: Vec<&Entry> = mine.filter(|entry| entry.is_valid() && has_faults(entry)).collect();
    if mine.len() <= TOGETHER_MAX {
        let all = Members { name: "", entries: mine };
        return if all.entries.is_empty() { Vec::new() } else { vec![all] };
    }
    let cases: Vec<_> = mine.iter().map(|entry| entry.case()).collect();
    let usual = parameters::usual(&cases);
    let like_most = |entry: &&&Entry| parameters::unusual(entry.case(), &usual, &["kind", "page"]);
    let ordinary: Vec<&Entry> = mine.iter().filter(|e| like_most(e) == 0).copied().collect();
    let of = |(name, parameter, value): (&'static str, &str, &str)| {
        let mine = ordinary.iter().filter(|entry| entry.parameter(parameter) == value);
        Members { name, entries: mine.copied().collect() }
    };
    let families = [
        ("4 KiB pages, by kind of fault", "page", "4k"),
        ("kind=write, by page size", "kind", "write"),
        ("2 MiB pages, by kind of fault", "page", "2m"),
    ];
    families.map(of).into_iter().filter(|family| family.entries.len() > 1).collect()
}

/// The curves of every family.
pub(crate) fn families(entries: &[Entry]) -> Vec<Family> {
    members(entries).iter().map(|members| family(&members.entries)).collect()
}

fn has_faults(entry: &Entry) -> bool {
    entry.measured().is_some_and(|m| has_steps(m, FAULT, ARM))
}

fn family(entries: &[&Entry]) -> Family {
    let groups: Vec<_> =
        entries.iter().map(|e| parameters::without(e.case(), &["size", "dir"])).collect();
    let labels = parameters::labels(&groups.iter().collect::<Vec<_>>(), "fault");
    let mut curves = Vec::new();
    for (entry, label) in entries.iter().zip(labels) {
        let Some(measured) = entry.measured() else { continue };
        let label = label.replace("page=", "");
        for (arm, suffix) in
            [(ARM, ""), (AS_PUBLISHED, ", as published"), (CONTROL, ", present (control)")]
        {
            let control = arm == CONTROL;
            // The control differs little from case to case: the first speaks for all.
            if control && curves.iter().any(|curve: &Curve| curve.control) {
                continue;
            }
            let steps = steps(measured, FAULT, arm);
            if steps.is_empty() {
                continue;
            }
            curves.push(Curve {
                label: format!("{label}{suffix}"),
                kind: entry.parameter("kind").to_owned(),
                page: entry.parameter("page").to_owned(),
                control,
                steps,
            });
        }
    }
    curves.sort_by_key(|curve| {
        (curve.control, curve.kind.clone(), parameters::page_rank(&curve.page))
    });
    Family { curves }
}

/// Whether a series of an arm is a distribution.
fn has_steps(measured: &Measured, series: &str, arm: &str) -> bool {
    let is_distribution = |s: &pagelab_record::Series| match &s.data {
        Data::Histogram(_) => true,
        Data::Values(values) => s.ops == 1 && values.len() > 1,
        Data::Summary(_) => false,
    };
    let mut mine = measured.series.iter().filter(|s| s.name == series && s.arm == arm);
    mine.any(is_distribution)
}

/// All observations of a series of an arm, as one distribution in nanoseconds: value and count.
fn steps(measured: &Measured, series: &str, arm: &str) -> Vec<(u64, u64)> {
    let clock = clock_of(&measured.series, series, arm, Time::Elapsed);
    let Some(clock) = clock.filter(|_| has_steps(measured, series, arm)) else {
        return Vec::new();
    };
    let merged = Samples::of(&measured.series, series, arm, clock).merged();
    let step = |step: hdrhistogram::iterators::IterationValue<u64>| {
        (step.value_iterated_to(), step.count_since_last_iteration())
    };
    merged.iter_recorded().map(step).collect()
}
