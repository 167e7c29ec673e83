//! One file for each command.

pub(crate) mod advise;
mod check;
mod doctor;
pub(crate) mod explain;
mod generate;
mod list;
mod report;
mod resume;
mod run;
mod selftest;
pub(crate) mod tier;
pub(crate) mod trace;

use clap::ArgMatches;
use pagelab_sys::time::clock::ClockChoice;

use crate::exit::{Exit, Failure};

/// Runs the command that was asked for.
///
/// # Errors
/// With the exit code that belongs to what went wrong.
pub(crate) fn dispatch(matches: &ArgMatches) -> Result<Exit, Failure> {
    match matches.subcommand() {
        Some(("run", matches)) => run::run(matches),
        Some(("list", matches)) => list::list(matches),
        Some(("check", matches)) => check::check(matches),
        Some(("doctor", matches)) => doctor::doctor(matches),
        Some(("report", matches)) => report::report(matches),
        Some(("resume", matches)) => resume::resume(matches),
        Some(("selftest", matches)) => selftest::selftest(matches),
        Some(("advise", matches)) => advise::advise(matches),
        Some(("explain", matches)) => explain::explain(matches),
        Some(("trace", matches)) => trace::trace(matches),
        Some(("tier", matches)) => tier::tier(matches),
        Some(("completions", matches)) => generate::completions(matches),
        Some(("generate", matches)) => generate::generate(matches),
        _ => unreachable!("clap requires one of its sub-commands"),
    }
}

/// The text of an option, where it was given.
fn text<'m>(matches: &'m ArgMatches, name: &str) -> Option<&'m str> {
    matches.get_one::<String>(name).map(String::as_str)
}

/// The clock of a run: `--clock` exists for tests.
fn clock(matches: &ArgMatches) -> ClockChoice {
    match text(matches, "clock") {
        Some("raw") => ClockChoice::Raw,
        Some("scripted") => ClockChoice::Scripted { step_ns: 1000 },
        _ => ClockChoice::of_this_machine(),
    }
}
