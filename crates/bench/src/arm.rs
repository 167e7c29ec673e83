//! What an arm of a run of two does to the processes of its cases.
//!
//! The one idea: an arm is data ([`Change`]), and each sort of it acts in one place: a parameter in
//! the case, all else here, where a process of the case is about to start.

use std::process::Command;

use pagelab_record::ab::{Arm, Change};
use pagelab_sys::process::child;

/// The command that the process of a case is started with, for its arm where it has one.
pub(crate) fn command(arm: Option<&Arm>) -> Command {
    let mut command = child::this_program();
    match arm.map(|arm| &arm.change) {
        None | Some(Change::Parameter { .. }) => {}
        Some(Change::Environment { name, value: Some(value) }) => drop(command.env(name, value)),
        Some(Change::Environment { name, value: None }) => drop(command.env_remove(name)),
    }
    command
}
