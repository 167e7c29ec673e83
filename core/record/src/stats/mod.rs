//! From series to a number that may be quoted.
//!
//! The one idea: samples of one process are dependent, so the process is the unit. A quantile is
//! taken inside each process, the median of those is the headline. With six processes or more its
//! interval comes from a hierarchical bootstrap: processes are drawn with replacement, then
//! repetitions inside each (Kalibera & Jones 2013). With fewer no resampling covers 95 %: the
//! interval is then the span of the processes, and says how much that covers. The mean is never a
//! headline.
//!
//! The resampling is seeded, so the same records always give the same interval.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::{
    latency,
    schema::{Clock, Data, Series},
    units::{place, whole},
};

/// Bootstrap resamples: enough for a 95 % interval that is stable to about a tenth of its width.
const RESAMPLES: usize = 400;

/// Fewest processes whose resampling can cover 95 %: the span of six covers 97 %, of five 94 %.
const PROCESSES_FOR_BOOTSTRAP: usize = 6;

/// Medians up to which an observation counts as undisturbed. Refilling the allocator's lists and
/// page-table pages are below; interrupts that hand the CPU to another task are above.
const UNDISTURBED: f64 = 10.0;

/// A quantity with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The headline.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Probability that an interval made this way holds the true median over processes; 0 for one
    /// process, whose interval speaks of its repetitions only.
    pub coverage: f64,
    /// Fresh processes that it rests on.
    pub processes: usize,
    /// Repetitions that it rests on, over all processes.
    pub repetitions: usize,
}

/// Every observation of one repetition, ready for quantiles. Units are the series', per operation.
#[derive(Debug, Clone)]
enum Sample {
    /// Sorted, each divided by `ops`.
    Values(Vec<f64>),
    Histogram(Box<Histogram<u64>>),
}

/// The observations of one series name, arm and clock, by process and repetition.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    processes: Vec<Vec<Sample>>,
    numbers: Vec<u32>,
}

impl Samples {
    /// Gathers the observations of `name` in `arm` by `clock`; summaries are left out.
    pub fn of(series: &[Series], name: &str, arm: &str, clock: Clock) -> Self {
        let mut by_process: BTreeMap<u32, Vec<Sample>> = BTreeMap::new();
        let mine = |s: &&Series| s.name == name && s.arm == arm && s.clock == clock;
        for series in series.iter().filter(mine) {
            let sample = match &series.data {
                Data::Values(values) if !values.is_empty() => {
                    let ops = series.ops.max(1) as f64;
                    let mut values: Vec<f64> = values.iter().map(|v| *v as f64 / ops).collect();
                    values.sort_by(f64::total_cmp);
                    Sample::Values(values)
                }
                Data::Histogram(text) => match latency::decode(text) {
                    Ok(histogram) if !histogram.is_empty() => {
                        Sample::Histogram(Box::new(histogram))
                    }
                    _ => continue,
                },
                Data::Values(_) | Data::Summary(_) => continue,
            };
            by_process.entry(series.process).or_default().push(sample);
        }
        let (numbers, processes) = by_process.into_iter().unzip();
        Self { processes, numbers }
    }

    /// The numbers of its processes, in the order of [`Samples::of_processes`].
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Whether there is no observation at all.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// Number of observations.
    pub fn len(&self) -> u64 {
        let count = |sample: &Sample| match sample {
            Sample::Values(values) => values.len() as u64,
            Sample::Histogram(histogram) => histogram.len(),
        };
        self.processes.iter().flatten().map(count).sum()
    }

    /// The quantile `q` (0 … 1) with its interval; `None` where there is no observation.
    pub fn estimate(&self, q: f64) -> Option<Estimate> {
        self.estimate_of(|sample| quantile(sample, q))
    }

