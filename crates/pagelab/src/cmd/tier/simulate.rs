//! `pagelab tier simulate`: a scenario, or a grid around one, and what was published beside.

use std::path::Path;

use clap::{Arg, ArgMatches, Command};
use pagelab_bench::{
    Workload,
    plan::{self, Plan},
    suite::Entry,
};
use pagelab_record::Outcome;
use pagelab_report::visible;
use pagelab_workloads::tier::{preset::PRESETS, simulation::Simulation};

use super::{grid, rows};
use crate::{
    args,
    cmd::{clock, run::refuse_what_cannot_fit, text},
    exit::{Exit, Failure},
    output,
    session::{self, Place, Run},
};

/// The parameter that says which scenario.
const SCENARIO: &str = "scenario";

/// The command line of `tier simulate`.
pub(super) fn command() -> Command {
    let names: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
    let mut command = args::method(Command::new("simulate"))
        .about("Simulate tiering policies, and set published results beside them")
        .long_about(
            "Simulate tiering policies, and set published results beside them.\n\n\
             A preset, a scenario file, or flags over one of them; with none of them, the preset \
             `plain`. A comma between values makes a case for each, simulated on all processors.",
        )
        .arg(
            Arg::new("preset")
                .long("preset")
                .value_name("NAME")
                .value_delimiter(',')
                .action(clap::ArgAction::Append)
                .conflicts_with(SCENARIO)
                .help(format!("A built-in scenario [{}]", names.join(", "))),
        )
        .arg(
            Arg::new(SCENARIO)
                .long(SCENARIO)
                .value_name("FILE")
                .action(clap::ArgAction::Append)
                .help("A scenario file (TOML; docs/presets.md)"),
        )
        .arg(args::output())
        .arg(args::quiet())
        .arg(args::clock())
        .arg(args::format(&["terminal", "json", "html"]));
    for param in Simulation.params().iter().filter(|param| param.name != SCENARIO) {
        command = command.arg(args::flag(param));
    }
    command
}

/// Simulates and prints.
///
/// # Errors
/// When a parameter or a file is wrong, or the output cannot be written.
pub(super) fn simulate(matches: &ArgMatches) -> Result<Exit, Failure> {
    let plan = planned(matches)?;
    for why in &plan.left_out {
        output::warn(&format!("left out: {why}"));
    }
    refuse_what_cannot_fit(&plan.outlook())?;
    let place = Place::choose(text(matches, "output").map(Path::new));
    let header = session::header(&place.run, "", &published(&plan), &plan);
    let mut run = Run::start(&place, header)?;
    let end = grid::simulate(&mut run, &plan, matches.get_flag("quiet"))?;
    let done = run.conclude(end)?;
    output::drawn(&match text(matches, "format") {
        Some("json") => visible(&rows::json(&done.records)),
        Some("html") => done.report.html(),
        _ => {
            let report = done.report.terminal(output::style());
            format!("{report}{}", visible(&rows::remarks(&done.records)))
        }
    })?;
    for record in &done.records {
        if let Outcome::Failed { reason } = &record.outcome {
            output::warn(&format!("FAILED: {reason}"));
        }
    }
    done.tell();
    Ok(done.exit)
}

/// The cases that were asked for.
fn planned(matches: &ArgMatches) -> Result<Plan, Failure> {
    let mut axes = Vec::new();
    for param in Simulation.params() {
        // A preset and a file are two ways to say which scenario.
        let names: &[&str] =
            if param.name == SCENARIO { &["preset", SCENARIO] } else { &[param.name] };
        for name in names {
            if let Some(values) = matches.get_many::<String>(name) {
                let values: Vec<String> = values.cloned().collect();
                refuse_files(name, &values)?;
                axes.push((param.name.to_owned(), values));
            }
        }
    }
    let entry = Entry::new(&Simulation, axes);
    plan::of_cases(&entry, clock(matches), args::overrides(matches)).map_err(Failure::usage_text)
}

/// A preset is named, a file has a path: a mistake in one is not looked for as the other.
fn refuse_files(name: &str, values: &[String]) -> Result<(), Failure> {
    if name != "preset" {
        return Ok(());
    }
    let known = |value: &String| PRESETS.iter().any(|(preset, _)| preset == value);
    match values.iter().find(|value| !known(value)) {
        None => Ok(()),
        Some(unknown) => {
            let names: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
            Err(Failure::usage_text(format!(
                "no preset is called `{unknown}`; there are {} (a file is named by --scenario)",
                names.join(", ")
            )))
        }
    }
}

/// The published results that belong beside some cases.
fn published(plan: &Plan) -> Vec<String> {
    let is_pghot = plan.cases.iter().any(|planned| {
        planned.case.get(SCENARIO).is_some_and(|scenario| scenario.starts_with("pghot-"))
    });
    if is_pghot { vec!["pghot".to_owned()] } else { Vec::new() }
}
