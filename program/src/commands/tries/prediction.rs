//! What `explain` predicts of a program that is tried.
//!
//! One run is traced before the rounds. What its faults cost here is measured after the screen, or
//! with a budget after the verdict; the report compares the two with what was measured. `--fit`
//! chooses mappings by both, so both come first there. A budget that has no time for one of them
//! leaves it out and says so.

use std::{rc::Rc, time::Duration};

use crate::{
    commands::explain::priced,
    explain::{self, prices},
    fit,
    ladder::climb::{Climb, Ended},
};
use pagelab_bench::plan::Planned;
use pagelab_record::{Asked, Outcome, Record, units::display_ns};
use pagelab_sys::{knobs::Knobs, time::ClockChoice};

use pagelab_cli::{
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
    if !climb.has_time(climb.watched_ns()) {
        say("[watched run] left out: the budget has no time for it", quiet);
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
    climb: &Climb<'_>,
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
    let expected_ns = plan.cases.len() as u64 * PRICE_NS;
    if !climb.has_time(expected_ns) {
        let time = display_ns(expected_ns as f64);
        say(&format!("no prediction: the budget has no time for its prices (about {time})"), quiet);
        return Ok(Exit::Good);
    }
    let mut runner = settings::plain_runner(&run.header.run);
    match knobs {
        Some(knobs) => runner.share_knobs(Rc::clone(knobs)),
        None => runner = settings::pricing_runner(&run.header.run, &plan.cases, patience)?,
    }
    priced(run, &runner, &plan, clock, quiet)
}

/// What one price takes: three processes of a tenth of a second, their start and their checks;
/// 0.6 s on two slow processors.
const PRICE_NS: u64 = 1_000_000_000;

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
