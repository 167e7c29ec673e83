//! Of which machine a record is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::vocabulary::fact::HOST_NAME;

/// The facts of a machine, in three classes that comparison treats apart.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Host {
    /// What the machine is: CPU, memory, kernel. A difference means another machine.
    pub identity: BTreeMap<String, Value>,
    /// How it is set up: THP, governor, mitigations. A difference may explain a result.
    pub settings: BTreeMap<String, Value>,
    /// What it happened to be doing: load, steal, free memory. Differences are normal.
    pub volatile: BTreeMap<String, Value>,
}

impl Host {
    /// The name that it goes by, where a record says it; it is no part of what the machine is.
    pub fn name(&self) -> Option<&str> {
        self.volatile.get(HOST_NAME).and_then(Value::as_str)
    }
}
