//! Reports of translation over golden records.

use pagelab_report::{VIEWS, Views};
use pagelab_translation::PART;

#[cfg(test)]
#[path = "../../../../core/report/tests/report/made.rs"]
#[expect(dead_code, reason = "the tests of other parts use the rest")]
mod made;
#[cfg(test)]
#[path = "../../../../core/report/tests/report/made_chains.rs"]
mod made_chains;
#[cfg(test)]
mod tlb;

/// What is shown of translation, and of any run.
fn views() -> Views {
    Views::new(VIEWS.iter().chain(PART.views), |_, _| None)
}
