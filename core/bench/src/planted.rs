//! A slowdown that is planted into what is measured, and really executed.
//!
//! The one idea: whether a comparison finds what is slower can only be asked where something is
//! slower, by a share that is known. So work is done behind each body, within its clock pair, and
//! is timed once more by itself: its share is measured, not assumed. No flag of `run` and no key of
//! a suite leads here, `selftest --power` does; the record says it by a claim, a counter and a
//! warning, and `compare` takes it for a difference of the two machines.
//!
//! Only bodies that the meter times by itself are made slower; a case that times its own fails the
//! claim.

use std::collections::BTreeMap;

use pagelab_record::{
    Data, Measured, Series, stats::median, units::whole, vocabulary::series::PLANTED,
};
use pagelab_sys::loops::chain;
use serde::{Deserialize, Serialize};

/// Work that is added to every body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planted {
    /// Turns of a chain of multiplications.
    pub turns: u64,
}

impl Planted {
    /// Does it.
    pub(crate) fn run(self) {
        chain::turn(self.turns);
    }

    /// As much as makes a body slower by `share`, where `self` made it slower by `measured`.
    #[must_use]
    pub fn scaled(self, share: f64, measured: f64) -> Self {
        Self { turns: whole((self.turns as f64 * share / measured).round().max(1.0)) }
    }
}

/// By which share what was planted made bodies slower, by the time that it took: the median over
/// processes. `None` where nothing was planted.
pub fn share(measured: &Measured) -> Option<f64> {
    let time = |series: &Series| match &series.data {
        Data::Values(values) => values.first().map(|ns| *ns as f64),
        _ => None,
    };
    let mut processes: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for two in measured.series.windows(2) {
        let [body, planted] = two else { continue };
        if planted.name != PLANTED || body.name == PLANTED {
            continue;
        }
        let (Some(whole), Some(more)) = (time(body), time(planted)) else { continue };
        if whole > more {
            processes.entry(planted.process).or_default().push(more / (whole - more));
        }
    }
    (!processes.is_empty()).then(|| median(processes.into_values().map(median)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_was_measured_leads_to_the_one_that_is_wanted() {
        assert_eq!(Planted { turns: 1000 }.scaled(0.05, 0.2), Planted { turns: 250 });
        assert_eq!(Planted { turns: 1 }.scaled(0.01, 5.0), Planted { turns: 1 });
    }
}
