//! Ranks variants by what was measured, and says when a verdict is looked at.
//!
//! Looking again and again until a difference shows finds one, so looks are few, each at twice the
//! rounds of the last, and [`pagelab_record::verdict::judge`] corrects for every one of them.

use pagelab_record::{
    asked::Reach,
    verdict::{Better, Judged, Question, Ratio, judge},
};

/// Rounds of the screen.
pub const SCREEN: u32 = 2;
/// Rungs beside plain and what is set up that go on behind the screen, at most.
pub const BEST: usize = 3;
/// As many go on without a budget, whatever it takes.
pub const BEST_LEAST: usize = 2;
/// Rounds at the first look: all to one side, they decide each of five.
pub const FIRST_LOOK: u32 = 12;

/// A rung, as far as it has come: by round what is to be small, as nanoseconds are.
pub type Rounds<'r> = &'r [(u32, f64)];

/// One rung's times over another's, round by round; `None` where they share no round.
pub fn ratio(rung: Rounds<'_>, plain: Rounds<'_>) -> Option<Ratio> {
    let pair = |(round, ns): &(u32, f64)| {
        let (_, other) = plain.iter().find(|(other, _)| other == round)?;
        Some([*ns, *other])
    };
    let pairs: Vec<[f64; 2]> = rung.iter().filter_map(pair).collect();
    Ratio::of_pairs(&pairs)
}

/// The rungs with these times beside plain's, in the order in which they are worth more rounds: the
/// fastest of all, of those that leave the machine alone, and of those that need no privilege,
/// which are what a report answers with; then the others by their times.
pub fn ranked(plain: Rounds<'_>, rungs: &[(usize, Reach, Rounds<'_>)]) -> Vec<usize> {
    let quotient = |(at, reach, rounds): &(usize, Reach, Rounds<'_>)| {
        Some((*at, *reach, ratio(rounds, plain)?.value))
    };
    let mut left: Vec<_> = rungs.iter().filter_map(quotient).collect();
    left.sort_by(|one, other| one.2.total_cmp(&other.2));
    let all = [Reach::Machine, Reach::Privileged, Reach::Program];
    let mut ranked: Vec<usize> = Vec::new();
    for among in [&all[..], &all[1..], &all[2..]] {
        let best = left.iter().find(|(_, reach, _)| among.contains(reach));
        ranked.extend(best.map(|(at, ..)| at).filter(|at| !ranked.contains(at)));
    }
    let others = left.iter().map(|(at, ..)| *at).filter(|at| !ranked.contains(at));
    let others: Vec<usize> = others.collect();
    [ranked, others].concat()
}

/// Rounds until the next look, of those that were done: 12, 24, 48.
pub fn next_look(done: u32, most: u32) -> u32 {
    let mut look = FIRST_LOOK;
    while look <= done {
        look = look.saturating_mul(2);
    }
    look.min(most)
}

/// What each of some rungs comes to beside plain, as one family at this look.
pub fn judged(
    rungs: &[Rounds<'_>],
    plain: Rounds<'_>,
    look: u32,
    delta: f64,
) -> Vec<Option<Judged>> {
    let ratios: Vec<Option<Ratio>> = rungs.iter().map(|rung| ratio(rung, plain)).collect();
    let question =
        |ratio: &Ratio| Question { ratio: *ratio, better: Better::Less, look: Some(look) };
    let asked: Vec<Question> = ratios.iter().flatten().map(question).collect();
    let mut judged = judge(&asked, delta).into_iter();
    ratios.iter().map(|ratio| ratio.and_then(|_| judged.next())).collect()
}

#[cfg(test)]
mod tests {
    use pagelab_record::{
        asked::Reach::{Machine, Privileged, Program},
        verdict::Verdict,
    };

    use super::*;

    fn rounds(count: u32, ns: impl Fn(u32) -> u32) -> Vec<(u32, f64)> {
        (0..count).map(|round| (round, f64::from(ns(round)))).collect()
    }

    #[test]
    fn the_best_of_each_answer_goes_before_the_next_best() {
        let plain = rounds(2, |_| 100);
        let times: Vec<_> = [80, 81, 82, 83, 84].map(|ns| rounds(2, |_| ns)).into();
        let of = |reach: [Reach; 5]| {
            let rungs = times.iter().zip(reach).enumerate();
            let rungs: Vec<_> = rungs.map(|(at, (t, reach))| (at, reach, &t[..])).collect();
            ranked(&plain, &rungs)
        };
        assert_eq!(of([Program; 5]), [0, 1, 2, 3, 4]);
        assert_eq!(of([Machine, Machine, Machine, Privileged, Program]), [0, 3, 4, 1, 2]);
        assert_eq!(of([Machine, Machine, Program, Privileged, Program]), [0, 2, 1, 3, 4]);
        assert!(ranked(&[], &[(0, Program, &times[0])]).is_empty());
    }

    #[test]
    fn looks_are_few_and_end_with_the_last_round() {
        assert_eq!([0, 2, 12, 13, 24].map(|done| next_look(done, 40)), [12, 12, 24, 24, 40]);
        assert_eq!(next_look(2, 6), 6);
    }

    #[test]
    fn twelve_rounds_that_all_say_so_are_a_verdict_and_a_lost_round_is_no_pair() {
        let plain = rounds(12, |round| 1000 + round * 7 % 5);
        let fast = rounds(12, |round| 800 + round * 3 % 5);
        let same = rounds(12, |round| 1000 + round * 5 % 7);
        let told = judged(&[&fast, &same, &[]], &plain, 1, 0.03);
        let verdicts: Vec<_> =
            told.iter().map(|judged| judged.map(|judged| judged.verdict)).collect();
        assert_eq!(verdicts, [Some(Verdict::Faster), Some(Verdict::Same), None]);
        assert!(ratio(&fast, &rounds(0, |_| 1)).is_none());
        let half: Vec<_> = plain.iter().copied().filter(|(round, _)| round % 2 == 0).collect();
        assert_eq!(ratio(&fast, &half).unwrap().units, [6, 6]);
    }
}
