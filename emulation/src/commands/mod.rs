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

use std::time::Duration;

use crate::trace::params::Asked;
use clap::{Arg, ArgMatches, Args, Command};
use pagelab_bench::{
    Workload,
    inputs::Stopped,
    plan::{Plan, Planned},
    runner::{Runner, Step},
    suite::Entry,
};
use pagelab_record::{Outcome, Record};
use pagelab_sys::process::catch_interrupts;
use serde_json::{Value, json};

use pagelab_cli::{
    args::{self, Format, Row, Short},
    exit::{Exit, Failure},
    output,
    plan::plan_of_cases,
    progress::Work,
    session::{self, Done, Run},
    settings,
};

/// The commands of `pagelab trace`.
pub(crate) const ROW: Row = Row::group(
    "trace",
    "Memory traces: make, describe, replay and verify them",
    &[
        Row::of::<synth::Synth>("synth"),
        Row::new("stats", stats::describe, stats::stats),
        Row::new("replay", replay::describe, replay::replay),
        Row::new("verify", verify::describe, verify::verify),
        Row::of::<capture::Capture>("capture"),
    ],
);

/// Describes a command that stands for a workload: its parameters as flags, but the trace by its
/// place.
fn short_name(
    command: Command,
    workload: &dyn Workload,
    formats: &'static [&'static str],
) -> Command {
    let trace = Arg::new("trace")
        .value_name("TRACE")
        .required(true)
        .help("A trace (raw, gz, xz, zst), or a generator such as exec-block");
    let command = Short::augment_args(command.arg(trace));
    Format::of(command, formats)
        .about(args::sentence(workload.about().summary))
        .args(args::flags(workload, "trace"))
}

/// The published results that belong beside statistics of a trace that somebody published.
fn published(plan: &Plan) -> Vec<String> {
    let is_known = |planned: &Planned| {
        let known = ["fib", "exec-block"];
        planned.workload.name() == crate::trace::stats::NAME
            && planned.case.get("trace").is_some_and(|trace| known.contains(&trace))
    };
    if plan.cases.iter().any(is_known) { vec!["fast-memory".to_owned()] } else { Vec::new() }
}

/// Measures what a short name stands for, leaves it as a run, and prints what `show` makes of it,
/// by the name of the format; `None` where the user interrupted before.
///
/// # Errors
/// When a parameter or the trace is wrong, the host cannot, or the output cannot be written.
fn ran(
    matches: &ArgMatches,
    workload: &'static dyn Workload,
    show: impl FnOnce(&Done, &str) -> String,
) -> Result<Option<Done>, Failure> {
    let flags: Short = args::of(matches)?;
    let entry = Entry::new(workload, args::axes(workload, matches));
    let plan = plan_of_cases(&entry, &flags)?;
    let place = flags.output.place();
    let quiet = flags.quiet.quiet;
    let runner = settings::runner(&place.run, &plan.cases, Duration::ZERO)?;
    if load(&runner, &plan, quiet)? == Exit::Interrupted {
        return Ok(None);
    }
    let header = session::header(&place.run, "", &published(&plan), &plan);
    let run = Run::start(&place, header)?;
    let done = session::carry_out(runner, run, &plan, quiet)?;
    output::drawn(&show(&done, &flags.format.format))?;
    Ok(Some(done))
}

/// Says where the run is; the exit code that it comes to.
fn ended(done: Option<&Done>) -> Exit {
    let Some(done) = done else { return Exit::Interrupted };
    done.tell();
    done.exit
}

/// Gets the traces before anything is left behind: one that cannot be read is a usage error.
fn load(runner: &Runner, plan: &Plan, quiet: bool) -> Result<Exit, Failure> {
    catch_interrupts();
    let mut work = Work::start("loading the trace", quiet);
    let loaded = plan.cases.iter().try_for_each(|planned| {
        // What reads the trace by itself would only find out in its own process.
        if planned.case.get("trace").is_some() {
            Asked::of(&planned.case).source.check().map_err(Stopped::Failed)?;
        }
        let mut tell = |step| match step {
            Step::Loading(beat) => work.beat(beat),
            Step::Process(_) | Step::Working(_) => (),
        };
        runner.load(planned, &mut tell).map(|_| ())
    });
    work.finish();
    match loaded {
        Ok(()) => Ok(Exit::Good),
        Err(Stopped::Interrupted) => Ok(Exit::Interrupted),
        Err(Stopped::Failed(why)) => Err(Failure::from(why)),
    }
}

/// What the JSON of every short name starts with: the case, and what came of it.
fn about(record: &Record) -> Value {
    let mut object = json!({ "case": record.case, "nature": record.nature });
    match &record.outcome {
        Outcome::Measured(measured) => {
            let broken = measured.broken();
            let broken: Vec<&str> = broken.map(|claim| claim.claim.as_str()).collect();
            object["valid"] = json!(measured.is_valid());
            object["broken_claims"] = json!(broken);
            object["warnings"] = json!(measured.warnings);
        }
        Outcome::Skipped { need, cure } => object["skipped"] = json!({"need": need, "cure": cure}),
        Outcome::Failed { reason } => object["failed"] = json!(reason),
    }
    object
}
