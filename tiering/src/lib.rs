//! Tiered memory: what accesses to it cost, what a policy would do, and which pages to move.
//!
//! [`micro`] and [`curve`] measure, the former under the kernel's own modes; the rest is the model.
//!
//! [`preset`] reads a file, [`scenario`](mod@scenario) makes of each of its runs what the simulator
//! takes, [`simulation`] is the workload, `compare` says what each result is worth, `tables`
//! puts all of it into a record. The simulator itself is another crate, and knows no published
//! number.

mod chance;
mod choice;
mod compare;
pub mod constant;
pub mod curve;
mod drawn;
mod metric;
pub mod micro;
pub mod params;
pub mod preset;
pub mod scenario;
pub mod section;
pub mod simulation;
mod tables;

use pagelab_bench::Table;
use pagelab_cli::{Part, publication};

/// The part of pagelab that is about tiers of memory.
pub const PART: Part = Part {
    workloads: WORKLOADS,
    suites: &[("pghot", include_str!("../../suites/pghot.toml"))],
    publications: &[publication!("pghot", "report.j2")],
    ..Part::NONE
};

/// In the order of `list`.
const WORKLOADS: Table = &[&curve::CURVE, &micro::MICRO, &simulation::SIMULATION];

#[cfg(test)]
mod tests;
