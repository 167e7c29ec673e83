//! Traces and emulated memory: what the tool has of them beside the portable libraries `trace` and
//! `emu`.
//!
//! [`trace`](mod@trace) is a trace as an input of cases and what it looks like, [`emu`] how fast it
//! is replayed and whether a memory remembers, [`capture`] runs a program in qemu-user for it.

#[macro_use(host, usage)]
extern crate pagelab_cli;

pub mod capture;
mod commands;
pub mod emu;
pub mod trace;
pub mod views;

use pagelab_bench::Table;
use pagelab_cli::{Part, publication};

/// The part of pagelab that is about traces and emulated memory.
pub const PART: Part = Part {
    workloads: WORKLOADS,
    views: views::VIEWS,
    commands: &[commands::ROW],
    examples: include_str!("examples.txt"),
    suites: &[("fast-memory", include_str!("../../suites/fast-memory.toml"))],
    publications: &[publication!("fast-memory")],
    ..Part::NONE
};

/// In the order of `list`.
const WORKLOADS: Table = &[&emu::replay::REPLAY, &emu::verify::VERIFY, &trace::stats::STATS];

#[cfg(test)]
mod tests;
