//! One arm over another, inside each process.
//!
//! The one idea: arms alternate in one process, so what disturbs one disturbs the other, and a
//! ratio taken there is narrower than the two times it is made of. A process is one pair of them.
//! Between cases, which have no process in common, ratios are [`Quantity::over`], whose ends are
//! the worst of both.

use std::collections::BTreeMap;

use pagelab_record::{Clock, Data, Series, stats, verdict::Ratio};

use crate::{Quantity, Time, Unit, clock_of};

/// Ratios closer to 1 than this are ties: the layout of the code alone moves a loop that much.
pub const TIE: f64 = 0.15;

/// The median time of `arm` over that of `other`, process by process.
pub fn of_arms(
    series: &[Series],
    name: &str,
    clock: Clock,
    [arm, other]: [&str; 2],
) -> Option<Quantity> {
    of_series(series, clock, [(arm, name), (other, name)])
}

/// The same by the clock that tells `time`.
pub fn of_times(series: &[Series], name: &str, time: Time, arms: [&str; 2]) -> Option<Quantity> {
    of_arms(series, name, clock_of(series, name, arms[0], time)?, arms)
}

/// The same of two series, each with its arm.
pub fn of_series(series: &[Series], clock: Clock, pair: [(&str, &str); 2]) -> Option<Quantity> {
    if pair[0] == pair[1] {
        let is_it = |s: &Series| (s.arm.as_str(), s.name.as_str()) == pair[0] && s.clock == clock;
        return series.iter().any(is_it).then(|| Quantity::exact(1.0, Unit::Ratio));
    }
    let mut medians: BTreeMap<u32, [Vec<f64>; 2]> = BTreeMap::new();
    for series in series.iter().filter(|s| s.clock == clock) {
        let this = (series.arm.as_str(), series.name.as_str());
        let Some(which) = pair.iter().position(|one| *one == this) else { continue };
        let Data::Values(values) = &series.data else { continue };
        let ops = series.ops.max(1) as f64;
        let median = stats::median(values.iter().map(|value| *value as f64 / ops));
        medians.entry(series.process).or_default()[which].push(median);
    }
    let pairs = medians.into_values().map(|both| both.map(stats::median));
    let pairs: Vec<[f64; 2]> = pairs.filter(|[one, two]| *one > 0.0 && *two > 0.0).collect();
    let Ratio { value, low, high, coverage, units: [processes, _], .. } = Ratio::of_pairs(&pairs)?;
    Some(Quantity { value, low, high, coverage, processes, unit: Unit::Ratio })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_does_to_both_arms_leaves_their_ratio_alone() {
        let series = |process: u32, arm: &str, ns: u64| Series {
            process,
            ops: 10,
            ..Series::new("replay", arm, Clock::Cpu, pagelab_record::Unit::Ns, vec![ns])
        };
        let all: Vec<Series> = [(0, 100), (1, 170), (2, 230)]
            .into_iter()
            .flat_map(|(process, ns)| [series(process, "a", ns * 3), series(process, "b", ns)])
            .collect();
        let ratio = of_arms(&all, "replay", Clock::Cpu, ["a", "b"]).unwrap();
        assert!((ratio.value - 3.0).abs() < 1e-6 && (ratio.high - ratio.low).abs() < 1e-6);
        let itself = of_arms(&all, "replay", Clock::Cpu, ["b", "b"]).unwrap();
        assert!((itself.value - 1.0).abs() < 1e-9);
        assert_eq!(of_arms(&all, "replay", Clock::Cpu, ["a", "c"]), None);
        assert_eq!(of_arms(&all, "replay", Clock::Tsc, ["a", "b"]), None);
    }
}
