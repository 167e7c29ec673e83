//! Pages by window, and what walks follow from them.

/// A shortest window that holds so many mean times between two walks of a page says of the rate
/// only that it is high.
const FULL: f64 = 2.5;

/// Pages that were walked to within windows, rising and ever more slowly.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Window and pages; the first is nothing within no time.
    points: Vec<[f64; 2]>,
    /// How often a page is walked to within the shortest window, on average.
    turns: f64,
}

/// Walks whose page was walked to about so long before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    /// How many in a unit of the windows' time, at least; and most likely.
    pub least: f64,
    /// As above.
    pub likely: f64,
    /// The window within which so much else was walked to; of the longest, infinite.
    pub window: f64,
}

impl Curve {
    /// Through windows and what was walked to in them, each with its weight; `None` without any.
    pub fn through(points: &[[f64; 3]]) -> Option<Self> {
        let mut points: Vec<[f64; 3]> = points
            .iter()
            .copied()
            .filter(|[window, _, weight]| *window > 0.0 && *weight > 0.0)
            .collect();
        points.sort_by(|a, b| a[0].total_cmp(&b[0]));
        points.dedup_by(|b, a| {
            // What is no longer than another is the same.
            let is_same = b[0] <= a[0] * 1.2;
            if is_same {
                let weight = a[2] + b[2];
                let mean = |nth: usize| (a[nth] * a[2] + b[nth] * b[2]) / weight;
                *a = [mean(0), mean(1), weight];
            }
            is_same
        });
        let first = points.first()?;
        let turns = points.get(1).map_or(f64::INFINITY, |second| turns(first, second));
        let turns = if first[1] > 0.0 { turns } else { 0.0 };
        Some(Self { points: falling(&points), turns })
    }

    /// Whether its shortest window was so long that nothing bounds the rate of walks.
    pub fn is_full(&self) -> bool {
        self.turns > FULL
    }

    /// Pages that were walked to within the shortest window.
    pub fn first(&self) -> f64 {
        self.points.get(1).map_or(0.0, |point| point[1])
    }

    /// Pages that are walked to within a window; beyond the longest, as in that.
    pub fn at(&self, window: f64) -> f64 {
        let after = self.points.partition_point(|[known, _]| *known < window);
        let (Some(above), Some(below)) = (self.points.get(after), after.checked_sub(1)) else {
            return if after == 0 { 0.0 } else { self.points.last().map_or(0.0, |last| last[1]) };
        };
        let below = self.points[below];
        below[1] + (above[1] - below[1]) * (window - below[0]) / (above[0] - below[0])
    }

    /// All walks, by the time since their page was walked to before.
    pub fn bands(&self) -> Vec<Band> {
        let slopes: Vec<f64> = self
            .points
            .windows(2)
            .map(|pair| (pair[1][1] - pair[0][1]) / (pair[1][0] - pair[0][0]))
            .collect();
        let Some(first) = slopes.first().copied() else { return Vec::new() };
        let turns = self.turns.min(FULL);
        let likely = if turns > 1e-6 { first * turns / (1.0 - (-turns).exp()) } else { first };
        // At least: each page of the shortest window once, however often it was.
        let again = Band { least: 0.0, likely: likely - first, window: self.points[1][0] / 2.0 };
        let ends = slopes.iter().skip(1).copied().chain([0.0]);
        let windows = self.points.iter().skip(1).map(|point| point[0]);
        let last = slopes.len() - 1;
        let others = slopes.iter().zip(ends).zip(windows).enumerate();
        let others = others.map(|(nth, ((slope, next), window))| {
            let (rate, window) =
                if nth == last { (*slope, f64::INFINITY) } else { (slope - next, window) };
            Band { least: rate, likely: rate, window }
        });
        std::iter::once(again).chain(others).collect()
    }
}

/// How often a page comes within the shorter window, if it comes at random times: by how much more
/// the longer one holds.
fn turns(first: &[f64; 3], second: &[f64; 3]) -> f64 {
    let [longer, more] = [second[0] / first[0], second[1] / first[1]];
    let held = |turns: f64| (1.0 - (-turns * longer).exp()) / (1.0 - (-turns).exp());
    let (mut low, mut high) = (1e-6, 20.0);
    if more >= held(low) {
        return 0.0;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        // The more often a page comes, the less a longer window adds.
        if held(middle) > more { low = middle } else { high = middle }
    }
    low
}

