//! The parts of pagelab, as the binary has them.

use pagelab_cli::{Part, part};
use pagelab_report::{LATER as LATER_VIEWS, VIEWS};
use pagelab_workloads::WORKLOADS;

/// Every part, in the order of the binary.
const PARTS: &[&Part] = &[&PROGRAM, &OTHERS, &MEMTYPE, &LATER, &TIERING];

// Without their commands, which would be half of the wheel.
const PROGRAM: Part = Part { views: pagelab_program::PART.views, ..Part::NONE };
const MEMTYPE: Part = Part { views: pagelab_memtype::PART.views, ..Part::NONE };
const TIERING: Part = Part {
    workloads: pagelab_tiering::PART.workloads,
    views: pagelab_tiering::PART.views,
    ..Part::NONE
};

/// What has no crate of its own yet.
const OTHERS: Part = Part { workloads: WORKLOADS, views: VIEWS, ..Part::NONE };

/// What comes behind them and has none yet either.
const LATER: Part = Part { views: LATER_VIEWS, ..Part::NONE };

/// Names the parts; before anything else.
pub(crate) fn name() {
    part::set(PARTS);
}
