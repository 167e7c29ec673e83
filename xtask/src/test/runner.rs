//! The command that runs the tests: cargo-nextest, or `cargo test` where it cannot be had, with the
//! same verdict.
//!
//! nextest runs each test in a process of its own, and leaves a JUnit file that [`super::junit`]
//! reads.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use crate::{
    prebuilt::prebuilt,
    shell::{self, cargo, program},
};

/// cargo-nextest, installed where it is missing; `None` where that fails.
pub(super) fn nextest() -> Option<PathBuf> {
    let found = prebuilt("cargo-nextest", "0.9.148");
    if found.is_none() {
        shell::warn("`cargo test` runs the tests, and counts neither passes nor skips");
    }
    found
}

/// The command that runs every test but those in comments, or what `more` narrows that to.
pub(super) fn command(nextest: Option<&Path>, more: &[impl AsRef<OsStr>]) -> Command {
    let mut command = cargo("test");
    command.arg("--no-fail-fast");
    if let Some(nextest) = nextest {
        // A program that a script starts in the background ignores SIGINT, and so would every
        // process that a test ends by it.
        command = program("env", ["--default-signal=HUP,INT,QUIT,USR1,USR2"]);
        command.arg(nextest).args(["nextest", "run"]);
    }
    let mut words = more.iter().map(|word| word.as_ref().to_string_lossy());
    if !words.any(|word| ["-p", "--package", "--binaries"].iter().any(|of| word.starts_with(of))) {
        command.arg("--workspace");
    }
    command.args(more);
    command
}

/// Tests at once. Those of the program wait for processes more than they compute.
pub(super) fn jobs() -> String {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    (3 * processors).to_string()
}
