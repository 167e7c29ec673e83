//! Plans of commands that are not suites, and the refusal of what cannot fit.

use pagelab_bench::{
    Needed,
    needs::Memory,
    plan::{self, Outlook, Plan},
    suite::Entry,
};

use crate::{args::Short, exit::Failure, output};

/// The cases of one entry alone, without limits; a person is told of those left out.
///
/// # Errors
/// When a parameter is wrong, or this host has too little memory.
pub fn plan_of_cases(entry: &Entry, flags: &Short) -> Result<Plan, Failure> {
    let plan = plan::of_cases(entry, flags.clock.choice(), flags.method.overrides());
    let plan = plan?;
    for why in &plan.left_out {
        output::warn(&format!("left out: {why}"));
    }
    refuse_what_cannot_fit(&plan.outlook())?;
    Ok(plan)
}

/// A grid that asks for more memory than there is is refused before anything is measured.
///
/// # Errors
/// When this host has too little memory.
pub fn refuse_what_cannot_fit(outlook: &Outlook) -> Result<(), Failure> {
    let is_too_large = |need: &&Needed| need.of::<Memory>().is_some() && need.is_lacking();
    match outlook.needs.iter().find(is_too_large) {
        Some(need) => Err(host!("this host lacks {need}: {}", need.cure())),
        None => Ok(()),
    }
}
