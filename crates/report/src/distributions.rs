//! Which latency distributions are drawn together.
//!
//! The one idea: a dozen curves can be told apart, sixty cannot. Where there are more, one pair of
//! charts compares kinds of fault and another page sizes, each with everything else as most cases
//! have it; what is left out stands in the table.

use serde::Serialize;

use crate::{entry::Entry, latency, parameters};

/// More curves than this are drawn in families.
const TOGETHER_MAX: usize = 12;

/// Curves of one pair of charts.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Family {
    /// What they have in common, empty where they are all there are.
    #[serde(skip)]
    pub(crate) name: String,
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

/// Every family of the latency cases that are valid.
pub(crate) fn families(entries: &[Entry]) -> Vec<Family> {
    let mine = entries.iter().filter(|entry| entry.record.workload == latency::WORKLOAD);
    let mine: Vec<&Entry> = mine.filter(|entry| entry.is_valid() && has_faults(entry)).collect();
    if mine.len() <= TOGETHER_MAX {
        return family(String::new(), &mine).into_iter().collect();
    }
    let cases: Vec<_> = mine.iter().map(|entry| entry.case()).collect();
    let usual = parameters::usual(&cases);
    let like_most = |entry: &&&Entry| parameters::unusual(entry.case(), &usual, &["kind", "page"]);
    let ordinary: Vec<&Entry> = mine.iter().filter(|e| like_most(e) == 0).copied().collect();
    let of = |name: &str, value: &str| -> Vec<&Entry> {
        ordinary.iter().filter(|entry| entry.parameter(name) == value).copied().collect()
    };
    let mut families = Vec::new();
    for (name, members) in [
        ("4 KiB pages, by kind of fault", of("page", "4k")),
        ("kind=write, by page size", of("kind", "write")),
        ("2 MiB pages, by kind of fault", of("page", "2m")),
    ] {
        if members.len() > 1 {
            families.extend(family(name.to_owned(), &members));
        }
    }
    families
}

fn has_faults(entry: &Entry) -> bool {
    entry.measured().is_some_and(|m| !latency::steps(m, latency::FAULT, latency::ARM).is_empty())
}

fn family(name: String, entries: &[&Entry]) -> Option<Family> {
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
    (!curves.is_empty()).then_some(Family { name, curves })
}
