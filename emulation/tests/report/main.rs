//! Reports of emulated memory over golden records.

use pagelab_emulation::PART;
use pagelab_report::{VIEWS, View, Views, limits::Ceilings};

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

/// The limits of a machine: what a system call takes.
static LIMITS: View = View {
    ceilings: Some(&Ceilings {
        operations: [("", "", ""); 3],
        costs: &[("limit/syscall", "getppid", "system call", "")],
    }),
    ..View::NONE
};

/// What is shown of emulated memory, and of every run.
fn views() -> Views {
    Views::new(VIEWS.iter().chain([&LIMITS]).chain(PART.views), |_, _| None)
}
