//! `pagelab resume`: go on where a run stopped; a finished case is never measured again.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use pagelab_bench::{
    measure::Method,
    plan::{self, Plan},
};
use pagelab_program::explain;
use pagelab_record::{Arm, Asked, Case, Record, RunHeader, journal::JournalError};
use pagelab_sys::{machine::environment, time::ClockChoice};

use crate::{
    args::{Conduct, Run},
    exit::{Exit, Failure},
    history, latest, lock, output, part, session, settings,
};

/// Continue a run after a crash, an interrupt or a reboot.
#[derive(Debug, Args)]
pub(super) struct Resume {
    /// A run: its directory, a tag, or LAST.
    run: PathBuf,
    /// Name the arms of a run of two again, where they are more than parameters.
    #[arg(long, num_args = 2, value_names = ["A", "B"], value_parser = super::ab::arm)]
    ab: Option<Vec<Arm>>,
    #[command(flatten)]
    conduct: Conduct,
}

impl Run for Resume {
    /// Measures the planned cases that left no record, then reports the whole run.
    fn run(self) -> Result<Exit, Failure> {
        let clock = self.conduct.clock.choice();
        let directory = history::find(&self.run)?;
        let directory = directory.as_path();
        let directory = if directory.is_file() {
            directory.parent().unwrap_or(Path::new("."))
        } else {
            directory
        };
        let mut run = opened(directory, self.conduct.wait.patience())?;
        if let Some(Asked::Ab(ab)) = run.header.asked.clone() {
            let named = super::ab::named_again(&ab, self.ab.as_deref());
            // All of the plan: what is done of each cell is told by its blocks.
            let plan = named.and_then(|()| remaining(&run.header, &[], clock));
            let (mut plan, _) = plan.map_err(|why| usage!("{}: {why}", directory.display()))?;
            plan.cases = super::ab::of_arms(plan.cases, &ab.arms);
            let patience = self.conduct.wait.patience();
            let runner = super::ab::runner(&run.header.run, &plan, &ab, patience)?;
            return super::ab::execute(runner, run, &plan, self.conduct.quiet.quiet);
        }
        if let Some(Asked::Try(tried)) = run.header.asked.clone() {
            let conduct = (self.conduct.wait.patience(), self.conduct.quiet.quiet);
            return super::tries::resume(run, &tried, conduct);
        }
        if self.ab.is_some() {
            let why = "is no run of two arms: leave --ab out";
            return Err(usage!("{} {why}", directory.display()));
        }
        let (plan, all) = remaining(&run.header, &run.records, clock)
            .map_err(|why| usage!("{}: {why}", directory.display()))?;
        let left = plan.cases.len();
        if let Some(change) = run.records.last().and_then(other_boot) {
            output::warn(&change);
        }
        output::warn(&format!(
            "{done} of {all} cases are done, {left} are left",
            done = all - left
        ));
        if run.header.asked == explain::prices::asked(true) {
            let end = super::explain::measure_prices(&mut run, &plan, clock, &self.conduct)?;
            return session::tell(&run.conclude(end)?);
        }
        let runner = settings::runner(&run.header.run, &plan.cases, self.conduct.wait.patience())?;
        session::execute(runner, run, &plan, self.conduct.quiet.quiet)
    }
}

/// A run to go on with; while another process writes it, it is waited for.
///
/// # Errors
/// When it is no run, is not to be trusted, or the other process does not end in time.
pub(super) fn opened(directory: &Path, patience: Duration) -> Result<session::Run, Failure> {
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

/// What of the plan has no record yet, and of how many cases in all. The clock is calibrated anew:
/// the machine may have rebooted.
///
/// # Errors
/// A sentence that says what this version cannot go on with.
fn remaining(
    header: &RunHeader,
    records: &[Record],
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
        if workload == explain::WORKLOAD {
            let why = "the program was not watched to an end: start again with pagelab explain";
            return Err(why.to_owned());
        }
        plan.cases.push(plan::again(part::workloads(), workload, case, method, clock)?);
    }
    // What prices the faults of a program is no part of the header: it follows from what was seen.
    let mut prices = explain::prices::of_run(header, records, clock).cases;
    let all = header.plan.len() + prices.len();
    prices.retain(|planned| !is_done(planned.workload.name(), &planned.case, &planned.method));
    plan.cases.extend(prices);
    Ok((plan, all))
}
