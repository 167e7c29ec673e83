//! What is predicted of a program, for whoever tried it.
//!
//! The one idea: the same arithmetic as in the report of `explain`, by the name of a knob; what
//! would cost more than it saves is told as well, because that may come, too.

use super::{WORKLOAD, groups, knobs, prices::Prices, total};
use crate::{Entry, Quantity};

/// What the faults of a program cost, and what would be saved of it.
#[derive(Debug)]
pub(crate) struct Predicted {
    /// The time in its faults.
    pub(crate) stall: Quantity,
    knobs: Vec<knobs::Knob>,
}

impl Predicted {
    /// Of the first program that was watched, by the prices beside it; `None` where there is none,
    /// or nothing has a price.
    pub(crate) fn of(entries: &[Entry]) -> Option<Self> {
        let is_it = |entry: &&Entry| entry.record.workload == WORKLOAD && entry.is_valid();
        let measured = entries.iter().find(is_it)?.measured()?;
        let prices = Prices::of(entries);
        let groups = groups(measured, &prices);
        Some(Self { stall: total(&groups)?, knobs: knobs::all(measured, &groups, &prices) })
    }

    /// What a knob would save, and whether that is an upper bound.
    pub(crate) fn saved(&self, knob: &str) -> Option<(Quantity, bool)> {
        let mine = self.knobs.iter().find(|known| known.name == knob)?;
        Some((mine.saved, mine.at_most))
    }
}
