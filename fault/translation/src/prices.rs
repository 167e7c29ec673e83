//! What translation adds to a load: from records of `tlb/chase` to the price of a page size at any
//! distance.
//!
//! The one idea: a page that is used again after so many others are, costs what a load of a chain
//! over so many pages costs more than over larger pages. The two were measured in turns in one
//! process, over the same lines in the same order; so the price is a difference of pairs, and holds
//! no cache miss of the data. Between two sizes of chain it lies on the line between them, by the
//! logarithm of the distance, and it never falls where the distance grows: a TLB that does not hold
//! so many pages does not hold more.

use std::collections::BTreeMap;

use pagelab_record::{
    Clock, Data, Measured, Nature, Record, Series, ranks,
    stats::median,
    units::parse_bytes,
    vocabulary::{
        arm::{AGAINST, OURS},
        series::LOAD,
    },
};

use crate::WORKLOAD;

/// Nanoseconds that a load takes more over the smaller pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extra {
    /// The median over processes.
    pub value: f64,
    /// The low end.
    pub low: f64,
    /// The high end.
    pub high: f64,
    /// How often an interval made this way holds the truth; below 95 % it is the span of what was
    /// seen.
    pub coverage: f64,
    /// The processes that it rests on; of a price between two distances, the fewer.
    pub processes: usize,
}

/// What a load of a case takes more over the pages under test than over those beside them; `None`
/// where nothing stands beside them.
///
/// Each repetition has both arms, one right after the other: a process is the median of its
/// differences.
pub fn extra(measured: &Measured) -> Option<Extra> {
    let mut pairs: BTreeMap<(u32, u32), [Option<f64>; 2]> = BTreeMap::new();
    let is_load = |clock: Clock| clock != Clock::Cpu;
    for series in measured.series.iter().filter(|s| s.name == LOAD && is_load(s.clock)) {
        let Some(arm) = [OURS, AGAINST].iter().position(|arm| *arm == series.arm) else { continue };
        let Data::Values(values) = &series.data else { continue };
        let loads = series.ops.max(1) as f64;
        let time = median(values.iter().map(|value| *value as f64 / loads));
        pairs.entry((series.process, series.repetition)).or_default()[arm] = Some(time);
    }
    let mut processes: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for ((process, _), [ours, other]) in pairs {
        let difference = ours.zip(other).map(|(ours, other)| ours - other);
        processes.entry(process).or_default().extend(difference);
    }
    let told = processes.into_values().filter(|differences| !differences.is_empty());
    let medians: Vec<f64> = told.map(median).collect();
    let ranks::Shift { value, low, high, coverage, .. } = ranks::of_pairs(&medians)?;
    Some(Extra { value, low, high, coverage, processes: medians.len() })
}

/// What a load of a case takes over the pages under test: the median of the processes' medians.
pub fn load(measured: &Measured) -> Option<f64> {
    let mut processes: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let is_ours =
        |series: &&Series| series.name == LOAD && series.arm == OURS && series.clock != Clock::Cpu;
    for series in measured.series.iter().filter(is_ours) {
        let Data::Values(values) = &series.data else { continue };
        let loads = series.ops.max(1) as f64;
        let time = median(values.iter().map(|value| *value as f64 / loads));
        processes.entry(series.process).or_default().push(time);
    }
    (!processes.is_empty()).then(|| median(processes.into_values().map(median)))
}

/// Bytes of a page by its name, `64k`, `2m`, `hugetlb-1g`; `None` of what is none.
pub fn page_bytes(page: &str) -> Option<u64> {
    parse_bytes(page.strip_prefix("hugetlb-").unwrap_or(page)).ok().filter(|bytes| *bytes > 0)
}

/// What pages of one size cost by distance.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    /// The page size.
    pub page: String,
    /// The one that it was measured against, which is larger.
    pub against: String,
    /// How many loads were under way at once; of 1 each waited for the one before it.
    pub together: u64,
    /// By distance, rising.
    points: Vec<(f64, Extra)>,
    /// What a load took in all, by distance.
    loads: Vec<(f64, f64)>,
}

