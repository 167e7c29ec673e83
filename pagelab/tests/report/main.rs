//! Reports over golden records: every form pinned, and what must hold of the page.

use pagelab_program::PART;
use pagelab_report::{VIEWS, Views};

#[cfg(test)]
mod compare;
#[cfg(test)]
mod curve;
#[cfg(test)]
mod findings;
#[cfg(test)]
mod forms;
#[cfg(test)]
mod frozen;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod golden_memory;
#[cfg(test)]
mod golden_memtype;
#[cfg(test)]
#[path = "../../../core/report/tests/report/made.rs"]
mod made;
#[cfg(test)]
#[path = "../../../core/report/tests/report/made_chains.rs"]
mod made_chains;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod memtype;
#[cfg(test)]
mod page;
#[cfg(test)]
mod refused;
#[cfg(test)]
mod stages;
#[cfg(test)]
mod tlb;
#[cfg(test)]
mod userfaultfd;

/// What is shown of every workload, with nothing that is left unsaid.
fn views() -> Views {
    Views::new(PART.views.iter().chain(VIEWS), |_, _| None)
}
