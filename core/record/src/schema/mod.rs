//! The schema of a record, `pagelab.record/1`.
//!
//! The one idea: a record stores what was observed, in integers and base units; whatever can be
//! derived (rates, percentiles, ratios, shares of a limit) is computed when it is read. Unknown
//! fields are ignored and new ones have defaults, so that old records stay readable; a change of
//! meaning raises the number in [`SCHEMA`].
//!
//! It is not a report: nothing here is rounded, sorted for reading, or left out for being dull.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{ab::Turns, host::Host};

mod claim;
mod header;
mod table;

pub use claim::Claim;
pub use header::RunHeader;
pub use table::{Column, Signed, Table};

/// The schema of a [`Record`].
pub const SCHEMA: &str = "pagelab.record/1";
/// The schema of a [`RunHeader`].
pub const RUN_SCHEMA: &str = "pagelab.run/1";

/// What one case left behind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Record {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The run it belongs to; as a rule the name of the run's directory.
    pub run: String,
    /// The kernel's boot id, so that two boots are never taken for one.
    pub boot: String,
    /// `collection/name`, for example `fault/throughput`.
    pub workload: String,
    /// What the numbers are.
    pub nature: Nature,
    /// The complete choice of parameters: enough to run it again.
    pub case: Case,
    /// Its arm, and whose turn its processes were, in a run of two arms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ab: Option<Turns>,
    /// The machine, in three classes.
    pub host: Host,
    /// What came of it.
    pub outcome: Outcome,
}

impl Record {
    /// What it is a record of: of those of one run that have the same key, the last counts.
    pub fn key(&self) -> (&str, &Case, Option<&str>) {
        (&self.workload, &self.case, self.ab.as_ref().and_then(|turns| turns.arm.beyond_case()))
    }

    /// The observations, whatever they are worth.
    pub fn measured(&self) -> Option<&Measured> {
        match &self.outcome {
            Outcome::Measured(measured) => Some(measured),
            _ => None,
        }
    }

    /// The observations, where every claim holds.
    pub fn valid(&self) -> Option<&Measured> {
        self.measured().filter(|measured| measured.is_valid())
    }
}

crate::named! {
    /// What the numbers of a record are. Only `measured` may be quoted as time.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(test, derive(schemars::JsonSchema))]
    #[serde(rename_all = "snake_case")]
    pub enum Nature {
        /// Taken on the host that the record names.
        Measured = "measured",
        /// Taken in an emulated machine: states and counts hold, times mean nothing.
        Emulated = "emulated",
        /// Computed by a model, or taken with a scripted clock.
        Simulated = "simulated",
        /// Published by someone else, on another machine.
        Published = "published",
    }
}

/// One complete choice of parameters; values are canonical (`1g`, never `1024m`).
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Case(pub BTreeMap<Word, Word>);

/// A name or a value: nearly all are short enough to be copied without an allocation.
pub type Word = smol_str::SmolStr;

impl Case {
    /// The value of a parameter, or `None` where the workload has no such parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(Word::as_str)
    }

    /// The same case with one parameter set.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{name}={value}")?;
        }
        Ok(())
    }
}

/// What came of a case. All three are records: a run never loses a case in silence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It ran. Whether its numbers may be quoted is [`Measured::is_valid`].
    Measured(Measured),
    /// The host lacks something, and this is how to get it.
    Skipped {
        /// What is missing.
        need: String,
        /// A command or sentence that a person can act on.
        cure: String,
    },
    /// It died, hung, or could not be set up.
    Failed {
        /// Why, in one sentence.
        reason: String,
    },
}

