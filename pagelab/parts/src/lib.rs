//! What pagelab consists of: a row for each part, in the order in which users see them.

use pagelab_cli::{Part, suites::SUITES};
use pagelab_report::{VIEWS, Views};

/// Every part.
pub const PARTS: &[&Part] = &[
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

/// What is about several parts.
const SEVERAL: Part =
    Part { views: VIEWS, examples: include_str!("examples.txt"), suites: SUITES, ..Part::NONE };

/// The views of all parts, with nothing that is left unsaid.
pub fn views() -> Views {
    Views::new(PARTS.iter().flat_map(|part| part.views), |_, _| None)
}

#[cfg(test)]
mod tests;
