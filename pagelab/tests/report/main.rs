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

/// What is shown of every workload, with nothing that is left unsaid.
fn views() -> Views {
    let [program, fault, segments, fits, emulation, memtype, translation, tiering] = [
        pagelab_program::PART,
        pagelab_fault::PART,
        pagelab_segments::PART,
        pagelab_fault::FITS,
        pagelab_emulation::PART,
        pagelab_memtype::PART,
        pagelab_translation::PART,
        pagelab_tiering::PART,
    ];
    let before = [program.views, VIEWS, fault.views, segments.views, fits.views];
    let behind = [emulation.views, memtype.views, translation.views, tiering.views];
    Views::new(before.into_iter().chain(behind).flatten(), |_, _| None)
}