/// The observations of a case that ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Measured {
    /// Times.
    pub series: Vec<Series>,
    /// What is neither a duration nor a count.
    pub tables: Vec<Table>,
    /// Counts over the whole case, by name.
    pub counters: BTreeMap<String, u64>,
    /// The proof that the thing measured is the thing named.
    pub witness: Vec<Claim>,
    /// What may have disturbed the result, each with what to do about it.
    pub warnings: Vec<String>,
    /// Arms that the host could not run, each with its cure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// An arm that was asked for, and that the host lacks something for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// The arm.
    pub arm: String,
    /// What the host lacks.
    pub need: String,
    /// What to do about it.
    pub cure: String,
}

impl Measured {
    /// Whether every claim holds. The numbers of an invalid record are never quoted.
    pub fn is_valid(&self) -> bool {
        self.broken().next().is_none()
    }

    /// The claims that do not hold.
    pub fn broken(&self) -> impl Iterator<Item = &Claim> {
        self.witness.iter().filter(|claim| !claim.holds)
    }

    /// What was counted under a name; `None` where nobody counted it.
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.counters.get(name).copied()
    }

    /// The table of a name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}

/// Observations of one body, taken in one repetition of one arm in one process.
///
/// An observation is the time of one body that performs `ops` operations on `bytes` bytes.
/// Throughput times one body of a million operations, latency a million bodies of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Series {
    /// What was timed: `map`, `touch`, `release`, `fault`, `clear`, …
    pub name: String,
    /// The arm of the case that it belongs to.
    pub arm: String,
    /// Which fresh process of the case, from 0.
    #[serde(default)]
    pub process: u32,
    /// Which repetition inside the process, from 0; warm-up repetitions are not recorded.
    #[serde(default)]
    pub repetition: u32,
    /// What was read at both ends.
    pub clock: Clock,
    /// Unit of the values.
    pub unit: Unit,
    /// Operations that one observation covers.
    pub ops: u64,
    /// Bytes that one observation covers; 0 where bytes mean nothing.
    #[serde(default)]
    pub bytes: u64,
    /// The observations.
    #[serde(flatten)]
    pub data: Data,
}

impl Series {
    /// What one operation each took, of the first repetition of the first process.
    pub fn new(
        name: impl Into<String>,
        arm: impl Into<String>,
        clock: Clock,
        unit: Unit,
        data: impl Into<Data>,
    ) -> Self {
        let (name, arm, data) = (name.into(), arm.into(), data.into());
        Self { name, arm, process: 0, repetition: 0, clock, unit, ops: 1, bytes: 0, data }
    }
}

/// The observations of a series, in the form that was kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// Every observation, in order.
    Values(Vec<u64>),
    /// An `HdrHistogram` of them (V2 encoding, base64).
    Histogram(String),
    /// Only what somebody else kept of them.
    Summary(Summary),
}

impl Series {
    /// Whether its observations were timed one by one, and several of them.
    pub fn is_distribution(&self) -> bool {
        match &self.data {
            Data::Histogram(_) => true,
            Data::Values(values) => self.ops == 1 && values.len() > 1,
            Data::Summary(_) => false,
        }
    }
}

impl From<Vec<u64>> for Data {
    fn from(values: Vec<u64>) -> Self {
        Self::Values(values)
    }
}

/// What is left of a distribution whose observations are gone. Units are the series'.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Summary {
    /// Number of observations.
    pub n: u64,
    /// Smallest observation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// Median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<u64>,
    /// 95th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95: Option<u64>,
    /// Largest observation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

/// What was read at both ends of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Elapsed time by the time stamp counter, fenced, empty pair subtracted.
    Tsc,
    /// Elapsed time by `CLOCK_MONOTONIC_RAW`.
    Wall,
    /// CPU time of the measuring threads, `CLOCK_THREAD_CPUTIME_ID`, summed.
    Cpu,
    /// A script: every reading is a fixed step later. Exists so that whole runs can be tested.
    Scripted,
}

/// Unit of the values of a series or a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Ticks of the time stamp counter (not core cycles).
    Ticks,
    /// Bytes.
    Bytes,
    /// Pages of the size that the case names.
    Pages,
    /// A plain number.
    Count,
}

#[cfg(test)]
mod tests;
