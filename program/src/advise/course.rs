//! Which strategy is measured next, and when it is enough.
//!
//! The one idea: rounds. In each round every strategy that is still in gets one fresh process, in
//! one round forwards and in the next backwards, so that drift hits all alike; process `n` of a
//! strategy was taken in round `n`, so that two strategies can be compared round by round. After a
//! round the clearly slower ones drop out, the more readily the more rounds there were and the less
//! is left of the budget, which goes to those that may still be the fastest.
//!
//! It knows no clock and starts no process: it is told how long things took.

use std::collections::BTreeMap;

use pagelab_bench::{partial::Partial, plan::Planned};
use pagelab_mappings::{Populate, kinds};
use pagelab_record::{Clock, Data, Measured, Outcome};

/// Rounds after which more would not change the answer: of a small sample so many take no longer
/// than the budget, and rivals a few per cent apart need them.
const ROUNDS_MAX: u32 = 40;
/// Rounds that even a strategy without a rival gets.
const ROUNDS_ALONE: u32 = 3;
/// A strategy drops out when it is this many times as slow as the best: a step further after each
/// round, and one more where the budget is short.
const DROPPED_ABOVE: [f64; 4] = [2.5, 1.6, 1.35, 1.2];
/// So many more rounds of all that are in, still affordable, and the second or third step is the
/// last: one round may have been disturbed, and a few rounds of a small sample tell too little. Of
/// several threads that were slower than one, the first round is doubted however short the budget.
const ROUNDS_AMPLE: [u64; 2] = [12, 6];

/// A strategy on its way.
#[derive(Debug)]
struct Contender {
    planned: Planned,
    partial: Partial,
    is_in: bool,
    took_ns: u64,
    lost: u32,
    settled: Option<Outcome>,
}

/// The course of an answer.
#[derive(Debug)]
pub struct Course {
    contenders: Vec<Contender>,
    /// Of this round: who is still to come, last first.
    queue: Vec<usize>,
    round: u32,
    budget_ns: u64,
}

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Which strategy.
    pub index: usize,
    /// The round, which is the number of its process.
    pub round: u32,
    /// Nanoseconds that are left.
    pub left_ns: u64,
}

impl Course {
    /// A course over some cases that may take so long in all.
    pub fn new(cases: Vec<Planned>, budget_ns: u64) -> Self {
        let contender = |planned| Contender {
            planned,
            partial: Partial::default(),
            is_in: true,
            took_ns: 0,
            lost: 0,
            settled: None,
        };
        let contenders: Vec<Contender> = cases.into_iter().map(contender).collect();
        let queue = (0..contenders.len()).rev().collect();
        Self { contenders, queue, round: 0, budget_ns }
    }

    /// The next turn when so much time has passed; `None` when the answer is as good as it gets.
    pub fn next(&mut self, passed_ns: u64) -> Option<Turn> {
        let left_ns = self.budget_ns.checked_sub(passed_ns)?;
        loop {
            while let Some(index) = self.queue.pop() {
                let contender = &self.contenders[index];
                // One that is not likely to end in time would only delay the answer.
                if contender.is_in && contender.took_ns <= left_ns {
                    return Some(Turn { index, round: self.round, left_ns });
                }
            }
            self.drop_the_slow(left_ns);
            self.round += 1;
            let mut still: Vec<usize> =
                (0..self.contenders.len()).filter(|index| self.contenders[*index].is_in).collect();
            let rounds = if still.len() == 1 { ROUNDS_ALONE } else { ROUNDS_MAX };
            let affordable = |index: &usize| self.contenders[*index].took_ns <= left_ns;
            if self.round >= rounds || !still.iter().any(affordable) {
                return None;
            }
            if self.round.is_multiple_of(2) {
                still.reverse();
            }
            self.queue = still;
        }
    }

    /// A strategy had its turn: what it measured, and how long that took with everything.
    pub fn measured(&mut self, turn: Turn, partial: Partial, took_ns: u64) {
        let contender = &mut self.contenders[turn.index];
        contender.took_ns = took_ns;
        if partial.lost_memory() {
            contender.lost += 1;
        } else {
            contender.partial.join(partial);
        }
    }

    /// A strategy cannot be measured, or not again.
    pub fn settled(&mut self, turn: Turn, outcome: Outcome) {
        let contender = &mut self.contenders[turn.index];
        contender.is_in = false;
        // One process that was cut off by the end of the budget takes nothing from the others.
        if contender.partial.processes() == 0 {
            contender.settled = Some(outcome);
        }
    }

