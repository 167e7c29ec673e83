//! The parts of pagelab, as the binary has them, without their commands: half of the wheel.

use pagelab_cli::{Part, part};
use pagelab_parts::PARTS;

static QUIET: [Part; PARTS.len()] = {
    let mut quiet = [const { Part::NONE }; PARTS.len()];
    let mut nth = 0;
    while nth < PARTS.len() {
        let part = PARTS[nth];
        quiet[nth] = Part { workloads: part.workloads, views: part.views, ..Part::NONE };
        nth += 1;
    }
    quiet
};

/// Names the parts; before anything else.
pub(crate) fn name() {
    part::set(QUIET.iter().collect::<Vec<_>>().leak());
}
