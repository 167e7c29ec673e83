//! A run with everything that is derived from it.
//!
//! The one idea: a view sees a run, and what follows from the records of others only through it.
//! All of it is derived before the first view looks, by [`crate::views`].

use pagelab_record::{RunHeader, journal::Damage};

use crate::{Entry, Limits, findings::Finding, fit::Fit, published::Publication};

/// A run with everything that is derived from it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Run {
    pub(crate) header: RunHeader,
    pub(crate) damage: Option<Damage>,
    pub(crate) entries: Vec<Entry>,
    /// Records that only say what is predicted of a program that was tried: no section is theirs.
    pub(crate) aside: Vec<Entry>,
    pub(crate) publications: Vec<Publication>,
    pub(crate) published: Vec<Entry>,
    pub(crate) limits: Limits,
    pub(crate) fits: Vec<Fit>,
    pub(crate) findings: Vec<Finding>,
}

impl Run {
    /// Every record, what stands aside last.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().chain(&self.aside)
    }

    /// The records of a workload that ran: each has a row in its table.
    pub(crate) fn rows(&self, workload: &str) -> Vec<&Entry> {
        let mine = |entry: &&Entry| entry.record.workload == workload && entry.has_row();
        self.entries.iter().filter(mine).collect()
    }

    /// The same, unless there are none.
    pub(crate) fn any(&self, workload: &str) -> Option<Vec<&Entry>> {
        Some(self.rows(workload)).filter(|mine| !mine.is_empty())
    }

    /// The records of a workload whose numbers may be quoted.
    pub(crate) fn valid(&self, workload: &str) -> Vec<&Entry> {
        self.rows(workload).into_iter().filter(|entry| entry.is_valid()).collect()
    }
}
