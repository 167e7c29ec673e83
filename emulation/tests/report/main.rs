//! Reports of emulated memory over golden records.

use pagelab_emulation::PART;
use pagelab_report::{VIEWS, Views};

#[cfg(test)]
mod golden_memory;
#[cfg(test)]
#[path = "../../../core/report/tests/report/made.rs"]
#[expect(dead_code, reason = "each part makes its records of some of it")]
mod made;
#[cfg(test)]
#[path = "../../../core/report/tests/report/made_suites.rs"]
mod made_suites;
#[cfg(test)]
mod memory;

/// What is shown of emulated memory, and of every run.
fn views() -> Views {
    Views::new(VIEWS.iter().chain(PART.views), |_, _| None)
}
