//! What is not compared of a case, and why.

use std::collections::BTreeSet;

use pagelab_record::{Outcome, Record};

use crate::entry::Standing;

/// Records of a case that have no number.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) hosts: BTreeSet<usize>,
    /// What was said by the first of them.
    pub(super) why: String,
}

impl Left {
    /// The first of them, of no host yet.
    pub(super) fn of(record: &Record, standing: Standing) -> Self {
        let why = match &record.outcome {
            Outcome::Skipped { need, .. } => format!("skipped: it needs {need}"),
            Outcome::Failed { reason } => format!("failed: {reason}"),
            Outcome::Measured(_) if standing == Standing::Emulated => {
                "times of an emulated machine mean nothing".to_owned()
            }
            Outcome::Measured(measured) => measured.broken().next().map_or_else(
                || "published, and of no host".to_owned(),
                |claim| format!("a claim fails: {}", claim.claim),
            ),
        };
        Self { hosts: BTreeSet::new(), why }
    }
}
