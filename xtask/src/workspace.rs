//! The build that tests and machines share: programs, libraries and tests.
//!
//! The one idea: it is one call of cargo, because cargo builds dependencies again for whatever asks
//! for other features of them.

use std::process::Command;

use crate::shell::cargo;

/// The command that builds all of it.
pub(crate) fn build() -> Command {
    let mut command = cargo("build");
    command.args(["--workspace", "--lib", "--bins", "--examples", "--tests"]);
    command
}
