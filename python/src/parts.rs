//! The parts of pagelab, as the binary has them.

use pagelab_cli::{Part, part};
use pagelab_report::VIEWS;

/// Every part, in the order of the binary.
const PARTS: &[&Part] =
    &[&PROGRAM, &SEVERAL, &FAULT, &SEGMENTS, &FITS, &EMULATION, &MEMTYPE, &TRANSLATION, &TIERING];

// Without their commands, which would be half of the wheel.
const PROGRAM: Part = Part { views: pagelab_program::PART.views, ..Part::NONE };
const FAULT: Part = quiet(&pagelab_fault::PART);
const EMULATION: Part = quiet(&pagelab_emulation::PART);
const MEMTYPE: Part = quiet(&pagelab_memtype::PART);
const FITS: Part = quiet(&pagelab_fault::FITS);
const SEGMENTS: Part = quiet(&pagelab_segments::PART);
const TRANSLATION: Part = quiet(&pagelab_translation::PART);
const TIERING: Part = quiet(&pagelab_tiering::PART);

/// The workloads and views of a part.
const fn quiet(part: &Part) -> Part {
    Part { workloads: part.workloads, views: part.views, ..Part::NONE }
}

/// What is about several parts, or in none.
const SEVERAL: Part = Part { views: VIEWS, ..Part::NONE };

/// Names the parts; before anything else.
pub(crate) fn name() {
    part::set(PARTS);
}