    /// The quantile `q` in each process, which is what a comparison takes: of its repetitions where
    /// each has observations beyond it, else of all its observations together. `None` where a
    /// process has too few of them.
    pub fn of_processes(&self, q: f64) -> Option<Vec<f64>> {
        let repetitions: usize = self.processes.iter().map(Vec::len).sum();
        let is_in_each = q <= 0.5 || self.len() as f64 * (1.0 - q) >= repetitions as f64;
        let of = |process: &Vec<Sample>| {
            if is_in_each {
                return Some(median(process.iter().map(|sample| quantile(sample, q))));
            }
            let together = Self { processes: vec![process.clone()], ..Self::default() };
            let merged = together.merged();
            let is_enough = merged.len() as f64 * (1.0 - q) >= 1.0;
            is_enough.then(|| merged.value_at_quantile(q) as f64)
        };
        self.processes.iter().map(of).collect()
    }

    /// The mean of the observations up to ten medians, with its interval: what adds up
    /// to the time of many, without those during which something else ran.
    pub fn undisturbed_mean(&self) -> Option<Estimate> {
        self.estimate_of(undisturbed_mean)
    }

    /// A statistic of each repetition, and the median of those with its interval.
    fn estimate_of(&self, of: impl Fn(&Sample) -> f64) -> Option<Estimate> {
        if self.is_empty() {
            return None;
        }
        // Taken in each repetition once; resampling then only picks among them.
        let quantiles: Vec<Vec<f64>> =
            self.processes.iter().map(|process| process.iter().map(&of).collect()).collect();
        let headline =
            |picked: &[Vec<f64>]| median(picked.iter().map(|process| median(process.clone())));
        let value = headline(&quantiles);
        let processes = quantiles.len();
        let (low, high, coverage) = if (2..PROCESSES_FOR_BOOTSTRAP).contains(&processes) {
            let medians = quantiles.iter().map(|process| median(process.clone()));
            let low = medians.clone().fold(f64::INFINITY, f64::min);
            let high = medians.fold(f64::NEG_INFINITY, f64::max);
            // All of n fall on one side of the true median with probability 2 · 2^-n.
            (low, high, 1.0 - 0.5_f64.powi(i32::try_from(processes).unwrap_or(i32::MAX) - 1))
        } else {
            let (low, high) = bootstrap(&quantiles, headline);
            (low, high, if processes == 1 { 0.0 } else { 0.95 })
        };
        Some(Estimate {
            value,
            low: low.min(value),
            high: high.max(value),
            coverage,
            processes,
            repetitions: quantiles.iter().map(Vec::len).sum(),
        })
    }

    /// The smallest observation.
    pub fn min(&self) -> Option<f64> {
        self.extreme(|sample| quantile(sample, 0.0), f64::min)
    }

    /// The largest observation.
    pub fn max(&self) -> Option<f64> {
        self.extreme(|sample| quantile(sample, 1.0), f64::max)
    }

    /// The mean of all observations: reported, never a headline.
    pub fn mean(&self) -> Option<f64> {
        let (sum, n) = self.processes.iter().flatten().fold((0.0, 0.0), |(sum, n), sample| {
            let (mean, count) = match sample {
                Sample::Values(values) => {
                    let count = values.len() as f64;
                    (values.iter().sum::<f64>() / count, count)
                }
                Sample::Histogram(histogram) => (histogram.mean(), histogram.len() as f64),
            };
            (sum + mean * count, n + count)
        });
        (n > 0.0).then(|| sum / n)
    }

    /// All observations as one distribution in nanoseconds: what a curve is drawn from.
    pub fn merged(&self) -> Histogram<u64> {
        let mut merged = latency::empty();
        for sample in self.processes.iter().flatten() {
            match sample {
                Sample::Histogram(histogram) => {
                    merged.add(histogram.as_ref()).expect("all histograms have one shape");
                }
                Sample::Values(values) => {
                    for value in values {
                        merged.saturating_record(whole(value.round()));
                    }
                }
            }
        }
        merged
    }

    fn extreme(&self, of: impl Fn(&Sample) -> f64, pick: impl Fn(f64, f64) -> f64) -> Option<f64> {
        self.processes.iter().flatten().map(of).reduce(pick)
    }
}

