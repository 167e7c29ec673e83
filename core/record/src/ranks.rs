//! What ranks alone say of two samples: exact permutation tests, and the intervals that invert
//! them.
//!
//! The one idea: where two sets of processes are measured in the same way, every assignment of
//! their ranks is as likely as any other; so how often chance gives what was seen is counted, not
//! assumed. Nothing is asked of the distribution, and one value that is far off counts as one rank.
//! An interval holds every shift that the test would not reject (Hodges and Lehmann 1963).
//!
//! It knows no times and no verdicts: values are any numbers of which a difference makes sense.

use crate::{stats::median, units::place};

/// Units of both samples up to which every assignment is counted; above, the sum of ranks is as
/// good as normal, and is taken to be.
const EXACT_MAX: usize = 64;

/// The share of intervals that shall hold the truth.
pub(crate) const COVERAGE: f64 = 0.95;

/// How sure an interval is to be: the share that shall hold the truth, and the quantile of the
/// normal distribution that belongs to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Level(f64, f64);

/// Of every interval that is shown.
const SHOWN: Level = Level(COVERAGE, 1.959_963_984_540_054);

/// What lies beyond this one, chance gives in one of a hundred.
pub(crate) const OF_A_HUNDRED: Level = Level(0.99, 2.575_829_303_548_901);

/// A shift with its interval, and how often chance alone gives as much.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// The median of all differences, or where they came in pairs, of those of the pairs.
    pub value: f64,
    /// The low end of its interval.
    pub low: f64,
    /// The high end.
    pub high: f64,
    /// How often such an interval holds the shift.
    pub coverage: f64,
    /// Of no shift at all, by both tails.
    pub p: f64,
}

/// How far `b` lies above `a`: the differences of all pairs, and the test of Mann and Whitney.
/// `None` where one of them is empty.
pub(crate) fn of_two(a: &[f64], b: &[f64]) -> Option<Shift> {
    let (here, there) = (a.len(), b.len());
    let mut differences: Vec<f64> = b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let ranks = doubled_ranks(&all);
    let observed = ranks.iter().take(here).sum();
    let [pairs, count] = [here * there, here + there].map(|count| count as f64);
    let (p, cut) = if all.len() <= EXACT_MAX {
        let whole: Vec<usize> = (1..=all.len()).map(|rank| 2 * rank).collect();
        let cut = exact_cut(&sums_of_some(&whole, here), here * (here + 1), SHOWN);
        (both_tails(&sums_of_some(&ranks, here), observed), cut)
    } else {
        let [mean, variance] = moments(&ranks, here);
        let p = normal_tails(observed as f64 - mean, variance);
        (p, normal_cut(pairs, pairs * (count + 1.0) / 12.0, SHOWN))
    };
    between(&mut differences, cut, p)
}

/// How far some differences lie above nothing: their median, and the signed ranks of Wilcoxon,
/// whose interval is of the means of all pairs of them, each with itself as well. `None` where
/// there are none.
pub fn of_pairs(differences: &[f64]) -> Option<Shift> {
    // What does not differ speaks for neither side.
    let told: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let ranks = doubled_ranks(&told.iter().map(|d| d.abs()).collect::<Vec<_>>());
    let above = told.iter().zip(&ranks).filter(|(d, _)| **d > 0.0).map(|(_, rank)| rank).sum();
    let p = if told.len() <= EXACT_MAX {
        both_tails(&sums_of_any(&ranks), above)
    } else {
        let squares: f64 = ranks.iter().map(|rank| (*rank as f64).powi(2)).sum();
        let mean = ranks.iter().sum::<usize>() as f64 / 2.0;
        normal_tails(above as f64 - mean, squares / 4.0)
    };
    let shift =
        between(&mut means_of_pairs(differences), cut_of_pairs(differences.len(), SHOWN), p)?;
    let value = median(differences.iter().copied());
    Some(Shift { value, low: shift.low.min(value), high: shift.high.max(value), ..shift })
}

/// The ends of the interval of some differences at another level than that which is shown. All of
/// them moved by something move the ends by as much.
pub(crate) fn ends_of_pairs(differences: &[f64], level: Level) -> Option<[f64; 2]> {
    let cut = cut_of_pairs(differences.len(), level);
    between(&mut means_of_pairs(differences), cut, 1.0).map(|shift| [shift.low, shift.high])
}

