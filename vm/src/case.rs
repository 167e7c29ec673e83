//! What a case is: a row of `vm/cases.toml`, which says what its words mean.
//!
//! The one idea: whoever boots the kernels reads the same table and needs to know nothing about
//! tests; a guest needs to know nothing about boots.

use serde::{Deserialize, Serialize};

/// A row of the table.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Case {
    /// `topic/fact`.
    pub(crate) name: String,
    /// What it shows, as a sentence.
    pub(crate) about: String,
    /// Whether `guest run` may run it on the host that it is called on.
    #[serde(default)]
    pub(crate) native: bool,
    /// What only the lane reads.
    #[serde(flatten)]
    boot: toml::Table,
}
