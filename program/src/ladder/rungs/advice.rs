//! What a variant sets, as data, and the lines that a report has of it.

use std::env;

use pagelab_record::advice::{Setting, Target};
use pagelab_sys::machine::Tree;

use super::{Offer, Outside, Start};

impl Offer {
    /// Writes down what it sets, and what that is now.
    pub(super) fn advise(&mut self) {
        self.rung.setting = settings(&self.start);
        self.rung.undo = self.rung.setting.iter().rev().map(undo).collect();
    }
}

/// Pages of a pool: how many is known once it is known how much the program holds.
const PAGES: &str = "N";

/// What a start sets.
fn settings(start: &Start) -> Vec<Setting> {
    let files = start.settings.iter().map(|(path, value)| (path, value.as_str()));
    let pool = start.pool.iter().map(|(_, path)| (path, PAGES));
    let files = files.chain(pool).map(|(path, value)| Setting::file(path.to_string_lossy(), value));
    let variables = start.environment.iter().map(|(name, value)| Setting::environment(name, value));
    let never = (start.thp == Some(false)).then(|| Setting::call("prctl", "PR_SET_THP_DISABLE"));
    let collapse = start.outside.map(|of| {
        let name = match of {
            Outside::Anonymous => "process_madvise",
            Outside::Code => "process_madvise of its code",
        };
        Setting::call(name, "MADV_COLLAPSE")
    });
    let command = start.command.clone();
    let command = command.map(|own| Setting { target: Target::Command(own), value: None });
    files.chain(variables).chain(never).chain(collapse).chain(command).collect()
}

/// What undoes a setting, from what it is now.
fn undo(setting: &Setting) -> Setting {
    setting.undo(match &setting.target {
        Target::File(path) => Tree::machine().choice(path),
        Target::Environment(name) => env::var(name).ok(),
        Target::Call(_) | Target::Command(_) => None,
    })
}

/// How to have what a start sets, a line for each file, and one for all variables. How a pool is
/// kept is for its variant to say.
pub(super) fn lines(start: &Start) -> Vec<String> {
    let all = settings(start);
    let is_variable = |setting: &&Setting| matches!(setting.target, Target::Environment(_));
    let variables: Vec<String> = all.iter().filter(is_variable).map(ToString::to_string).collect();
    let file = |setting: &Setting| match (&setting.target, &setting.value) {
        (Target::File(path), Some(value)) if value != PAGES => {
            Some(format!("setting: echo {value} | sudo tee {path}"))
        }
        _ => None,
    };
    let files: Vec<String> = all.iter().filter_map(file).collect();
    let variables =
        (!variables.is_empty()).then(|| format!("environment: {}", variables.join(" ")));
    variables.into_iter().chain(files).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_start_sets_is_data_and_the_lines_follow() {
        let path = "/sys/none/enabled";
        let start = Start {
            environment: vec![("A_VARIABLE_OF_NONE".to_owned(), "1".to_owned())],
            settings: vec![(path.into(), "always".to_owned())],
            thp: Some(false),
            ..Start::default()
        };
        let said = settings(&start);
        assert_eq!(said[0], Setting::file(path, "always"));
        assert_eq!(said[2], Setting::call("prctl", "PR_SET_THP_DISABLE"));
        let lines = lines(&start);
        assert_eq!(lines[0], "environment: A_VARIABLE_OF_NONE=1");
        assert_eq!(lines[1], "setting: echo always | sudo tee /sys/none/enabled");
        assert!(said.iter().all(|setting| undo(setting).value.is_none()), "none was there");
    }
}
