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
    /// Chooses behind the screen who goes on.
    pub(super) fn choose(&mut self) {
        let always = [tried::PLAIN, tried::AS_SET_UP, tried::FIT]
            .map(|name| self.rungs.iter().position(|rung| rung.offer.rung.name == name));
        let of = |rung: &Rung| rung.tally.settled.is_none();
        // What did not take is the program as it is, and what nobody could see is proof of
        // nothing: there is nothing to decide.
        let took = |rung: &Rung| {
            rung.offer.rung.page == 0 || rung.tally.obtained().is_some_and(|bytes| bytes > 0)
        };
        let rungs = self.rungs.iter();
        let rungs = rungs.map(|rung| (of(rung) && took(rung)).then(|| self.rounds_of(rung)));
        let rungs: Vec<Option<Vec<_>>> = rungs.collect();
        let rungs: Vec<Option<Rounds<'_>>> = rungs.iter().map(Option::as_deref).collect();
        self.active = course::finalists(&always.map(|at| at.unwrap_or(usize::MAX)), &rungs);
    }

    /// Those who go on, beside plain, the fastest first.
    pub(super) fn beside_plain(&self) -> Vec<(String, Ratio)> {
        let is_plain = |rung: &&Rung| rung.offer.rung.name == tried::PLAIN;
        let Some(plain) = self.rungs.iter().find(is_plain) else { return Vec::new() };
        let others = self.active.iter().filter_map(|at| self.rungs.get(*at));
        let beside = others.filter(|rung| !is_plain(rung)).filter_map(|rung| {
            let ratio = course::ratio(&self.rounds_of(rung), plain.tally.goal())?;
            Some((rung.offer.rung.name.clone(), ratio))
        });
        let mut beside: Vec<_> = beside.collect();
        beside.sort_by(|(_, one), (_, other)| one.value.total_cmp(&other.value));
        beside
    }

    /// The rounds of a rung that are compared: those in which its pages came.
    fn rounds_of(&self, rung: &Rung) -> Vec<(u32, f64)> {
        let plain = self.rungs.iter().find(|rung| rung.offer.rung.name == tried::PLAIN);
        plain.map_or_else(
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
            let others = others.filter(|rung| rung.offer.rung.name != base.offer.rung.name);
            let rounds: Vec<_> = others.map(|rung| self.rounds_of(rung)).collect();
            let rounds: Vec<Rounds<'_>> = rounds.iter().map(Vec::as_slice).collect();
            let judged = course::judged(&rounds, base.tally.goal(), self.looks, self.delta);
            judged.iter().flatten().all(|judged| judged.verdict != Verdict::Inconclusive)
        })
    }
}
