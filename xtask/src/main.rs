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
mod fuzz;
mod kmod;
mod layouts;
mod lint;
mod miri;
mod mutants;
mod nightly;
mod output_hashes;
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
use clap::{Parser, Subcommand};

use crate::shell::{cargo, run};

/// The one door for pagelab's developers
#[derive(Parser)]
#[command(bin_name = "cargo xtask", arg_required_else_help = true)]
struct Xtask {
    #[command(subcommand)]
    task: Task,
}

/// Every task, in the order of `--help`.
#[derive(Subcommand)]
enum Task {
    /// Check form: rustfmt, clippy, rustdoc, tidy, licences and sources of dependencies
    Lint,
    /// Run every test, and `pagelab check` on the newest kernel; takes nextest's words
    Test(test::Arguments),
    /// Run the tests again and again, on a quiet or a disturbed machine
    Soak(test::soak::Arguments),
    /// Run tests as an ordinary user, when called by root
    TestUser,
    /// Run the cases that need real kernels, in virtual machines
    Vm(vm::Arguments),
    /// Kill runs at random moments; nothing is lost, doubled or left changed
    Storm(storm::Arguments),
    /// Check what no compiler checks
    Tidy,
    /// Say whether what the program prints of every journal is as it was
    OutputHashes(output_hashes::Arguments),
    /// Rewrite docs/record.schema.json
    Schema,
    /// Put the reports of records/ into the pages that show them
    Splice(splice::Arguments),
    /// Build the wheel, and use it alone and with all that it is tested with
    Python(python::Arguments),
    /// Build dist/pagelab, one static binary
    Dist,
    /// Feed whatever reads a file with what no program would write
    Fuzz(fuzz::Arguments),
    /// Make mistakes in what must not fail, and see whether a test notices
    Mutants(mutants::Arguments),
    /// Run what an interpreter can of the unsafe code
    Miri,
    /// Check what is meant for every system for three others
    Portable,
    /// Build the kernel module against the headers of a kernel
    Kmod(kmod::Arguments),
    /// Run pagelab in builds of different code layout; ratios and their median
    Layouts(layouts::Arguments),
}

impl Task {
    fn run(self) -> Result<()> {
        match self {
            Self::Lint => lint::lint(),
            Self::Test(asked) => test::test(&asked),
            Self::Soak(asked) => test::soak::soak(&asked),
            Self::TestUser => test::user::user(),
            Self::Vm(asked) => vm::vm(asked),
            Self::Storm(asked) => storm::storm(&asked),
            Self::Tidy => tidy::tidy(),
            Self::OutputHashes(asked) => output_hashes::output_hashes(&asked),
            Self::Schema => schema(),
            Self::Splice(asked) => splice::splice(&asked),
            Self::Python(asked) => python::python(&asked),
            Self::Dist => dist::dist(),
            Self::Fuzz(asked) => fuzz::fuzz(&asked),
            Self::Mutants(asked) => mutants::mutants(&asked),
            Self::Miri => miri::miri(),
            Self::Portable => portable::portable(),
            Self::Kmod(asked) => kmod::kmod(&asked),
            Self::Layouts(asked) => layouts::layouts(&asked),
        }
    }
}

fn main() -> ExitCode {
    let task = Xtask::parse().task;
    let Err(error) = shell::enter_root().and_then(|()| task.run()) else {
        return ExitCode::SUCCESS;
    };
    let name = std::env::args().nth(1).unwrap_or_default();
    eprintln!("\nxtask {name}: {error:#}");
    ExitCode::FAILURE
}

fn schema() -> Result<()> {
    let mut command = cargo("test");
    command
        .args(["--package", "pagelab-record", "--lib", "schema::tests::document"])
        .env("UPDATE_SCHEMA", "1");
    run("schema", &mut command)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Xtask::command().debug_assert();
    }

    #[test]
    fn test_takes_all_words_that_follow() {
        let line = ["xtask", "test", "-p", "xtask", "--", "--nocapture"];
        assert!(Xtask::try_parse_from(line).is_ok());
    }
}
