//! Who goes on, and when nothing is open.
//!
//! The one idea: what did not take is the program as it is, so only the rounds in which a rung's
//! pages came choose it, and decide it.

use pagelab_record::{
    verdict::{Ratio, Verdict},
    vocabulary::tried,
};

use super::{Climb, Rung};
use crate::ladder::course::{self, Rounds};

impl Climb<'_> {
    /// Chooses behind the screen who goes on: plain and what is set up, and of the others the best
    /// that get to the first look in the time that is left. Those that were asked for by name do in
    /// any case.
    pub(super) fn choose(&mut self, left_ns: f64) {
        let mut active = self.always();
        let ranked = self.ranked();
        let rounds = course::FIRST_LOOK.min(self.rounds).saturating_sub(course::SCREEN);
        let of = |at: &usize| self.mean_ns(*at) * self.stretch;
        let each: Vec<f64> = ranked.iter().map(of).collect();
        let many = course::affordable(left_ns, rounds, active.iter().map(of).sum(), &each);
        let is_named = |at: &usize| self.named.contains(&self.rungs[*at].offer.rung.name);
        let best = ranked.into_iter().take(course::BEST).enumerate();
        active.extend(best.filter(|(nth, at)| *nth < many || is_named(at)).map(|(_, at)| at));
        active.sort_unstable();
        self.active = active;
    }

    /// Those that go on in any case.
    fn always(&self) -> Vec<usize> {
        let names = [tried::PLAIN, tried::AS_SET_UP, tried::FIT, tried::FIT_NONE];
        let goes_on = |at: &usize| {
            let Rung { offer, tally, .. } = &self.rungs[*at];
            names.contains(&offer.rung.name.as_str())
                && tally.settled.is_none()
                && took(&self.rungs[*at])
        };
        (0..self.rungs.len()).filter(goes_on).collect()
    }

    /// The others, the ones that are worth most first.
    fn ranked(&self) -> Vec<usize> {
        let Some(plain) = self.plain() else { return Vec::new() };
        let always = self.always();
        let others = (0..self.rungs.len()).filter(|at| {
            let rung = &self.rungs[*at];
            !always.contains(at) && rung.tally.settled.is_none() && took(rung)
        });
        let rounds = |at: usize| {
            let rung = &self.rungs[at];
            (at, rung.offer.rung.reach, self.rounds_of(rung))
        };
        let others: Vec<_> = others.map(rounds).collect();
        let others: Vec<_> = others.iter().map(|(at, reach, r)| (*at, *reach, &r[..])).collect();
        course::ranked(plain.tally.goal(), &others)
    }

    fn plain(&self) -> Option<&Rung> {
        self.rungs.iter().find(|rung| rung.offer.rung.name == tried::PLAIN)
    }

    /// Nanoseconds of the program on a rung, a round.
    fn mean_ns(&self, at: usize) -> f64 {
        let elapsed = self.rungs[at].tally.elapsed();
        let sum: u64 = elapsed.iter().map(|(_, ns)| ns).sum();
        sum as f64 / elapsed.len().max(1) as f64
    }

    /// What is set up and the best, beside plain, the fastest first.
    pub(super) fn beside_plain(&self) -> Vec<(String, Ratio)> {
        let Some(plain) = self.plain() else { return Vec::new() };
        let best = self.ranked().into_iter().take(course::BEST);
        let told = self.always().into_iter().chain(best).map(|at| &self.rungs[at]);
        let is_told = |rung: &&Rung| {
            ![tried::PLAIN, tried::FIT_NONE].contains(&rung.offer.rung.name.as_str())
        };
        let beside = told.filter(is_told).filter_map(|rung| {
            let ratio = course::ratio(&self.rounds_of(rung), plain.tally.goal())?;
            Some((rung.offer.rung.name.clone(), ratio))
        });
        let mut beside: Vec<_> = beside.collect();
        beside.sort_by(|(_, one), (_, other)| one.value.total_cmp(&other.value));
        beside
    }

    /// The rounds of a rung that are compared: those in which its pages came.
    fn rounds_of(&self, rung: &Rung) -> Vec<(u32, f64)> {
        self.plain().map_or_else(
            || rung.tally.goal().to_vec(),
            |plain| rung.tally.rounds(&rung.offer.rung, &plain.tally),
        )
    }

    /// Whether nothing is open: each finalist beside plain, and beside what is set up.
    pub(super) fn is_decided(&self) -> bool {
        if self.looks == 0 {
            return false;
        }
        let of = |name| self.rungs.iter().find(|rung| rung.offer.rung.name == name);
        [tried::PLAIN, tried::AS_SET_UP].into_iter().filter_map(of).all(|base| {
            let others = self.active.iter().map(|at| &self.rungs[*at]);
            let others = others.filter(|rung| {
                ![base.offer.rung.name.as_str(), tried::FIT_NONE].contains(&&*rung.offer.rung.name)
            });
            let rounds: Vec<_> = others.map(|rung| self.rounds_of(rung)).collect();
            let rounds: Vec<Rounds<'_>> = rounds.iter().map(Vec::as_slice).collect();
            let judged = course::judged(&rounds, base.tally.goal(), self.looks, self.delta);
            judged.iter().flatten().all(|judged| judged.verdict != Verdict::Inconclusive)
        })
    }
}

/// Whether its pages came: what did not take is the program as it is, and what nobody could see is
/// proof of nothing, so there is nothing to decide.
fn took(rung: &Rung) -> bool {
    rung.offer.rung.page == 0 || rung.tally.obtained().is_some_and(|bytes| bytes > 0)
}
