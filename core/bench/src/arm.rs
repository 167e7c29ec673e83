//! What an arm of a run of two does to the processes of its cases.
//!
//! The one idea: an arm is data ([`Change`]), and each sort of it acts in one place: a parameter in
//! the case, all else here, where a process of the case is about to start.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use pagelab_record::ab::{Arm, Change};
use pagelab_record::vocabulary::Check;
use pagelab_sys::{machine::Tree, process::child};

use crate::{need::Need, program, remedy::Remedy};

/// The command that the process of a case is started with, for its arm where it has one.
pub(crate) fn command(arm: Option<&Arm>) -> Command {
    let change = arm.map(|arm| &arm.change);
    if let Some(Change::Program { path, .. }) = change {
        return program::command(Path::new(path));
    }
    let mut command = child::this_program();
    if let Some(Change::Environment { name, value }) = change {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// The setting of an arm: a need of each of its cases, met for a process as any other is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct InForce {
    path: PathBuf,
    value: String,
}

impl InForce {
    pub(crate) fn of(arm: &Arm) -> Option<Self> {
        let (path, value) = arm.setting()?;
        Some(Self { path: path.into(), value: value.to_owned() })
    }

    /// Whether a remedy would set the same file.
    pub(crate) fn is_overruled_by(&self, remedy: &Remedy) -> bool {
        let real = |path: &PathBuf| fs::canonicalize(path).ok();
        let is_mine = |path: &PathBuf| real(path) == real(&self.path);
        matches!(remedy, Remedy::Set(paths, _) if paths.iter().any(is_mine))
    }

    /// What stands in the way of a need that the same setting meets.
    pub(crate) fn cure(&self, need: &dyn Need) -> String {
        let Self { path, value } = self;
        let path = path.display();
        format!(
            "the arm holds {path} at {value}, and {need} takes another value: choose other cases"
        )
    }
}

impl Need for InForce {
    fn name(&self) -> String {
        format!("{} at {}", self.path.display(), self.value)
    }

    fn check(&self) -> bool {
        Tree::machine().choice(&self.path).is_some_and(|value| value == self.value)
    }

    fn cure(&self) -> String {
        let by_hand = self.remedy().and_then(|remedy| remedy.by_hand());
        by_hand.unwrap_or_else(|| format!("use a kernel that has {}", self.path.display()))
    }

    fn lasting(&self) -> Option<(Check, String)> {
        let Self { path, value } = self;
        let claim = format!("readings of the arm's setting {} that were {value}", path.display());
        Some((Check::SettingInForce, claim))
    }

    fn remedy(&self) -> Option<Remedy> {
        self.path.is_file().then(|| Remedy::set(self.path.clone(), &*self.value))
    }
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
