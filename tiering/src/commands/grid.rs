//! Simulations on all processors.
//!
//! The one idea: a simulation is a function of its case, so that many at once are as good as one
//! after the other. Each thread runs cases in processes of their own as every run does; records go
//! into the journal in the order of the plan, so that two runs of one grid leave the same journal.

use std::{
    collections::BTreeMap,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use pagelab_bench::{
    plan::Plan,
    runner::{Attempt, Runner},
};
use pagelab_record::Record;
use pagelab_sys::process::{catch_interrupts, interrupted};

use pagelab_cli::{
    exit::{Exit, Failure},
    progress::{self, Progress},
    session::Run,
    settings,
};

/// What came of a case, from the thread that ran it.
type News = (usize, Result<Attempt, Failure>);

/// Simulates every case of a plan into a journal.
///
/// # Errors
/// When a process cannot be started or a record cannot be kept.
pub(super) fn simulate(run: &mut Run, plan: &Plan, quiet: bool) -> Result<Exit, Failure> {
    catch_interrupts();
    let threads = thread::available_parallelism().map_or(1, usize::from).min(plan.cases.len());
    let mut progress = Progress::start(plan, quiet);
    let next = AtomicUsize::new(0);
    let (tell, news) = mpsc::channel::<News>();
    let name = &run.header.run.clone();
    let mut kept = Kept { run, waiting: BTreeMap::new() };
    let end = thread::scope(|scope| {
        for _ in 0..threads {
            let (tell, next) = (tell.clone(), &next);
            scope.spawn(move || {
                // A runner of its own; a simulation needs no knob that they could fight over.
                match settings::runner(name, &[], Duration::ZERO) {
                    Ok(runner) => work(&runner, plan, next, &tell),
                    Err(failure) => drop(tell.send((0, Err(failure)))),
                }
            });
        }
        drop(tell);
        let mut end = Exit::Good;
        for (index, attempt) in news {
            match attempt {
                Ok(Attempt::Done(record)) => {
                    let outcome = progress::outcome(&record);
                    kept.keep(index, *record)?;
                    progress.case(index, &plan.cases[index], &outcome);
                }
                Ok(Attempt::Interrupted) => end = Exit::Interrupted,
                Err(failure) => {
                    // The others stop at their next case.
                    next.store(plan.cases.len(), Ordering::Relaxed);
                    return Err(failure);
                }
            }
        }
        Ok(end)
    });
    progress.finish();
    let end = end?;
    kept.flush()?;
    Ok(end)
}

/// One thread: takes the next case until there is none.
fn work(runner: &Runner, plan: &Plan, next: &AtomicUsize, tell: &mpsc::Sender<News>) {
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(planned) = plan.cases.get(index) else { return };
        let attempt = if interrupted() {
            Ok(Attempt::Interrupted)
        } else {
            runner.run(planned, &mut |_| ()).map_err(Failure::internal)
        };
        if tell.send((index, attempt)).is_err() {
            return;
        }
    }
}

/// Records in the order of the plan.
struct Kept<'r> {
    run: &'r mut Run,
    waiting: BTreeMap<usize, Record>,
}

impl Kept<'_> {
    /// Keeps a record as soon as all before it are kept.
    fn keep(&mut self, index: usize, record: Record) -> Result<(), Failure> {
        self.waiting.insert(index, record);
        while let Some(record) = self.waiting.remove(&self.run.records.len()) {
            self.run.keep(record)?;
        }
        Ok(())
    }

    /// After an interrupt some are missing: what is done is kept all the same.
    fn flush(&mut self) -> Result<(), Failure> {
        for record in std::mem::take(&mut self.waiting).into_values() {
            self.run.keep(record)?;
        }
        Ok(())
    }
}
