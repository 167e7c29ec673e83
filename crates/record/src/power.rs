//! What a comparison of so many units can see.
//!
//! The one idea: how far units of one thing lie apart is known where they were measured, so two
//! sides are drawn from them, one is made slower, and the verdict is asked. It says nothing of what
//! was not there when they were measured.

use crate::verdict::{Better, Ratio, Verdict};

/// Pairs of sides that are drawn.
const DRAWS: usize = 60;
/// Steps after which a pair is given up: nothing is slow enough for it.
const STEPS_MAX: usize = 200;

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
/// `delta` is none and units scatter like these logarithms. `None` where they find none at all.
pub fn seen(logarithms: &[f64], units: usize, delta: f64) -> Option<Seen> {
    if logarithms.is_empty() {
        return None;
    }
    let mut rng = fastrand::Rng::with_seed(14);
    let mut side = || -> Vec<f64> {
        (0..units).map(|_| logarithms[rng.usize(..logarithms.len())].exp()).collect()
    };
    let mut least: Vec<f64> =
        (0..DRAWS).map(|_| least_found(&side(), &side(), delta)).collect::<Option<_>>()?;
    least.sort_by(f64::total_cmp);
    let at = |share: usize| least[DRAWS * share / 100 - 1].exp_m1();
    Some(Seen { units, half: at(50), most: at(90) })
}

/// The least slowdown of `b`, as a logarithm, that is found.
fn least_found(a: &[f64], b: &[f64], delta: f64) -> Option<f64> {
    let of = |shift: f64| {
        let slower: Vec<f64> = b.iter().map(|value| value * shift.exp()).collect();
        Ratio::of(&[a.to_vec()], &[slower])
    };
    let [low, high] = of(0.0)?.interval()?.map(f64::ln);
    // Beyond 1 and not all within a tie; from there on until chance does not explain it.
    let first = (-low).max(-(1.0 - delta).ln() - high).max(0.0) + 1e-9;
    let step = ((high - low) / 20.0).max(1e-4);
    // Longer and longer steps: what scatters widely is still brought to an end.
    let mut shifts = (0..STEPS_MAX).map(|n| first + (n + n * n / 10) as f64 * step);
    shifts.find(|shift| {
        let ratio = of(*shift);
        let verdict = ratio.map(|ratio| Verdict::judge(&ratio, ratio.p, delta, Better::Less));
        verdict == Some(Verdict::Slower)
    })
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let (five, eight, ten) = (of(5), of(8), of(10));
        assert!(five.most > eight.most && eight.most > ten.most, "{five:?} {eight:?}");
        assert!(eight.half < eight.most);
        // Eight units of 1 %: the middle of the interval's end and a hundredth of chance.
        assert!((0.01..0.03).contains(&eight.half), "{eight:?}");
        assert_eq!(seen(&noise, 4, 0.01), None, "chance gives as much too often");
        assert_eq!(seen(&[], 8, 0.01), None);
    }

    #[test]
    fn nothing_below_a_tie_is_seen() {
        // Hardly any noise: what is left is the tie, as far to either side.
        let eight = seen(&noise(1e-5), 8, 0.03).unwrap();
        assert!((0.030..0.033).contains(&eight.half), "{eight:?}");
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
