//! The steps of an experiment: a first run, a watched one, the screen, the finals, and the prices
//! of faults where the budget has time for them.
//!
//! Whatever ends it, the records so far are kept.

use std::{fs::File, rc::Rc, time::Duration};

use crate::ladder::{
    climb::{Climb, Ended, Step},
    once::Around,
    streams::Streams,
};
use anyhow::Context;
use pagelab_record::asked::Try;
use pagelab_sys::knobs::Knobs;

use super::{Subject, names, prediction, told::say};
use pagelab_cli::{
    exit::{Exit, Failure},
    output, session,
};

/// What ends the way before its end.
enum Halt {
    Ended(Ended),
    Failed(Failure),
}

impl From<Ended> for Halt {
    fn from(ended: Ended) -> Self {
        Self::Ended(ended)
    }
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Goes up the ladder, and keeps what was seen on the way.
pub(super) fn up(
    run: &mut session::Run,
    (program, offers, input): Subject,
    knobs: Option<&Rc<Knobs>>,
    asked: &Try,
    around: Around,
    conduct: (Duration, bool),
) -> Result<Exit, Failure> {
    let mut ready = Vec::new();
    for offer in offers {
        let files = names(&offer.rung.name).map(|name| {
            let made = run.scratch(&name);
            made.context(name).map_err(Failure::host)
        });
        let [output, complaints, client] = files;
        let input = input.as_ref().map(File::try_clone).transpose();
        let streams = Streams {
            input: input.context("stdin").map_err(Failure::host)?,
            output: output?,
            complaints: complaints?,
            client: client?,
        };
        ready.push((offer, streams));
    }
    let climb = Climb::new(program, ready, knobs.map(|knobs| &**knobs), asked, around);
    let climb = climb.context("its minder").map_err(Failure::internal)?;
    let Some(mut climb) = climb.restored(&run.records) else {
        let why = "the machine was booted since: no round of this boot goes beside those before";
        return Err(usage!("{why}; start again with pagelab try"));
    };
    match all_of_it(run, &mut climb, knobs, asked, conduct) {
        Ok(()) => Ok(Exit::Good),
        Err(Halt::Failed(failure)) => Err(failure),
        Err(Halt::Ended(ended @ (Ended::Interrupted | Ended::Unguarded(_)))) => {
            if matches!(ended, Ended::Unguarded(_)) {
                output::warn(&format!("interrupted: {ended}"));
            }
            keep(run, &climb)?;
            Ok(Exit::Interrupted)
        }
        Err(Halt::Ended(error @ Ended::Memory(_))) => Err(Failure::host(error)),
        Err(Halt::Ended(error @ Ended::Program(_))) => Err(Failure::usage(error)),
    }
}

fn all_of_it(
    run: &mut session::Run,
    climb: &mut Climb<'_>,
    knobs: Option<&Rc<Knobs>>,
    asked: &Try,
    conduct: (Duration, bool),
) -> Result<(), Halt> {
    let (_, quiet) = conduct;
    let mut tell = |step: Step<'_>| {
        if !quiet {
            say(&step, asked.rounds);
        }
    };
    climb.probe(&mut tell)?;
    go_on(prediction::watch(run, climb, quiet)?)?;
    if climb.fits() {
        go_on(prediction::price(run, climb, knobs, conduct)?)?;
        prediction::fit(run, climb, quiet)?;
    }
    climb.rank(&run.records);
    climb.screen(&mut tell, &mut |climb| keep(run, climb))??;
    // Nobody waits for prices who set a budget: the verdict comes first.
    let is_limited = asked.budget_ns.is_some();
    if !is_limited {
        go_on(prediction::price(run, climb, knobs, conduct)?)?;
    }
    climb.decide(asked.budget_ns, &mut tell, &mut |climb| keep(run, climb))??;
    if is_limited {
        go_on(prediction::price(run, climb, knobs, conduct)?)?;
    }
    Ok(())
}

/// Keeps what each rung has come to.
fn keep(run: &mut session::Run, climb: &Climb<'_>) -> Result<(), Failure> {
    let name = run.header.run.clone();
    climb.records(&name).into_iter().try_for_each(|record| run.keep(record))
}

/// A price that failed is for the report to say; only the user ends the way.
fn go_on(end: Exit) -> Result<(), Halt> {
    if end == Exit::Interrupted { Err(Ended::Interrupted.into()) } else { Ok(()) }
}
