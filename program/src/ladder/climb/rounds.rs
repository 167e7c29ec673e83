//! The rounds of an experiment: a screen of all variants, then the best until they are decided.
//!
//! A verdict is given at few looks, because each one costs significance; the time that is left
//! decides how many variants get to the first one. With a budget the planner says who runs.

use pagelab_sys::time::monotonic_raw_ns;

use super::{Climb, Ended, Estimate, Step};
use crate::ladder::course;

/// Without a budget: no round begins that is not expected to end in this time.
const UNASKED_NS: u64 = 60_000_000_000;
/// Without a budget: as many finalists as get to a first look in this time, two at least.
const ANSWERED_NS: u64 = 90_000_000_000;

impl Climb<'_> {
    /// The screen: two rounds of all variants, or with a budget what half of its time has room
    /// for. `keep` gets the records of what was seen.
    ///
    /// # Errors
    /// When it ends early; inside, what `keep` answers.
    pub fn screen<E>(
        &mut self,
        tell: &mut dyn FnMut(Step<'_>),
        keep: &mut dyn FnMut(&Self) -> Result<(), E>,
    ) -> Result<Result<(), E>, Ended> {
        for round in self.begun()..course::SCREEN.min(self.rounds) {
            let mut members = self.in_question();
            members.truncate(self.planner.screen(&members, round, self.spent_ns()));
            if members.is_empty() {
                members = self.second_chance();
            }
            if members.is_empty() {
                break;
            }
            members.sort_unstable();
            self.active = members;
            self.round(round, tell)?;
            let standings = self.standings();
            if !standings.is_empty() {
                tell(Step::Screened(round + 1, &standings));
            }
        }
        Ok(keep(self))
    }

    /// How long all of it is expected to take.
    pub(super) fn estimate(&self) -> Estimate {
        let mut planner = self.planner.clone();
        let (variants, spent) = (self.in_question(), self.spent_ns());
        let run_ns = variants.first().map_or(0, |at| planner.expected_ns(*at));
        let finalists = variants.len().min(self.always().len() + course::BEST) as u64;
        let finals = course::FIRST_LOOK.min(self.rounds).saturating_sub(course::SCREEN);
        Estimate {
            variants: variants.len(),
            first_round: planner.screen(&variants, 0, spent),
            run_ns,
            screen_ns: planner.round_ns(&variants) * u64::from(course::SCREEN.min(self.rounds)),
            finals_ns: run_ns * finalists * u64::from(finals),
            left_ns: planner.left_ns(spent),
        }
    }

    /// The best until they are decided, behind the screen. `keep` gets the records of what was
    /// seen, now and then and at the end.
    ///
    /// # Errors
    /// As [`Climb::screen`].
    pub fn decide<E>(
        &mut self,
        budget_ns: Option<u64>,
        tell: &mut dyn FnMut(Step<'_>),
        keep: &mut dyn FnMut(&Self) -> Result<(), E>,
    ) -> Result<Result<(), E>, Ended> {
        let begun = monotonic_raw_ns();
        let before = self.begun();
        let mut done = before;
        let mut look = course::next_look(done, self.rounds);
        if done <= course::SCREEN {
            let spent = begun - self.began_ns;
            self.choose(budget_ns.unwrap_or(ANSWERED_NS).saturating_sub(spent));
        }
        // A look at what was looked at is none.
        let mut looked = (self.looks > 0).then_some(done);
        // Without a budget the best are looked at once in any case.
        let least = if budget_ns.is_some() { before } else { course::FIRST_LOOK };
        while done < self.rounds {
            let now = monotonic_raw_ns();
            let each = self.planner.round_ns(&self.active);
            let spent = now - self.began_ns;
            let is_over = spent + each > UNASKED_NS && !self.planner.is_limited();
            if done >= least && (is_over || !self.planner.fits(spent, each)) {
                break;
            }
            self.round(done, tell)?;
            done += 1;
            if done == look {
                self.looks += 1;
                looked = Some(done);
                if let Err(error) = keep(self) {
                    return Ok(Err(error));
                }
                if done >= self.least && self.is_decided() {
                    return Ok(Ok(()));
                }
                look = course::next_look(done, self.rounds);
            }
        }
        if looked != Some(done) {
            self.looks += 1;
        }
        Ok(keep(self))
    }
}
