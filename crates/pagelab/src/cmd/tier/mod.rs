//! `pagelab tier`: which pages are hot, who moves them, and whether it was worth it.
//!
//! `simulate` builds the same cases as `pagelab run tier/simulation` and leaves the same records in
//! the same kind of run; it differs in what it prints, and in that the cases of a grid share the
//! processors: nothing is measured, so they do not disturb each other.

mod grid;
mod rows;
mod simulate;

use clap::{ArgMatches, Command};

use crate::exit::{Exit, Failure};

/// The command line of `pagelab tier`.
pub(crate) fn command() -> Command {
    Command::new("tier")
        .about("Tiered memory: which pages are hot, who moves them, and what that is worth")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(simulate::command())
}

/// Runs the sub-command that was asked for.
///
/// # Errors
/// With the exit code that belongs to what went wrong.
pub(crate) fn tier(matches: &ArgMatches) -> Result<Exit, Failure> {
    match matches.subcommand() {
        Some(("simulate", matches)) => simulate::simulate(matches),
        _ => unreachable!("clap requires one of its sub-commands"),
    }
}
