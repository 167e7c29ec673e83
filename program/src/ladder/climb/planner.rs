//! The schedule of one experiment under a time budget: which variants run in the next round.
//!
//! A pure planner: times come in as nanoseconds since the experiment began, so that tests script
//! the clock. Without a budget nothing is left out.

use pagelab_record::units::whole;

/// Share by which a run on a variant that never ran may take longer than the program as set up.
const UNSEEN: f64 = 1.25;
/// A run of this many times the time of the program as set up is ended, but of none before it took
/// so many nanoseconds longer: a start takes its time.
const LATE: u64 = 5;
const LATE_NS: u64 = 1_000_000_000;
/// Kept for the report, nanoseconds.
const REPORT_NS: u64 = 1_000_000_000;
/// Variants without which there is no answer: as set up, and the best candidate.
pub(super) const ESSENTIAL: usize = 2;

/// Expected times of the runs of an experiment, and when the last one has to end.
#[derive(Debug, Clone)]
pub(super) struct Planner {
    limit_ns: Option<u64>,
    /// When the screen has to end, once it began: the finals get the other half of the time.
    screen_ns: Option<u64>,
    /// The longest run of the program as set up.
    usual_ns: u64,
    /// The longest run of each variant so far, nanoseconds.
    longest_runs: Vec<u64>,
}

/// When a run is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limit {
    /// Nanoseconds after its start.
    pub(super) ns: u64,
    /// Whether the budget is over then, which says less of the run than many times the usual.
    pub(super) is_of_budget: bool,
}

impl Planner {
    /// A planner for an experiment of some variants.
    pub(super) fn new(budget_ns: Option<u64>, variants: usize) -> Self {
        let limit_ns = budget_ns.map(|ns| ns.saturating_sub(REPORT_NS));
        Self { limit_ns, screen_ns: None, usual_ns: 0, longest_runs: vec![0; variants] }
    }

    /// Whether there is a budget.
    pub(super) fn is_limited(&self) -> bool {
        self.limit_ns.is_some()
    }

    /// Notes a run of the program as set up, which says what other runs will take.
    pub(super) fn usual(&mut self, ns: u64) {
        self.usual_ns = self.usual_ns.max(ns);
    }

    /// Notes a run on a variant.
    pub(super) fn ran(&mut self, variant: usize, ns: u64) {
        if let Some(longest) = self.longest_runs.get_mut(variant) {
            *longest = ns.max(*longest);
        }
    }

    /// Nanoseconds that one run on a variant is expected to take.
    pub(super) fn expected_ns(&self, variant: usize) -> u64 {
        match self.longest_runs.get(variant) {
            Some(longest) if *longest > 0 => *longest,
            _ => whole(self.usual_ns as f64 * UNSEEN),
        }
    }

    /// Nanoseconds that one round of some variants is expected to take.
    pub(super) fn round_ns(&self, variants: &[usize]) -> u64 {
        variants.iter().map(|at| self.expected_ns(*at)).sum()
    }

    /// Nanoseconds that are left of the budget; `None` without one.
    pub(super) fn left_ns(&self, spent_ns: u64) -> Option<u64> {
        self.limit_ns.map(|limit| limit.saturating_sub(spent_ns))
    }

    /// When a run that begins now is ended; `None` without a budget. An essential one may end after
    /// the budget.
    pub(super) fn limit(&self, spent_ns: u64, is_essential: bool) -> Option<Limit> {
        let left = self.left_ns(spent_ns)?;
        let late = self.usual_ns.saturating_mul(LATE).max(self.usual_ns.saturating_add(LATE_NS));
        let is_of_budget = !is_essential && left < late;
        Some(Limit { ns: if is_of_budget { left } else { late }, is_of_budget })
    }

    /// Whether something of this length is expected to end within the budget.
    pub(super) fn fits(&self, spent_ns: u64, ns: u64) -> bool {
        self.left_ns(spent_ns).is_none_or(|left| ns <= left)
    }

    /// The variants of the next round of the screen, `done` rounds of which are over. `ordered`
    /// are those that are worth it, the essential ones first.
    pub(super) fn screen(&mut self, ordered: &[usize], done: u32, spent_ns: u64) -> usize {
        let Some(left) = self.left_ns(spent_ns) else { return ordered.len() };
        let end = *self.screen_ns.get_or_insert(spent_ns + left / 2);
        let left = end.saturating_sub(spent_ns);
        // A second round of some would leave less for the finals, which decide.
        if self.round_ns(ordered) <= left {
            return ordered.len();
        }
        if done > 0 { 0 } else { self.prefix(ordered, 1, left, ESSENTIAL) }
    }

