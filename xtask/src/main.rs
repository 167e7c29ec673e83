//! The one door for pagelab's developers: `cargo xtask <task>`.
//!
//! Everything that a person or CI does with this repository, other than running the program, is
//! a task here: typed, tested, and the same on every machine. It imports no crate of ours, so it
//! builds in seconds and works while they do not compile.
//!
//! It is not a build system: each task is a short list of commands, printed before they run.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people at a terminal"
)]

mod advise_score;
mod deny;
mod dist;
mod elf;
mod fuzz;
mod kmod;
mod layouts;
mod lint;
mod miri;
mod mutants;
mod nightly;
mod portable;
mod shell;
mod splice;
mod storm;
mod tidy;
mod vm;

use std::{env, ffi::OsString, process::ExitCode};

use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::shell::{cargo, run};

/// A row of the table of tasks.
struct Task {
    name: &'static str,
    about: &'static str,
    /// Adds what it takes.
    arguments: fn(Command) -> Command,
    run: fn(&ArgMatches) -> Result<()>,
}

impl Task {
    /// A task that takes nothing.
    const fn plain(
        name: &'static str,
        about: &'static str,
        run: fn(&ArgMatches) -> Result<()>,
    ) -> Self {
        Self { name, about, arguments: |command| command, run }
    }
}

/// Every task, in the order of `--help`.
const TASKS: &[Task] = &[
    Task::plain("ci", "What CI runs: lint, then test", ci),
    Task::plain(
        "lint",
        "Check form: rustfmt, clippy, rustdoc, tidy, licences and sources of dependencies",
        |_| lint::lint(),
    ),
    Task {
        name: "test",
        about: "Run every test, then `vm`; arguments go to `cargo test`, and leave `vm` out",
        arguments: test_arguments,
        run: test,
    },
    Task {
        name: "vm",
        about: "Run the cases that need real kernels, in virtual machines",
        arguments: vm::arguments,
        run: vm::vm,
    },
    Task {
        name: "storm",
        about: "Kill runs at random moments; nothing is lost, doubled or left changed",
        arguments: storm::arguments,
        run: storm::storm,
    },
    Task::plain("tidy", "Check what no compiler checks", |_| tidy::tidy()),
    Task::plain("schema", "Rewrite docs/record.schema.json", |_| schema()),
    Task {
        name: "splice",
        about: "Put the reports of records/ into the pages that show them",
        arguments: splice::arguments,
        run: splice::splice,
    },
    Task::plain("dist", "Build dist/pagelab, one static binary", |_| dist::dist()),
    Task {
        name: "fuzz",
        about: "Feed whatever reads a file with what no program would write",
        arguments: fuzz::arguments,
        run: fuzz::fuzz,
    },
    Task {
        name: "mutants",
        about: "Make mistakes in what must not fail, and see whether a test notices",
        arguments: mutants::arguments,
        run: mutants::mutants,
    },
    Task::plain("miri", "Run what an interpreter can of the unsafe code", |_| miri::miri()),
    Task::plain("portable", "Check what is meant for every system for three others", |_| {
        portable::portable()
    }),
    Task {
        name: "kmod",
        about: "Build the kernel module against the headers of a kernel",
        arguments: kmod::arguments,
        run: kmod::kmod,
    },
    Task {
        name: "layouts",
        about: "Run pagelab in builds of different code layout; ratios and their median",
        arguments: layouts::arguments,
        run: layouts::layouts,
    },
    Task {
        name: "advise-score",
        about: "How often `pagelab advise` is right, by a later run over all of the memory",
        arguments: advise_score::arguments,
        run: advise_score::advise_score,
    },
];

fn main() -> ExitCode {
    let matches = command().get_matches();
    let Some((name, arguments)) = matches.subcommand() else { return ExitCode::from(2) };
    let task = TASKS.iter().find(|task| task.name == name).expect("clap knows only these names");
    let outcome = shell::enter_root().and_then(|()| (task.run)(arguments));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nxtask {name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn command() -> Command {
    let task = |task: &Task| (task.arguments)(Command::new(task.name).about(task.about));
    Command::new("xtask")
        .bin_name("cargo xtask")
        .about("The one door for pagelab's developers")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(TASKS.iter().map(task))
}

fn test_arguments(command: Command) -> Command {
    command.arg(
        Arg::new("args")
            .value_parser(clap::value_parser!(OsString))
            .action(ArgAction::Append)
            .num_args(0..)
            .trailing_var_arg(true)
            .allow_hyphen_values(true)
            .help("For `cargo test`, for example `-p pagelab-record` or a test's name"),
    )
}

fn ci(_: &ArgMatches) -> Result<()> {
    lint::lint()?;
    run("test", &mut test_command(&[]))?;
    vm::after_tests()
}

fn test(_: &ArgMatches) -> Result<()> {
    let passed_on = passed_on(env::args_os());
    run("test", &mut test_command(&passed_on))?;
    // Whoever narrows it asks for less than everything.
    if passed_on.is_empty() { vm::after_tests() } else { Ok(()) }
}

/// What follows the task's name, word for word: clap would drop a `--` that is the first of it.
fn passed_on(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    words.skip_while(|word| word != "test").skip(1).collect()
}

/// Narrowing to packages replaces `--workspace`, which would override it.
fn test_command(passed_on: &[OsString]) -> std::process::Command {
    let mut command = cargo("test");
    let narrowed = |argument: &OsString| {
        let text = argument.to_string_lossy();
        text.starts_with("-p") || text.starts_with("--package")
    };
    if !passed_on.iter().take_while(|argument| *argument != "--").any(narrowed) {
        command.arg("--workspace");
    }
    command.arg("--no-fail-fast").args(passed_on);
    command
}

fn schema() -> Result<()> {
    let mut command = cargo("test");
    command.args(["--package", "pagelab-record", "--test", "schema"]).env("UPDATE_SCHEMA", "1");
    run("schema", &mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments_of(command: &std::process::Command) -> Vec<String> {
        command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn whatever_follows_test_is_passed_on_word_for_word() {
        let line = ["xtask", "test", "-p", "xtask", "--", "--nocapture"];
        assert!(command().try_get_matches_from(line).is_ok());
        let arguments = arguments_of(&test_command(&passed_on(line.map(Into::into).into_iter())));
        assert!(arguments.ends_with(&["-p", "xtask", "--", "--nocapture"].map(String::from)));
        assert!(!arguments.contains(&"--workspace".to_owned()));
        let line = ["xtask", "test", "--", "test"].map(Into::into);
        assert_eq!(passed_on(line.into_iter()), ["--", "test"]);
    }

    #[test]
    fn test_alone_means_the_whole_workspace() {
        assert!(arguments_of(&test_command(&[])).contains(&"--workspace".to_owned()));
        let filter = [OsString::from("--"), OsString::from("-p")];
        assert!(arguments_of(&test_command(&filter)).contains(&"--workspace".to_owned()));
    }
}
