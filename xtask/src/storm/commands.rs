//! What is run, and how often: every command that changes the machine.
//!
//! The one idea: a deck of fixed proportions. A command that takes half a minute is in it once for
//! many short ones, so that the time goes to kills and not to what they interrupt. `resume` is not
//! in it: it is what follows a kill, and is killed as well.

use std::time::Duration;

/// A command, and what is known of it.
#[derive(Debug)]
pub(super) struct Command {
    /// What it is called in the summary.
    pub(super) name: &'static str,
    /// Its words; [`OUT`] stands for the run's directory.
    words: &'static [&'static str],
    /// The cases of `suite.toml` in the directory that it is run in.
    cases: &'static [&'static str],
    /// What `resume` is told besides the run.
    again: &'static [&'static str],
    /// How often it is in a deck.
    pub(super) share: usize,
    /// Longer than it takes, where that is not to be found out by running it once.
    pub(super) at_most: Option<Duration>,
    /// Whether it says each record that is finished.
    pub(super) tells: bool,
}

/// Stands for the run's directory.
const OUT: &str = "@out@";
/// The suite's file.
pub(super) const SUITE: &str = "suite.toml";

const SUITE_RUN: &[&str] = &["run", "--suite", "./suite.toml", "-o", OUT];

/// Two arms of a setting that no machine has, no record keeps and no fault feels.
const ARMS: [&str; 3] = [
    "--ab",
    "set:/sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan=4093",
    "set:/sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan=4099",
];

const PLAIN: Command = Command {
    name: "",
    words: SUITE_RUN,
    cases: &[],
    again: &[],
    share: 0,
    at_most: None,
    tells: true,
};

/// The deck.
pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "run: large folios",
        cases: &[
            "fault/throughput page=64k size=4m rounds=2",
            "fault/latency page=128k size=4m rounds=2",
        ],
        share: 10,
        ..PLAIN
    },
    Command {
        name: "run: hugetlb pool",
        cases: &[
            "fault/throughput page=hugetlb-2m size=16m rounds=2",
            "fault/latency page=hugetlb-2m size=16m rounds=2",
        ],
        share: 9,
        ..PLAIN
    },
    Command {
        name: "run: zram swap",
        cases: &[
            "fault/latency kind=swap size=1m rounds=2",
            "fault/latency kind=swap size=1m rounds=2 page-cluster=0",
        ],
        share: 9,
        ..PLAIN
    },
    Command {
        name: "run: swap file",
        cases: &["fault/latency kind=swap swap=file size=1m rounds=2"],
        share: 8,
        ..PLAIN
    },
    Command {
        name: "run: memory cgroup",
        cases: &[
            "fault/latency pressure=memcg page=4k size=8m rounds=2",
            "fault/throughput page=64k size=4m rounds=2",
        ],
        share: 8,
        ..PLAIN
    },
    Command {
        name: "run: two arms",
        words: &[
            "run",
            "--suite",
            "./suite.toml",
            "--forks",
            "4",
            "--budget",
            "1",
            ARMS[0],
            ARMS[1],
            ARMS[2],
            "-o",
            OUT,
        ],
        cases: &["fault/latency size=1m rounds=2", "fault/throughput size=4m rounds=2"],
        again: &ARMS,
        share: 6,
        ..PLAIN
    },
    Command {
        name: "selftest",
        words: &["selftest", "--aa", "--suite", "./suite.toml", "--forks", "8", "-o", OUT],
        cases: &["fault/throughput page=64k size=4m rounds=2"],
        share: 5,
        ..PLAIN
    },
    Command {
        name: "advise",
        words: &["advise", "--size", "16m", "--budget", "1", "-o", OUT],
        share: 3,
        at_most: Some(Duration::from_millis(1200)),
        tells: false,
        ..PLAIN
    },
    Command {
        name: "explain",
        words: &["explain", "-o", OUT, "--", "true"],
        share: 1,
        at_most: Some(Duration::from_secs(10)),
        ..PLAIN
    },
    Command {
        name: "check",
        words: &["check"],
        share: 1,
        at_most: Some(Duration::from_secs(20)),
        tells: false,
        ..PLAIN
    },
];

impl Command {
    /// Its words, with the run's directory.
    pub(super) fn words(&self, out: &str) -> Vec<String> {
        self.words.iter().map(|word| word.replace(OUT, out)).collect()
    }

    /// What goes on with a run of it.
    pub(super) fn resume(&self, run: String) -> Vec<String> {
        let again = self.again.iter().map(ToString::to_string);
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
        for case in self.cases {
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
            COMMANDS.iter().all(|one| one.words.contains(&"./suite.toml") != one.cases.is_empty())
        );
    }
}
