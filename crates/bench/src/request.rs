//! The child's half of a case: what it is asked, and what it answers.
//!
//! The one idea: parent and child are one binary, so their protocol is two types; whoever is not
//! that binary is refused. The parent's half is [`crate::runner`].

use std::collections::BTreeMap;

use pagelab_record::{Case, Measured};
use pagelab_sys::process::child;
use serde::{Deserialize, Serialize};

use crate::{
    inputs::{Handed, Inputs},
    measure::{Method, measure},
    workload::{Table, find},
};

/// The protocol between parent and child; they are one binary, so a difference is a mistake.
pub(crate) const PROTOCOL: u32 = 3;

/// What a child is to measure.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) protocol: u32,
    pub(crate) workload: String,
    pub(crate) case: Case,
    pub(crate) method: Method,
    pub(crate) process: u32,
    pub(crate) handed: Handed,
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Measured {
        measured: Box<Measured>,
        /// Counters that do not add up over processes.
        constants: BTreeMap<String, u64>,
    },
    Failed(String),
}

/// The child's half: reads the request from stdin, measures, answers.
///
/// # Errors
/// A sentence for stderr when there is nobody to answer to.
pub fn case_main(table: Table) -> Result<(), String> {
    let request = child::request().map_err(|error| format!("stdin: {error}"))?;
    let request: Request =
        serde_json::from_slice(&request).map_err(|error| format!("request: {error}"))?;
    if request.protocol != PROTOCOL {
        return Err(format!("request of protocol {}, not {PROTOCOL}", request.protocol));
    }
    child::volunteer_for_oom();
    child::abort_on_panic();
    let workload = find(table, &request.workload)?;
    let Request { case, method, process, handed, .. } = request;
    let inputs = Inputs::take(handed)?;
    let answer = match measure(workload, &case, &method, process, &inputs) {
        Ok((measured, constants)) => Answer::Measured { measured: Box::new(measured), constants },
        Err(error) => Answer::Failed(error.to_string()),
    };
    let bytes = serde_json::to_vec(&answer).map_err(|error| error.to_string())?;
    child::answer(&bytes).map_err(|error| format!("answer: {error}"))
}
