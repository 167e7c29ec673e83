//! What is predicted of a program, for whoever tried it.
//!
//! The one idea: the same arithmetic as in the report of `explain`, by the name of a knob; what
//! would cost more than it saves is told as well, because that may come, too.

use super::{
    WORKLOAD, groups, knobs, priced::Seen, prices::Prices, total, translation::Translation,
};
use pagelab_report::{Entry, Quantity, Unit};

/// What the faults of a program cost, and what would be saved of it.
#[derive(Debug)]
pub(crate) struct Predicted {
    /// The time in its faults.
    pub(crate) stall: Quantity,
    /// The time that its page walks took, where they were seen and have a price.
    pub(crate) translation: Option<Quantity>,
    knobs: Vec<knobs::Knob>,
}

/// What a knob would save.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Saving {
    /// Of faults.
    pub(crate) faults: Quantity,
    /// Of giving pages back, where that has a price.
    pub(crate) given_back: Option<Quantity>,
    /// Of translation, where that was seen.
    pub(crate) translation: Option<Quantity>,
    /// Of all.
    pub(crate) in_all: Quantity,
    /// Whether that of the faults is an upper bound.
    pub(crate) at_most: bool,
}

impl Predicted {
    /// Of the first program that was watched, by the prices beside it; `None` where there is none,
    /// or nothing has a price.
    pub(crate) fn of(entries: &[Entry]) -> Option<Self> {
        let is_it = |entry: &&Entry| entry.record.workload == WORKLOAD && entry.is_valid();
        let measured = entries.iter().find(is_it)?.measured()?;
        let prices = Prices::of(entries);
        let groups = groups(measured, &prices);
        let walks = Translation::of(measured, &prices.walks);
        let translation = walks.as_ref().and_then(Translation::seen).and_then(Seen::cost);
        let stall = total(&groups);
        let stall = stall.or_else(|| translation.map(|_| Quantity::exact(0.0, Unit::Ns)))?;
        Some(Self { stall, translation, knobs: knobs::all(measured, &groups, &prices) })
    }

    /// What a knob would save.
    pub(crate) fn saved(&self, knob: &str) -> Option<Saving> {
        let mine = self.knobs.iter().find(|known| known.name == knob)?;
        let knobs::Knob { saved: faults, given_back, translation, at_most, .. } = *mine;
        Some(Saving { faults, given_back, translation, in_all: mine.in_all(), at_most })
    }
}
