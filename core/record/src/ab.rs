//! Two arms of one run: what each of them changes, and whose turn each process was.
//!
//! The one idea: processes come in blocks, one of each arm, in an order that is drawn from a seed
//! which the header keeps. A block has the number that its processes have, so that whoever reads
//! two records of a cell finds the pairs; and which process was the first of its block is written
//! down, so that whether that mattered can be asked afterwards.
//!
//! A record of a cell that got more blocks holds all of them; the last one counts.

use serde::{Deserialize, Serialize};

/// What two arms are called that change nothing.
pub const EQUAL: [&str; 2] = ["one", "other"];

/// What a run of two arms was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ab {
    /// The arms, in the order in which they were named.
    pub arms: [Arm; 2],
    /// What the order in the blocks is drawn from.
    pub seed: u64,
    /// Blocks that every cell gets.
    pub screen: u32,
    /// Time for the whole run; where there is none, no cell gets more than the screen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ns: Option<u64>,
    /// A difference of less is none, in parts per million; where it is absent, the default of a
    /// comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta_ppm: Option<u32>,
}

impl Ab {
    /// A difference of less is none, as a share, where the run was asked so.
    pub fn delta(&self) -> Option<f64> {
        self.delta_ppm.map(|ppm| f64::from(ppm) / 1e6)
    }

    /// Which of the two arms has this name.
    pub fn index(&self, arm: &Arm) -> Option<usize> {
        self.arms.iter().position(|known| known.name == arm.name)
    }
}

/// One of the two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Arm {
    /// What it is called: as it was asked for, in the canonical spelling.
    pub name: String,
    /// What it changes.
    pub change: Change,
}

impl Arm {
    /// Its name, where the case does not say what it is.
    pub fn beyond_case(&self) -> Option<&str> {
        match self.change {
            Change::Parameter { .. } => None,
            Change::Nothing
            | Change::Environment { .. }
            | Change::Setting { .. }
            | Change::Program { .. } => Some(&self.name),
        }
    }

    /// Its name, where it does something that no journal may choose alone.
    pub fn beyond_journal(&self) -> Option<&str> {
        self.beyond_case().filter(|_| self.change != Change::Nothing)
    }

    /// The setting that it changes, and its value.
    pub fn setting(&self) -> Option<(&str, &str)> {
        match &self.change {
            Change::Setting { path, value } => Some((path, value)),
            _ => None,
        }
    }
}

/// What an arm changes of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A parameter of the case, which names it.
    Parameter {
        /// Its name.
        name: String,
        /// Its canonical value.
        value: String,
    },
    /// Nothing: both arms are the same, as in a self-test.
    Nothing,
    /// A variable in the environment of its processes.
    Environment {
        /// Its name.
        name: String,
        /// Its value; nothing where the variable is not there.
        value: Option<String>,
    },
    /// A setting of the machine, while a process of the arm runs.
    Setting {
        /// The file below `/sys` or `/proc`, every link followed.
        path: String,
        /// What it holds.
        value: String,
    },
    /// The program that its processes are: a pagelab.
    Program {
        /// The file, every link followed.
        path: String,
        /// Its SHA-256.
        digest: String,
        /// Which version it says it is.
        version: String,
    },
}

/// The part of a record in a run of two arms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Turns {
    /// The arm that was measured.
    pub arm: Arm,
    /// The cell, which both arms have: from 0, in the order of the plan.
    pub cell: u32,
    /// Blocks that had been begun: the number of the next one.
    pub blocks: u32,
    /// Where a budget has it looked at again and again until it is decided: how often so far, this
    /// time included. Every look takes more evidence than the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looks: Option<u32>,
    /// The processes that were the first of their block, by number; the others were the second.
    pub first: Vec<u32>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_arm_is_written_as_it_always_was() {
        let parameter = Change::Parameter { name: "page".into(), value: "4k".into() };
        let arm = Arm { name: "page=4k".into(), change: parameter };
        let written = json!({
            "name": "page=4k", "change": {"parameter": {"name": "page", "value": "4k"}},
        });
        assert_eq!(json!(arm), written);
        assert_eq!((arm.beyond_case(), arm.setting()), (None, None));
        let setting = Change::Setting { path: "/proc/a".into(), value: "1".into() };
        let arm = Arm { name: "set:/proc/a=1".into(), change: setting };
        let written = json!({"setting": {"path": "/proc/a", "value": "1"}});
        assert_eq!(json!(arm.change), written);
        let text = |text: &str| text.to_owned();
        let program =
            Change::Program { path: text("/p"), digest: text("00"), version: text("0.1") };
        let written = json!({"program": {"path": "/p", "digest": "00", "version": "0.1"}});
        assert_eq!(json!(program), written);
        assert_eq!(
            (arm.beyond_case(), arm.setting()),
            (Some("set:/proc/a=1"), Some(("/proc/a", "1")))
        );
    }
}
