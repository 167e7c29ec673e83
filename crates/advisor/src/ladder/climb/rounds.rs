//! All rounds: two of every rung, and then of the best.
//!
//! The one idea: what may be said is decided by looks, whose number chance pays for; what there is
//! time for decides how many rungs come to the first one.

use pagelab_sys::time::monotonic_raw_ns;

use super::{Climb, Ended, Step};
use crate::ladder::course;

/// Where nobody says how long it may take, no round begins that does not fit into so many
/// nanoseconds.
const UNASKED_NS: u64 = 60_000_000_000;
/// There, as many rungs go on behind the screen as come to a first look in so many, two at least.
const ANSWERED_NS: u64 = 90_000_000_000;

impl Climb<'_> {
    /// Two rounds of all rungs; nothing where they are there. `keep` gets the
    /// records of what was seen.
    ///
    /// # Errors
    /// When it ends early; inside, what `keep` answers.
    pub fn screen<E>(
        &mut self,
        tell: &mut dyn FnMut(Step<'_>),
        keep: &mut dyn FnMut(&Self) -> Result<(), E>,
    ) -> Result<Result<(), E>, Ended> {
        let screen = course::SCREEN.min(self.rounds);
        let begun = self.begun();
        let since = monotonic_raw_ns();
        for round in begun..screen {
            self.round(round, tell)?;
        }
        if begun > screen {
            return Ok(Ok(()));
        }
        if begun == 0 {
            let ran = self.rungs.iter().flat_map(|rung| rung.tally.elapsed());
            let ran: u64 = ran.map(|(_, ns)| ns).sum();
            self.stretch = (monotonic_raw_ns() - since) as f64 / ran.max(1) as f64;
        }
        if screen == course::SCREEN {
            tell(Step::Screened(&self.beside_plain()));
        }
        Ok(keep(self))
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
        if done == course::SCREEN {
            let spent = begun - self.began_ns;
            self.choose(budget_ns.unwrap_or(ANSWERED_NS).saturating_sub(spent) as f64);
        }
        // A look at what was looked at is none.
        let mut looked = (self.looks > 0).then_some(done);
        // Without a budget the best are looked at once in any case.
        let least = if budget_ns.is_some() { before } else { course::FIRST_LOOK };
        while done < self.rounds {
            let now = monotonic_raw_ns();
            let each = (now - begun) / u64::from(done - before).max(1);
            let each = each.max(self.last_round_ns());
            let spent = now - self.began_ns;
            if done >= least && spent + each > budget_ns.unwrap_or(UNASKED_NS) {
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

    /// Nanoseconds of the program in the last round of those who go on.
    fn last_round_ns(&self) -> u64 {
        let last = |at: &usize| self.rungs.get(*at)?.tally.elapsed().last().map(|(_, ns)| *ns);
        self.active.iter().filter_map(last).sum()
    }
}
