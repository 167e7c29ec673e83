//! `pagelab trace stats`: what a trace looks like, in the layout of fast-mem's tool.

use crate::trace::{load::check_whole, params::Asked, stats::STATS, stats_of};
use clap::{ArgMatches, Command};
use pagelab_bench::inputs::Stopped;
use pagelab_record::{Outcome, Record};
use pagelab_report::{Forms, visible};
use serde_json::{Value, json};

use super::{ended, ran, short_name};
use pagelab_cli::{
    exit::{Exit, Failure},
    output,
};

/// Adds the flags of `trace stats`.
pub(super) fn describe(command: Command) -> Command {
    short_name(command, &STATS, &["terminal", "json", "html"])
}

/// Collects and prints the statistics of a trace.
///
/// # Errors
/// When a parameter or the trace is wrong, or the output cannot be written.
pub(super) fn stats(matches: &ArgMatches) -> Result<Exit, Failure> {
    let done = ran(matches, &STATS, |done, format| match format {
        "json" => output::cases(done.records.iter().map(json_of).collect()),
        "html" => done.report.html(),
        _ => visible(&done.records.iter().map(layout).collect::<Vec<_>>().join("\n")),
    })?;
    let records = done.as_ref().map_or(&[][..], |done| &done.records);
    for record in records {
        match &record.outcome {
            Outcome::Measured(measured) => {
                measured.warnings.iter().for_each(|warning| output::warn(warning));
            }
            Outcome::Skipped { need, cure } => output::warn(&format!("needs {need}: {cure}")),
            Outcome::Failed { reason } => output::warn(&format!("FAILED: {reason}")),
        }
    }
    let exit = ended(done.as_ref());
    // Statistics are collected on the way: only here is it known that the file is at fault.
    Ok(if records.iter().any(is_damaged) { Exit::Usage } else { exit })
}

/// Whether a case failed because of its trace: a file that was named for it.
fn is_damaged(record: &Record) -> bool {
    let Outcome::Failed { .. } = record.outcome else { return false };
    let Asked { source, ops, .. } = Asked::of(&record.case);
    matches!(check_whole(&source, ops), Err(Stopped::Failed(_)))
}

/// The author's layout.
fn layout(record: &Record) -> String {
    let Some(measured) = record.measured() else { return String::new() };
    let name = record.case.get("trace").unwrap_or_default();
    stats_of(&record.case, measured).map_or_else(String::new, |stats| stats.text(name))
}

fn json_of(record: &Record) -> Value {
    let mut object = super::about(record);
    if let Some(measured) = record.measured() {
        let stats = stats_of(&record.case, measured).map(serde_json::to_value);
        if let (Some(Ok(Value::Object(fields))), Some(object)) = (stats, object.as_object_mut()) {
            object.extend(fields);
        }
        object["trace"] = json!(record.case.get("trace"));
    }
    object
}
