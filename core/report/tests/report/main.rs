//! Reports over golden records: every form pinned, and what must hold of the page.

use pagelab_report::{VIEWS, Views};

#[cfg(test)]
mod advise;
#[cfg(test)]
mod compare;
mod compare_faults;
#[cfg(test)]
mod curve;
#[cfg(test)]
mod explain;
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
mod tries;
mod tries_builds;
#[cfg(test)]
mod userfaultfd;

/// What is shown of every workload, with nothing that is left unsaid.
fn views() -> Views {
    Views::new(VIEWS, |_, _| None)
}
