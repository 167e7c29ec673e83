//! `pagelab try --pid`: a process that runs already, before and after its memory was collapsed.

use std::fs::File;

use crate::ladder::{
    attached::{Attached, Lost, Step},
    rungs,
};
use anyhow::Context;
use pagelab_bench::plan::Plan;
use pagelab_record::{Asked, asked, units::display_bytes};
use pagelab_sys::process::{catch_interrupts, tree};

use super::{Rounds, Try};
use pagelab_cli::{
    exit::{Exit, Failure},
    output, session,
};

/// Loads before, and as many after, where nobody says.
const ROUNDS: Rounds = Rounds::of(12);

/// Tries it, and leaves it running.
pub(super) fn run(tried: &Try, pid: u32) -> Result<Exit, Failure> {
    let lacks = |need: &str, cure: &str| host!("this host lacks {need}: {cure}");
    let Some(offers) = rungs::beside() else {
        return Err(lacks("huge pages", "a kernel with CONFIG_TRANSPARENT_HUGEPAGE"));
    };
    if let Some(lack) = offers.iter().find_map(|offer| offer.rung.lacks.first()) {
        return Err(lacks(&lack.need, &lack.cure));
    }
    let rounds = tried.rounds.unwrap_or(ROUNDS).get();
    let asked = tried.asked(&offers);
    let asked = asked::Try { rounds, seed: 0, predicts: false, pid: Some(pid), ..asked };
    let client = tried.until.clone().unwrap_or_default();
    let attached = Attached::to(pid, offers, client, tried.score.clone());
    let mut attached = attached.with_context(|| format!("--pid {pid}")).map_err(Failure::usage)?;
    let place = tried.output.place();
    let mut header = session::header(&place.run, "", &[], &Plan::default());
    header.asked = Some(Asked::Try(asked));
    let mut run = session::Run::start(&place, header)?;
    let mut said = run.scratch("client").context("client").map_err(Failure::host)?;
    catch_interrupts();
    tree::adopt_orphans();
    let end = attend(&mut attached, &mut run, rounds, &mut said, tried.quiet.quiet)?;
    let done = run.conclude(end)?;
    tried.tell(&done)
}

/// Goes all the way, and keeps what was seen, whatever ended it.
fn attend(
    attached: &mut Attached,
    run: &mut session::Run,
    rounds: u32,
    said: &mut File,
    quiet: bool,
) -> Result<Exit, Failure> {
    let mut tell = |step: Step<'_>| {
        if !quiet {
            say(&step, rounds);
        }
    };
    let came = attached.all(rounds, said, &mut tell);
    let name = run.header.run.clone();
    attached.records(&name).into_iter().try_for_each(|record| run.keep(record))?;
    match came {
        Ok(()) => Ok(Exit::Good),
        Err(Lost::Interrupted) => Ok(Exit::Interrupted),
        Err(lost) => Err(Failure::usage(lost)),
    }
}

fn say(step: &Step<'_>, rounds: u32) {
    let seconds = |ns: u64| ns as f64 / 1e9;
    output::warn(&match step {
        Step::Ran(rung, round, ns) => {
            format!("[{rung}: {} of {rounds}] {:.2} s", round + 1, seconds(*ns))
        }
        Step::Collapsed(bytes, ns) => format!(
            "{} more are in huge pages, which took {:.2} s",
            display_bytes(*bytes as f64),
            seconds(*ns)
        ),
    });
}
