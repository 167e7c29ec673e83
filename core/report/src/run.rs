//! A run with everything that is derived from it.
//!
//! The one idea: a view sees a run, and what follows from the records of others only through it.
//! All of it is derived before the first view looks, by [`Views::run`].

use pagelab_record::{RunHeader, journal::Damage};

use crate::{Entry, Limits, Views, findings::Finding, published::Publication};

/// A run with everything that is derived from it.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// What its workloads are shown by.
    pub views: Views,
    /// What was asked.
    pub header: RunHeader,
    /// Where its journal ends before its end.
    pub damage: Option<Damage>,
    /// Its records, in the order of reading.
    pub entries: Vec<Entry>,
    /// Records that only say what is predicted of a program that was tried: no section is theirs.
    pub aside: Vec<Entry>,
    /// The publications beside it.
    pub publications: Vec<Publication>,
    /// The records of those.
    pub published: Vec<Entry>,
    /// The limits of its machine.
    pub limits: Limits,
    /// Sentences that its numbers carry.
    pub(crate) findings: Vec<Finding>,
}

impl Run {
    /// Every record, what stands aside last.
    pub fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().chain(&self.aside)
    }

    /// The records of a workload that ran: each has a row in its table.
    pub fn rows(&self, workload: &str) -> Vec<&Entry> {
        let mine = |entry: &&Entry| entry.record.workload == workload && entry.has_row();
        self.entries.iter().filter(mine).collect()
    }

    /// The same, unless there are none.
    pub fn any(&self, workload: &str) -> Option<Vec<&Entry>> {
        Some(self.rows(workload)).filter(|mine| !mine.is_empty())
    }

    /// The records of a workload whose numbers may be quoted.
    pub fn valid(&self, workload: &str) -> Vec<&Entry> {
        self.rows(workload).into_iter().filter(|entry| entry.is_valid()).collect()
    }
}
