//! Reports over golden records: every form pinned, and what must hold of the page.

use pagelab_parts::views;

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
