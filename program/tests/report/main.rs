//! Reports of programs over golden records.

use pagelab_program::PART;
use pagelab_report::{VIEWS, Views};
use pagelab_translation::PART as TRANSLATION;

#[cfg(test)]
mod advise;
mod compare_faults;
#[cfg(test)]
mod explain;
#[cfg(test)]
#[path = "../../../core/report/tests/report/made.rs"]
mod made;
#[cfg(test)]
#[path = "../../../core/report/tests/report/made_chains.rs"]
mod made_chains;
mod tries;
mod tries_builds;
#[cfg(test)]
mod walks;

/// What is shown of programs, and of what prices their faults.
fn views() -> Views {
    let [fault, fits] = [pagelab_fault::PART, pagelab_fault::FITS];
    let tables = [PART.views, VIEWS, fault.views, fits.views, TRANSLATION.views];
    Views::new(tables.into_iter().flatten(), |_, _| None)
}
