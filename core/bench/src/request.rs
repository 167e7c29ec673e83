//! The child's half of a case: what it is asked, and what it answers.
//!
//! The one idea: parent and child are one binary, so their protocol is two types; whoever is not
//! that binary is refused. A program that is to be an arm is greeted first, and says whether it
//! knows each case as we do. The parent's half is [`crate::runner`].

use std::collections::BTreeMap;

use pagelab_record::{Case, Measured, Outcome, schema};
use pagelab_sys::process::child;
use serde::{Deserialize, Serialize};

use crate::{
    grid::complete,
    inputs::{Handed, Inputs},
    measure::{Method, measure},
    workload::{Error, Table, find},
};

/// The protocol between parent and child: of one binary, or of two that have greeted each other.
pub(crate) const PROTOCOL: u32 = 5;

/// What a child is asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    Measure(Box<Task>),
    Greet(Greeting),
}

/// Whether it can be an arm of a run; what is here and in [`Hello`] stays, whatever the protocol.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Greeting {
    pub(crate) protocol: u32,
    /// Workloads, and complete cases of them.
    pub(crate) cases: Vec<(String, Case)>,
}

/// Who it is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: String,
    pub(crate) protocol: u32,
    pub(crate) schema: String,
    /// Why it cannot, where it knows a case otherwise or not at all.
    pub(crate) refuses: Option<String>,
}

/// What a child is to measure.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
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
    /// Nothing: it lacks something that only it could look for, or it failed.
    Settled(Outcome),
}

/// The child's half: reads the request from stdin, measures, answers.
///
/// # Errors
/// A sentence for stderr when there is nobody to answer to.
pub fn case_main(table: Table) -> Result<(), String> {
    let request = child::request().map_err(|error| format!("stdin: {error}"))?;
    let request: Request =
        serde_json::from_slice(&request).map_err(|error| format!("request: {error}"))?;
    let task = match request {
        Request::Measure(task) => task,
        Request::Greet(greeting) => return answer(&hello(table, &greeting)),
    };
    if task.protocol != PROTOCOL {
        return Err(format!("request of protocol {}, not {PROTOCOL}", task.protocol));
    }
    child::volunteer_for_oom();
    child::abort_on_panic();
    let workload = find(table, &task.workload)?;
    let Task { case, method, process, handed, .. } = *task;
    let inputs = Inputs::take(handed)?;
    answer(&came(measure(workload, &case, &method, process, inputs)))
}

/// What came of a process's part of a case.
pub(crate) fn came(result: Result<(Measured, BTreeMap<String, u64>), Error>) -> Answer {
    match result {
        Ok((measured, constants)) => Answer::Measured { measured: Box::new(measured), constants },
        Err(Error::Lacks { need, cure }) => Answer::Settled(Outcome::Skipped { need, cure }),
        Err(error) => Answer::Settled(Outcome::Failed { reason: error.to_string() }),
    }
}

fn answer(what: &impl Serialize) -> Result<(), String> {
    let bytes = serde_json::to_vec(what).map_err(|error| error.to_string())?;
    child::answer(&bytes).map_err(|error| format!("answer: {error}"))
}

/// Who we are, and whether each case is to us what it is to whoever asks.
fn hello(table: Table, greeting: &Greeting) -> Hello {
    let differs = |(name, case): &(String, Case)| -> Option<String> {
        let known = find(table, name).and_then(|workload| {
            let pairs: Vec<(&str, &str)> =
                case.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            complete(workload, &pairs)
        });
        match known {
            Ok(known) if known == *case => None,
            Ok(known) => Some(format!("{name} {case} is {known} to it")),
            Err(why) => Some(why),
        }
    };
    // Of another protocol we cannot know what its cases say.
    let asked = (greeting.protocol == PROTOCOL).then_some(&greeting.cases);
    Hello {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: PROTOCOL,
        schema: schema::SCHEMA.to_owned(),
        refuses: asked.into_iter().flatten().find_map(differs),
    }
}
