//! Where a curve steps up.
//!
//! The one idea: a plateau is a run of points none of which lies beyond another; the first point
//! whose whole interval is beyond that of the plateau begins a rise, and the rise lasts as long as
//! each point is beyond the one before it. Each rise is one knee, and it lies between the last
//! point of the plateau and the first of the rise. Nothing is fitted, so nothing is found that the
//! intervals do not carry.

use pagelab_report::Quantity;

/// A step smaller than this is none: about two cycles.
const STEP_NS: f64 = 0.5;

/// A rise of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Knee {
    /// The last place of the plateau, and the first one beyond it.
    pub(super) between: [f64; 2],
    /// The first point beyond it less the plateau, in nanoseconds.
    pub(super) step: f64,
    /// The least and the most that the intervals leave of it.
    pub(super) span: [f64; 2],
}

/// A plateau so far: where it ends, and what it spans.
#[derive(Debug, Clone, Copy)]
struct Plateau {
    end: f64,
    value: f64,
    low: f64,
    high: f64,
}

impl Plateau {
    fn at((place, quantity): (f64, Quantity)) -> Self {
        let Quantity { value, low, high, .. } = quantity;
        Self { end: place, value, low, high }
    }

    fn is_below(&self, quantity: Quantity) -> bool {
        quantity.low > self.high && quantity.value - self.value >= STEP_NS
    }
}

/// The knees of a curve, by place.
pub(super) fn knees(points: &[(f64, Quantity)]) -> Vec<Knee> {
    let mut found = Vec::new();
    let mut points = points.iter().copied();
    let Some(first) = points.next() else { return found };
    let (mut plateau, mut rises) = (Plateau::at(first), false);
    for (place, quantity) in points {
        let is_beyond = plateau.is_below(quantity);
        if is_beyond && !rises {
            found.push(Knee {
                between: [plateau.end, place],
                step: quantity.value - plateau.value,
                span: [quantity.low - plateau.high, quantity.high - plateau.low],
            });
        }
        if is_beyond || rises {
            // What is not beyond the last point of a rise begins a plateau with it.
            let joined = if is_beyond { None } else { Some(plateau) };
            plateau = Plateau::at((place, quantity));
            if let Some(last) = joined {
                plateau.low = plateau.low.min(last.low);
                plateau.high = plateau.high.max(last.high);
            }
        } else {
            plateau.end = place;
            plateau.low = plateau.low.min(quantity.low);
            plateau.high = plateau.high.max(quantity.high);
        }
        rises = is_beyond;
    }
    found
}

#[cfg(test)]
mod tests {
    use pagelab_report::Unit;
    use proptest::prelude::*;

    use super::*;

    fn curve(points: &[(u32, f64)], half: f64) -> Vec<(f64, Quantity)> {
        let quantity = |value: f64| Quantity {
            value,
            low: value - half,
            high: value + half,
            coverage: 0.95,
            processes: 6,
            unit: Unit::Ns,
        };
        points.iter().map(|(place, value)| (f64::from(*place), quantity(*value))).collect()
    }

    fn places(points: &[(u32, f64)], half: f64) -> Vec<[f64; 2]> {
        knees(&curve(points, half)).into_iter().map(|knee| knee.between).collect()
    }

    #[test]
    fn two_levels_are_two_knees_and_a_long_rise_is_one() {
        let levels = [
            (32, 0.0),
            (48, 0.1),
            (64, 0.0),
            (96, 2.0),
            (128, 2.1),
            (1024, 2.0),
            (2048, 2.2),
            (3072, 9.0),
            (4096, 14.0),
            (8192, 22.0),
            (16384, 22.1),
        ];
        assert_eq!(places(&levels, 0.2), [[64.0, 96.0], [2048.0, 3072.0]]);
        let step = knees(&curve(&levels, 0.2))[0];
        assert!((step.step - 2.0).abs() < 1e-9 && step.span[0] < 2.0 && step.span[1] > 2.0);
    }

    #[test]
    fn what_the_intervals_do_not_carry_is_no_knee() {
        let levels = [(32, 0.0), (64, 0.0), (96, 2.0), (128, 2.1)];
        assert_eq!(places(&levels, 1.2), Vec::<[f64; 2]>::new());
        assert_eq!(places(&[(32, 0.0), (64, 0.4)], 0.01), Vec::<[f64; 2]>::new());
        assert_eq!(places(&[], 0.1), Vec::<[f64; 2]>::new());
    }

    #[test]
    fn a_rise_after_a_rise_and_one_flat_point_is_another_knee() {
        let levels = [(1, 0.0), (2, 5.0), (4, 5.1), (8, 10.0)];
        assert_eq!(places(&levels, 0.2), [[1.0, 2.0], [4.0, 8.0]]);
    }

    proptest! {
        #[test]
        fn a_curve_that_never_rises_has_no_knee_and_knees_lie_in_order(
            mut values in proptest::collection::vec(0.0_f64..100.0, 0..20), half in 0.0_f64..5.0,
        ) {
            let numbered = |values: &[f64]| -> Vec<(u32, f64)> {
                (1..).zip(values.iter().copied()).collect()
            };
            let found = places(&numbered(&values), half);
            prop_assert!(found.iter().all(|[from, to]| from < to));
            prop_assert!(found.windows(2).all(|pair| pair[0][1] <= pair[1][0]));
            values.sort_by(|a, b| b.total_cmp(a));
            prop_assert!(places(&numbered(&values), half).is_empty());
        }
    }
}