/// The means of all pairs of some differences, each with itself as well.
fn means_of_pairs(differences: &[f64]) -> Vec<f64> {
    let mut means: Vec<f64> = Vec::with_capacity(differences.len() * (differences.len() + 1) / 2);
    for (index, one) in differences.iter().enumerate() {
        means.extend(differences[index..].iter().map(|other| f64::midpoint(*one, *other)));
    }
    means
}

/// How many of those lie outside the interval.
fn cut_of_pairs(count: usize, level: Level) -> Cut {
    if count <= EXACT_MAX {
        let whole: Vec<usize> = (1..=count).map(|rank| 2 * rank).collect();
        return exact_cut(&sums_of_any(&whole), 0, level);
    }
    let n = count as f64;
    normal_cut(n * (n + 1.0) / 2.0, n * (n + 1.0) * (2.0 * n + 1.0) / 24.0, level)
}

/// How far the second sample of each stratum lies above the first, over all of them, and how often
/// chance alone gives as much by both tails: the sums of the ranks in each stratum taken together
/// (van Elteren), so that strata need not be alike. `None` where no stratum has both.
pub(crate) fn of_strata(strata: &[[Vec<f64>; 2]]) -> Option<(f64, f64)> {
    let told: Vec<&[Vec<f64>; 2]> =
        strata.iter().filter(|both| both.iter().all(|sample| !sample.is_empty())).collect();
    let differences =
        told.iter().flat_map(|[a, b]| b.iter().flat_map(|b| a.iter().map(move |a| b - a)));
    let differences: Vec<f64> = differences.collect();
    let units: usize = told.iter().flat_map(|both| both.iter().map(Vec::len)).sum();
    let ranked: Vec<(Vec<usize>, usize)> =
        told.iter().map(|[a, b]| (doubled_ranks(&[&a[..], &b[..]].concat()), a.len())).collect();
    // The first samples' ranks: the higher these, the lower the second ones lie.
    let observed = ranked.iter().flat_map(|(ranks, here)| ranks.iter().take(*here)).sum();
    let p = if units <= EXACT_MAX {
        let each = ranked.iter().map(|(ranks, here)| sums_of_some(ranks, *here));
        both_tails(&each.reduce(|one, other| sums_of_both(&one, &other))?, observed)
    } else {
        let moments = ranked.iter().map(|(ranks, here)| moments(ranks, *here));
        let [mean, variance] = moments.fold([0.0; 2], |sum, of| [sum[0] + of[0], sum[1] + of[1]]);
        normal_tails(observed as f64 - mean, variance)
    };
    (!told.is_empty()).then(|| (median(differences), p))
}

/// How often chance gives the most that so many units of each sample can show, by both tails.
pub(crate) fn smallest_p(units: usize) -> f64 {
    // 2 over the number of ways to choose half of them.
    (1..=units).fold(2.0, |p, k| p * k as f64 / (units + k) as f64).min(1.0)
}

/// The same of so many pairs: all of them to one side.
pub(crate) fn smallest_p_of_pairs(pairs: usize) -> f64 {
    (1..pairs).fold(1.0, |p, _| p / 2.0)
}

/// How many values at each end lie outside the interval, and what it covers.
type Cut = (usize, f64);

/// The median of some values, and the ends that a cut leaves. Where no cut covers enough, the
/// interval is all of them.
fn between(values: &mut [f64], (cut, coverage): Cut, p: f64) -> Option<Shift> {
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len();
    let (low, high) = (values.get(cut).copied()?, values.get((count - 1).checked_sub(cut)?)?);
    let value = f64::midpoint(values[(count - 1) / 2], values[count / 2]);
    Some(Shift { value, low, high: *high, coverage, p })
}

/// Each value's place in order, times two; those that are equal share theirs.
fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    let below = |value: &f64| values.iter().filter(|other| *other < value).count();
    let above = |value: &f64| values.iter().filter(|other| *other > value).count();
    values.iter().map(|value| values.len() + below(value) - above(value) + 1).collect()
}

