//! What a command asked beyond its cases, as the side that asks and the side that answers read it.
//!
//! The one idea: a header keeps the question, so that a report made next year answers it. What was
//! asked by a later version is no question of this one: the records are read all the same.

use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{ab::Ab, advice::Setting};

/// A question of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Asked {
    /// Which way of getting fresh memory is the fastest.
    Advise(Advise),
    /// What the faults of a program cost.
    Explain(Explain),
    /// Which of two arms is faster.
    Ab(Ab),
    /// Which way to larger pages helps a program.
    Try(Try),
}

impl Asked {
    /// The question in a header, where this version knows it.
    pub(crate) fn known<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Self>, D::Error> {
        Value::deserialize(from).map(|value| serde_json::from_value(value).ok())
    }
}

/// What `advise` was asked, and the strategies that it considered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Advise {
    /// Bytes that shall be present.
    pub size: u64,
    /// Threads that may be used.
    pub threads: u32,
    /// What may be named.
    pub policy: Policy,
    /// Bytes of the sample.
    pub sample: u64,
    /// Bytes of the last-level cache of the CPU that is used, 0 where it is not known.
    pub cache: u64,
    /// Every strategy that was considered.
    pub strategies: Vec<Strategy>,
}

/// What `explain` was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Explain {
    /// Whether the run measures prices itself, instead of taking those of another run.
    pub prices: bool,
}

/// What `try` was asked, and the rungs that it considered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Try {
    /// Every rung, in the order of the table.
    pub rungs: Vec<Rung>,
    /// What the order within rounds is drawn from.
    pub seed: u64,
    /// Rounds at most.
    pub rounds: u32,
    /// Rounds before a verdict ends it; 0 where nobody asked.
    #[serde(default)]
    pub min_rounds: u32,
    /// Nanoseconds that all of it may take, where somebody said.
    pub budget_ns: Option<u64>,
    /// A difference of less is none, in millionths.
    pub delta_ppm: u32,
    /// The words that start the program; none where they are no text.
    #[serde(default)]
    pub program: Vec<String>,
    /// The rungs that were asked for by name.
    #[serde(default)]
    pub named: Vec<String>,
    /// Rungs by the program's own setting.
    #[serde(default)]
    pub own: Vec<Own>,
    /// What is done around every run of it.
    #[serde(default)]
    pub around: Around,
    /// Whether one run of it is watched, so that what `explain` predicts stands beside what came.
    #[serde(default)]
    pub predicts: bool,
    /// Whether it is asked which mappings are worth larger pages.
    #[serde(default)]
    pub fits: bool,
    /// The process that ran already, where there is no program: loaded before and after.
    #[serde(default)]
    pub pid: Option<u32>,
}

/// A rung by the program's own setting: a command that starts it in place of its words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Own {
    /// The rung's name.
    pub name: String,
    /// A command of a shell.
    pub command: String,
    /// Whether a hugetlb pool is set aside for it.
    pub pool: bool,
    /// Whether the command is the path of another build, which gets the program's arguments.
    #[serde(default)]
    pub build: bool,
}

/// Whether a rung may be called so: it names files of the run.
fn is_name(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    (1..=40).contains(&name.len()) && !name.starts_with('.') && name.chars().all(is_plain)
}

impl Own {
    /// Whether it is one that could have been typed: a journal may hold anything.
    pub fn is_sound(&self) -> bool {
        is_name(&self.name) && !self.command.trim().is_empty()
    }
}

impl FromStr for Own {
    type Err = String;

    /// `NAME=COMMAND`, or `pool:NAME=COMMAND`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (pool, rest) = text.strip_prefix("pool:").map_or((false, text), |rest| (true, rest));
        Ok(Self { pool, ..Self::named(rest)? })
    }
}

impl Own {
    /// Another build of the program: `NAME=PATH`.
    ///
    /// # Errors
    /// A sentence, where the text is none.
    pub fn build(text: &str) -> Result<Self, String> {
        Ok(Self { build: true, ..Self::named(text)? })
    }

    fn named(text: &str) -> Result<Self, String> {
        let (name, command) = text.split_once('=').ok_or("expected NAME=COMMAND")?;
        if !is_name(name) {
            return Err(format!(
                "{name:?} is no name of a rung: up to 40 letters, digits, - and _"
            ));
        }
        if command.trim().is_empty() {
            return Err(format!("{name}: what command starts the program?"));
        }
        let (name, command) = (name.to_owned(), command.to_owned());
        Ok(Self { name, command, pool: false, build: false })
    }
}

/// What is done around every run of a program, as it was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Around {
    /// What it reads.
    pub input: Option<String>,
    /// Bytes that it may hold.
    pub limit: Option<u64>,
    /// Whether free memory is broken up before each run.
    pub fragmented: bool,
    /// Whether its output has to be the same on every rung.
    pub same_output: bool,
    /// The exit code of the program where all is well.
    pub exit: u8,
    /// A command of a shell before it.
    pub setup: Option<String>,
    /// And one after it.
    pub cleanup: Option<String>,
    /// The command of a shell that is its client.
    pub client: Option<String>,
    /// When the client may begin: `port:NUMBER` or `line:REGEX`.
    pub ready: Option<String>,
    /// What the client says: `more:NAME=REGEX` or `less:NAME=REGEX`.
    pub scores: Vec<String>,
}