/// The 95 % interval of a headline: processes drawn with replacement, repetitions inside each.
fn bootstrap(quantiles: &[Vec<f64>], headline: impl Fn(&[Vec<f64>]) -> f64) -> (f64, f64) {
    let mut rng = fastrand::Rng::with_seed(0x9e37_79b9_7f4a_7c15);
    let mut resampled: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let picked: Vec<Vec<f64>> = (0..quantiles.len())
                .map(|_| {
                    let process = &quantiles[rng.usize(..quantiles.len())];
                    (0..process.len()).map(|_| process[rng.usize(..process.len())]).collect()
                })
                .collect();
            headline(&picked)
        })
        .collect();
    resampled.sort_by(f64::total_cmp);
    (resampled[RESAMPLES * 25 / 1000], resampled[RESAMPLES * 975 / 1000 - 1])
}

/// The median of some numbers; of an even count, the mean of the middle two. 0 for none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

fn quantile(sample: &Sample, q: f64) -> f64 {
    match sample {
        Sample::Histogram(histogram) => histogram.value_at_quantile(q) as f64,
        Sample::Values(values) => {
            // Nearest rank; a median of an even count is the mean of the middle two.
            if (q - 0.5).abs() < f64::EPSILON {
                return median(values.iter().copied());
            }
            let rank = place((q * values.len() as f64).ceil());
            values[rank.clamp(1, values.len()) - 1]
        }
    }
}

fn undisturbed_mean(sample: &Sample) -> f64 {
    let limit = UNDISTURBED * quantile(sample, 0.5);
    let add = |(sum, n): (f64, f64), (value, count): (f64, f64)| {
        if value <= limit { (sum + value * count, n + count) } else { (sum, n) }
    };
    let (sum, n) = match sample {
        Sample::Values(values) => values.iter().map(|value| (*value, 1.0)).fold((0.0, 0.0), add),
        Sample::Histogram(histogram) => histogram
            .iter_recorded()
            .map(|step| {
                let middle = histogram.median_equivalent(step.value_iterated_to());
                (middle as f64, step.count_at_value() as f64)
            })
            .fold((0.0, 0.0), add),
    };
    if n > 0.0 { sum / n } else { 0.0 }
}

/// A straight line through points, by least squares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Value at x = 0.
    pub intercept: f64,
    /// Half of the 95 % interval of that value, from how far the points lie from the line.
    pub intercept_error: f64,
    /// Rise for each unit of x.
    pub slope: f64,
    /// Share of the (weighted) variance that the line explains.
    pub r_squared: f64,
}

/// 97.5 % of Student's t, by degrees of freedom from one on; what is more has the last.
const STUDENT: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];

/// Fits y = intercept + slope·x with weights 1/y², so that relative errors count, not absolute
/// ones: a 2 MiB fault must not decide what a 4 KiB fault costs. Needs three points or more.
pub fn fit_relative(points: &[(f64, f64)]) -> Option<Line> {
    if points.len() < 3 || points.iter().any(|(_, y)| *y <= 0.0) {
        return None;
    }
    let weighted = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        points.iter().map(|(x, y)| of(*x, *y) / (y * y)).sum()
    };
    let w = weighted(&|_, _| 1.0);
    let mean_x = weighted(&|x, _| x) / w;
    let mean_y = weighted(&|_, y| y) / w;
    let sxx = weighted(&|x, _| (x - mean_x).powi(2));
    let sxy = weighted(&|x, y| (x - mean_x) * (y - mean_y));
    if sxx <= 0.0 {
        return None;
    }
    let slope = sxy / sxx;
    let intercept = mean_y - slope * mean_x;
    let residual = weighted(&|x, y| (y - intercept - slope * x).powi(2));
    let total = weighted(&|_, y| (y - mean_y).powi(2));
    let r_squared = if total > 0.0 { 1.0 - residual / total } else { 1.0 };
    let freedom = points.len() - 2;
    let variance = residual / freedom as f64 * (1.0 / w + mean_x * mean_x / sxx);
    let intercept_error = STUDENT[freedom.min(STUDENT.len()) - 1] * variance.max(0.0).sqrt();
    Some(Line { intercept, intercept_error, slope, r_squared })
}

#[cfg(test)]
mod tests;