impl Prices {
    /// The prices that some records hold, by the pages that were compared. What is not valid, or of
    /// an emulated machine, holds none.
    pub fn of<'r>(records: impl IntoIterator<Item = &'r Record>) -> Vec<Self> {
        type Points = (Vec<(f64, Extra)>, Vec<(f64, f64)>);
        let mut by_pages: BTreeMap<(&str, &str, u64), Points> = BTreeMap::new();
        for record in records.into_iter().filter(|record| record.workload == WORKLOAD) {
            let valid = record.valid().filter(|_| record.nature == Nature::Measured);
            let Some(measured) = valid else { continue };
            let named = |name| record.case.get(name);
            let (Some(page), Some(against)) = (named("page"), named("against")) else { continue };
            let size = named("size").and_then(|size| parse_bytes(size).ok());
            let (Some(bytes), Some(other), Some(size)) =
                (page_bytes(page), page_bytes(against), size)
            else {
                continue;
            };
            if let Some(extra) = extra(measured).filter(|_| bytes < other) {
                let distance = size.div_ceil(bytes) as f64;
                let together = named("together").and_then(|many| many.parse().ok()).unwrap_or(1);
                let (points, loads) = by_pages.entry((page, against, together)).or_default();
                points.push((distance, extra));
                loads.extend(load(measured).map(|load| (distance, load)));
            }
        }
        let prices =
            by_pages.into_iter().map(|((page, against, together), (points, mut loads))| {
                loads.sort_by(|(a, _), (b, _)| a.total_cmp(b));
                Self { together, loads, ..Self::through(page, against, points) }
            });
        prices.collect()
    }

    /// Prices through some points, in any order: of several at one distance the first counts.
    fn through(page: &str, against: &str, mut points: Vec<(f64, Extra)>) -> Self {
        points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        points.dedup_by_key(|(distance, _)| *distance);
        let of = |number: fn(&Extra) -> f64| {
            rising(points.iter().map(|(_, extra)| number(extra)).collect())
        };
        let (values, lows, highs) = (of(|e| e.value), of(|e| e.low), of(|e| e.high));
        for (nth, (_, extra)) in points.iter_mut().enumerate() {
            *extra = Extra { value: values[nth], low: lows[nth], high: highs[nth], ..*extra };
        }
        let (page, against) = (page.to_owned(), against.to_owned());
        Self { page, against, together: 1, points, loads: Vec::new() }
    }

    /// Nanoseconds that a load took in all where so many pages were used between two uses of a
    /// page: as at the nearest distance that was measured.
    pub fn load_at(&self, distance: f64) -> Option<f64> {
        let off = |known: f64| (known / distance.max(1.0)).ln().abs();
        let nearest = self.loads.iter().min_by(|(a, _), (b, _)| off(*a).total_cmp(&off(*b)));
        nearest.map(|(_, load)| *load)
    }

    /// The distances between which it was measured, in pages.
    pub fn reach(&self) -> Option<[f64; 2]> {
        Some([self.points.first()?.0, self.points.last()?.0])
    }

    /// Nanoseconds that an access takes more over these pages than over the larger ones where so
    /// many pages are used between two uses of a page. Beyond what was measured it is what the
    /// nearest distance cost. `None` without a single measurement, or for no number.
    pub fn at(&self, distance: f64) -> Option<Extra> {
        if distance.is_nan() {
            return None;
        }
        let after = self.points.partition_point(|(known, _)| *known < distance);
        let Some(above) = self.points.get(after) else {
            return self.points.last().map(|(_, extra)| *extra);
        };
        let Some(below) = after.checked_sub(1).map(|before| self.points[before]) else {
            return Some(above.1);
        };
        let part = (distance / below.0).ln() / (above.0 / below.0).ln();
        let between = |number: fn(&Extra) -> f64| {
            let [low, high] = [below, *above].map(|(_, extra)| number(&extra));
            low + (high - low) * part.clamp(0.0, 1.0)
        };
        Some(Extra {
            value: between(|e| e.value),
            low: between(|e| e.low),
            high: between(|e| e.high),
            coverage: below.1.coverage.min(above.1.coverage),
            processes: below.1.processes.min(above.1.processes),
        })
    }
}

/// The nearest numbers that never fall, by least squares: neighbours that do share their mean. What
/// lies nowhere below other numbers is nowhere below them afterwards.
fn rising(numbers: Vec<f64>) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::with_capacity(numbers.len());
    for number in numbers {
        let mut pool = (number, 1);
        while let Some((mean, count)) = pools.pop_if(|(mean, _)| *mean > pool.0) {
            let sum = mean * count as f64 + pool.0 * pool.1 as f64;
            pool = (sum / (count + pool.1) as f64, count + pool.1);
        }
        pools.push(pool);
    }
    pools.into_iter().flat_map(|(mean, count)| std::iter::repeat_n(mean, count)).collect()
}

#[cfg(test)]
mod tests {
    use pagelab_record::Unit;
    use proptest::prelude::*;

    use super::*;

    fn series(process: u32, repetition: u32, arm: &str, ns: f64) -> Series {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few")]
        let data = Data::Values(vec![(ns * 1000.0).round() as u64]);
        let (name, arm) = (LOAD.to_owned(), arm.to_owned());
        let (clock, unit) = (Clock::Tsc, Unit::Ns);
        Series { name, arm, process, repetition, clock, unit, ops: 1000, bytes: 0, data }
    }

