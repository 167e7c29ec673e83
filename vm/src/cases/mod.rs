//! What the cases of `vm/cases.toml` do; one file for each topic.

mod balancing;
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
mod segments;
pub(crate) mod tier;
pub(crate) mod tries;

use std::sync::LazyLock;

use anyhow::{Context, Result, bail};
use pagelab_record::{Measured, Outcome, Record};
use serde::Deserialize;

use crate::{case::Case, guest::Guest, verdict::Verdict};

/// Every case, in the order of the file.
pub(crate) static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    toml::from_str::<File>(include_str!("../../cases.toml")).expect("a test reads it").case
});

#[derive(Deserialize)]
struct File {
    case: Vec<Case>,
}

/// What a case does.
type Run = fn(&Guest) -> Result<Verdict>;

/// The functions, by the names of their cases; those of the module have a table of their own.
const RUNS: &[(&str, Run)] = &[
    ("boot/kernel", boot::kernel),
    ("boot/sanitized", boot::sanitized),
    ("nature/emulated", nature::emulated),
    ("numa/nodes", numa::nodes),
    ("numa/tiers", numa::tiers),
    ("numa/placement", numa::placement),
    ("numa/kinds", numa::kinds),
    ("tier/balancing", balancing::promotes),
    ("tier/ours", balancing::ours),
    ("tier/promote", tier::promote),
    ("tier/killed", tier::killed),
    ("tier/program", tier::program),
    ("tier/full", tier::full),
    ("tier/status", tier::status),
    ("tier/hints", tier::hints),
    ("tier/damon", tier::damon),
    ("tier/explain", tier::explain),
    ("reserved/hidden", reserved::hidden),
    ("hugetlb/1g", hugetlb::giant),
    ("pressure/fragmented", pressure::fragmented),
    ("pressure/memcg", pressure::memcg),
    ("numa/killed", killed::hinted),
    ("pressure/killed", killed::fragmented),
    ("check/everything", check::everything),
    ("check/unprivileged", check::unprivileged),
    ("try/rungs", tries::rungs),
    ("try/fragmented", tries::fragmented),
    ("segment/pool", segments::pool),
    ("segment/module", segments::module),
    ("segment/module-1g", segments::module_large),
    ("lane/panic", lane::panic),
];

/// The case of a name.
pub(crate) fn find(name: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.name == name)
}

/// Runs it.
pub(crate) fn run(case: &Case, guest: &Guest) -> Result<Verdict> {
    let run = RUNS.iter().chain(kmod::RUNS).find(|(name, _)| *name == case.name);
    run.context("no function is called by this name")?.1(guest)
}

/// What a record measured; a skip or a failure is an error here.
fn measured(record: &Record) -> Result<&Measured> {
    match &record.outcome {
        Outcome::Measured(measured) => Ok(measured),
        Outcome::Skipped { need, cure } => bail!("it was skipped: {need}; {cure}"),
        Outcome::Failed { reason } => bail!("it failed: {reason}"),
    }
}

/// A counter of a record that was measured; 0 where it has none of that name.
fn count(record: &Record, name: &str) -> Result<u64> {
    Ok(measured(record)?.counter(name).unwrap_or(0))
}

/// An error for a record that is not measured, or that has a claim which does not hold.
fn valid(record: &Record) -> Result<()> {
    measured(record)?.broken().next().map_or(Ok(()), |claim| bail!("{claim}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own_and_a_sentence() {
        let names: BTreeSet<_> = CASES.iter().map(|case| &case.name).collect();
        assert_eq!(names.len(), CASES.len());
        for case in CASES.iter() {
            assert!(case.name.contains('/') && !case.name.contains(' '), "{}", case.name);
            assert!(case.about.ends_with('.'), "{}", case.name);
        }
    }

    #[test]
    fn every_case_has_a_function_and_every_function_a_case() {
        let names: BTreeSet<_> = CASES.iter().map(|case| case.name.as_str()).collect();
        let runs: Vec<_> = RUNS.iter().chain(kmod::RUNS).map(|(name, _)| *name).collect();
        assert_eq!(runs.len(), CASES.len());
        assert_eq!(names, runs.into_iter().collect());
    }
}
