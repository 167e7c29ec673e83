//! The loop over the cases of a plan: some processes of every case, then some more of every case.
//!
//! A machine drifts, and a neighbour comes for some seconds. Processes of one case that lie apart
//! in time share that with all others, so that two runs differ by less. Records come in the last
//! turn; most plans have one, which takes all processes of a case one after the other.

use std::collections::HashMap;

use pagelab_bench::{
    inputs::Supplied,
    partial::Partial,
    plan::{Plan, Planned},
    runner::{Came, Runner},
};
use pagelab_record::{Outcome, Record};
use pagelab_sys::{
    machine::environment,
    process::{catch_interrupts, interrupted},
};

use crate::{
    exit::{Exit, Failure},
    progress::{self, Progress},
    settings,
};

/// Runs the cases of a plan and hands every record to `keep`, which must not lose it. `before` has
/// what was measured of each case before. Returns how it ended and, after an interrupt, a record of
/// each case that has some of its processes.
///
/// # Errors
/// When a process cannot be started or a record cannot be kept.
pub(crate) fn measure(
    runner: &Runner,
    plan: &Plan,
    before: &dyn Fn(&Planned) -> Partial,
    quiet: bool,
    keep: &mut dyn FnMut(Record) -> Result<(), Failure>,
) -> Result<(Exit, Vec<Record>), Failure> {
    catch_interrupts();
    let mut progress = Progress::start(plan, quiet);
    // None where nothing is left to measure.
    let mut partials: Vec<_> = plan.cases.iter().map(|planned| Some(before(planned))).collect();
    let turns = plan.cases.iter().map(|planned| planned.method.turns).max().unwrap_or(1);
    let cases = plan.cases.iter().enumerate();
    // What was made for a case is kept until the last one that needs it.
    let last_need: HashMap<Supplied, usize> =
        cases.clone().filter_map(|(index, planned)| Some((planned.supply()?, index))).collect();
    for (turn, (index, planned)) in
        (1..=turns).flat_map(|turn| cases.clone().map(move |c| (turn, c)))
    {
        let is_needed = |last: &usize| turn < turns || *last >= index;
        runner.keep_supplies(|supply| last_need.get(supply).is_some_and(is_needed));
        let Some(partial) = &mut partials[index] else { continue };
        let first = u32::try_from(partial.processes()).unwrap_or(u32::MAX);
        let (forks, turns_of) = (planned.method.forks, planned.method.turns);
        let due = due(forks, turns_of, turn);
        if first >= due {
            continue;
        }
        progress.begin(first);
        let came = if interrupted() {
            Came::Interrupted
        } else {
            let step = &mut |step| progress.step(planned, step);
            runner.processes(planned, first..due, step).map_err(Failure::internal)?
        };
        let record = match came {
            Came::Answered(more) => {
                partial.join(*more);
                if due < forks {
                    progress.part(planned, first..due);
                    continue;
                }
                runner.conclude(planned, std::mem::take(partial))
            }
            Came::Settled(outcome) => runner.record(planned, outcome),
            Came::Interrupted => {
                progress.finish();
                settings::warn_of_lost(runner);
                let begun = plan.cases.iter().zip(partials);
                let begun = begun.filter_map(|(planned, partial)| {
                    // What a record holds already is not kept twice.
                    let is_more = |more: &Partial| more.processes() > before(planned).processes();
                    let partial = partial.filter(is_more)?;
                    Some(runner.conclude(planned, partial))
                });
                return Ok((Exit::Interrupted, begun.collect()));
            }
        };
        partials[index] = None;
        let outcome = progress::outcome(&record);
        keep(record)?;
        progress.part(planned, first..forks);
        progress.case(index, planned, &outcome);
    }
    progress.finish();
    Ok((Exit::Good, Vec::new()))
}

/// How many processes of a case are done at the end of a turn.
fn due(forks: u32, turns: u32, turn: u32) -> u32 {
    let turns = turns.max(1);
    let due = u64::from(forks) * u64::from(turn.min(turns)) / u64::from(turns);
    u32::try_from(due).unwrap_or(forks)
}

/// What processes of a case measured before, on this boot, by the records of a run.
pub(crate) fn begun(records: &[Record], planned: &Planned) -> Partial {
    let is_same = |record: &&Record| {
        (record.workload.as_str(), &record.case) == (planned.workload.name(), &planned.case)
    };
    let last = records.iter().rev().find(is_same);
    match last.filter(|record| record.boot == environment::boot_id()).map(|r| &r.outcome) {
        Some(Outcome::Measured(measured)) => {
            let partial = Partial::of(measured.clone());
            // One that is whole is measured again.
            let forks = u64::from(planned.method.forks);
            if partial.processes() < forks { partial } else { Partial::default() }
        }
        _ => Partial::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_take_all_processes_and_none_twice() {
        for (forks, turns) in [(8, 4), (8, 1), (3, 2), (1, 4), (5, 9)] {
            let ends: Vec<u32> = (1..=turns).map(|turn| due(forks, turns, turn)).collect();
            assert!(ends.is_sorted() && ends.last() == Some(&forks), "{ends:?}");
        }
    }
}
