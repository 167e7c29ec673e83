//! A claim of a witness: what a formula predicts beside what was counted.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::vocabulary::{Check, Said, check};

/// One thing that must be so if the number is to mean what it says.
///
/// A claim is checked in every repetition; the record keeps the repetition that came out worst.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Claim {
    /// What it claims, for programs: it stays when the sentence is said better. Empty where nobody
    /// knows it.
    #[serde(default)]
    pub id: String,
    /// The claim, as a sentence.
    pub claim: String,
    /// The arm that it speaks of; empty where it speaks of the whole case.
    #[serde(default)]
    pub arm: String,
    /// What a formula predicts.
    pub expected: i64,
    /// What was counted.
    pub observed: i64,
    /// How far the two may be apart; 0 unless the workload states why not.
    #[serde(default)]
    pub tolerance: i64,
    /// How many repetitions were checked.
    #[serde(default)]
    pub checks: u64,
    /// Whether it held in all of them.
    pub holds: bool,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, observed {}", self.claim, self.expected, self.observed)
    }
}

impl Claim {
    /// One check of a claim.
    pub fn check<'s>(
        said: impl Into<Said<'s>>,
        arm: &str,
        expected: i64,
        observed: i64,
        tolerance: i64,
    ) -> Self {
        let Said { check, claim } = said.into();
        Self {
            id: check.id().to_owned(),
            claim: claim.to_owned(),
            arm: arm.to_owned(),
            expected,
            observed,
            tolerance,
            checks: 1,
            holds: expected.abs_diff(observed) <= tolerance.unsigned_abs(),
        }
    }

    /// Whether it claims this.
    pub fn is(&self, check: Check) -> bool {
        self.id == check.id()
    }

    /// A claim of a journal that is older than ids, with its id.
    pub(crate) fn upgrade(&mut self) {
        if self.id.is_empty() {
            check::id_of(&self.claim).clone_into(&mut self.id);
        }
    }

    /// Adds this check to those already made, keeping the worst of each claim.
    pub fn fold_into(self, witness: &mut Vec<Self>) {
        let same = |other: &&mut Self| other.claim == self.claim && other.arm == self.arm;
        let Some(kept) = witness.iter_mut().find(same) else {
            witness.push(self);
            return;
        };
        let checks = kept.checks + self.checks;
        let distance = |claim: &Self| claim.expected.abs_diff(claim.observed);
        let worse = (kept.holds && !self.holds)
            || (kept.holds == self.holds && distance(&self) > distance(kept));
        if worse {
            *kept = self;
        }
        kept.checks = checks;
    }
}
