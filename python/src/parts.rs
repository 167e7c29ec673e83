//! The parts of pagelab, as the binary has them.

use pagelab_cli::{Part, part};
use pagelab_report::VIEWS;
use pagelab_workloads::WORKLOADS;

/// Every part, in the order of the binary.
const PARTS: &[&Part] = &[
    &pagelab_program::PART,
    &OTHERS,
    &pagelab_emulation::PART,
    &pagelab_memtype::PART,
    &LATER,
    &pagelab_tiering::PART,
];

/// What has no crate of its own yet.
const OTHERS: Part = Part { workloads: WORKLOADS, views: VIEWS, ..Part::NONE };

/// What comes behind them and has none yet either.
const LATER: Part = Part {
    workloads: pagelab_workloads::LATER,
    views: pagelab_report::LATER,
    ..Part::NONE
};

/// Names the parts; before anything else.
pub(crate) fn name() {
    part::set(PARTS);
}
