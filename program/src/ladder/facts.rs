//! What the first run of a program shows of it, and which rungs are not for such a program.

use pagelab_record::Outcome;

use super::{
    once::Once,
    rungs::{Offer, Only},
};

/// What helps a program that a rung does nothing for.
pub(super) const OTHERS: &str = "the other rungs: this one changes nothing for it";

/// What the first run showed.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) elapsed_ns: u64,
    pub(super) exit: u64,
    /// Bytes that it held at most, were all present that it shares.
    pub(super) whole: u64,
    pub(super) processes: usize,
    pub(super) shares: bool,
    pub(super) digest: u64,
}

impl Facts {
    pub(super) fn of(once: &Once) -> Self {
        Self {
            elapsed_ns: once.elapsed_ns,
            exit: once.exit(),
            whole: once.seen.whole(),
            processes: once.seen.processes.len(),
            shares: once.seen.shares(),
            digest: once.digest,
        }
    }

    /// Why a rung is not for such a program.
    pub(super) fn forbids(&self, offer: &Offer, is_named: bool) -> Option<Outcome> {
        let skipped =
            |need: &str, cure: String| Some(Outcome::Skipped { need: need.to_owned(), cure });
        match offer.start.only {
            Only::Sharing if !self.shares && !is_named => {
                skipped("a program with shared memory: none was seen", OTHERS.to_owned())
            }
            Only::Alone if self.processes > 1 && !is_named => skipped(
                "a program that does not fork: a copy on write that finds the pool empty ends it",
                format!("--rung {} if its children only start programs", offer.rung.name),
            ),
            _ => None,
        }
    }
}
