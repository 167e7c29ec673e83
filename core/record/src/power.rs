//! What a comparison of so many units can see.
//!
//! The one idea: how far the two units of a pair lie apart where nothing differs is known where
//! they were measured, so pairs are drawn from that, one side is made slower, and the verdict is
//! asked. It says nothing of what was not there when they were measured.

use crate::{ranks, verdict::ALPHA};

/// Sets of pairs that are drawn.
const DRAWS: usize = 100;

/// The least slowdowns that so many units find, as shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Units of each side.
    pub units: usize,
    /// Found in half of all comparisons.
    pub half: f64,
    /// Found in nine of ten.
    pub most: f64,
}

/// The least slowdowns that so many units of each side find, where a difference of less than
/// `delta` is none and the two of a pair lie as far apart as these logarithms. `None` where they
/// find none at all.
pub fn seen(apart: &[f64], units: usize, delta: f64) -> Option<Seen> {
    if apart.is_empty() {
        return None;
    }
    let mut rng = fastrand::Rng::with_seed(14);
    let mut draw = || -> Vec<f64> {
        // Either may be the first: what does not differ leans to neither side.
        let one = |rng: &mut fastrand::Rng| {
            let apart = apart[rng.usize(..apart.len())];
            if rng.bool() { apart } else { -apart }
        };
        (0..units).map(|_| one(&mut rng)).collect()
    };
    let mut least: Vec<f64> =
        (0..DRAWS).map(|_| least_found(&draw(), delta)).collect::<Option<_>>()?;
    least.sort_by(f64::total_cmp);
    let at = |share: usize| least[DRAWS * share / 100 - 1].exp_m1();
    Some(Seen { units, half: at(50), most: at(90) })
}

/// The least slowdown of the second of each pair, as a logarithm, that is found. What is slower by
/// some share has its whole interval moved by it, so that nothing need be tried out: beyond 1, not
/// all within a tie, and no chance in a hundred.
fn least_found(apart: &[f64], delta: f64) -> Option<f64> {
    if ranks::smallest_p_of_pairs(apart.len()) >= ALPHA {
        return None;
    }
    let shown = ranks::of_pairs(apart)?;
    let [low, _] = ranks::ends_of_pairs(apart, ranks::OF_A_HUNDRED)?;
    let tie = -(1.0 - delta).ln();
    Some((-low).max(-shown.low).max(tie - shown.high).max(0.0))
}

/// The 95 % interval of a share that was met in so many of all trials (Wilson 1927).
pub fn share_interval(met: usize, trials: usize) -> [f64; 2] {
    const Z: f64 = 1.959_963_984_540_054;
    if trials == 0 {
        return [0.0, 1.0];
    }
    let (n, p) = (trials as f64, met as f64 / trials as f64);
    let middle = p + Z * Z / (2.0 * n);
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let whole = 1.0 + Z * Z / n;
    [((middle - half) / whole).max(0.0), ((middle + half) / whole).min(1.0)]
}

/// What a share is at most that was met in so many of all trials: with 95 % confidence no more than
/// this (Clopper and Pearson 1934, the upper side alone).
pub fn share_at_most(met: usize, trials: usize) -> f64 {
    if met >= trials {
        return 1.0;
    }
    // How often at most so many are met where the share is `p`.
    let as_few = |p: f64| {
        let mut chance = (trials as f64 * (-p).ln_1p()).exp();
        let mut sum = chance;
        for k in 0..met {
            chance *= (trials - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
            sum += chance;
        }
        sum
    };
    let (mut low, mut high) = (met as f64 / trials as f64, 1.0 - 1e-12);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if as_few(middle) > 0.05 { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Better, Ratio, Verdict};

    /// A hundred logarithms that scatter like a normal distribution.
    fn noise(spread: f64) -> Vec<f64> {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut normal = || {
            let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
            radius * (std::f64::consts::TAU * rng.f64()).cos()
        };
        (0..100).map(|_| spread * normal()).collect()
    }

    #[test]
    fn more_units_see_less_and_few_see_nothing() {
        let noise = noise(0.01);
        let of = |units| seen(&noise, units, 0.01).unwrap();
        let (eight, ten, more) = (of(8), of(16), of(128));
        assert!(eight.most > ten.most && ten.most > more.most, "{eight:?} {ten:?} {more:?}");
        assert!(eight.half < eight.most);
        // Eight pairs of 1 %: all to one side, and the interval's end beyond a tie.
        assert!((0.01..0.03).contains(&eight.half), "{eight:?}");
        assert_eq!(seen(&noise, 7, 0.01), None, "chance gives as much too often");
        assert_eq!(seen(&[], 8, 0.01), None);
    }

    #[test]
    fn what_is_told_of_a_slowdown_is_what_the_verdict_says_of_it() {
        for units in [8, 20, 100] {
            let apart = &noise(0.02)[..units];
            let least = least_found(apart, 0.01).unwrap();
            let verdict = |shift: f64| {
                let pairs: Vec<[f64; 2]> = apart.iter().map(|d| [(d + shift).exp(), 1.0]).collect();
                let ratio = Ratio::of_pairs(&pairs).unwrap();
                Verdict::judge(&ratio, ratio.p, 0.01, Better::Less)
            };
            assert_eq!(verdict(least + 2e-4), Verdict::Slower, "{units}");
            assert_ne!(verdict(least - 2e-4), Verdict::Slower, "{units}");
        }
    }

    #[test]
    fn nothing_below_a_tie_is_seen() {
        // Hardly any noise: what is left is the tie, as far to either side.
        let eight = seen(&noise(1e-5), 8, 0.03).unwrap();
        assert!((0.030..0.033).contains(&eight.half), "{eight:?}");
    }

    #[test]
    fn what_was_never_met_may_still_be() {
        // 1 - 0.05^(1/100), and of the tables for 1 and 5 of 100.
        let known = [(0, 100, 0.02951), (1, 100, 0.04656), (5, 100, 0.10225), (3, 3, 1.0)];
        for (met, trials, most) in known {
            let found = share_at_most(met, trials);
            assert!((found - most).abs() < 5e-5, "{met} of {trials}: {found}");
        }
        assert!(share_at_most(0, 0) >= 1.0, "of no trial nothing is known");
    }

    #[test]
    fn a_share_lies_in_its_interval_and_never_beyond_all() {
        // Of the tables: 45 of 50 are 78.6 to 95.7 %.
        let [low, high] = share_interval(45, 50);
        assert!((low - 0.7864).abs() < 5e-4 && (high - 0.9565).abs() < 5e-4, "{low} {high}");
        let ends = [share_interval(50, 50)[1], 1.0 - share_interval(0, 50)[0]];
        assert!(ends.iter().all(|end| (1.0 - end).abs() < 1e-9), "{ends:?}");
        let [low, high] = share_interval(0, 0);
        assert!(low <= 0.0 && high >= 1.0, "of no trial nothing is known");
    }
}
