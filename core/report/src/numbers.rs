//! Every number that a record implies, derived once.
//!
//! The one idea: tables, charts, JSON and CSV all select from this one list, by arm, series and
//! statistic, so that no two forms of a report can disagree. What any series implies (quantiles,
//! rates) is derived here; what only one workload implies is added by that workload's file.
//!
//! It does not decide what may be quoted: [`crate::entry`] does.

use std::{borrow::Cow, collections::BTreeMap};

use pagelab_record::{Clock, Data, Measured, Series, Summary, Unit as SeriesUnit, stats::Samples};
use serde::{Deserialize, Serialize};

use crate::{Quantity, Unit};

/// The quantiles that a distribution is shown by, with their names.
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

pagelab_record::named! {
    /// Elapsed time, or CPU time: the two that a reader must not mix. Or no time at all.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Time {
        /// By the TSC, the wall clock, or a script.
        Elapsed = "elapsed",
        /// Time on the CPU.
        Cpu = "cpu",
        /// What was counted, whatever the clock.
        None = "none",
    }
}

impl Time {
    /// The time that a clock tells.
    pub fn of(clock: Clock) -> Self {
        match clock {
            Clock::Tsc | Clock::Wall | Clock::Scripted => Self::Elapsed,
            Clock::Cpu => Self::Cpu,
        }
    }
}

/// One derived number and where it belongs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Number {
    /// The arm.
    pub arm: String,
    /// The series, or a name for several taken together.
    pub series: String,
    /// Which time.
    pub time: Time,
    /// Which statistic.
    pub statistic: Cow<'static, str>,
    /// The number.
    #[serde(flatten)]
    pub quantity: Quantity,
}

/// Every number of one record.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub struct Numbers(pub Vec<Number>);

impl Numbers {
    /// What every series implies, whatever was timed.
    pub fn of(measured: &Measured) -> Self {
        let mut numbers = Self::default();
        let mut groups: BTreeMap<(&str, &str, Clock), &Series> = BTreeMap::new();
        for series in &measured.series {
            groups.entry((&series.name, &series.arm, series.clock)).or_insert(series);
        }
        for ((name, arm, clock), first) in groups {
            let time = match first.unit {
                SeriesUnit::Ns | SeriesUnit::Ticks => Time::of(clock),
                SeriesUnit::Bytes | SeriesUnit::Pages | SeriesUnit::Count => Time::None,
            };
            let at = At { arm, series: name, time };
            if let Data::Summary(summary) = &first.data {
                numbers.add_summary(at, summary, unit_of(first.unit));
                continue;
            }
            let samples = Samples::of(&measured.series, name, arm, clock);
            numbers.add_samples(at, &samples, first);
        }
        numbers
    }

    fn add_samples(&mut self, at: At<'_>, samples: &Samples, first: &Series) {
        let unit = unit_of(first.unit);
        let shown = if first.is_distribution() { &QUANTILES[..] } else { &QUANTILES[..1] };
        let median = samples.estimate(0.5);
        let repetitions = median.map_or(1, |median| median.repetitions);
        let all = samples.len() as f64;
        for (name, q) in shown {
            // A quantile beyond which not one observation lies is the maximum by another name. It
            // is taken inside each repetition where that has enough of them, else over all of them
            // together, and then has no interval; where even that is too few there is none.
            let beyond = all * (1.0 - q);
            let quantity = if *q <= 0.5 || beyond >= repetitions as f64 {
                samples.estimate(*q).map(|estimate| Quantity::of(&estimate, unit))
            } else if beyond >= 1.0 {
                let together = samples.merged().value_at_quantile(*q);
                Some(Quantity::exact(together as f64, unit))
            } else {
                None
            };
            self.add(at, *name, quantity);
        }
        for (name, value) in
            [("min", samples.min()), ("max", samples.max()), ("mean", samples.mean())]
        {
            self.add(at, name, value.map(|value| Quantity::exact(value, unit)));
        }
        if let Some(estimate) = median {
            let count = |n: usize| Some(Quantity::exact(n as f64, Unit::Count));
            self.add(at, "n", Some(Quantity::exact(samples.len() as f64, Unit::Count)));
            self.add(at, "processes", count(estimate.processes));
            self.add(at, "repetitions", count(estimate.repetitions));
            if first.bytes > 0 && unit == Unit::Ns {
                // Values are per operation, bytes are per observation.
                let bytes_per_op = first.bytes as f64 / first.ops.max(1) as f64;
                let time = Quantity::of(&estimate, unit);
                self.add(at, "bandwidth", time.under(bytes_per_op * 1e9, Unit::BytesPerSecond));
            }
        }
    }

