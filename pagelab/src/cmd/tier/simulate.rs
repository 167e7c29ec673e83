//! `pagelab tier simulate`: a scenario, or a grid around one, and what was published beside.

use clap::{ArgMatches, Args, Command};
use pagelab_bench::{plan::Plan, suite::Entry};
use pagelab_record::Outcome;
use pagelab_report::{Forms, visible};
use pagelab_workloads::tier::{preset::PRESETS, simulation::SIMULATION};

use super::{grid, rows};
use crate::{
    args::{self, Format, Short},
    exit::{Exit, Failure},
    output,
    plan::plan_of_cases,
    session::{self, Run},
};

/// The parameter that says which scenario.
const SCENARIO: &str = "scenario";

/// The flags, beside those of the workload's parameters.
#[derive(Debug, Args)]
struct Flags {
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = SCENARIO)]
    #[arg(help = format!("A built-in scenario [{}]", names()))]
    preset: Vec<String>,
    /// A scenario file (TOML; docs/presets.md).
    #[arg(long, value_name = "FILE")]
    scenario: Vec<String>,
    #[command(flatten)]
    short: Short,
}

fn names() -> String {
    let names: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

/// Adds the flags of `tier simulate`.
pub(super) fn describe(command: Command) -> Command {
    let command = Flags::augment_args(command)
        .about("Simulate tiering policies, and set published results beside them")
        .long_about(
            "Simulate tiering policies, and set published results beside them.\n\n\
             A preset, a scenario file, or flags over one of them; with none of them, the preset \
             `plain`. A comma between values makes a case for each, simulated on all processors.",
        );
    Format::of(command, &["terminal", "json", "html"]).args(args::flags(&SIMULATION, SCENARIO))
}

/// Simulates and prints.
///
/// # Errors
/// When a parameter or a file is wrong, or the output cannot be written.
pub(super) fn simulate(matches: &ArgMatches) -> Result<Exit, Failure> {
    let flags: Flags = args::of(matches)?;
    let plan = flags.planned(matches)?;
    let place = flags.short.output.place();
    let header = session::header(&place.run, "", &published(&plan), &plan);
    let mut run = Run::start(&place, header)?;
    let end = grid::simulate(&mut run, &plan, flags.short.quiet.quiet)?;
    let done = run.conclude(end)?;
    output::drawn(&match flags.short.format.format.as_str() {
        "json" => rows::json(&done.records),
        "html" => done.report.html(),
        _ => {
            let report = done.report.terminal(output::style());
            format!("{report}{}", visible(&rows::remarks(&done.records).to_string()))
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

impl Flags {
    /// The cases that were asked for.
    fn planned(&self, matches: &ArgMatches) -> Result<Plan, Failure> {
        // A preset is named, a file has a path: a mistake in one is not looked for as the other.
        let known = |value: &&String| PRESETS.iter().any(|(preset, _)| preset == value);
        if let Some(unknown) = self.preset.iter().find(|value| !known(value)) {
            return Err(usage!(
                "no preset is called `{unknown}`; there are {} (a file is named by --scenario)",
                names()
            ));
        }
        // Both are ways to say which scenario.
        let scenarios =
            [&self.preset, &self.scenario].into_iter().filter(|given| !given.is_empty());
        let mut axes: Vec<_> =
            scenarios.map(|given| (SCENARIO.to_owned(), given.clone())).collect();
        let others = args::axes(&SIMULATION, matches);
        axes.extend(others.into_iter().filter(|(name, _)| name != SCENARIO));
        plan_of_cases(&Entry::new(&SIMULATION, axes), &self.short)
    }
}

/// The published results that belong beside some cases.
fn published(plan: &Plan) -> Vec<String> {
    let is_pghot = plan.cases.iter().any(|planned| {
        planned.case.get(SCENARIO).is_some_and(|scenario| scenario.starts_with("pghot-"))
    });
    if is_pghot { vec!["pghot".to_owned()] } else { Vec::new() }
}
