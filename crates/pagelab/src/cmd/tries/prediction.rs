//! What `explain` predicts of a program that is tried.
//!
//! One run of it is watched before any round, and what its faults cost here is measured behind the
//! screen, whose answer nobody is to wait for longer; what follows from the two is for the report
//! to say, beside what came. Mappings are chosen by both, so then both come first.

use std::{rc::Rc, time::Duration};

use pagelab_advisor::{
    explain::{self, prices},
    fit,
    ladder::climb::{Climb, Ended},
};
use pagelab_bench::plan::Planned;
use pagelab_record::{Asked, Outcome, Record};
use pagelab_sys::{knobs::Knobs, time::ClockChoice};

use crate::{
    cmd::explain::priced,
    exit::{Exit, Failure},
    output, session, settings,
};

/// Adds the watched run to a run, as far as it is not there.
///
/// # Errors
/// When a record cannot be kept.
pub(super) fn watch(
    run: &mut session::Run,
    climb: &mut Climb<'_>,
    quiet: bool,
) -> Result<Exit, Failure> {
    let is_there = run.records.iter().any(|record| record.workload == explain::WORKLOAD);
    if is_there || !predicts(run) {
        return Ok(Exit::Good);
    }
    say("[watched run] for what explain predicts; it counts for nothing", quiet);
    match climb.watched(&run.header.run) {
        Ok(records) => {
            records.first().into_iter().for_each(|record| say_missing(record, quiet));
            records.into_iter().try_for_each(|record| run.keep(record))?;
            Ok(Exit::Good)
        }
        Err(Ended::Interrupted) => Ok(Exit::Interrupted),
        Err(ended) => Err(Failure::internal(ended)),
    }
}

/// Adds what such faults and walks cost here, as far as it is not there.
///
/// # Errors
/// When a record cannot be kept or a process not be started.
pub(super) fn price(
    run: &mut session::Run,
    knobs: Option<&Rc<Knobs>>,
    (patience, quiet): (Duration, bool),
) -> Result<Exit, Failure> {
    if !predicts(run) {
        return Ok(Exit::Good);
    }
    let clock = ClockChoice::of_this_machine();
    let mut plan = prices::of_run(&run.header, &run.records, clock);
    // What a run that stopped had measured stays.
    let is_done = |planned: &Planned| {
        let is_it = |record: &&Record| {
            record.workload == planned.workload.name() && record.case == *planned.case
        };
        run.records.iter().any(|record| is_it(&record))
    };
    plan.cases.retain(|planned| !is_done(planned));
    let mut runner = settings::plain_runner(&run.header.run);
    match knobs {
        Some(knobs) => runner.share_knobs(Rc::clone(knobs)),
        None => runner = settings::pricing_runner(&run.header.run, &plan.cases, patience)?,
    }
    priced(run, &runner, &plan, clock, quiet)
}

fn predicts(run: &session::Run) -> bool {
    matches!(&run.header.asked, Some(Asked::Try(tried)) if tried.predicts)
}

fn say(text: &str, quiet: bool) {
    if !quiet {
        output::warn(text);
    }
}

/// Chooses mappings by what was seen and what it costs, and keeps the choice.
pub(super) fn fit(
    run: &mut session::Run,
    climb: &mut Climb<'_>,
    quiet: bool,
) -> Result<(), Failure> {
    let units = run.records.iter().rfind(|record| record.workload == fit::WORKLOAD);
    let chosen = match units {
        Some(units) => fit::record::chosen(units, &run.records),
        None => Err("the watched run, which says what its mappings would gain".to_owned()),
    };
    climb.fit(chosen.as_ref().map_err(String::as_str));
    match chosen {
        Ok(chosen) => run.keep(chosen),
        Err(why) => {
            say(&format!("no mapping is chosen, for want of {why}"), quiet);
            Ok(())
        }
    }
}

/// Says why nothing will be predicted, where that is so.
fn say_missing(record: &Record, quiet: bool) {
    match &record.outcome {
        Outcome::Skipped { need, cure } => {
            say(&format!("no prediction: it needs {need} ({cure})"), quiet);
        }
        Outcome::Failed { reason } => say(&format!("no prediction: {reason}"), quiet),
        Outcome::Measured(_) => (),
    }
}