/// One way to give a program larger pages, or none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Rung {
    /// What it is called.
    pub name: String,
    /// What it does, as half a sentence.
    pub how: String,
    /// What it reaches.
    pub reach: Reach,
    /// Bytes of the smallest page that it is to bring; 0 for those that bring none.
    pub page: u64,
    /// How to have it for good: environment line, unit property, kernel parameter, code.
    pub keep: Vec<String>,
    /// What it sets; empty in journals of earlier versions.
    pub setting: Vec<Setting>,
    /// The same as it was before.
    pub undo: Vec<Setting>,
    /// What that costs others.
    pub cost: String,
    /// What is missing here, and how to get it; such a rung is not run.
    pub lacks: Vec<Lack>,
    /// What of [`crate::vocabulary::knob`] it does, where that is something that `explain` knows.
    pub knob: Option<String>,
    /// Why its pages may come in some runs only, where that is known.
    pub fickle: String,
}

impl Rung {
    /// The counter of a variant that has not run: nanoseconds that one run is expected to take.
    pub const UNTRIED_NS: &str = "untried_ns";

    /// Whether its pages came in a round: not, where no look saw any (`large` bytes of them) and it
    /// took as many faults as the same round with base pages. What is not known counts for it.
    #[must_use]
    pub fn came(&self, large: Option<f64>, faults: Option<f64>, plain: Option<f64>) -> bool {
        let none_seen = self.page > 0 && large == Some(0.0);
        let spared = faults.zip(plain).is_none_or(|(faults, plain)| faults < plain * (1.0 - FEWER));
        !none_seen || spared
    }
}

/// The share of its faults that a program is spared at least by pages that came unseen.
const FEWER: f64 = 0.05;

/// What a rung reaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// The program and what it starts; anybody may do it.
    #[default]
    Program,
    /// The program, but only root may do it.
    Privileged,
    /// Every program of the machine while it runs.
    Machine,
}

crate::named! {
    /// Which strategies may be named.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(test, derive(schemars::JsonSchema))]
    #[serde(rename_all = "snake_case")]
    pub enum Policy {
        /// All; as root settings are changed and put back to measure them.
        Any = "any",
        /// Those that need no setting changed.
        Keep = "keep",
        /// Base pages only.
        Base = "base",
        /// No hugetlb pool.
        Transparent = "transparent",
        /// Those that lock the memory.
        Locked = "locked",
    }
}

impl Policy {
    /// The policy of that name; any where there is none.
    pub fn of(name: &str) -> Self {
        Self::ALL.into_iter().find(|policy| policy.name() == name).unwrap_or(Self::Any)
    }
}

/// One way of getting the memory, and what it takes for all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Strategy {
    /// What people call it: the way, the page size, the threads.
    pub name: String,
    /// The parameters that tell its record from others: the page.
    pub page: String,
    /// How the memory is made present.
    pub populate: String,
    /// Threads that work.
    pub threads: u32,
    /// How much there is to set up; of two equally fast ones the lower is named.
    pub effort: u32,
    /// What the memory costs beyond its size.
    pub memory: Memory,
    /// What to bear in mind, empty where there is nothing.
    pub caveat: String,
    /// What the machine lacks for all of the memory as it is set now, and how to get it.
    pub lacks: Vec<Lack>,
    /// The calls in C for all of the memory; empty where whoever wrote this did not say.
    #[serde(default)]
    pub code: String,
}

/// What a strategy costs in memory, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Memory {
    /// Rounding up to whole pages.
    pub rounding: u64,
    /// Set aside in a pool that serves nothing else.
    pub pool: u64,
    /// Locked: never paged out, counted against the memlock limit.
    pub locked: u64,
}

/// A need that is not met, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Lack {
    /// What is missing.
    pub need: String,
    /// A command or sentence to act on.
    pub cure: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rung_of_ones_own_has_a_name_that_can_name_a_file_and_a_command() {
        let of = |text: &str| text.parse::<Own>();
        let own = of("pool:huge_pages=postgres -c huge_pages=on").unwrap();
        assert_eq!((own.name.as_str(), own.pool), ("huge_pages", true));
        assert_eq!(own.command, "postgres -c huge_pages=on");
        assert!(!of("thp=java").unwrap().pool);
        for bad in ["", "x", "=y", "a b=c", "../x=y", ".x=y", "x=", "x=  ", "pool:=y"] {
            assert!(of(bad).is_err(), "{bad}");
        }
        let named = |name: &str| Own { name: name.to_owned(), ..own.clone() }.is_sound();
        assert!(named("mine") && !named("../mine") && !named(""));
    }

    #[test]
    fn a_question_is_written_as_it_always_was() {
        let asked = Asked::Explain(Explain { prices: true });
        assert_eq!(json!(asked), json!({"command": "explain", "prices": true}));
        for policy in Policy::ALL {
            assert_eq!(json!(policy), json!(policy.name()));
        }
    }

    #[test]
    fn what_a_later_version_asks_is_no_question_of_this_one() {
        let known = |value: Value| Asked::known(value).unwrap();
        assert_eq!(known(json!({"command": "divine", "future": 1})), None);
        assert_eq!(known(Value::Null), None);
        assert!(known(json!({"command": "explain", "prices": false})).is_some());
    }

    #[test]
    fn pages_came_unless_none_were_seen_and_none_were_spared() {
        let rung = |page| Rung { page, ..Rung::default() };
        let came = |large, faults| rung(2 << 20).came(large, faults, Some(1000.0));
        assert!(!came(Some(0.0), Some(1000.0)) && !came(Some(0.0), Some(960.0)));
        assert!(came(Some(0.0), Some(900.0)), "they came between two looks");
        assert!(came(Some(1.0), Some(1000.0)), "from outside, after the faults");
        assert!(came(None, Some(1000.0)) && came(Some(0.0), None), "nobody knows");
        assert!(rung(2 << 20).came(Some(0.0), Some(1.0), None));
        assert!(rung(0).came(Some(0.0), Some(1000.0), Some(1000.0)), "none were to come");
    }
}
