//! `pagelab trace replay`: the backends of emulated memory over one trace, side by side.

use crate::emu::{Arm, replay::REPLAY};
use clap::{ArgMatches, Command};
use pagelab_record::{Clock, Measured, Record, stats::Samples};
use pagelab_report::Forms;
use serde_json::{Value, json};

use super::{ended, ran, short_name};
use pagelab_cli::{
    exit::{Exit, Failure},
    output,
};

/// Adds the flags of `trace replay`.
pub(super) fn describe(command: Command) -> Command {
    short_name(command, &REPLAY, &["terminal", "json"])
}

/// Replays a trace and prints the report of the run, or its numbers.
///
/// # Errors
/// When a parameter or the trace is wrong, or the output cannot be written.
pub(super) fn replay(matches: &ArgMatches) -> Result<Exit, Failure> {
    let done = ran(matches, &REPLAY, |done, format| match format {
        "json" => output::cases(done.records.iter().map(json_of).collect()),
        _ => done.report.terminal(output::style()),
    })?;
    Ok(ended(done.as_ref()))
}

fn json_of(record: &Record) -> Value {
    let mut object = super::about(record);
    if let Some(measured) = record.measured() {
        let counter = |name: &str| measured.counter(name);
        object["ops"] = json!(counter("trace_ops"));
        object["bytes"] = json!(counter("trace_bytes"));
        object["trace_digest"] = digest(counter("trace_digest"));
        object["backends"] = Value::from(backends(record, measured));
    }
    object
}

/// A digest has all 64 bits, more than a number in JSON can be trusted to keep.
fn digest(value: Option<u64>) -> Value {
    value.map_or(Value::Null, |value| Value::from(format!("{value:016x}")))
}

/// The backends of a case that did something, in the order that was asked for.
fn backends(record: &Record, measured: &Measured) -> Vec<Value> {
    let ns = |arm: &str, clocks: &[Clock]| {
        let samples =
            clocks.iter().map(|clock| Samples::of(&measured.series, "replay", arm, *clock));
        samples.into_iter().find_map(|samples| samples.estimate(0.5))
    };
    let cpu = |arm: &str| ns(arm, &[Clock::Cpu]);
    // A record that is not valid has no numbers.
    let known = |arm: &str| cpu(arm).filter(|_| measured.is_valid());
    let (noop, base) = (known("noop"), known("base"));
    let arms = Arm::of(&record.case).into_iter().filter_map(|arm| {
        let name = arm.to_string();
        cpu(&name)?;
        let (memory, decoder) = (arm.backend.name, arm.decoder_name());
        let mut object = json!({ "backend": name, "memory": memory, "decoder": decoder });
        if let Some(ns_per_op) = known(&name) {
            object["ns_per_op"] = json!(ns_per_op.value);
            object["ns_per_op_low"] = json!(ns_per_op.low);
            object["ns_per_op_high"] = json!(ns_per_op.high);
            let wall = ns(&name, &[Clock::Tsc, Clock::Wall, Clock::Scripted]);
            object["wall_ns_per_op"] = json!(wall.map(|wall| wall.value));
            for (key, other) in [("ratio_to_noop", noop), ("ratio_to_base", base)] {
                if let Some(other) = other.filter(|other| other.value > 0.0) {
                    object[key] = json!(ns_per_op.value / other.value);
                }
            }
        }
        let counter = measured.counters.get(&format!("digest/{name}"));
        object["digest"] = digest(counter.copied());
        Some(object)
    });
    arms.collect()
}
