//! Reports of faults over golden records.

use pagelab_fault::{FITS, PART};
use pagelab_report::{VIEWS, Views};

#[cfg(test)]
#[path = "../../../core/report/tests/report/made.rs"]
mod made;
#[cfg(test)]
mod refused;
#[cfg(test)]
mod stages;
#[cfg(test)]
mod userfaultfd;

/// What is shown of faults, and of any run.
fn views() -> Views {
    Views::new(VIEWS.iter().chain(PART.views).chain(FITS.views), |_, _| None)
}
