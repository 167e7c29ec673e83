//! The one loop: repeats the arms of a case in this process until the answer is narrow enough.
//!
//! Arms alternate A B, B A, A B …, so that drift hits all of them alike. The first repetition of
//! each arm is warm-up and leaves nothing; it also makes the host back the memory that the next
//! ones touch. A repetition during which the machine handed free memory back to its host is
//! thrown away and taken again: what it touched may have been cold. One that lasts longer than the
//! host ever rests is kept, and what was cold in it is filed apart. One whose file somebody else
//! reclaimed from the page cache is thrown away, too, and one whose claims broke while the kernel
//! moved pages, or once in a process.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use pagelab_record::{
    Case, Data, Measured, Series, Unit,
    units::place,
    vocabulary::{Check, counter, series::PLANTED},
};
use pagelab_sys::{
    memory::make_code_present,
    time::{Clock, ClockChoice, monotonic_raw_ns},
};
use serde::{Deserialize, Serialize};

use crate::{
    inputs::Inputs,
    losses::Losses,
    meter::{COLD, Meter, Witness},
    planted::Planted,
    workload::{Error, Trial, Workload},
};

/// How a case is measured: the same for every case of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// Fresh processes for each case.
    pub forks: u32,
    /// In how many turns over the whole plan they are taken: some of each case, then some more.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub turns: u32,
    /// Fewest repetitions in each process.
    pub repetitions_min: u32,
    /// Most repetitions in each process.
    pub repetitions_max: u32,
    /// Nanoseconds that one process of a case may measure for.
    pub budget_ns: u64,
    /// Stop when the interval of the median is this narrow, as a share of the median.
    pub precision: f64,
    /// Nanoseconds after which a process counts as hung.
    pub limit_ns: u64,
    /// Attempts at one repetition; memory that the host took back during the last is filed apart.
    #[serde(default = "attempts_max")]
    pub attempts_max: u32,
    /// How time is read.
    pub clock: ClockChoice,
    /// A slowdown of every body, where a self-test asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planted: Option<Planted>,
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
const fn is_one(turns: &u32) -> bool {
    *turns == 1
}

/// Attempts where nobody says how many.
pub(crate) const fn attempts_max() -> u32 {
    12
}

/// Attempts are given up when together they took longer than this: the kernel hands free memory to
/// the host every two seconds (`PAGE_REPORTING_DELAY`, `mm/page_reporting.c`) while there is any,
/// so that a repetition as long as this is hardly ever spared.
pub const REST_NS: u64 = 2_000_000_000;

/// Attempts at a repetition whose claims broke while pages were moved, where [`REST_NS`] is over:
/// what moves them does not wait for the host.
const ATTEMPTS_AT_CLAIMS: u32 = 4;

/// Waited before the second attempt; each one after it waits this much longer, 2.6 s in all: what
/// frees memory beside us is given time to come to its end.
const WAIT: Duration = Duration::from_millis(40);

/// The parameter that tells the kernel something against what a case says, and its value where
/// nothing is.
const LIE: &str = "lie";
const NO_LIE: &str = "none";

/// Measures one case in this process; beside the observations come the counters that do not add up
/// over processes.
///
/// # Errors
/// When the machine refuses something that the case needs.
pub fn measure(
    workload: &dyn Workload,
    case: &Case,
    method: &Method,
    process: u32,
    mut inputs: Inputs,
) -> Result<(Measured, BTreeMap<String, u64>), Error> {
    let is_one_pass = workload.about().is_one_pass;
    if !is_one_pass {
        // No loop takes a fault for its own code, whichever is run first.
        make_code_present()?;
    }
    let asked = workload.read(case);
    inputs.left_out = asked.left_out();
    let mut trials = asked.prepare(&inputs)?;
    let mut meter = Meter::new(Clock::new(method.clock), process);
    meter.plant(method.planted);
    let mut witness = Witness::default();
    let fixed = if is_one_pass { Some(1) } else { asked.repetitions() };
    let (fewest, most) =
        fixed.map_or((method.repetitions_min, method.repetitions_max), |fixed| (fixed, fixed));
    let mut losses = Losses::new(method.attempts_max, REST_NS);
    if case.get(LIE).is_some_and(|lie| lie != NO_LIE) {
        losses.be_impatient();
    }
    for trial in trials.iter_mut().filter(|_| !is_one_pass) {
        repeat(trial.as_mut(), None, &mut meter, &mut witness, &mut losses)?;
    }
    let start = meter.clock().now_ns();
    for repetition in 0..most {
        for index in abba(trials.len(), repetition) {
            let trial = trials[index].as_mut();
            if repeat(trial, Some(repetition), &mut meter, &mut witness, &mut losses)? {
                meter.keep();
                witness.keep();
            }
        }
        let spent = meter.clock().now_ns() - start;
        let done = repetition + 1;
        // A slow case stops at two repetitions rather than run on for many times its budget.
        let is_open = fixed.is_none();
        let overdue = is_open && done >= 2 && spent > 4 * method.budget_ns;
        let enough = spent > method.budget_ns || is_narrow(meter.kept(), method.precision);
        if overdue || (is_open && done >= fewest && enough) {
            break;
        }
    }
    losses.testify(&mut witness);
    if let Some(planted) = method.planted {
        testify(planted, meter.kept(), &mut witness);
    }
    if let Clock::Tsc(tsc) = meter.clock() {
        witness.set(counter::TSC_HZ, tsc.hz);
        witness.set("timer_overhead_ticks", tsc.overhead_ticks);
    }
    witness.keep();
    let (measured, lasting) = witness.finish(meter.finish());
    Ok((Measured { left_out: inputs.left_out, ..measured }, lasting))
}

