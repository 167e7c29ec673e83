//! What this program consists of.

use pagelab_cli::{Part, suites::SUITES};
use pagelab_report::VIEWS;

/// Every part.
pub(crate) const PARTS: &[&Part] = &[
    &pagelab_program::PART,
    &SEVERAL,
    &pagelab_fault::PART,
    &pagelab_segments::PART,
    &FITS,
    &pagelab_emulation::PART,
    &pagelab_memtype::PART,
    &pagelab_translation::PART,
    &pagelab_tiering::PART,
];

/// What is about several parts, or in none yet.
const SEVERAL: Part =
    Part { views: VIEWS, examples: include_str!("examples.txt"), suites: SUITES, ..Part::NONE };

/// What stands behind segments.
const FITS: Part = Part { views: pagelab_report::FITS, ..Part::NONE };

#[cfg(test)]
mod tests;
