//! Segments: contiguous memory in large leaves, for a program as it is.
//!
//! `commands` runs a program with the library in `segment/library` before its own, and tells what
//! that counted; `view` shows what taking memory from segments costs, which `segment/fault`
//! measures.

#[macro_use(host, usage)]
extern crate pagelab_cli;

mod commands;
mod view;

use pagelab_cli::Part;
use pagelab_report::{Derive, Sections::Each, View};

/// The part of pagelab that is about segments.
pub const PART: Part = Part {
    views: VIEWS,
    commands: &[commands::ROW],
    examples: include_str!("examples.txt"),
    ..Part::NONE
};

/// The workload, as records call it.
const WORKLOAD: &str = "segment/fault";

/// In the order of reading.
const VIEWS: &[View] = &[View {
    workloads: &[WORKLOAD],
    short: &["size"],
    derive: &[Derive::Limits(view::derive)],
    sections: Each(&[view::section]),
    headlines: view::headlines,
    ..View::NONE
}];
