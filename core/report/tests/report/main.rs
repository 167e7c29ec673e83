//! Reports over golden records: every form pinned, and what must hold of the page.

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
mod golden;
#[cfg(test)]
mod golden_memory;
#[cfg(test)]
mod golden_memtype;
#[cfg(test)]
mod made;
#[cfg(test)]
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
    Views::new(VIEWS, |_, _| None)
}
