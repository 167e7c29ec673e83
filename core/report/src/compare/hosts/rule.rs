//! How far a number lies from those of its group: the modified z-score.
//!
//! The one idea: middle and spread are medians, so that what lies far off moves neither. The score
//! is that of Iglewicz and Hoaglin, *How to Detect and Handle Outliers* (1993): 0.6745 times the
//! distance from the median, over the median of all such distances, with their bound of 3.5.

use pagelab_record::{stats::median, units::place};

/// Beyond this a number lies too far from the others to be one of them.
pub(super) const SCORE_MAX: f64 = 3.5;
/// Of fewer numbers nothing is said: the median distance of three is that of one pair.
pub(super) const NUMBERS_MIN: usize = 5;
/// What the median distance is of a standard deviation, where the numbers are normal.
const OF_DEVIATION: f64 = 0.6745;

/// The middle of some numbers, and how far they lie from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) middle: f64,
    /// The median distance, scaled to a standard deviation.
    pub(super) deviation: f64,
}

impl Spread {
    pub(super) fn of(numbers: impl Iterator<Item = f64> + Clone) -> Self {
        let middle = median(numbers.clone());
        let deviation = median(numbers.map(|number| (number - middle).abs())) / OF_DEVIATION;
        Self { middle, deviation }
    }

    /// How many deviations a number lies above the middle. Where most numbers are equal there is no
    /// deviation, and what is not equal lies infinitely far.
    pub(super) fn score(&self, number: f64) -> f64 {
        let distance = number - self.middle;
        if distance == 0.0 { 0.0 } else { distance / self.deviation }
    }
}

/// The quantile `q` of sorted numbers, by the nearest rank.
pub(super) fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = place((q * sorted.len() as f64).ceil());
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_far_from_the_others_do_not_hide_themselves() {
        let numbers = [2.1, 2.6, 2.4, 2.5, 2.3, 2.1, 2.3, 2.6, 8.2, 8.3];
        let spread = Spread::of(numbers.iter().copied());
        assert!((spread.middle - 2.45).abs() < 1e-9);
        assert!((spread.deviation - 0.15 / 0.6745).abs() < 1e-9, "{}", spread.deviation);
        let beyond = numbers.iter().filter(|number| spread.score(**number).abs() > SCORE_MAX);
        assert_eq!(beyond.copied().collect::<Vec<_>>(), [8.2, 8.3]);
        // By mean and standard deviation neither is beyond 3, let alone 3.5.
        let mean = numbers.iter().sum::<f64>() / 10.0;
        let square = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / 9.0;
        assert!((8.3 - mean) / square.sqrt() < 2.0);
    }

    #[test]
    fn what_differs_from_equal_numbers_lies_infinitely_far() {
        let spread = Spread::of([1.0, 1.0, 1.0, 2.0].into_iter());
        assert!(spread.score(1.0).abs() < f64::EPSILON);
        assert!(spread.score(2.0).is_infinite() && spread.score(2.0) > 0.0);
        assert!(spread.score(0.5).is_infinite() && spread.score(0.5) < 0.0);
    }

    #[test]
    fn a_quantile_is_a_number_that_is_there() {
        let numbers = [1.0, 2.0, 3.0, 4.0];
        for (q, expected) in [(0.0, 1.0), (0.25, 1.0), (0.5, 2.0), (1.0, 4.0_f64)] {
            assert!((quantile(&numbers, q) - expected).abs() < f64::EPSILON);
        }
    }
}
