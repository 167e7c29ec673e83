//! What is run, and how often: every command that changes the machine.
//!
//! The one idea: a deck of fixed proportions. A command that takes half a minute is in it once for
//! many short ones, so that the time goes to kills and not to what they interrupt. `resume` is not
//! in it: it is what follows a kill, and is killed as well.

use std::sync::LazyLock;

use serde::Deserialize;

/// A command, and what is known of it: a row of `commands.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Command {
    /// What it is called in the summary.
    pub(super) name: String,
    /// Its words; [`OUT`] stands for the run's directory.
    words: String,
    /// The cases of `suite.toml` in the directory that it is run in.
    #[serde(default)]
    cases: Vec<String>,
    /// What `resume` is told besides the run.
    #[serde(default)]
    again: String,
    /// How often it is in a deck.
    pub(super) share: usize,
    /// Longer than it takes, where that is not to be found out by running it once.
    pub(super) at_most_ms: Option<u64>,
    /// Whether it says no record that is finished.
    #[serde(default)]
    pub(super) is_silent: bool,
}

/// Stands for the run's directory.
const OUT: &str = "@out@";
/// The suite's file.
pub(super) const SUITE: &str = "suite.toml";

#[derive(Deserialize)]
struct File {
    command: Vec<Command>,
}

/// The deck.
pub(super) static COMMANDS: LazyLock<Vec<Command>> = LazyLock::new(|| {
    toml::from_str::<File>(include_str!("commands.toml")).expect("a test reads it").command
});

impl Command {
    /// Its words, with the run's directory.
    pub(super) fn words(&self, out: &str) -> Vec<String> {
        self.words.split_whitespace().map(|word| word.replace(OUT, out)).collect()
    }

    /// What goes on with a run of it.
    pub(super) fn resume(&self, run: String) -> Vec<String> {
        let again = self.again.split_whitespace().map(str::to_owned);
        ["resume".to_owned(), "--quiet".to_owned(), run].into_iter().chain(again).collect()
    }

    /// The text of its suite, as short as its cases can be; `None` where it needs none.
    pub(super) fn suite(&self) -> Option<String> {
        if self.cases.is_empty() {
            return None;
        }
        let mut text = "name = \"storm\"\nsummary = \"what is killed\"\nforks = 1\n\
                        budget = 0.02\nrepetitions-min = 1\n"
            .to_owned();
        for case in &self.cases {
            let mut words = case.split_whitespace();
            let workload = words.next().unwrap_or_default();
            text.push_str(&format!("[[case]]\nworkload = \"{workload}\"\n"));
            for (key, value) in words.filter_map(|word| word.split_once('=')) {
                text.push_str(&format!("{key} = \"{value}\"\n"));
            }
        }
        Some(text)
    }
}

/// One deck: the indices of the commands that are wanted, each as often as its share.
pub(super) fn deck(is_wanted: impl Fn(&Command) -> bool) -> Vec<usize> {
    let wanted = COMMANDS.iter().enumerate().filter(|(_, command)| is_wanted(command));
    wanted.flat_map(|(index, command)| vec![index; command.share]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deck_has_every_command_and_is_as_long_as_the_kills_of_ci() {
        let deck = deck(|_| true);
        assert_eq!(deck.len(), 60);
        assert!((0..COMMANDS.len()).all(|index| deck.contains(&index)));
    }

    #[test]
    fn a_suite_names_its_cases_and_a_command_its_directory() {
        let folios = &COMMANDS[0];
        assert_eq!(folios.words("r"), ["run", "--suite", "./suite.toml", "-o", "r"]);
        let suite: toml::Table = folios.suite().unwrap().parse().unwrap();
        assert_eq!(suite["case"].as_array().unwrap().len(), 2);
        assert!(
            COMMANDS.iter().all(|one| one.words.contains("./suite.toml") != one.cases.is_empty())
        );
    }
}
