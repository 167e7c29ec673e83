//! What this program consists of.

use pagelab_cli::{Part, suites::SUITES};
use pagelab_report::VIEWS;

/// Every part.
pub(crate) const PARTS: &[&Part] = &[
    &pagelab_program::PART,
    &SEVERAL,
    &pagelab_fault::PART,
    &pagelab_segments::PART,
    &pagelab_fault::FITS,
    &pagelab_emulation::PART,
    &pagelab_memtype::PART,
    &pagelab_translation::PART,
    &pagelab_tiering::PART,
];

/// What is about several parts, or in none.
const SEVERAL: Part =
    Part { views: VIEWS, examples: include_str!("examples.txt"), suites: SUITES, ..Part::NONE };

#[cfg(test)]
mod tests;
