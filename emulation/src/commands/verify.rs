//! `pagelab trace verify`: every backend beside a naive memory, load by load.

use crate::emu::{Arm, verify::VERIFY};
use clap::{ArgMatches, Command};
use pagelab_record::{Measured, Outcome, Record, vocabulary::Check};
use pagelab_report::visible;
use serde_json::{Value, json};

use super::{ended, ran, short_name};
use pagelab_cli::{
    exit::{Exit, Failure},
    output,
};

/// Adds the flags of `trace verify`.
pub(super) fn describe(command: Command) -> Command {
    short_name(command, &VERIFY, &["terminal", "json"])
}

/// Verifies and prints a line for each backend.
///
/// # Errors
/// When a parameter or the trace is wrong, or the output cannot be written.
pub(super) fn verify(matches: &ArgMatches) -> Result<Exit, Failure> {
    let done = ran(matches, &VERIFY, |done, format| match format {
        "json" => output::cases(done.records.iter().map(json_of).collect()),
        _ => visible(&done.records.iter().map(lines).collect::<String>()),
    })?;
    Ok(ended(done.as_ref()))
}

/// What was found of an arm: loads that differ, and whether all of its claims hold.
fn found(measured: &Measured, arm: &str) -> Option<(i64, bool)> {
    let mine = || measured.witness.iter().filter(|claim| claim.arm == arm);
    let differing = mine().find(|claim| claim.is(Check::LoadsThatDiffer))?.observed;
    Some((differing, mine().all(|claim| claim.holds)))
}

fn lines(record: &Record) -> String {
    let measured = match &record.outcome {
        Outcome::Measured(measured) => measured,
        Outcome::Skipped { need, cure } => return format!("skipped, needs {need}: {cure}\n"),
        Outcome::Failed { reason } => return format!("FAILED: {reason}\n"),
    };
    let loads = measured.counter("loads").unwrap_or(0);
    let mut text = String::new();
    for arm in Arm::of(&record.case) {
        let name = arm.to_string();
        text.push_str(&match found(measured, &name) {
            Some((0, true)) => format!("ok      {name}: {loads} loads as the naive memory's\n"),
            Some((differing, _)) => format!("not ok  {name}: {differing} of {loads} differ\n"),
            None => format!("skip    {name}: it does not fit this host\n"),
        });
    }
    for warning in &measured.warnings {
        text.push_str(&format!("        {warning}\n"));
    }
    text
}

fn json_of(record: &Record) -> Value {
    let mut object = super::about(record);
    if let Some(measured) = record.measured() {
        let backends: Vec<Value> = Arm::of(&record.case)
            .iter()
            .map(|arm| {
                let name = arm.to_string();
                match found(measured, &name) {
                    Some((differing, holds)) => {
                        json!({"backend": name, "differing_loads": differing, "verified": holds})
                    }
                    None => json!({"backend": name, "verified": false, "left_out": true}),
                }
            })
            .collect();
        object["loads"] = json!(measured.counters.get("loads"));
        object["backends"] = Value::from(backends);
    }
    object
}
