//! A plan that is measured in turns: some processes of every case, then some more of every case.
//!
//! A machine drifts, and a neighbour comes for some seconds. Processes of one case that lie apart
//! in time share that with all others, so that two runs differ by less. Records come in the last
//! turn; an interrupt keeps what each case has so far, and `resume` goes on with that.

use pagelab_bench::{
    partial::Partial,
    plan::{Plan, Planned},
    runner::{Came, Runner},
};
use pagelab_record::{Outcome, Record, vocabulary::counter::PROCESSES};
use pagelab_sys::{
    machine::environment,
    process::{catch_interrupts, interrupted},
};

use crate::{
    exit::{Exit, Failure},
    progress::{self, Progress},
    session::Run,
};

/// Runs the cases of a plan; those of which a record of this boot holds some processes go on with
/// the next. What a case needs made is kept until the end.
///
/// # Errors
/// When a process cannot be started or a record cannot be kept.
pub(crate) fn measure(
    run: &mut Run,
    runner: &Runner,
    plan: &Plan,
    quiet: bool,
) -> Result<Exit, Failure> {
    catch_interrupts();
    let mut progress = Progress::start(plan, quiet);
    // None where nothing is left to measure.
    let begun = |planned: &Planned| Some(begun(&run.records, planned));
    let mut partials: Vec<Option<Partial>> = plan.cases.iter().map(begun).collect();
    let turns = plan.cases.iter().map(|planned| planned.method.turns).max().unwrap_or(1);
    let cases = plan.cases.iter().enumerate();
    for (turn, (index, planned)) in
        (1..=turns).flat_map(|turn| cases.clone().map(move |c| (turn, c)))
    {
        let Some(partial) = &mut partials[index] else { continue };
        let first = u32::try_from(partial.processes()).unwrap_or(u32::MAX);
        let (due, forks) = (due(planned, turn), planned.method.forks);
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
                keep_begun(run, runner, plan, partials)?;
                return Ok(Exit::Interrupted);
            }
        };
        partials[index] = None;
        let outcome = progress::outcome(&record);
        run.keep(record)?;
        progress.part(planned, first..forks);
        progress.case(index, planned, &outcome);
    }
    progress.finish();
    Ok(Exit::Good)
}

/// Keeps what was measured of cases that have not come to their end: `resume` goes on with them.
fn keep_begun(
    run: &mut Run,
    runner: &Runner,
    plan: &Plan,
    partials: Vec<Option<Partial>>,
) -> Result<(), Failure> {
    for (planned, partial) in plan.cases.iter().zip(partials) {
        let partial = partial.unwrap_or_default();
        if partial.processes() > 0 {
            run.keep(runner.conclude(planned, partial))?;
        }
    }
    Ok(())
}

/// How many processes of a case are done at the end of a turn.
fn due(planned: &Planned, turn: u32) -> u32 {
    let (forks, turns) = (planned.method.forks, planned.method.turns.max(1));
    let due = u64::from(forks) * u64::from(turn.min(turns)) / u64::from(turns);
    u32::try_from(due).unwrap_or(forks)
}

/// What processes of a case measured before, on this boot.
fn begun(records: &[Record], planned: &Planned) -> Partial {
    let is_same = |record: &&Record| {
        (record.workload.as_str(), &record.case) == (planned.workload.name(), &planned.case)
    };
    let last = records.iter().rev().find(is_same);
    match last.filter(|record| record.boot == environment::boot_id()).map(|r| &r.outcome) {
        Some(Outcome::Measured(measured)) => Partial::of(measured.clone()),
        _ => Partial::default(),
    }
}

/// How many processes a record holds, where it was measured.
pub(crate) fn processes(record: &Record) -> Option<u64> {
    match &record.outcome {
        Outcome::Measured(measured) => measured.counters.get(PROCESSES).copied(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_take_all_processes_and_none_twice() {
        let suite = "name = 'x'\nsummary = 'x'\n[[case]]\nworkload = 'limit/timer'";
        for (forks, turns) in [(8, 4), (8, 1), (3, 2), (1, 4), (5, 9)] {
            let text = format!("{suite}\nforks = {forks}\nturns = {turns}");
            let known = pagelab_bench::suite::Known {
                workloads: pagelab_workloads::WORKLOADS,
                published: &[],
            };
            let suite = pagelab_bench::suite::parse(&text, known).unwrap();
            let clock = pagelab_sys::time::ClockChoice::Raw;
            let plan = pagelab_bench::plan::of_suite(&suite, clock, Default::default()).unwrap();
            let ends: Vec<u32> = (1..=turns).map(|turn| due(&plan.cases[0], turn)).collect();
            assert!(ends.is_sorted() && ends.last() == Some(&forks), "{ends:?}");
        }
    }
}
