//! What this program consists of.

use pagelab_cli::{Part, suites::SUITES};
use pagelab_report::VIEWS;
use pagelab_workloads::WORKLOADS;

use crate::cmd;

/// Every part.
pub(crate) const PARTS: &[&Part] = &[
    &pagelab_program::PART,
    &SEVERAL,
    &pagelab_fault::PART,
    &OTHERS,
    &pagelab_emulation::PART,
    &pagelab_memtype::PART,
    &LATER,
    &pagelab_tiering::PART,
];

/// What is about several parts.
const SEVERAL: Part = Part { views: VIEWS, suites: SUITES, ..Part::NONE };

/// What has no crate of its own yet and stands before emulated memory.
const OTHERS: Part = Part {
    workloads: WORKLOADS,
    views: pagelab_report::OTHERS,
    commands: cmd::OF_PARTS,
    examples: include_str!("examples.txt"),
    ..Part::NONE
};

/// What has none and stands after it.
const LATER: Part =
    Part { workloads: pagelab_workloads::LATER, views: pagelab_report::LATER, ..Part::NONE };

#[cfg(test)]
mod tests;
