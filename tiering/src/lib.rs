//! Tiered memory: what accesses to it cost, what a policy would do, and which pages to move.
//!
//! [`micro`] and [`curve`] measure, the former under the kernel's own modes; the rest is the model.
//!
//! [`preset`] reads a file, [`scenario`](mod@scenario) makes of each of its runs what the simulator
//! takes, [`simulation`] is the workload, `compare` says what each result is worth, `tables`
//! puts all of it into a record. The simulator itself is another crate, and knows no published
//! number.

#[macro_use(host, usage)]
extern crate pagelab_cli;

mod chance;
mod choice;
mod commands;
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
mod views;

use pagelab_bench::Table;
use pagelab_cli::{DoctorSection, Part, publication};
use pagelab_live::status::{Why, reasons};
use pagelab_sys::machine::Tree;
use serde_json::json;

/// The part of pagelab that is about tiers of memory.
pub const PART: Part = Part {
    workloads: WORKLOADS,
    views: views::VIEWS,
    commands: &[commands::ROW],
    examples: include_str!("examples.txt"),
    suites: &[("pghot", include_str!("../../suites/pghot.toml"))],
    publications: &[publication!("pghot", "report.j2")],
    doctor: &[DoctorSection {
        name: "tiers",
        title: "why nothing moves between tiers of memory",
        lines: || {
            let all = reasons(&Tree::machine()).into_iter().map(Why::from);
            all.map(|why| (format!("{}: {}", why.says, why.cure), json!(why))).collect()
        },
    }],
    ..Part::NONE
};

/// In the order of `list`.
const WORKLOADS: Table = &[&curve::CURVE, &micro::MICRO, &simulation::SIMULATION];

#[cfg(test)]
mod tests;