    /// The case of a turn.
    pub fn planned(&self, turn: Turn) -> &Planned {
        &self.contenders[turn.index].planned
    }

    /// What is left of every strategy: its case, and what was measured or why nothing was.
    pub fn finish(self) -> impl Iterator<Item = (Planned, Result<Partial, Outcome>)> {
        self.contenders.into_iter().map(|contender| {
            let Contender { planned, mut partial, lost, settled, .. } = contender;
            if lost > 0 {
                partial.warn(&[format!(
                    "free page reporting handed memory back to the host in {lost} rounds, which \
                     were left out"
                )]);
            }
            let came = match (partial.processes(), settled, lost) {
                (0, Some(outcome), _) => Err(outcome),
                (0, None, 0) => Err(out_of_time()),
                (0, None, _) => Err(Outcome::Skipped {
                    need: "a round in which the host took no memory back".to_owned(),
                    cure: "ask again, or give it more time, for example --budget 15".to_owned(),
                }),
                _ => Ok(partial),
            };
            (planned, came)
        })
    }

    fn drop_the_slow(&mut self, left_ns: u64) {
        let still = self.contenders.iter().filter(|contender| contender.is_in);
        let round_ns: u64 = still.map(|contender| contender.took_ns).sum();
        let affordable = left_ns / round_ns.max(1);
        let (hurry, strictest) = match ROUNDS_AMPLE.iter().position(|ample| affordable >= *ample) {
            Some(step) => (0, step + 1),
            None => (1, DROPPED_ABOVE.len() - 1),
        };
        let times: Vec<Option<f64>> = self
            .contenders
            .iter()
            .map(|contender| {
                let measured = contender.partial.measured();
                let is_valid = contender.is_in && measured.is_valid();
                is_valid
                    .then(|| kindest(measured, kinds::asked(&contender.planned.case).populate))?
            })
            .collect();
        let Some(best) = times.iter().flatten().copied().reduce(f64::min) else { return };
        let step = (self.round as usize + hurry).min(strictest);
        let is_slow =
            |time: Option<f64>| time.is_some_and(|time| time > DROPPED_ABOVE[step] * best);
        let quick_alone: Vec<String> = (self.contenders.iter().zip(&times))
            .filter(|(contender, time)| time.is_some() && !is_slow(**time) && contender.is_alone())
            .map(|(contender, _)| contender.page())
            .collect();
        for (contender, time) in self.contenders.iter_mut().zip(times) {
            let is_doubtful =
                self.round == 0 && !contender.is_alone() && quick_alone.contains(&contender.page());
            let is_invalid = !contender.partial.measured().is_valid();
            contender.is_in &= (!is_slow(time) || is_doubtful) && !is_invalid;
        }
    }
}

impl Contender {
    /// Whether one thread does it.
    fn is_alone(&self) -> bool {
        kinds::asked(&self.planned.case).threads == 1
    }

    fn page(&self) -> String {
        self.planned.case.get("page").unwrap_or_default().to_owned()
    }
}

/// What came of a strategy that the budget had no time for.
pub fn out_of_time() -> Outcome {
    Outcome::Skipped {
        need: "time within the budget".to_owned(),
        cure: "give it more, for example --budget 15".to_owned(),
    }
}