    fn add_summary(&mut self, at: At<'_>, summary: &Summary, unit: Unit) {
        self.add(at, "n", Some(Quantity::exact(summary.n as f64, Unit::Count)));
        let kept = [
            ("min", summary.min),
            ("p50", summary.p50),
            ("p95", summary.p95),
            ("max", summary.max),
        ];
        for (name, value) in kept {
            self.add(at, name, value.map(|value| Quantity::exact(value as f64, unit)));
        }
    }

    /// Adds a number where there is one.
    pub fn add(
        &mut self,
        at: At<'_>,
        statistic: impl Into<Cow<'static, str>>,
        quantity: Option<Quantity>,
    ) {
        if let Some(quantity) = quantity {
            let At { arm, series, time } = at;
            let (arm, series) = (arm.to_owned(), series.to_owned());
            let statistic = statistic.into();
            self.0.push(Number { arm, series, time, statistic, quantity });
        }
    }

    /// The number at a place.
    pub fn get(&self, at: At<'_>, statistic: &str) -> Option<Quantity> {
        let here = |number: &&Number| {
            (number.arm.as_str(), number.series.as_str()) == (at.arm, at.series)
                && number.time == at.time
                && number.statistic == statistic
        };
        self.0.iter().find(here).map(|number| number.quantity)
    }

    /// The arms that have a series, in order of name, `pagelab` first.
    pub fn arms(&self, series: &str) -> Vec<&str> {
        let mine = self.0.iter().filter(|number| number.series == series);
        let mut arms: Vec<&str> = mine.map(|number| number.arm.as_str()).collect();
        arms.sort_unstable_by_key(|arm| (*arm != "pagelab", *arm));
        arms.dedup();
        arms
    }
}

/// Where a number belongs.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    /// Which of the things compared inside a case.
    pub arm: &'a str,
    /// What was observed.
    pub series: &'a str,
    /// Which time.
    pub time: Time,
}

/// Elapsed time of a series in an arm.
pub const fn elapsed<'a>(arm: &'a str, series: &'a str) -> At<'a> {
    At { arm, series, time: Time::Elapsed }
}

/// CPU time of a series in an arm.
pub fn cpu<'a>(arm: &'a str, series: &'a str) -> At<'a> {
    At { arm, series, time: Time::Cpu }
}

/// What was counted of an arm.
pub fn tally<'a>(arm: &'a str, series: &'a str) -> At<'a> {
    At { arm, series, time: Time::None }
}

/// What was counted of a case as a whole, by the name of what it belongs to.
pub fn counted(series: &str) -> At<'_> {
    tally("", series)
}

/// The clock by which a series of an arm was taken, of those that tell `time`.
pub fn clock_of(series: &[Series], name: &str, arm: &str, time: Time) -> Option<Clock> {
    let mine = series.iter().filter(|s| s.name == name && s.arm == arm);
    mine.map(|s| s.clock).find(|clock| Time::of(*clock) == time)
}

/// Several series taken together: for each process and repetition the sum of their observations.
///
/// A series that an arm does not have adds nothing; one that has fewer observations than `last`
/// adds to the first ones. The result is named after and shaped like `last`.
pub fn summed(
    series: &[Series],
    names: &[&str],
    last: &str,
    arm: &str,
    clock: Clock,
) -> Vec<Series> {
    let mine = |s: &&Series| s.arm == arm && s.clock == clock;
    let mut sums: Vec<Series> =
        series.iter().filter(mine).filter(|s| s.name == last).cloned().collect();
    for sum in &mut sums {
        let Data::Values(values) = &mut sum.data else { continue };
        let same = |s: &&Series| {
            names.contains(&s.name.as_str())
                && (s.process, s.repetition) == (sum.process, sum.repetition)
        };
        for other in series.iter().filter(mine).filter(same) {
            if let Data::Values(more) = &other.data {
                for (value, more) in values.iter_mut().zip(more) {
                    *value = value.saturating_add(*more);
                }
            }
        }
    }
    sums
}

/// The sum of numbers that a foreign journal may have chosen.
pub fn total(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

fn unit_of(unit: SeriesUnit) -> Unit {
    match unit {
        SeriesUnit::Ns => Unit::Ns,
        SeriesUnit::Ticks => Unit::Ticks,
        SeriesUnit::Bytes | SeriesUnit::Pages | SeriesUnit::Count => Unit::Count,
    }
}
