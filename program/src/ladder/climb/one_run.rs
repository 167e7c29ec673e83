//! One run of the program on a variant, as one round of an experiment counts it.
//!
//! What the variant needs of the machine is made, and put back after the run. A run under other
//! settings than the experiment began with does not count: it is repeated a few times, and then the
//! variant is left out of the round. A run that takes many times as long as the program as set up
//! is ended, where there is a budget.

use std::{thread, time::Duration};

use pagelab_record::{Outcome, vocabulary::tried};
use pagelab_sys::{
    knobs::Knobs,
    process::{forget_interrupts, interrupted},
    time::monotonic_raw_ns,
};

use super::{Climb, Ended, Rung, Step, planner::Limit};
use crate::{
    ladder::{
        attend::Stopped,
        held::{self, Held},
        once::{Once, Run, how},
        warmth::{Warmed, warmed},
    },
    settings::Settings,
};

/// Runs on a variant in one round, of which all but the last were disturbed.
const ATTEMPTS: u32 = 3;
/// Between two of them, in steps.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSES: u32 = 20;

/// Why a rung fails that changes what the program says.
const OTHER_OUTPUT: &str = "its output is not that of the first run, as set up: compare \
    RUNG.stdout in the run's directory";
/// Why a program cannot be held to its output.
const OWN_OUTPUT: &str = "the program varies: its output is not that of its first run, so \
    --same-output says nothing of it";