/// The nearest points whose slopes never rise, and never fall below nothing: neighbours that do
/// share their mean.
fn falling(points: &[[f64; 3]]) -> Vec<[f64; 2]> {
    let mut pools: Vec<[f64; 2]> = Vec::with_capacity(points.len());
    let mut before = [0.0, 0.0];
    for [window, pages, _] in points {
        let mut pool = [window - before[0], pages - before[1]];
        before = [*window, *pages];
        while let Some([width, rise]) =
            pools.pop_if(|[width, rise]| *rise * pool[0] < pool[1] * *width)
        {
            pool = [pool[0] + width, pool[1] + rise];
        }
        pools.push(pool);
    }
    let mut at = [0.0, 0.0];
    let steps = pools.into_iter().map(|[width, rise]| {
        at = [at[0] + width, at[1] + rise.max(0.0)];
        at
    });
    std::iter::once([0.0, 0.0]).chain(steps).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pages that are walked to at random times, so many at such a rate.
    fn seen(pages: &[(f64, f64)], windows: &[f64]) -> Vec<[f64; 3]> {
        let of = |window: f64| {
            pages.iter().map(|(many, rate)| many * (1.0 - (-rate * window).exp())).sum()
        };
        windows.iter().map(|window| [*window, of(*window), 1.0]).collect()
    }

    fn sums(curve: &Curve) -> [f64; 2] {
        let bands = curve.bands();
        [bands.iter().map(|band| band.least).sum(), bands.iter().map(|band| band.likely).sum()]
    }

    const WINDOWS: [f64; 4] = [1.0, 3.0, 10.0, 30.0];

    #[test]
    fn pages_that_never_come_again_are_walked_once_each() {
        let curve = Curve::through(&WINDOWS.map(|window| [window, window * 500.0, 1.0])).unwrap();
        let [least, likely] = sums(&curve);
        assert!((least - 500.0).abs() < 1e-6 && (likely - 500.0).abs() < 1.0, "{curve:?}");
        assert!(curve.bands().last().unwrap().window.is_infinite());
        assert!(!curve.is_full());
        assert!((curve.at(2.0) - 1000.0).abs() < 1e-6);
        assert!((curve.at(1e9) - 15_000.0).abs() < 1e-6);
    }

    #[test]
    fn pages_that_all_come_within_the_shortest_window_leave_their_rate_open() {
        let curve = Curve::through(&seen(&[(1000.0, 8.0)], &WINDOWS)).unwrap();
        assert!(curve.is_full());
        let [least, _] = sums(&curve);
        assert!((least - 1000.0).abs() < 1.0, "each of them once in the window");
        let alone = Curve::through(&[[1.0, 1000.0, 1.0]]).unwrap();
        assert!(alone.is_full(), "one window says nothing of those within it");
    }

    #[test]
    fn nothing_walked_to_is_no_walk() {
        let curve = Curve::through(&WINDOWS.map(|window| [window, 0.0, 1.0])).unwrap();
        assert_eq!((sums(&curve), curve.is_full()), ([0.0, 0.0], false));
        assert_eq!(Curve::through(&[]), None);
        assert_eq!(Curve::through(&[[0.0, 5.0, 1.0], [1.0, 5.0, 0.0]]), None);
    }

    proptest! {
        #[test]
        fn pages_of_one_rate_are_found_to_the_percent(
            many in 10.0_f64..1e6, rate in 1e-4_f64..2.0,
        ) {
            let curve = Curve::through(&seen(&[(many, rate)], &WINDOWS)).unwrap();
            let [least, likely] = sums(&curve);
            let truth = many * rate;
            prop_assert!(least <= truth * 1.0001, "{least} of {truth}");
            prop_assert!((likely / truth - 1.0).abs() < 0.02, "{likely} of {truth}");
            prop_assert!(!curve.is_full());
        }

        #[test]
        fn of_many_rates_the_least_is_never_too_much_and_a_curve_that_is_not_full_not_far_off(
            pages in proptest::collection::vec((10.0_f64..1e5, 1e-4_f64..3.0), 1..6),
        ) {
            let curve = Curve::through(&seen(&pages, &WINDOWS)).unwrap();
            let [least, likely] = sums(&curve);
            let truth: f64 = pages.iter().map(|(many, rate)| many * rate).sum();
            prop_assert!(least <= truth * 1.0001, "{least} of {truth}");
            prop_assert!(least <= likely * 1.0001);
            prop_assert!(curve.is_full() || likely > truth / 3.0, "{likely} of {truth}");
            prop_assert!(likely < truth * 1.2, "{likely} of {truth}");
        }

        #[test]
        fn whatever_was_seen_rates_and_pages_are_numbers_and_none_is_negative(
            points in proptest::collection::vec((0.0_f64..100.0, 0.0_f64..1e6), 0..12),
        ) {
            let points: Vec<[f64; 3]> = points.iter().map(|(w, n)| [*w, *n, 1.0]).collect();
            if let Some(curve) = Curve::through(&points) {
                for band in curve.bands() {
                    prop_assert!(band.least >= -1e-6 && band.likely >= -1e-6, "{band:?}");
                    prop_assert!(band.likely.is_finite() && !band.window.is_nan());
                }
                for pair in [0.0, 1.0, 10.0, 1e3].windows(2) {
                    prop_assert!(curve.at(pair[0]) <= curve.at(pair[1]) + 1e-6);
                }
            }
        }
    }
}
