//! What is true of every policy on every pattern.

use pagelab_tier::{
    GENERATORS, PAGE_BYTES, POLICIES, SECOND, Scenario, policy::Needs, sim::Sampling,
};
use proptest::prelude::*;

use crate::setup::{bits, conserves, hints, run, sampling, scenario};

const PAGES: u64 = 3000;

fn any_scenario() -> impl Strategy<Value = Scenario> {
    let names = (0..POLICIES.len(), 0..GENERATORS.len());
    let numbers = (1_u64..PAGES + 200, any::<u64>(), 0.0..1.0_f64, 0.0..0.3_f64);
    let limit = prop_oneof![Just(None), (1_u64..20_000_000).prop_map(Some)];
    (names, numbers, limit, 1_000_u64..60_000).prop_map(
        |((policy, generator), (top, seed, stores, failure), limit, period)| {
            let (policy, generator) = (POLICIES[policy].name, GENERATORS[generator].name);
            let mut scenario = scenario(generator, PAGES, top, policy);
            scenario.accesses = PAGES * 5000;
            (scenario.seed, scenario.stores) = (seed, stores);
            (scenario.mover.failure, scenario.mover.limit) = (failure, limit);
            if POLICIES.iter().any(|row| row.name == policy && row.needs == Needs::Samples) {
                scenario.sources = vec![sampling(period)];
            }
            scenario
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn pages_are_conserved_and_the_budget_is_kept(scenario in any_scenario()) {
        let outcome = run(&scenario);
        conserves(&scenario, &outcome);
        prop_assert_eq!(outcome.accesses, scenario.accesses);
        if let Some(limit) = scenario.mover.limit {
            // The oracle's first placement is no move; everybody else's moves are paid for.
            let seconds = u128::from(outcome.time_ns) * u128::from(limit) / u128::from(SECOND);
            prop_assert!(u128::from(outcome.move_bytes) <= seconds + 1, "{outcome:?}");
            for pair in outcome.series.windows(2) {
                let moved = pair[1].promoted + pair[1].demoted - pair[0].promoted - pair[0].demoted;
                let passed = u128::from(pair[1].at_ns - pair[0].at_ns);
                let most = passed * u128::from(limit) / u128::from(SECOND)
                    + u128::from(limit.max(PAGE_BYTES));
                prop_assert!(u128::from(moved * PAGE_BYTES) <= most + 1);
            }
        }
    }

    #[test]
    fn the_same_scenario_gives_the_same_bytes(scenario in any_scenario()) {
        let (first, second) = (run(&scenario), run(&scenario));
        prop_assert_eq!(first.digest(), second.digest());
        prop_assert_eq!(first, second);
    }
}

#[test]
fn other_seeds_give_other_samples() {
    let mut scenario = scenario("zipf", PAGES, PAGES / 2, "threshold:threshold=1");
    let first = run(&scenario);
    scenario.seed += 1;
    assert_ne!(first.digest(), run(&scenario).digest());
}

#[test]
fn pages_that_were_never_seen_are_not_promoted() {
    // Half of the set is never accessed. It is whole blocks, so none of them was seen either.
    let pages = 16 * 512;
    for row in POLICIES.iter().filter(|row| !matches!(row.needs, Needs::Nothing | Needs::Future)) {
        let mut scenario = scenario("phases:parts=2,steps=1,share=1", pages, pages, row.name);
        if row.needs == Needs::Faults {
            scenario.sources = vec![hints(pages)];
        }
        let outcome = run(&scenario);
        assert!(outcome.promoted > 0, "{}", row.name);
        // DAMON's regions have edges of their own; it may take a few pages of the cold half.
        let slack = if row.name == "damon-region" { pages / 16 } else { 0 };
        assert!(outcome.promoted <= pages / 2 + slack, "{}: {}", row.name, outcome.promoted);
    }
}

#[test]
fn a_page_level_policy_promotes_no_more_than_it_recorded() {
    for name in ["pghot", "pghot-precise", "threshold", "numab2", "tpp", "histogram", "two-ema"] {
        let scenario = scenario("zipf", PAGES, PAGES, name);
        let outcome = run(&scenario);
        assert!(outcome.promoted <= outcome.recorded, "{name}: {outcome:?}");
    }
}

#[test]
fn the_oracle_gains_from_every_page_of_top_tier() {
    for generator in GENERATORS.iter().filter(|row| row.name != "slightly-larger") {
        let mut last = u64::MAX;
        for top in [1, 100, 500, 1000, 1500, 2000, 2500, 2900, 3000] {
            let outcome = run(&scenario(generator.name, PAGES, top, "oracle"));
            // A sequence is at one of its pages at a time; the quantum is a millisecond.
            let slack = outcome.time_ns / 10_000;
            assert!(
                outcome.time_ns <= last.saturating_add(slack),
                "{} with {top}: {} after {last}",
                generator.name,
                outcome.time_ns
            );
            last = outcome.time_ns;
        }
    }
}

#[test]
fn nobody_beats_the_oracle_where_the_pattern_stays() {
    for generator in ["uniform", "zipf", "pmbench", "gups:moves=0", "chase", "slightly-larger"] {
        let oracle = run(&scenario(generator, PAGES, PAGES / 3, "oracle")).time_ns;
        for row in POLICIES {
            let outcome = run(&scenario(generator, PAGES, PAGES / 3, row.name));
            let least = oracle - oracle / 1000;
            assert!(outcome.time_ns >= least, "{} on {generator}", row.name);
        }
    }
}

#[test]
fn bit_scans_are_sources_too() {
    use pagelab_tier::Source;
    let mut young = scenario("phases:parts=2,steps=1,share=1", 4096, 4096, "pagelab");
    young.sources = vec![Source::Young(bits(500))];
    let outcome = run(&young);
    assert_eq!(outcome.promoted, 2048);
    // Written bits see nothing of a program that only reads.
    let mut written = young.clone();
    (written.sources, written.stores) = (vec![Source::Written(bits(500))], 0.0);
    assert_eq!(run(&written).promoted, 0);
    written.stores = 0.5;
    assert_eq!(run(&written).promoted, 2048);
}

#[test]
fn samples_are_lost_as_they_are_told_to_be() {
    let with = |change: fn(&mut Sampling)| {
        let mut scenario = scenario("uniform", PAGES, PAGES, "none");
        let mut sampling = Sampling::every(1000);
        change(&mut sampling);
        scenario.sources = vec![pagelab_tier::Source::Sampling(sampling)];
        run(&scenario)
    };
    let all = PAGES * 26;
    let near = |left: u64, right: u64| left.abs_diff(right) < right / 50;
    assert_eq!(with(|_| {}).hw_events, all - 1);
    let lossy = with(|sampling| sampling.loss = 0.25);
    assert!(near(lossy.hw_dropped, all / 4) && lossy.hw_events + lossy.hw_dropped == all - 1);
    assert!(near(with(|sampling| sampling.loads_only = true).hw_events, all / 2));
    // 78,000 samples in a minute: 1300 a second, of which 1000 fit.
    let ring = with(|sampling| (sampling.ring, sampling.drain_ns) = (100, 100_000_000));
    assert!(near(ring.hw_events, all * 10 / 13), "{ring:?}");
}
