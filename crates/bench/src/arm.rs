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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_set_or_taken_away_for_its_arm_alone() {
        let of = |value: Option<&str>| {
            let value = value.map(str::to_owned);
            let change = Change::Environment { name: "ARM".into(), value };
            let arm = Arm { name: "env:ARM".into(), change };
            let command = command(Some(&arm));
            let set = command.get_envs().find(|(name, _)| *name == "ARM");
            set.map(|(_, value)| value.map(std::ffi::OsStr::to_os_string))
        };
        assert_eq!(of(Some("1")), Some(Some("1".into())));
        assert_eq!(of(None), Some(None));
        assert!(command(None).get_envs().all(|(name, _)| name != "ARM"));
    }
}
