//! `pagelab trace`: short names for what one does with a trace.
//!
//! `replay`, `verify` and `stats` build the same case as `pagelab run` and leave the same record in
//! the same kind of run; they differ in what they print, and in that a trace that cannot be read is
//! a mistake of the command line. The limits of the machine are not measured with them.

mod capture;
mod fit;
mod replay;
mod stats;
mod synth;
mod verify;

use std::{path::Path, time::Duration};

use clap::{Arg, ArgMatches, Command};
use pagelab_bench::{
    inputs::Stopped,
    plan::{self, Plan, Planned},
    runner::{Runner, Step},
    suite::Entry,
    workload::Row,
};
use pagelab_record::{Outcome, Record};
use pagelab_report::visible;
use pagelab_sys::process::crew::catch_interrupts;
use pagelab_workloads::trace::params::Asked;
use serde_json::{Map, Value, json};

use super::{clock, run::refuse_what_cannot_fit, text};
use crate::{
    args,
    exit::{Exit, Failure},
    output,
    progress::Work,
    session::{self, Done, Place, Run},
};

/// The command line of `pagelab trace`.
pub(crate) fn command() -> Command {
    Command::new("trace")
        .about("Memory traces: make, describe, replay and verify them")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(synth::command())
        .subcommand(stats::command())
        .subcommand(replay::command())
        .subcommand(verify::command())
        .subcommand(capture::command())
}

/// Runs the sub-command that was asked for.
///
/// # Errors
/// With the exit code that belongs to what went wrong.
pub(crate) fn trace(matches: &ArgMatches) -> Result<Exit, Failure> {
    match matches.subcommand() {
        Some(("synth", matches)) => synth::synth(matches),
        Some(("stats", matches)) => stats::stats(matches),
        Some(("replay", matches)) => replay::replay(matches),
        Some(("verify", matches)) => verify::verify(matches),
        Some(("capture", matches)) => capture::capture(matches),
        _ => unreachable!("clap requires one of its sub-commands"),
    }
}

/// A sub-command that stands for a workload: its parameters as flags, but the trace by its place.
fn short_name(name: &'static str, workload: Row, formats: &'static [&'static str]) -> Command {
    let mut command = args::method(Command::new(name))
        .about(args::sentence(workload.about().summary))
        .arg(
            Arg::new("trace")
                .value_name("TRACE")
                .required(true)
                .help("A trace (raw, gz, xz, zst), or a generator such as exec-block"),
        )
        .arg(args::output())
        .arg(args::quiet())
        .arg(args::clock())
        .arg(args::format(formats));
    for param in workload.params().iter().filter(|param| param.name != "trace") {
        command = command.arg(args::flag(param));
    }
    command
}

/// The published results that belong beside statistics of a trace that somebody published.
fn published(plan: &Plan) -> Vec<String> {
    let is_known = |planned: &Planned| {
        let known = ["fib", "exec-block"];
        planned.workload.name() == "trace/stats"
            && planned.case.get("trace").is_some_and(|trace| known.contains(&trace))
    };
    if plan.cases.iter().any(is_known) { vec!["fast-memory".to_owned()] } else { Vec::new() }
}

/// Measures what a short name stands for, and leaves it as a run; nothing is printed.
///
/// # Errors
/// When a parameter or the trace is wrong, the host cannot, or the output cannot be written.
fn ran(matches: &ArgMatches, workload: Row) -> Result<Option<Done>, Failure> {
    let entry = Entry::new(workload, args::axes(workload, matches));
    let plan = plan::of_cases(&entry, clock(matches), args::overrides(matches))
        .map_err(Failure::usage_text)?;
    for why in &plan.left_out {
        output::warn(&format!("left out: {why}"));
    }
    refuse_what_cannot_fit(&plan.outlook())?;
    let quiet = matches.get_flag("quiet");
    let place = Place::choose(text(matches, "output").map(Path::new));
    let runner = session::runner(&place.run, &plan.cases, Duration::ZERO)?;
    if load(&runner, &plan, quiet)? == Exit::Interrupted {
        return Ok(None);
    }
    let header = session::header(&place.run, "", &published(&plan), &plan);
    let run = Run::start(&place, header)?;
    session::carry_out(runner, run, &plan, quiet).map(Some)
}

/// Gets the traces before anything is left behind: one that cannot be read is a usage error.
fn load(runner: &Runner, plan: &Plan, quiet: bool) -> Result<Exit, Failure> {
    catch_interrupts();
    let mut work = Work::start("loading the trace", quiet);
    let mut exit = Ok(Exit::Good);
    for planned in &plan.cases {
        // What reads the trace by itself would only find out in its own process.
        if planned.case.get("trace").is_some() {
            Asked::of(&planned.case).source.check().map_err(Failure::usage_text)?;
        }
        let loaded = runner.load(planned, &mut |step| {
            if let Step::Loading(beat) = step {
                work.beat(beat);
            }
        });
        match loaded {
            Ok(_) => (),
            Err(Stopped::Interrupted) => exit = Ok(Exit::Interrupted),
            Err(Stopped::Failed(why)) => exit = Err(Failure::usage_text(why)),
        }
        if exit.as_ref().is_ok_and(|exit| *exit == Exit::Good) {
            continue;
        }
        break;
    }
    work.finish();
    exit
}

/// What the JSON of every short name starts with: the case, and what came of it.
fn about(record: &Record) -> Map<String, Value> {
    let mut object = Map::new();
    let mut set = |key: &str, value: Value| object.insert(key.to_owned(), value);
    set("case", json!(record.case));
    set("nature", json!(record.nature));
    match &record.outcome {
        Outcome::Measured(measured) => {
            let broken = measured.witness.iter().filter(|claim| !claim.holds);
            let broken: Vec<&str> = broken.map(|claim| claim.claim.as_str()).collect();
            set("valid", json!(measured.is_valid()));
            set("broken_claims", json!(broken));
            set("warnings", json!(measured.warnings));
        }
        Outcome::Skipped { need, cure } => {
            set("skipped", json!({"need": need, "cure": cure}));
        }
        Outcome::Failed { reason } => {
            set("failed", json!(reason));
        }
    }
    object
}

/// One object for one case, an array where a flag made several.
fn json_lines(mut cases: Vec<Value>) -> String {
    let value = if cases.len() == 1 { cases.remove(0) } else { Value::from(cases) };
    visible(&format!("{value:#}\n"))
}
