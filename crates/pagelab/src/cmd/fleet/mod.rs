//! `pagelab fleet`: the same work over many machines, for whatever starts commands on them.
//!
//! The one idea: a contract of files, and no engine. A list of tasks never changes; a task leaves
//! one file for each machine and boot, under its own name, written beside and renamed. So whoever
//! is killed is started again, and what is there is not measured twice.

mod exec;
mod merge;
mod plan;

use std::path::Path;

use clap::{ArgMatches, Command};
use pagelab_bench::tasks::List;

use crate::{
    args::{self, Row},
    exit::{Exit, Failure},
};

const COMMANDS: &[Row] = &[
    Row::of::<plan::Plan>("plan"),
    Row::of::<exec::Exec>("exec"),
    Row::of::<merge::Merge>("merge"),
];

/// Adds the commands of `pagelab fleet`.
pub(super) fn describe(command: Command) -> Command {
    let about = "The same work over many machines: cut it into tasks, run a shard, put it together";
    args::with_rows(command.about(about), COMMANDS)
}

/// Runs the one that was asked for.
///
/// # Errors
/// With the exit code that belongs to what went wrong.
pub(super) fn fleet(matches: &ArgMatches) -> Result<Exit, Failure> {
    args::dispatch(COMMANDS, matches)
}

/// The list of tasks in a folder, as text and read.
///
/// # Errors
/// When there is none, it is damaged, or it is of another version.
fn list_in(folder: &Path) -> Result<(String, List), Failure> {
    List::read(folder).map_err(Failure::usage_text)
}