    /// How many of some variants, in their order, are expected to run so many rounds in some
    /// time; `least` at least.
    pub(super) fn prefix(
        &self,
        ordered: &[usize],
        rounds: u32,
        left_ns: u64,
        least: usize,
    ) -> usize {
        let fits = |many: &usize| {
            self.round_ns(&ordered[..*many]).saturating_mul(rounds.into()) <= left_ns
        };
        let most = (0..=ordered.len()).rev().find(fits).unwrap_or(0);
        most.max(least.min(ordered.len()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// One run of the script: variant, whether it was essential, when it began, what was
    /// expected of it.
    type Began = (usize, bool, u64, u64);

    /// Plays an experiment against a scripted clock; a run on a variant takes its time. Returns
    /// what ran, and when it was over.
    fn played(planner: &mut Planner, times: &[u64], rounds: u32) -> (Vec<Began>, u64) {
        let ordered: Vec<usize> = (0..times.len()).collect();
        let (mut now, mut ran) = (times[0], Vec::new());
        planner.usual(now);
        let mut play = |planner: &mut Planner, now: &mut u64, members: &[usize], round: u32| {
            for at in members {
                let is_essential = round == 0 && *at < ESSENTIAL;
                let expected = planner.expected_ns(*at);
                if is_essential || planner.fits(*now, expected) {
                    ran.push((*at, is_essential, *now, expected));
                    let limit = planner.limit(*now, is_essential).map(|limit| limit.ns);
                    let took = times[*at].min(limit.unwrap_or(u64::MAX));
                    *now += took;
                    planner.ran(*at, took);
                }
            }
        };
        let mut done = 0;
        while done < 2 {
            let many = planner.screen(&ordered, done, now);
            if many == 0 {
                break;
            }
            play(planner, &mut now, &ordered[..many], done);
            done += 1;
        }
        let left = planner.left_ns(now).unwrap_or(90 * SECOND);
        let finalists = &ordered[..planner.prefix(&ordered, 12, left, ESSENTIAL).min(5)];
        while done < rounds && planner.fits(now, planner.round_ns(finalists)) {
            play(planner, &mut now, finalists, done);
            done += 1;
        }
        (ran, now)
    }

    proptest! {
        #[test]
        fn no_run_is_expected_to_end_after_the_budget_but_the_essential_two(
            times in proptest::collection::vec(SECOND / 100..10 * SECOND, 2..20),
            budget in 0_u64..200,
        ) {
            let mut planner = Planner::new(Some(budget * SECOND), times.len());
            let (ran, _) = played(&mut planner, &times, 48);
            for (at, is_essential, began, expected) in &ran {
                prop_assert!(*is_essential || began + expected <= budget * SECOND, "{at}");
            }
            let tried: BTreeSet<usize> = ran.iter().map(|(at, ..)| *at).collect();
            prop_assert!(tried.contains(&0) && tried.contains(&1));
            // Whatever did not run has an expected time to list.
            for at in 0..times.len() {
                prop_assert!(tried.contains(&at) || planner.expected_ns(at) >= times[0]);
            }
        }

        #[test]
        fn runs_that_hang_do_not_overrun_the_budget(
            hangs in proptest::collection::vec(proptest::bool::ANY, 1..20),
            ns in SECOND / 100..5 * SECOND, budget in 0_u64..200,
        ) {
            let time = |hangs: &bool| if *hangs { u64::MAX / 4 } else { ns };
            let times: Vec<u64> = [ns].into_iter().chain(hangs.iter().map(time)).collect();
            let mut planner = Planner::new(Some(budget * SECOND), times.len());
            let (_, end) = played(&mut planner, &times, 48);
            // The first run, one as set up, and one of the best candidate, which may hang.
            let essential = 2 * ns + (5 * ns).max(ns + SECOND);
            prop_assert!(end <= (budget * SECOND).max(essential), "{end}");
        }

        #[test]
        fn where_all_runs_take_as_long_as_expected_the_budget_is_kept(
            ns in SECOND / 10..5 * SECOND, variants in 2_usize..20, budget in 0_u64..200,
        ) {
            let times = vec![ns; variants];
            let mut planner = Planner::new(Some(budget * SECOND), variants);
            let (_, end) = played(&mut planner, &times, 48);
            // The first run and the essential two come in any case.
            prop_assert!(end <= (budget * SECOND).max(3 * ns), "{end}");
        }

        #[test]
        fn without_a_budget_every_variant_runs_twice(
            times in proptest::collection::vec(SECOND / 100..900 * SECOND, 2..20),
        ) {
            let mut planner = Planner::new(None, times.len());
            let (ran, _) = played(&mut planner, &times, 2);
            prop_assert_eq!(ran.len(), times.len() * 2);
        }
    }

    #[test]
    fn a_short_budget_screens_fewer_variants_once() {
        let ordered: Vec<usize> = (0..18).collect();
        let many = |budget: u64, done| {
            let mut planner = Planner::new(Some(budget * SECOND), 18);
            planner.usual(SECOND);
            planner.screen(&ordered, done, 5 * SECOND)
        };
        // 18 runs of 1.25 s are 22.5 s, which half of 54 s has room for.
        assert_eq!([60, 51, 50, 16, 7, 1].map(|budget| many(budget, 0)), [18, 18, 17, 4, 2, 2]);
        assert_eq!([51, 50].map(|budget| many(budget, 1)), [18, 0]);
    }

    #[test]
    fn a_run_is_ended_at_five_times_the_usual_or_with_the_budget() {
        let limit = |usual_ns: u64, spent: u64, is_essential| {
            let mut planner = Planner::new(Some(61 * SECOND), 2);
            planner.usual(usual_ns);
            let Limit { ns, is_of_budget } = planner.limit(spent * SECOND, is_essential).unwrap();
            (ns / (SECOND / 100), is_of_budget)
        };
        assert_eq!(limit(2 * SECOND, 10, false), (1000, false));
        assert_eq!(limit(2 * SECOND, 55, false), (500, true));
        assert_eq!(limit(2 * SECOND, 55, true), (1000, false));
        // A program of 10 ms has a second more.
        assert_eq!(limit(SECOND / 100, 10, false), (101, false));
        assert_eq!(Planner::new(None, 2).limit(0, false), None);
    }

    #[test]
    fn no_more_go_on_than_get_to_the_first_look() {
        let mut planner = Planner::new(None, 4);
        [2 * SECOND, SECOND / 2, SECOND / 2, SECOND].iter().enumerate().for_each(|(at, ns)| {
            planner.ran(at, *ns);
        });
        let of = |left: u64| planner.prefix(&[0, 1, 2, 3], 10, left * SECOND, 2);
        assert_eq!([45, 40, 39, 30, 25, 24, 0].map(of), [4, 4, 3, 3, 2, 2, 2]);
    }
}
