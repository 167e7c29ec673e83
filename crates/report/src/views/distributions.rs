//! Which latency distributions are drawn together.
//!
//! The one idea: a dozen curves can be told apart, sixty cannot. Where there are more, one pair of
//! charts compares kinds of fault and another page sizes, each with everything else as most cases
//! have it; what is left out stands in the table.

use serde::Serialize;

use crate::{entry::Entry, parameters, views::latency};

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
    let mine = entries.iter().filter(|entry| entry.record.workload == latency::WORKLOAD);
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
    entry.measured().is_some_and(|m| latency::has_steps(m, latency::FAULT, latency::ARM))
}

fn family(entries: &[&Entry]) -> Family {
    let groups: Vec<_> =
        entries.iter().map(|e| parameters::without(e.case(), &["size", "dir"])).collect();
    let labels = parameters::labels(&groups.iter().collect::<Vec<_>>(), "fault");
    let mut curves = Vec::new();
    for (entry, label) in entries.iter().zip(labels) {
        let Some(measured) = entry.measured() else { continue };
        let label = label.replace("page=", "");
        for (arm, suffix) in [
            (latency::ARM, ""),
            (latency::AS_PUBLISHED, ", as published"),
            (latency::CONTROL, ", present (control)"),
        ] {
            let control = arm == latency::CONTROL;
            // The control differs little from case to case: the first speaks for all.
            if control && curves.iter().any(|curve: &Curve| curve.control) {
                continue;
            }
            let steps = latency::steps(measured, latency::FAULT, arm);
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
