//! What memory types (WB, UC-, WC, WT) do to loads, stores and fences.
//!
//! The workloads are in [`workloads`], what reports show of them in `views`; `memtype/kmod` is the
//! kernel module that gives memory of a chosen type.

mod views;
pub mod workloads;

use pagelab_bench::{Need as _, Needed, Table};
use pagelab_cli::{Part, publication};

use self::workloads::needs::{AccessWidth, Module};

/// The part of pagelab that is about memory types.
pub const PART: Part = Part {
    workloads: WORKLOADS,
    requirements: REQUIREMENTS,
    views: views::VIEWS,
    suites: &[("memory-types", include_str!("../../suites/memory-types.toml"))],
    publications: &[publication!("memory-types", "report.j2")],
    ..Part::NONE
};

/// In the order of `list`.
const WORKLOADS: Table =
    &[&workloads::bandwidth::BANDWIDTH, &workloads::latency::LATENCY, &workloads::order::ORDER];

const REQUIREMENTS: &[fn() -> Vec<Needed>] = &[
    || vec![Module.needed()],
    || [32, 64].map(|bytes| AccessWidth { loads: false, nt: false, bytes }.needed()).to_vec(),
    || vec![AccessWidth { loads: true, nt: true, bytes: 16 }.needed()],
];

#[cfg(test)]
mod tests;