/// Indices of the arms in the order of this repetition: forwards, then backwards.
fn abba(arms: usize, repetition: u32) -> Vec<usize> {
    if repetition.is_multiple_of(2) { (0..arms).collect() } else { (0..arms).rev().collect() }
}

/// One repetition (`None` warms up), taken again while others take its memory or move it; `false`
/// when its memory was always taken.
fn repeat(
    trial: &mut dyn Trial,
    repetition: Option<u32>,
    meter: &mut Meter,
    witness: &mut Witness,
    losses: &mut Losses,
) -> Result<bool, Error> {
    let mut took_ns = 0;
    for attempt in 1..=losses.attempts_max {
        std::thread::sleep(WAIT * (attempt - 1));
        let start = monotonic_raw_ns();
        meter.begin(trial.arm(), repetition);
        witness.begin(trial.arm());
        losses.host.before();
        losses.kernel.before();
        trial.reset()?;
        trial.run(meter)?;
        let is_cold = !losses.host.after() && trial.is_first_touch();
        let was_reclaimed = trial.was_reclaimed();
        took_ns += monotonic_raw_ns() - start;
        let is_last = attempt == losses.attempts_max || took_ns > losses.rest_ns;
        let is_kept = is_cold && !was_reclaimed && is_last;
        if is_kept && repetition.is_some() {
            trial.set_cold_apart(meter);
        }
        trial.verify(witness)?;
        // However long it took: what moves pages is not the host, and does not rest with it.
        let is_final = is_last && attempt >= ATTEMPTS_AT_CLAIMS.min(losses.attempts_max);
        if !is_final && trial.counts_faults() && losses.forgive(witness) {
            continue;
        }
        losses.kept_cold += u32::from(is_kept && repetition.is_some());
        if repetition.is_none() {
            witness.keep_lasting();
        }
        if is_kept || !(is_cold || was_reclaimed) {
            return Ok(true);
        }
        *(if was_reclaimed { &mut losses.reclaimed } else { &mut losses.cold }) += 1;
    }
    // A warm-up that never succeeded is no loss: the repetitions are judged by themselves.
    losses.given_up += u32::from(repetition.is_some());
    Ok(false)
}

/// Says in the record that bodies were made slower, and proves it of every repetition.
fn testify(planted: Planted, kept: &[Series], witness: &mut Witness) {
    let repetitions = |is_wanted: fn(&&Series) -> bool| -> BTreeSet<(&str, u32)> {
        kept.iter().filter(is_wanted).map(|s| (s.arm.as_str(), s.repetition)).collect()
    };
    let with = repetitions(|series| series.name == PLANTED);
    let without = repetitions(|_| true).difference(&with).count();
    witness.begin("");
    witness.expect(Check::Planted, 0, without as u64);
    witness.set(counter::PLANTED_TURNS, planted.turns);
    witness.warn(
        "a slowdown was planted into every measured body, to see whether a comparison finds it: \
         these times are not this machine's; set them beside nothing but their own trial"
            .to_owned(),
    );
}

/// Whether the median of the series that takes most of the time is known to within `precision`
/// (95 %, order statistics over repetitions).
fn is_narrow(kept: &[Series], precision: f64) -> bool {
    let mut by_series: BTreeMap<_, (f64, Vec<u64>)> = BTreeMap::new();
    let is_wanted = |s: &&Series| s.unit == Unit::Ns && !s.name.ends_with(COLD);
    for series in kept.iter().filter(is_wanted) {
        if let Some((median, time)) = median_and_time(series) {
            let key = (series.name.as_str(), series.arm.as_str(), series.clock);
            let (total, medians) = by_series.entry(key).or_default();
            *total += time;
            medians.push(median);
        }
    }
    let longest = by_series.into_values().max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((_, mut medians)) = longest else { return false };
    medians.sort_unstable();
    // Below six values no pair of order statistics covers the median with 95 %.
    let n = medians.len();
    if n < 6 {
        return false;
    }
    let reach = place((0.98 * (n as f64).sqrt()).ceil());
    let (low, high) = (n / 2 - reach.min(n / 2), (n / 2 + reach).min(n - 1));
    let half_width = (medians[high] - medians[low]) as f64 / 2.0;
    half_width <= precision * medians[n / 2] as f64
}

/// The median of one repetition's observations, and the time that all of them took together.
fn median_and_time(series: &Series) -> Option<(u64, f64)> {
    match &series.data {
        Data::Values(values) => {
            let mut values = values.clone();
            values.sort_unstable();
            // In thousandths for each operation: a repetition may lack what was cold in it.
            let median = values.get(values.len() / 2)?.saturating_mul(1000) / series.ops.max(1);
            Some((median, values.iter().sum::<u64>() as f64))
        }
        Data::Histogram(text) => {
            let histogram = pagelab_record::latency::decode(text).ok()?;
            let time = histogram.mean() * histogram.len() as f64;
            Some((histogram.value_at_quantile(0.5), time))
        }
        Data::Summary(_) => None,
    }
}

#[cfg(test)]
mod tests;