    /// A case whose processes each have a load of their own and pay so much for small pages.
    fn measured(extra: f64) -> Measured {
        let both = |process: u32| {
            (0..3).flat_map(move |repetition| {
                let plain = 80.0 + f64::from(process * 7 + repetition * 3);
                [
                    series(process, repetition, OURS, plain + extra),
                    series(process, repetition, AGAINST, plain),
                ]
            })
        };
        Measured { series: (0..6).flat_map(both).collect(), ..Measured::default() }
    }

    #[test]
    fn what_disturbs_both_arms_leaves_their_difference_alone() {
        let found = extra(&measured(12.5)).unwrap();
        assert!([found.value, found.low, found.high].iter().all(|ns| (ns - 12.5).abs() < 0.01));
        assert!(found.coverage >= 0.95 && found.processes == 6, "{found:?}");
    }

    #[test]
    fn one_arm_alone_has_no_price() {
        let mut alone = measured(12.5);
        alone.series.retain(|series| series.arm == OURS);
        assert_eq!(extra(&alone), None);
        assert_eq!(extra(&Measured::default()), None);
    }

    fn priced(points: &[(f64, f64)]) -> Prices {
        let extra = |value: f64| Extra {
            value,
            low: value - 1.0,
            high: value + 2.0,
            coverage: 0.95,
            processes: 6,
        };
        let points = points.iter().map(|(distance, value)| (*distance, extra(*value)));
        Prices::through("4k", "2m", points.collect())
    }

    #[test]
    fn a_load_takes_what_its_own_arm_took() {
        // Seven more in each process, and three in each repetition.
        assert_eq!(load(&measured(12.5)), Some(80.0 + 3.0 + 2.5 * 7.0 + 12.5));
        assert_eq!(load(&Measured::default()), None);
        let prices = Prices { loads: vec![(100.0, 5.0), (1e4, 50.0)], ..priced(&[]) };
        for (distance, load) in [(0.0, 5.0), (900.0, 5.0), (1100.0, 50.0), (1e9, 50.0)] {
            assert_eq!(prices.load_at(distance), Some(load), "{distance}");
        }
        assert_eq!(priced(&[]).load_at(1.0), None);
    }

    #[test]
    fn a_price_lies_between_those_of_its_neighbours_by_the_logarithm() {
        let prices = priced(&[(64.0, 0.0), (1024.0, 8.0), (4096.0, 20.0)]);
        let at = |distance| prices.at(distance).unwrap().value;
        for (distance, value) in
            [(1.0, 0.0), (64.0, 0.0), (256.0, 4.0), (2048.0, 14.0), (1e9, 20.0), (0.0, 0.0)]
        {
            assert!((at(distance) - value).abs() < 1e-9, "{distance}: {}", at(distance));
        }
        assert_eq!(prices.at(f64::NAN), None);
        assert_eq!(prices.reach(), Some([64.0, 4096.0]));
        assert_eq!(priced(&[]).at(64.0), None);
    }

    proptest! {
        #[test]
        fn a_price_never_falls_and_lies_in_its_interval(
            points in proptest::collection::vec((1.0_f64..1e7, -5.0_f64..300.0), 1..30),
            mut distances in proptest::collection::vec(0.5_f64..2e7, 2..20),
        ) {
            let prices = priced(&points);
            distances.sort_by(f64::total_cmp);
            let found: Vec<Extra> = distances.iter().map(|d| prices.at(*d).unwrap()).collect();
            for price in &found {
                prop_assert!(price.low <= price.value + 1e-9 && price.value <= price.high + 1e-9);
            }
            for pair in found.windows(2) {
                prop_assert!(pair[0].value <= pair[1].value + 1e-9);
                prop_assert!(pair[0].low <= pair[1].low + 1e-9);
                prop_assert!(pair[0].high <= pair[1].high + 1e-9);
            }
        }

        #[test]
        fn what_rises_already_is_left_as_it_is(
            mut numbers in proptest::collection::vec(-5.0_f64..300.0, 0..30),
        ) {
            let smoothed = rising(numbers.clone());
            let sum = |numbers: &[f64]| numbers.iter().sum::<f64>();
            prop_assert!((sum(&smoothed) - sum(&numbers)).abs() < 1e-6);
            prop_assert!(smoothed.is_sorted_by(|a, b| a <= b));
            numbers.sort_by(f64::total_cmp);
            prop_assert_eq!(rising(numbers.clone()), numbers);
        }
    }
}
