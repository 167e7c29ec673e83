//! Which rungs are run once more: all of them twice, then plain, what is set up now and the best
//! three, until they are decided.
//!
//! The one idea: whoever looks again and again until a difference shows finds one; so looks are
//! few, each at twice the rounds of the last, and [`pagelab_record::verdict::judge`] makes chance
//! pay for every one of them.

use pagelab_record::verdict::{Better, Judged, Question, Ratio, judge};

/// Rounds of the screen.
pub const SCREEN: u32 = 2;
/// Rungs beside plain and what is set up that go on behind the screen.
pub const BEST: usize = 3;
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

/// The rungs that go on behind the screen, of those with these times beside plain's; some, plain
/// first, are always among them.
pub fn finalists(always: &[usize], rungs: &[Option<Rounds<'_>>]) -> Vec<usize> {
    let plain = always.first().and_then(|at| rungs.get(*at)).copied().flatten().unwrap_or(&[]);
    let quotient = |at: usize| -> Option<f64> { Some(ratio(rungs[at]?, plain)?.value) };
    let mut others: Vec<(usize, f64)> = (0..rungs.len())
        .filter(|at| !always.contains(at))
        .filter_map(|at| Some((at, quotient(at)?)))
        .collect();
    others.sort_by(|one, other| one.1.total_cmp(&other.1));
    let mut chosen = always.to_vec();
    chosen.retain(|at| rungs.get(*at).is_some_and(Option::is_some));
    chosen.extend(others.into_iter().take(BEST).map(|(at, _)| at));
    chosen.sort_unstable();
    chosen.dedup();
    chosen
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
    use pagelab_record::verdict::Verdict;

    use super::*;

    fn rounds(count: u32, ns: impl Fn(u32) -> u32) -> Vec<(u32, f64)> {
        (0..count).map(|round| (round, f64::from(ns(round)))).collect()
    }

    #[test]
    fn plain_and_what_is_set_up_go_on_with_the_best_three() {
        let times: Vec<_> = [100, 101, 90, 120, 80, 95].map(|ns| rounds(2, |_| ns)).into();
        let mut rungs: Vec<Option<Rounds<'_>>> = times.iter().map(|t| Some(&t[..])).collect();
        assert_eq!(finalists(&[0, 1], &rungs), [0, 1, 2, 4, 5]);
        rungs[2] = None;
        assert_eq!(finalists(&[0, 1], &rungs), [0, 1, 3, 4, 5]);
        rungs[1] = None;
        assert_eq!(finalists(&[0, 1], &rungs), [0, 3, 4, 5]);
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
