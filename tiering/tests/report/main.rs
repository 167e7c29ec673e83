//! Reports of tiers over golden records.

use pagelab_report::{VIEWS, Views};
use pagelab_tiering::PART;

#[cfg(test)]
mod curve;
#[cfg(test)]
#[path = "../../../core/report/tests/report/made.rs"]
#[expect(dead_code, reason = "the tests of other parts use the rest")]
mod made;

/// What is shown of tiers, and of any run.
fn views() -> Views {
    Views::new(VIEWS.iter().chain(PART.views), |_, _| None)
}