impl Climb<'_> {
    /// Runs a variant in a round; how long it took in nanoseconds, or nothing where it does not
    /// count. An essential run may end after the budget.
    pub(super) fn once(
        &mut self,
        at: usize,
        (round, is_essential): (u32, bool),
        tell: &mut dyn FnMut(Step<'_>),
    ) -> Result<Option<u64>, Ended> {
        let mut changed = None;
        for attempt in 0..ATTEMPTS {
            let is_first = attempt == 0;
            if !is_first {
                pause()?;
                if !is_essential && !self.has_time(self.planner.expected_ns(at)) {
                    break;
                }
            }
            let since = monotonic_raw_ns();
            changed = self.settings.disturbed(&Settings::of_faults());
            if changed.is_none() {
                changed = self.attempt(at, (round, is_essential), tell)?;
            }
            let Some(changed) = &changed else { return Ok(Some(monotonic_raw_ns() - since)) };
            let name = &self.rungs[at].offer.rung.name;
            tell(Step::Disturbed(name, changed, attempt + 1 < ATTEMPTS));
        }
        let Rung { offer, tally, .. } = &mut self.rungs[at];
        if let Some(changed) = changed.filter(|_| tally.elapsed().is_empty()) {
            let need = format!("the machine's settings as they were before the rounds: {changed}");
            let cure = "let that end and try again; --wait waits for another run of pagelab";
            let outcome = Outcome::Skipped { need, cure: cure.to_owned() };
            tell(Step::Settled(&offer.rung.name, &outcome));
            tally.settled = Some(outcome);
        }
        Ok(None)
    }

    /// A run; what changed on the machine meanwhile, where it does not count because of that.
    fn attempt(
        &mut self,
        at: usize,
        (round, is_essential): (u32, bool),
        tell: &mut dyn FnMut(Step<'_>),
    ) -> Result<Option<String>, Ended> {
        let limit = self.planner.limit(self.spent_ns(), is_essential);
        let Self { program, rungs, knobs, facts, around, limit: bytes, minder, fragments, .. } =
            self;
        let (Some(Rung { offer, streams, tally }), Some(facts)) = (rungs.get_mut(at), facts) else {
            return Ok(None);
        };
        let name = offer.rung.name.as_str();
        let held = match Held::of(*knobs, &offer.start, facts.whole, *bytes) {
            Ok(held) => held,
            Err(outcome) => {
                if let Some(lost) = knobs.and_then(Knobs::unguarded) {
                    return Err(Ended::Unguarded(lost));
                }
                tell(Step::Settled(name, &outcome));
                tally.settle(round, outcome);
                return Ok(None);
            }
        };
        let mut wrong = held::wrong(&offer.start);
        let blocks =
            held::broken_up(fragments).map_err(|error| Ended::Memory(error.to_string()))?;
        let most = facts.whole.max(tally.peak().unwrap_or(0));
        // What is broken up is to stay so.
        let warm = if fragments.is_empty() { warmed(most, facts.elapsed_ns) } else { None };
        let last_ns = tally.elapsed().last().map(|(_, ns)| *ns);
        let run = Run {
            program,
            start: &offer.start,
            usual_ns: Some(last_ns.unwrap_or(facts.elapsed_ns)),
            limit_ns: limit.map(|limit| limit.ns),
            exit: Some(facts.exit),
            around,
            group: held.group(),
            mark: minder.mark(),
            is_watched: false,
        };
        let came = run.once(streams);
        wrong.extend(held::wrong(&offer.start));
        drop(held);
        let changed = self.settings.disturbed(&Settings::of_faults());
        if changed.is_some() && !matches!(came, Err(Stopped::Interrupted)) {
            return Ok(changed);
        }
        let came = Came { once: came, limit, blocks, warm, wrong };
        self.judge(at, (round, is_essential), came, tell)
    }

    /// Adds a run to what its variant has, or says why it does not count.
    fn judge(
        &mut self,
        at: usize,
        (round, is_essential): (u32, bool),
        came: Came,
        tell: &mut dyn FnMut(Step<'_>),
    ) -> Result<Option<String>, Ended> {
        let (Some(Rung { offer, tally, .. }), Some(facts)) = (self.rungs.get_mut(at), &self.facts)
        else {
            return Ok(None);
        };
        let name = offer.rung.name.as_str();
        let is_as_set_up = name == tried::AS_SET_UP;
        let Came { once, limit, blocks, warm, wrong } = came;
        let failed = match (once, limit) {
            (Ok(once), _) => {
                let is_other = self.same_output && once.digest != facts.digest;
                if is_other && is_as_set_up {
                    return Err(Ended::Program(OWN_OUTPUT.to_owned()));
                }
                if !is_other && tally.suspect.is_none() {
                    tally.free_memory(round, blocks, warm);
                    let scores = self.around.load.iter().flat_map(|load| &load.scores);
                    tally.add(offer, round, &once, &scores.cloned().collect::<Vec<_>>());
                    for (path, _) in &offer.start.settings {
                        let path = path.display().to_string();
                        tally.setting(&path, wrong.contains(&path));
                    }
                    return Ok(None);
                }
                let at_times = |exit| {
                    let (failed, ended) = (how(exit), how(once.exit()));
                    format!("it fails at times: the program {failed}; run again at once it {ended}")
                };
                tally.suspect.map_or_else(|| OTHER_OUTPUT.to_owned(), at_times)
            }
            (Err(Stopped::Interrupted), _) => return Err(Ended::Interrupted),
            (Err(Stopped::Otherwise(exit, _)), _) if is_as_set_up => {
                return Err(Ended::varies(facts.exit, exit));
            }
            // Whether it does so each time.
            (Err(Stopped::Otherwise(exit, _)), _) if tally.suspect.is_none() => {
                tally.suspect = Some(exit);
                return self.attempt(at, (round, is_essential), tell);
            }
            (Err(Stopped::Late(_)), Some(Limit { ns, is_of_budget })) => {
                // What has rounds is judged by them where only the budget was over.
                let is_all = !is_of_budget || tally.elapsed().is_empty();
                if is_all {
                    tally.late(ns);
                }
                tell(Step::Late(name, ns, is_all));
                return Ok(None);
            }
            (Err(stopped), _) => stopped.to_string(),
        };
        let outcome = Outcome::Failed { reason: failed };
        tell(Step::Settled(name, &outcome));
        tally.settled = Some(outcome);
        Ok(None)
    }
}

/// A run, and what was so around it.
struct Came {
    once: Result<Once, Stopped>,
    limit: Option<Limit>,
    blocks: Option<u64>,
    warm: Option<Warmed>,
    /// Settings that were not as the variant has them.
    wrong: Vec<String>,
}

/// Gives whatever changed the machine some time.
fn pause() -> Result<(), Ended> {
    for _ in 0..PAUSES {
        thread::sleep(PAUSE);
        if interrupted() {
            forget_interrupts();
            return Err(Ended::Interrupted);
        }
    }
    Ok(())
}
