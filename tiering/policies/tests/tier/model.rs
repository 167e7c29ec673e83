//! The simulator against the closed forms.

use pagelab_tier::{
    Curve, MILLISECOND, Scenario, Source,
    sim::{Costs, HintScan, Level, Mover, Sampling},
};

use crate::{
    closed::{Uniform, deviations},
    setup::{run, scenario},
};

const PAGES: u64 = 1 << 16;

/// Everything fits, and nothing but accesses takes time.
fn free(policy: &str, exponent: f64, tenths_of_samples: u64) -> (Scenario, Uniform, u64) {
    let mut scenario = scenario("uniform", PAGES, PAGES * 2, policy);
    scenario.curve =
        Curve::Power { fast: 30.0, lower: vec![Level { seconds: 100.0, exponent }], remote: None };
    scenario.mover = Mover { walk_ps: 1, batch: 100_000, ..Mover::kernel(0) };
    scenario.mover.sleep_ns = MILLISECOND;
    scenario.costs = Costs::default();
    let period = 10_000;
    scenario.accesses = PAGES * tenths_of_samples * period / 10;
    let model = Uniform {
        fast: 30.0,
        slow: 100.0,
        exponent,
        pages: PAGES as f64,
        accesses: scenario.accesses as f64,
    };
    (scenario, model, period)
}

fn within(left: f64, right: f64, error: f64, what: &str) {
    assert!((left / right - 1.0).abs() < error, "{what}: {left} for {right}");
}

#[test]
fn threshold_one_is_the_integral() {
    for exponent in [1.0, 2.5, 5.5] {
        for samples in [5, 26, 80] {
            let (mut scenario, model, period) = free("pghot:threshold=1", exponent, samples);
            scenario.sources = vec![Source::Sampling(Sampling::every(period))];
            let outcome = run(&scenario);
            let what = format!("exponent {exponent}, {samples} tenths of a sample a page");
            within(outcome.seconds(), model.sampled(period as f64), 0.01, &what);
            let promoted = outcome.promoted as f64;
            within(promoted, model.promoted(period as f64), 0.01, &what);
            let hit = deviations(PAGES as f64, outcome.hw_events as f64, promoted);
            assert!(hit.abs() < 5.0, "{what}: {hit} standard deviations");
            let slow_share = 1.0 - outcome.top_share;
            within(slow_share, model.slow_share(period as f64), 0.015, &what);
        }
    }
}

#[test]
fn a_scan_that_takes_its_time_is_the_other_integral() {
    for (exponent, period_ms) in [(1.0, 500), (2.5, 1000)] {
        let (mut scenario, model, _) = free("numab2", exponent, 100);
        let scan = HintScan {
            period_ns: period_ms * MILLISECOND,
            adapts: false,
            updates: PAGES / 32,
            virtual_pages: PAGES,
            chunk: 64,
            ..HintScan::kernel(PAGES)
        };
        scenario.sources = vec![Source::Hints(scan)];
        let outcome = run(&scenario);
        // The first scan is at one second and the last one 31 periods later: half a period ahead
        // of an even pace.
        let period = period_ms as f64 * 1e-3;
        let expected = model.scanned(1.0 - period / 2.0, 32.0 * period);
        within(outcome.seconds(), expected, 0.01, &format!("{period_ms} ms"));
        assert_eq!((outcome.promoted, outcome.hint_faults), (PAGES, PAGES));
    }
}

#[test]
fn failed_faults_are_met_again() {
    let (mut scenario, ..) = free("numab2", 1.0, 100);
    let scan = HintScan {
        period_ns: 100 * MILLISECOND,
        adapts: false,
        failure: 0.2,
        ..HintScan::kernel(PAGES)
    };
    scenario.sources = vec![Source::Hints(scan)];
    let outcome = run(&scenario);
    assert_eq!(outcome.promoted, PAGES);
    within(outcome.hint_faults as f64, PAGES as f64 / 0.8, 0.01, "faults");
    assert_eq!(outcome.failed, outcome.hint_faults - PAGES);
}

#[test]
fn nothing_moves_without_a_policy() {
    let (mut scenario, ..) = free("none", 2.5, 10);
    scenario.sources.clear();
    let outcome = run(&scenario);
    within(outcome.seconds(), 100.0, 1e-6, "everything slow");
    scenario.tiers.start = pagelab_tier::sim::Placement::Node(0);
    within(run(&scenario).seconds(), 30.0, 1e-6, "everything fast");
}
