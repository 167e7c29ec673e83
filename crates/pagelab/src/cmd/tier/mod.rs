//! `pagelab tier`: which pages are hot, who moves them, and whether it was worth it.
//!
//! `simulate` builds the same cases as `pagelab run tier/simulation` and leaves the same records in
//! the same kind of run; it differs in what it prints, and in that the cases of a grid share the
//! processors: nothing is measured, so they do not disturb each other. `calibrate` measures the
//! curve that it builds on. `promote` runs the same policies on a live process, `explain` says
//! before what they would be worth to a program, `replay` decides again what such a run has seen,
//! `sources` says who can say what is used, `status` what is where.

mod calibrate;
mod explain;
mod grid;
mod promote;
mod replay;
mod rows;
mod simulate;
mod sources;
mod status;

use clap::{ArgMatches, Command};

use crate::{
    args::{self, Row},
    exit::{Exit, Failure},
};

const COMMANDS: &[Row] = &[
    Row { name: "calibrate", describe: calibrate::describe, run: calibrate::calibrate },
    Row { name: "simulate", describe: simulate::describe, run: simulate::simulate },
    Row::of::<explain::Explain>("explain"),
    Row::of::<promote::Promote>("promote"),
    Row::of::<replay::Replay>("replay"),
    Row::of::<sources::Sources>("sources"),
    Row::of::<status::Show>("status"),
];

/// Adds the commands of `pagelab tier`.
pub(super) fn describe(command: Command) -> Command {
    let about = "Tiered memory: which pages are hot, who moves them, and what that is worth";
    args::with_rows(command.about(about), COMMANDS)
}

/// Runs the one that was asked for.
///
/// # Errors
/// With the exit code that belongs to what went wrong.
pub(super) fn tier(matches: &ArgMatches) -> Result<Exit, Failure> {
    args::dispatch(COMMANDS, matches)
}
