//! What is left of a run that stopped: a finished case is never measured again.

use std::{collections::HashMap, path::Path, time::Duration};

use pagelab_bench::{
    measure::Method,
    plan::{self, Plan, Planned},
};
use pagelab_record::{Case, Record, RunHeader, journal::JournalError};
use pagelab_sys::{machine::environment, time::ClockChoice};

use crate::{exit::Failure, latest, lock, output, part, session};

/// A run to go on with; while another process writes it, it is waited for.
///
/// # Errors
/// When it is no run, is not to be trusted, or the other process does not end in time.
pub fn opened(directory: &Path, patience: Duration) -> Result<session::Run, Failure> {
    let writer = |failure: &Failure| match failure.error.downcast_ref() {
        Some(error @ JournalError::InUse { .. }) => Some(error.to_string()),
        _ => None,
    };
    lock::patiently(patience, || session::Run::resume(directory), writer)
}

/// The fact that names a kernel.
const KERNEL: &str = "kernel_release";

/// What is to be said where the machine was booted since a record was made. Each record says of
/// itself which boot and which kernel it is of.
fn other_boot(last: &Record) -> Option<String> {
    if last.boot == environment::boot_id() {
        return None;
    }
    let facts = environment::facts();
    let now = facts.iter().find(|fact| fact.key == KERNEL).and_then(|fact| fact.value.as_str());
    let then = last.host.identity.get(KERNEL).and_then(|value| value.as_str());
    Some(match then.zip(now) {
        Some((then, now)) if then != now => format!(
            "this is another boot, with kernel {now} in place of {then}: each record says which it \
             is of, and cases of the one are not to be set beside those of the other"
        ),
        _ => "this is another boot than that of the last record: each record says which it is of"
            .to_owned(),
    })
}

/// What has no record yet of the plan and of cases that are `besides` part of the run. The clock is
/// calibrated anew: the machine may have rebooted.
///
/// # Errors
/// Where this version cannot go on.
pub fn left(run: &session::Run, besides: Plan, clock: ClockChoice) -> Result<Plan, Failure> {
    let refused = |why| usage!("{}: {why}", run.directory().display());
    let (plan, all) = remaining(&run.header, &run.records, besides, clock).map_err(refused)?;
    if let Some(change) = run.records.last().and_then(other_boot) {
        output::warn(&change);
    }
    let left = plan.cases.len();
    output::warn(&format!("{done} of {all} cases are done, {left} are left", done = all - left));
    Ok(plan)
}

/// What has no record yet, and of how many cases in all.
///
/// # Errors
/// A sentence that says what this version cannot go on with.
pub fn remaining(
    header: &RunHeader,
    records: &[Record],
    besides: Plan,
    clock: ClockChoice,
) -> Result<(Plan, usize), String> {
    let methods: Vec<Method> = serde_json::from_value(header.method.clone())
        .map_err(|error| format!("the header's method: {error}"))?;
    if methods.len() != header.plan.len() {
        return Err("the header's method and plan differ in length".to_owned());
    }
    // By the last record of each: one of a turn may hold some of its processes only.
    let done: HashMap<(&str, &Case), Option<u64>> = records
        .iter()
        .map(|record| ((record.workload.as_str(), &record.case), latest::processes(record)))
        .collect();
    let is_done = |workload: &str, case: &Case, method: &Method| {
        let processes = done.get(&(workload, case));
        let is_whole = |count: &Option<u64>| count.is_none_or(|n| n >= u64::from(method.forks));
        processes.is_some_and(|count| method.turns == 1 || is_whole(count))
    };
    let mut plan = Plan::default();
    for ((workload, case), method) in header.plan.iter().zip(methods) {
        if is_done(workload, case, &method) {
            continue;
        }
        plan.cases.push(plan::again(part::workloads(), workload, case, method, clock)?);
    }
    let all = header.plan.len() + besides.cases.len();
    let is_left =
        |planned: &Planned| !is_done(planned.workload.name(), &planned.case, &planned.method);
    plan.cases.extend(besides.cases.into_iter().filter(is_left));
    Ok((plan, all))
}