/// The probability of each sum of `count` of these ranks, every choice being as likely.
fn sums_of_some(ranks: &[usize], count: usize) -> Vec<f64> {
    let most: usize = ranks.iter().sum();
    // By how many were chosen, then by their sum; how many choices there are has no bound, so that
    // each step keeps probabilities: the chance that this one is among the chosen.
    let mut ways = vec![vec![0.0; most + 1]; count + 1];
    ways[0][0] = 1.0;
    let mut reached = 0;
    for (index, rank) in ranks.iter().enumerate() {
        reached += rank;
        for chosen in (0..=count.min(index + 1)).rev() {
            let left = (ranks.len() - index) as f64;
            for sum in (0..=reached).rev() {
                let skip = 1.0 - (count - chosen) as f64 / left;
                let kept = ways[chosen][sum] * skip;
                let came = match sum.checked_sub(*rank) {
                    Some(before) if chosen > 0 => {
                        ways[chosen - 1][before] * (count - (chosen - 1)) as f64 / left
                    }
                    _ => 0.0,
                };
                ways[chosen][sum] = kept.max(0.0) + came;
            }
        }
    }
    ways.pop().unwrap_or_default()
}

/// The probability of each sum of two things that do not depend on each other.
fn sums_of_both(one: &[f64], other: &[f64]) -> Vec<f64> {
    let mut both = vec![0.0; one.len() + other.len() - 1];
    for (at, chance) in one.iter().enumerate() {
        for (sum, other) in both[at..].iter_mut().zip(other) {
            *sum += chance * other;
        }
    }
    both
}

/// Mean and variance of the sum of `count` of these ranks, every choice being as likely.
fn moments(ranks: &[usize], count: usize) -> [f64; 2] {
    let [all, chosen] = [ranks.len(), count].map(|count| count as f64);
    let mean = ranks.iter().sum::<usize>() as f64 / all;
    let spread: f64 = ranks.iter().map(|rank| (*rank as f64 - mean).powi(2)).sum();
    [chosen * mean, chosen * (all - chosen) / (all * (all - 1.0)) * spread]
}

/// The probability of each sum of these ranks where each counts or not, both being as likely.
fn sums_of_any(ranks: &[usize]) -> Vec<f64> {
    let most: usize = ranks.iter().sum();
    let mut ways = vec![0.0; most + 1];
    ways[0] = 1.0;
    for rank in ranks {
        for sum in (0..=most).rev() {
            let came = sum.checked_sub(*rank).map_or(0.0, |before| ways[before]);
            ways[sum] = f64::midpoint(ways[sum], came);
        }
    }
    ways
}

/// Twice the smaller tail of what was observed.
fn both_tails(chances: &[f64], observed: usize) -> f64 {
    let low: f64 = chances.iter().take(observed + 1).sum();
    let high: f64 = chances.iter().skip(observed).sum();
    (2.0 * low.min(high)).min(1.0)
}

/// The largest cut whose interval covers enough; without one, no cut and what that covers. The
/// chances are of twice the ranks, which begin at `least`.
fn exact_cut(chances: &[f64], least: usize, Level(share, _): Level) -> Cut {
    let mut tail = 0.0;
    let mut cut = (0, 1.0 - 2.0 * chances.get(least).copied().unwrap_or(0.5));
    for (index, chance) in chances.iter().skip(least).step_by(2).enumerate() {
        tail += chance;
        // Rounding must not cost an interval that is exact.
        if 1.0 - 2.0 * tail < share - 1e-12 {
            break;
        }
        cut = (index, 1.0 - 2.0 * tail);
    }
    cut
}

fn normal_cut(count: f64, variance: f64, Level(share, normal): Level) -> Cut {
    let cut = place((count / 2.0 - normal * variance.sqrt()).floor().max(1.0)) - 1;
    (cut, share)
}

/// Both tails of the normal distribution beyond a distance, which was counted in steps of two.
fn normal_tails(distance: f64, variance: f64) -> f64 {
    if variance <= 0.0 {
        return 1.0;
    }
    libm::erfc((distance.abs() - 1.0).max(0.0) / (2.0 * variance).sqrt()).min(1.0)
}
