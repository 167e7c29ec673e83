//! Our policy against a grid of fixed settings.

use pagelab_tier::GENERATORS;

use crate::setup::{run, sampling, scenario};

const PAGES: u64 = 8192;

fn seconds(generator: &str, top: u64, policy: &str, period: u64) -> f64 {
    let mut scenario = scenario(generator, PAGES, top, policy);
    if !scenario.sources.is_empty() {
        scenario.sources = vec![sampling(period)];
    }
    run(&scenario).seconds()
}

#[test]
fn ours_is_near_the_best_of_the_grid_and_never_far_behind_doing_nothing() {
    let mut regrets = Vec::new();
    for generator in GENERATORS {
        for share in [25, 50, 100] {
            let top = PAGES * share / 100;
            let mut best = f64::INFINITY;
            for period in [2_500, 40_000] {
                for threshold in [1, 2] {
                    for window_ms in [3_000, 10_000] {
                        let policy = format!("threshold:threshold={threshold},window={window_ms}");
                        best = best.min(seconds(generator.name, top, &policy, period));
                    }
                }
            }
            let ours = seconds(generator.name, top, "pagelab", 10_000);
            let none = seconds(generator.name, top, "none", 0);
            assert!(ours <= 1.03 * none, "{} {share} %: {ours} {none}", generator.name);
            assert!(ours <= 1.15 * best, "{} {share} %: {ours} {best}", generator.name);
            regrets.push(ours / best - 1.0);
        }
    }
    regrets.sort_by(f64::total_cmp);
    assert!(regrets[regrets.len() / 2] <= 0.05, "{regrets:?}");
}
