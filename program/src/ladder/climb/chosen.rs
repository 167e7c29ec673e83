//! Which variants run in the next round, and when nothing is open.
//!
//! A variant whose pages did not come is the program as it is, so only the rounds in which its
//! pages came choose it, and decide it.

use pagelab_record::{
    Outcome, Record,
    verdict::{Ratio, Verdict},
    vocabulary::tried,
};

use super::{Climb, Rung, planner::ESSENTIAL, priority};
use crate::{
    explain,
    ladder::{
        course::{self, Rounds},
        facts::OTHERS,
        rungs::Only,
    },
};

/// A variant that took this much longer than the program as set up runs in no second round.
const LOSES: f64 = 1.10;

impl Climb<'_> {
    /// Ranks the variants for their first run: by the faults of the watched run, where the records
    /// have one.
    pub fn rank(&mut self, records: &[Record]) {
        let watched = records.iter().find(|record| record.workload == explain::WORKLOAD);
        let watched = watched.and_then(Record::valid);
        // Less than a page of 2 MiB is no reason to wait for khugepaged; every program has some.
        let comes_whole = priority::late(watched).is_some_and(|pages| pages < 512.0);
        for Rung { offer, tally, .. } in &mut self.rungs {
            let is_named = self.named.contains(&offer.rung.name);
            if offer.start.only == Only::Late && comes_whole && !is_named {
                tally.settled.get_or_insert_with(nothing_late);
            }
        }
        let gain = |at: &usize| {
            let rung = &self.rungs[*at].offer.rung;
            let is_named = self.named.contains(&rung.name);
            (is_named, priority::gain(rung, watched))
        };
        let bases = self.bases();
        let mut others: Vec<usize> =
            (0..self.rungs.len()).filter(|at| !bases.contains(at)).collect();
        others.sort_by(|one, other| {
            let (one, other) = (gain(one), gain(other));
            other.0.cmp(&one.0).then(other.1.total_cmp(&one.1))
        });
        self.ordered = others;
    }

    /// The variants that may run in the next round of the screen, the essential ones first:
    /// without those that lost clearly before.
    pub(super) fn in_question(&self) -> Vec<usize> {
        let settled = |at: &usize| self.rungs[*at].tally.is_over();
        let lost = |at: &usize| {
            let rung = &self.rungs[*at];
            let base = self.base().map(|base| base.tally.goal());
            let ratio = base.and_then(|base| course::ratio(&self.rounds_of(rung), base));
            let is_kept = self.bases().contains(at) || self.named.contains(&rung.offer.rung.name);
            !is_kept && ratio.is_some_and(|ratio| ratio.value > LOSES)
        };
        let kept = |all: &[usize]| -> Vec<usize> {
            all.iter().copied().filter(|at| !settled(at) && !lost(at)).collect()
        };
        essential_first(&kept(&self.bases()), &kept(&self.ordered))
    }

    /// The next best that never ran, where the pages of none that did came: there is nothing for
    /// the finals to decide. Without time for two runs in half of what is left, none.
    pub(super) fn second_chance(&self) -> Vec<usize> {
        let Some(left) = self.planner.left_ns(self.spent_ns()) else { return Vec::new() };
        let never_ran = |at: &usize| self.rungs[*at].tally.elapsed().is_empty();
        let base = self.bases().into_iter().take(1);
        let others = self.ordered.iter().copied().filter(never_ran);
        let members: Vec<usize> =
            base.chain(others).filter(|at| !self.rungs[*at].tally.is_over()).collect();
        let many = self.planner.prefix(&members, 1, left / 2, 0);
        let is_of_use = self.ranked().is_empty() && many >= ESSENTIAL;
        if is_of_use { members[..many].to_vec() } else { Vec::new() }
    }

    /// Chooses the finalists: what is set up and the best variant, plain, and of the others the
    /// best that get to the first look in the time that is left. Without a budget plain, two others
    /// and those that were asked for by name go on in any case.
    pub(super) fn choose(&mut self, left_ns: u64) {
        let (bases, mut best) = (self.always(), self.ranked());
        best.truncate(course::BEST);
        let ordered = essential_first(&bases, &best);
        let rounds = course::FIRST_LOOK.min(self.rounds).saturating_sub(self.begun());
        let is_limited = self.planner.is_limited();
        let least = if is_limited { ESSENTIAL } else { bases.len() + course::BEST_LEAST };
        let many = self.planner.prefix(&ordered, rounds, left_ns, least);
        let is_named = |at: &usize| self.named.contains(&self.rungs[*at].offer.rung.name);
        let goes_on = ordered.into_iter().enumerate();
        let goes_on = goes_on.filter(|(nth, at)| *nth < many || (!is_limited && is_named(at)));
        self.active = goes_on.map(|(_, at)| at).collect();
        self.active.sort_unstable();
    }

    /// The variants that others are compared with, what is set up first.
    fn bases(&self) -> Vec<usize> {
        let names = [tried::AS_SET_UP, tried::PLAIN, tried::FIT_NONE, tried::FIT];
        let at = |name| self.rungs.iter().position(|rung| rung.offer.rung.name == name);
        names.into_iter().filter_map(at).collect()
    }

    /// Those of them that run here.
    pub(super) fn always(&self) -> Vec<usize> {
        let mut bases = self.bases();
        bases.retain(|at| !self.rungs[*at].tally.is_over() && took(&self.rungs[*at]));
        bases
    }

    /// The others, the ones that are worth most first.
    fn ranked(&self) -> Vec<usize> {
        let Some(base) = self.base() else { return Vec::new() };
        let always = self.always();
        let others = (0..self.rungs.len()).filter(|at| {
            let rung = &self.rungs[*at];
            !always.contains(at) && !rung.tally.is_over() && took(rung)
        });
        let rounds = |at: usize| {
            let rung = &self.rungs[at];
            (at, rung.offer.rung.reach, self.rounds_of(rung))
        };
        let others: Vec<_> = others.map(rounds).collect();
        let others: Vec<_> = others.iter().map(|(at, reach, r)| (*at, *reach, &r[..])).collect();
        course::ranked(base.tally.goal(), &others)
    }

    /// What the variants are ranked against: what is set up, or plain where that does not run.
    fn base(&self) -> Option<&Rung> {
        let runs = |rung: &&Rung| !rung.tally.goal().is_empty();
        self.rungs
            .iter()
            .filter(runs)
            .find(|rung| rung.offer.rung.name == tried::AS_SET_UP)
            .or_else(|| self.plain().filter(runs))
    }

    fn plain(&self) -> Option<&Rung> {
        self.rungs.iter().find(|rung| rung.offer.rung.name == tried::PLAIN)
    }

    /// The best and plain relative to what is set up, the fastest first.
    pub(super) fn standings(&self) -> Vec<(String, Ratio)> {
        let Some(base) = self.base() else { return Vec::new() };
        let best = self.ranked().into_iter().take(course::BEST);
        let told = self.always().into_iter().chain(best).map(|at| &self.rungs[at]);
        let is_told = |rung: &&Rung| {
            ![&*base.offer.rung.name, tried::FIT_NONE].contains(&rung.offer.rung.name.as_str())
        };
        let against = told.filter(is_told).filter_map(|rung| {
            let ratio = course::ratio(&self.rounds_of(rung), base.tally.goal())?;
            Some((rung.offer.rung.name.clone(), ratio))
        });
        let mut against: Vec<_> = against.collect();
        against.sort_by(|(_, one), (_, other)| one.value.total_cmp(&other.value));
        against
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
        // A budget may leave plain out.
        let active = || self.active.iter().map(|at| &self.rungs[*at]);
        let of = |name| active().find(|rung| rung.offer.rung.name == name);
        [tried::PLAIN, tried::AS_SET_UP].into_iter().filter_map(of).all(|base| {
            let others = active().filter(|rung| {
                ![base.offer.rung.name.as_str(), tried::FIT_NONE].contains(&&*rung.offer.rung.name)
            });
            let rounds: Vec<_> = others.map(|rung| self.rounds_of(rung)).collect();
            let rounds: Vec<Rounds<'_>> = rounds.iter().map(Vec::as_slice).collect();
            let judged = course::judged(&rounds, base.tally.goal(), self.looks, self.delta);
            judged.iter().flatten().all(|judged| judged.verdict != Verdict::Inconclusive)
        })
    }
}

/// Why nobody waits for khugepaged.
fn nothing_late() -> Outcome {
    let need =
        "a program whose memory comes page by page where no page of 2 MiB can: none was seen";
    Outcome::Skipped { need: need.to_owned(), cure: OTHERS.to_owned() }
}

/// The first base and the best variant, then the other bases and variants.
fn essential_first(bases: &[usize], others: &[usize]) -> Vec<usize> {
    let [bases_first, others_first] = [bases, others].map(|all| all.len().min(1));
    let first = bases[..bases_first].iter().chain(&others[..others_first]);
    let rest = bases[bases_first..].iter().chain(&others[others_first..]);
    first.chain(rest).copied().collect()
}

/// Whether its pages came: what did not take is the program as it is, and what nobody could see is
/// proof of nothing, so there is nothing to decide.
fn took(rung: &Rung) -> bool {
    rung.offer.rung.page == 0 || rung.tally.obtained().is_some_and(|bytes| bytes > 0)
}
