//! The table of cases, in the order in which they run; one file for each topic.

mod boot;
mod check;
mod hugetlb;
mod killed;
mod kmod;
mod lane;
mod nature;
mod numa;
mod pressure;
mod reserved;

use anyhow::{Result, bail};
use pagelab_record::{Measured, Outcome, Record};

use crate::case::Case;

/// Every case. Names are `topic/fact`.
pub(crate) const CASES: &[Case] = &[
    boot::KERNEL,
    nature::EMULATED,
    numa::NODES_TWO,
    numa::TIERS_TWO,
    numa::PLACEMENT,
    numa::KINDS,
    reserved::HIDDEN,
    hugetlb::GIANT,
    pressure::FRAGMENTED,
    pressure::MEMCG,
    killed::HINTED,
    killed::FRAGMENTED,
    check::EVERYTHING,
    check::UNPRIVILEGED,
    kmod::DOOR,
    kmod::TABLE,
    kmod::TABLE_LARGE,
    kmod::REFUSALS,
    kmod::NODES,
    kmod::LIFE,
    kmod::MAPPINGS,
    kmod::LEGACY,
    kmod::TOOL,
    kmod::HOSTILE,
    lane::PANIC,
];

/// The case of a name.
pub(crate) fn find(name: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.name == name)
}

/// What a record measured; a skip or a failure is an error here.
fn measured(record: &Record) -> Result<&Measured> {
    match &record.outcome {
        Outcome::Measured(measured) => Ok(measured),
        Outcome::Skipped { need, cure } => bail!("it was skipped: {need}; {cure}"),
        Outcome::Failed { reason } => bail!("it failed: {reason}"),
    }
}

/// An error for a record that is not measured, or that has a claim which does not hold.
fn valid(record: &Record) -> Result<()> {
    let broken = measured(record)?.witness.iter().find(|claim| !claim.holds);
    let Some(claim) = broken else { return Ok(()) };
    bail!("{}: expected {}, observed {}", claim.claim, claim.expected, claim.observed)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own_a_sentence_and_a_place() {
        let names: BTreeSet<_> = CASES.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), CASES.len());
        for case in CASES {
            assert!(case.name.contains('/') && !case.name.contains(' '), "{}", case.name);
            assert!(case.about.ends_with('.'), "{}", case.name);
            assert!(case.places.iter().all(|place| !place.kernels.is_empty()), "{}", case.name);
            assert!(!case.places.is_empty(), "{}", case.name);
        }
    }
}