/// Nanoseconds until the sample is present in the best repetition of all processes, which
/// disturbances reach last: whoever was quick once stays, and medians decide in the end.
fn kindest(measured: &Measured, populate: Populate) -> Option<f64> {
    let mut sums: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for series in measured.series.iter().filter(|series| series.clock != Clock::Cpu) {
        let counts = match series.name.as_str() {
            "map" | "advise" | "populate" => true,
            "touch" => populate.touches_fault(),
            _ => false,
        };
        if let (true, Data::Values(values)) = (counts, &series.data) {
            let sum = sums.entry((series.process, series.repetition)).or_default();
            *sum += values.iter().sum::<u64>() as f64;
        }
    }
    sums.into_values().reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use pagelab_record::{Series, Unit};
    use pagelab_sys::time::ClockChoice;
    use proptest::prelude::*;

    use super::*;
    use crate::advise::{Policy, Question};

    fn cases(count: usize, threads: u32) -> Vec<Planned> {
        let question =
            Question { size: 64 << 20, threads, policy: Policy::Base, budget_s: 5.0, fifo: false };
        let (_, plan) = question.survey().unwrap().plan(ClockChoice::Raw);
        plan.into_iter().cycle().take(count).collect()
    }

    fn took(turn: Turn, ns: u64) -> Partial {
        let series = |name: &str| Series {
            process: turn.round,
            ..Series::new(name, "pagelab", Clock::Wall, Unit::Ns, vec![ns / 2])
        };
        let mut partial = Partial::default();
        let series = vec![series("map"), series("populate")];
        partial.add(Measured { series, ..Measured::default() }, BTreeMap::new());
        partial
    }

    /// Runs a course over strategies that take these times; returns the turns of each.
    fn run(times: &[u64], budget_ns: u64) -> Vec<u32> {
        let mut course = Course::new(cases(times.len(), 1), budget_ns);
        let (mut turns, mut passed) = (vec![0; times.len()], 0);
        while let Some(turn) = course.next(passed) {
            turns[turn.index] += 1;
            passed += times[turn.index];
            course.measured(turn, took(turn, times[turn.index]), times[turn.index]);
        }
        turns
    }

    #[test]
    fn the_slow_drop_out_and_the_close_ones_go_on() {
        // Above 1.6 times the best after one round, 1.35 after two, 1.2 after three.
        let times = [100, 105, 130, 150, 300];
        assert_eq!(run(&times, 3000)[2..], [3, 2, 1]);
        // Where there is time, only what is far behind, and not for one bad round.
        assert_eq!(run(&times, u64::MAX), [40, 40, 40, 40, 1]);
        assert_eq!(run(&[100, 200], u64::MAX), [3, 2]);
    }

    #[test]
    fn threads_that_were_slower_than_one_are_doubted_once_however_short_the_time() {
        let mut cases = cases(16, 2);
        let page = |planned: &Planned| planned.case.get("page").unwrap_or_default().to_owned();
        let (alone, many): (Vec<_>, Vec<_>) = cases
            .drain(..)
            .partition(|planned| planned.case.get("threads").is_none_or(|threads| threads == "1"));
        let one = alone[0].clone();
        let two = many.into_iter().find(|many| page(many) == page(&one)).unwrap();
        for (later, turns) in [(60, 3), (900, 2)] {
            let mut course = Course::new(vec![one.clone(), two.clone()], 3000);
            let (mut of_two, mut passed) = (0, 0);
            while let Some(turn) = course.next(passed).filter(|turn| turn.round < 3) {
                let time = if turn.index == 0 {
                    100
                } else if turn.round == 0 {
                    900
                } else {
                    later
                };
                of_two += u32::from(turn.index == 1);
                passed += time;
                course.measured(turn, took(turn, time), time);
            }
            assert_eq!(of_two, turns, "then {later}");
        }
    }

    #[test]
    fn a_strategy_without_a_rival_is_measured_three_times() {
        assert_eq!(run(&[100, 900], u64::MAX), [3, 1]);
    }

    #[test]
    fn what_has_no_time_left_is_skipped_with_a_cure() {
        let mut course = Course::new(cases(2, 1), 150);
        let turn = course.next(0).unwrap();
        course.measured(turn, took(turn, 200), 200);
        assert_eq!(course.next(200), None);
        let left: Vec<_> = course.finish().map(|(_, came)| came).collect();
        assert!(left[0].is_ok());
        assert!(
            matches!(&left[1], Err(Outcome::Skipped { cure, .. }) if cure.contains("--budget"))
        );
    }

    #[test]
    fn a_process_cut_off_at_the_end_takes_nothing_from_those_before_it() {
        let mut course = Course::new(cases(1, 1), 1000);
        let turn = course.next(0).unwrap();
        course.measured(turn, took(turn, 100), 100);
        let turn = course.next(100).unwrap();
        course.settled(turn, Outcome::Failed { reason: "hung".into() });
        assert!(
            course.finish().all(|(_, came)| came.is_ok_and(|partial| partial.processes() == 1))
        );
    }

    proptest! {
        #[test]
        fn the_fastest_is_never_dropped_and_the_budget_is_kept(
            times in prop::collection::vec(50_u64..500, 1..8),
            budget in 100_u64..20_000,
        ) {
            let turns = run(&times, budget);
            let whole: u64 = times.iter().sum();
            let spent: u64 = turns.iter().zip(&times).map(|(n, time)| u64::from(*n) * time).sum();
            // Only a first process, of which nothing is known, can end after the budget.
            prop_assert!(spent <= budget.max(whole) + 500);
            if budget > whole {
                let best = times.iter().min().unwrap();
                let most = turns.iter().max().unwrap();
                let of_best = times.iter().zip(&turns).find(|(time, _)| *time == best);
                prop_assert!(*of_best.unwrap().1 + 1 >= *most);
            }
        }
    }
}
