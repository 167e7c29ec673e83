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
mod prebuilt;
mod python;
mod shell;
mod splice;
mod storm;
mod test;
mod tidy;
mod vm;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{ArgMatches, Command};

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
    Task::plain(
        "lint",
        "Check form: rustfmt, clippy, rustdoc, tidy, licences and sources of dependencies",
        |_| lint::lint(),
    ),
    Task {
        name: "test",
        about: "Run every test, and `pagelab check` on the newest kernel; takes nextest's words",
        arguments: test::arguments,
        run: test::test,
    },
    Task {
        name: "soak",
        about: "Run the tests again and again, on a quiet or a disturbed machine",
        arguments: test::soak::arguments,
        run: test::soak::soak,
    },
    Task::plain("test-user", "Run tests as an ordinary user, when called by root", |_| {
        test::user::user()
    }),
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
    Task {
        name: "python",
        about: "Build the wheel, and use it alone and with all that it is tested with",
        arguments: python::arguments,
        run: python::python,
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

fn schema() -> Result<()> {
    let mut command = cargo("test");
    command.args(["--package", "pagelab-record", "--test", "schema"]).env("UPDATE_SCHEMA", "1");
    run("schema", &mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn test_takes_all_words_that_follow() {
        let line = ["xtask", "test", "-p", "xtask", "--", "--nocapture"];
        assert!(command().try_get_matches_from(line).is_ok());
    }
}
