//! Reports over golden records: every form pinned, and what must hold of the page.

use pagelab_report::{VIEWS, Views};

#[cfg(test)]
mod compare;
#[cfg(test)]
mod findings;
#[cfg(test)]
mod forms;
#[cfg(test)]
mod frozen;
#[cfg(test)]
mod golden;
#[cfg(test)]
#[path = "../../../emulation/tests/report/golden_memory.rs"]
mod golden_memory;
#[cfg(test)]
mod golden_memtype;
#[cfg(test)]
#[path = "../../../core/report/tests/report/made.rs"]
mod made;
#[cfg(test)]
#[path = "../../../core/report/tests/report/made_suites.rs"]
mod made_suites;
#[cfg(test)]
mod memtype;
#[cfg(test)]
mod page;
#[cfg(test)]
mod refused;
#[cfg(test)]
mod stages;
#[cfg(test)]
mod userfaultfd;

/// What is shown of every workload, with nothing that is left unsaid.
fn views() -> Views {
    let [program, emulation, memtype, translation, tiering] = [
        pagelab_program::PART,
        pagelab_emulation::PART,
        pagelab_memtype::PART,
        pagelab_translation::PART,
        pagelab_tiering::PART,
    ];
    let tables =
        [program.views, VIEWS, emulation.views, memtype.views, translation.views, tiering.views];
    Views::new(tables.into_iter().flatten(), |_, _| None)
}
