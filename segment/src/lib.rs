//! Segments: contiguous memory in large leaves, for a program as it is.
//!
//! `commands` runs a program with the library in `segment/library` before its own, and tells what
//! that counted; [`fault`] measures what taking memory from segments costs, and `view` shows it.

#[macro_use(host, usage)]
extern crate pagelab_cli;

mod commands;
pub mod fault;
mod view;

use pagelab_bench::Table;
use pagelab_cli::Part;
use pagelab_report::{Derive, Sections::Each, View};

/// The part of pagelab that is about segments.
pub const PART: Part = Part {
    workloads: WORKLOADS,
    views: VIEWS,
    commands: &[commands::ROW],
    examples: include_str!("examples.txt"),
    ..Part::NONE
};

/// The workload, as records call it.
const WORKLOAD: &str = "segment/fault";

/// In the order of `list`.
const WORKLOADS: Table = &[&fault::FAULT];

/// In the order of reading.
const VIEWS: &[View] = &[View {
    workloads: &[WORKLOAD],
    short: &["size"],
    derive: &[Derive::Limits(view::derive)],
    sections: Each(&[view::section]),
    headlines: view::headlines,
    ..View::NONE
}];

#[cfg(test)]
mod tests;
