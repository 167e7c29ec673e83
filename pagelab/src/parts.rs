//! What this program consists of.

use pagelab_cli::{Part, suites::SUITES};
use pagelab_report::VIEWS;
use pagelab_workloads::WORKLOADS;

/// Every part.
pub(crate) const PARTS: &[&Part] = &[
    &pagelab_program::PART,
    &SEVERAL,
    &pagelab_fault::PART,
    &OTHERS,
    &pagelab_segments::PART,
    &FITS,
    &pagelab_emulation::PART,
    &pagelab_memtype::PART,
    &pagelab_translation::PART,
    &pagelab_tiering::PART,
];

/// What is about several parts.
const SEVERAL: Part = Part { suites: SUITES, ..Part::NONE };

/// What has no crate of its own yet.
const OTHERS: Part = Part {
    workloads: WORKLOADS,
    views: VIEWS,
    examples: include_str!("examples.txt"),
    ..Part::NONE
};

/// What stands behind segments.
const FITS: Part = Part { views: pagelab_report::FITS, ..Part::NONE };

#[cfg(test)]
mod tests;
