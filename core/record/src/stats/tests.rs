//! Made samples whose figures are known.

use super::*;
use crate::schema::Unit;

fn series(process: u32, repetition: u32, values: &[u64]) -> Series {
    Series {
        process,
        repetition,
        ops: 10,
        ..Series::new("touch", "pagelab", Clock::Tsc, Unit::Ns, values.to_vec())
    }
}

fn samples(series: &[Series]) -> Samples {
    Samples::of(series, "touch", "pagelab", Clock::Tsc)
}

#[test]
fn the_headline_is_the_median_of_process_medians() {
    // One process with many repetitions must not outvote two with few.
    let mut all = vec![series(0, 0, &[100]), series(1, 0, &[200])];
    all.extend((0..50).map(|repetition| series(2, repetition, &[900])));
    let estimate = samples(&all).estimate(0.5).unwrap();
    assert!((estimate.value - 20.0).abs() < 1e-9);
    assert_eq!((estimate.processes, estimate.repetitions), (3, 52));
}

#[test]
fn the_undisturbed_mean_leaves_out_what_was_interrupted_and_nothing_else() {
    let mut calm = vec![series(0, 0, &[1000; 99])];
    let mean = |all: &[Series]| samples(all).undisturbed_mean().unwrap().value;
    assert!((mean(&calm) - 100.0).abs() < 1e-9);
    let Data::Values(values) = &mut calm[0].data else { panic!() };
    // Per operation: one of 1000, which counts, and one of a second, which does not.
    values.extend([10_000, 10_000_000_000]);
    assert!((mean(&calm) - (99.0 * 100.0 + 1000.0) / 100.0).abs() < 1e-9);
    let mut histogram = latency::empty();
    histogram.record_n(100, 99).unwrap();
    histogram.record(1_000_000).unwrap();
    let data = Data::Histogram(latency::encode(&histogram));
    let one = Series { ops: 1, data, ..series(0, 0, &[]) };
    assert!((mean(&[one]) - 100.0).abs() < 1.0);
}

#[test]
fn the_interval_holds_the_value_and_is_repeatable() {
    let all: Vec<Series> = (0..8).map(|p| series(p, 0, &[100 + u64::from(p), 110, 120])).collect();
    let one = samples(&all).estimate(0.5).unwrap();
    assert_eq!(Some(one), samples(&all).estimate(0.5));
    assert!(one.low <= one.value && one.value <= one.high);
}

#[test]
fn few_processes_span_an_interval_and_say_how_much_it_covers() {
    let all: Vec<Series> = (0..3).map(|p| series(p, 0, &[100 + 10 * u64::from(p)])).collect();
    let estimate = samples(&all).estimate(0.5).unwrap();
    assert_eq!((estimate.low, estimate.high), (10.0, 12.0));
    assert!((estimate.coverage - 0.75).abs() < 1e-9);
    assert!(samples(&all[..1]).estimate(0.5).unwrap().coverage.abs() < 1e-9);
}

#[test]
fn other_arms_names_and_clocks_are_left_out() {
    let all = [series(0, 0, &[100])];
    assert!(Samples::of(&all, "touch", "control", Clock::Tsc).is_empty());
    assert!(Samples::of(&all, "touch", "pagelab", Clock::Cpu).is_empty());
    assert!(Samples::of(&all, "map", "pagelab", Clock::Tsc).estimate(0.5).is_none());
}

#[test]
fn a_line_through_points_on_a_line_is_that_line() {
    let points: Vec<(f64, f64)> =
        [4.0, 64.0, 2048.0].iter().map(|x| (*x, 900.0 + 100.0 * x)).collect();
    let line = fit_relative(&points).unwrap();
    assert!((line.intercept - 900.0).abs() < 1e-6 && (line.slope - 100.0).abs() < 1e-9);
    assert!(line.r_squared > 0.999_999 && line.intercept_error < 1e-3);
    assert!(fit_relative(&points[..2]).is_none());
}

#[test]
fn the_interval_at_zero_is_that_of_a_weighted_least_squares_line() {
    // By the inverse of the normal equations, in fractions, and t of two degrees of freedom, 4.303.
    let points = [(4.0, 1300.0), (16.0, 2700.0), (64.0, 7300.0), (2048.0, 206_000.0)];
    let line = fit_relative(&points).unwrap();
    assert!((line.intercept - 926.0446).abs() < 1e-3);
    assert!((line.intercept_error - 254.318).abs() < 0.01);
}
