//! One file for each command, and the table of them.

mod ab;
mod check;
mod compare;
mod doctor;
mod fleet;
mod generate;
mod history;
mod list;
mod report;
mod resume;
mod run;
mod selftest;

use std::ffi::OsString;

use clap::{ArgMatches, Command};
use pagelab_parts::PARTS;

use crate::{
    args::{self, Row},
    examples::dress,
    exit::{Exit, Failure},
    part,
};

/// Those that measure and read runs, whatever they are of.
const GENERAL: &[Row] = &[
    Row::new("run", run::describe, run::run),
    Row::of::<list::List>("list"),
    Row::of::<check::Check>("check"),
    Row::of::<doctor::Doctor>("doctor"),
    Row::of::<report::Reported>("report"),
    Row::of::<compare::Compare>("compare"),
];

/// Those for many machines, for old runs, and for pagelab itself.
const REST: &[Row] = &[
    fleet::ROW,
    Row::of::<resume::Resume>("resume"),
    Row::of::<history::Ls>("ls"),
    Row::of::<history::Show>("show"),
    Row::of::<history::Tag>("tag"),
    Row::of::<selftest::Selftest>("selftest"),
    Row::of::<generate::Completions>("completions"),
    Row::of::<generate::Generate>("generate"),
];

/// Every command, in the order that `--help` shows.
fn commands() -> Vec<&'static Row> {
    part::set(PARTS);
    let of_parts = part::parts().flat_map(|part| part.commands);
    GENERAL.iter().chain(of_parts).chain(REST).collect()
}

/// The whole command line.
pub(crate) fn command() -> Command {
    of_rows(&commands())
}

/// The part of it that some words are about: to describe every command takes milliseconds, which a
/// program that is only started here would wait for.
pub(crate) fn command_for(words: &[OsString]) -> Command {
    let mut all = commands();
    if let Some(asked) = words.get(1).filter(|asked| all.iter().any(|row| **asked == row.name)) {
        all.retain(|row| *asked == row.name);
    }
    of_rows(&all)
}

fn of_rows(rows: &[&Row]) -> Command {
    let command = Command::new("pagelab")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A laboratory for the Linux memory subsystem: what memory costs, with proof")
        .after_help(
            "Man pages and completions: pagelab generate --out DIR\n\n\
             Exit codes: 0 fine, 1 a case, check or --fail-on failed, 2 usage, 3 this host cannot, \
             4 everything skipped, 5 not comparable, 6 a witness failed, 70 internal error, 130 \
             interrupted.",
        );
    dress(args::with_rows(command, rows.iter().copied()))
}

/// Runs the command that was asked for.
///
/// # Errors
/// With the exit code that belongs to what went wrong.
pub(crate) fn dispatch(matches: &ArgMatches) -> Result<Exit, Failure> {
    args::dispatch(commands(), matches)
}

#[cfg(test)]
mod examples_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn words_that_name_a_command_are_read_as_by_the_whole() {
        for row in commands() {
            let words = ["pagelab", row.name, "--help"].map(OsString::from);
            let help = |command: Command| command.try_get_matches_from(&words).unwrap_err();
            let [part, whole] = [command_for(&words), command()].map(help);
            assert_eq!(part.to_string(), whole.to_string());
        }
    }

    #[test]
    fn a_flag_without_a_value_means_on() {
        let words = ["pagelab", "run", "fault/latency", "--fifo", "--page", "4k,2m"];
        let matches = command().try_get_matches_from(words).unwrap();
        let (_, run) = matches.subcommand().unwrap();
        let (name, grid) = run.subcommand().unwrap();
        let axes = args::axes(part::workload(name).unwrap(), grid);
        let values = |name: &str| axes.iter().find(|(n, _)| n == name).map(|(_, v)| v.join(" "));
        assert_eq!(values("fifo").as_deref(), Some("on"));
        assert_eq!(values("page").as_deref(), Some("4k 2m"));
    }
}
