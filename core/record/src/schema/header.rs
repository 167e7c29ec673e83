//! The first line of a journal.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Case;
#[cfg(doc)]
use super::RUN_SCHEMA;
use crate::asked::Asked;

/// The first line of a journal: what the run set out to do, so that it can be resumed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunHeader {
    /// Always [`RUN_SCHEMA`].
    pub schema: String,
    /// The run's name.
    pub run: String,
    /// When it was started, as `2026-11-21T02:00:00Z`; empty where nobody said.
    #[serde(default)]
    pub started: String,
    /// Version of pagelab that wrote it.
    pub pagelab: String,
    /// What the command asked beyond its cases, for the part of the report that answers it; null
    /// for a run that only measures.
    #[serde(default, deserialize_with = "Asked::known", skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// The suite, or empty for a grid given on the command line.
    #[serde(default)]
    pub suite: String,
    /// Names of the published results that belong beside this run.
    #[serde(default)]
    pub published: Vec<String>,
    /// The command line, for people.
    #[serde(default)]
    pub command: Vec<String>,
    /// How the loop was told to measure, as the loop reads it.
    #[serde(default)]
    pub method: Value,
    /// The planned cases, in order.
    pub plan: Vec<(String, Case)>,
}
