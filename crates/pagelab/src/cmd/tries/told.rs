//! What is told on stderr while a program is tried.
//!
//! The one idea: a line for each step, and nothing of what it comes to: that is the report's. Only
//! behind the screen it says how it looks, for whoever waits.

use pagelab_advisor::ladder::climb::Step;
use pagelab_record::{Outcome, verdict::Ratio};

use crate::output;

/// Tells of a step.
pub(super) fn say(step: &Step<'_>, rounds: u32) {
    if matches!(step, Step::Round(_, [])) {
        return;
    }
    let seconds = |ns: u64| ns as f64 / 1e9;
    output::warn(&match step {
        Step::Probed(ns) => format!("[first run] {:.2} s, which counts for nothing", seconds(*ns)),
        Step::Round(round, ran) => {
            let told = ran.iter().map(|(rung, ns)| format!("{rung} {:.2} s", seconds(*ns)));
            let told = told.collect::<Vec<_>>().join(", ");
            format!("[round {} of {rounds} at most] {told}", round + 1)
        }
        Step::Screened(beside) => first_answer(beside),
        Step::Settled(rung, Outcome::Skipped { need, cure }) => {
            format!("{rung}: skipped, it needs {need} ({cure})")
        }
        Step::Settled(rung, Outcome::Failed { reason }) => format!("{rung}: failed: {reason}"),
        Step::Settled(rung, Outcome::Measured(_)) => format!("{rung}: done"),
    });
}

/// How it looks behind the screen, to whoever waits for the rest.
fn first_answer(beside: &[(String, Ratio)]) -> String {
    let told = beside.iter().map(|(rung, Ratio { value, low, high, .. })| {
        format!("{rung} {value:.2} ({low:.2} to {high:.2})")
    });
    let told = told.collect::<Vec<_>>().join(", ");
    format!("[first answer] time beside plain, of two rounds, not decided: {told}")
}
