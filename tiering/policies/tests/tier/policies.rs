//! What each policy is known for.

use pagelab_tier::{
    Curve, POLICIES, PolicySpec, SECOND, Scenario,
    policy::{Node, PageSet, Prices, Sample, Setting, World},
    sim::{Level, Loaded, Placement},
};

use crate::setup::{run, sampling, scenario};

fn seconds(generator: &str, pages: u64, top: u64, policy: &str) -> f64 {
    run(&scenario(generator, pages, top, policy)).seconds()
}

#[test]
fn pghots_alias_promotes_what_a_true_window_would_not() {
    // One sample of a page in a quarter of the run: hardly ever two in three seconds.
    let aliased = run(&scenario("uniform", 8192, 8192, "pghot"));
    let honest = run(&scenario("uniform", 8192, 8192, "threshold"));
    assert!(aliased.promoted > 2 * honest.promoted, "{} {}", aliased.promoted, honest.promoted);
}

#[test]
fn ours_is_half_again_as_fast_as_pghots_defaults() {
    let ours = seconds("uniform", 32_768, 32_768, "pagelab");
    let pghot = seconds("uniform", 32_768, 32_768, "pghot");
    assert!(ours * 1.5 <= pghot, "{ours} {pghot}");
}

#[test]
fn ours_is_near_the_better_of_moving_everything_and_of_moving_each_sample() {
    let with = |policy| seconds("uniform", 32_768, 32_768, policy);
    let best = with("all-at-once").min(with("threshold:threshold=1"));
    assert!(with("pagelab") <= 1.03 * best, "{} {best}", with("pagelab"));
}

#[test]
fn one_target_loses_where_there_are_two_top_tier_nodes() {
    let two = |policy: &str| {
        let mut scenario = scenario("uniform", 8192, 8192, policy);
        let node = |tier, pages, cpus| Node { tier, pages, cpus };
        scenario.tiers.nodes = vec![node(0, 8192, true), node(0, 8192, true), node(1, 8192, false)];
        scenario.tiers.start = Placement::Node(2);
        scenario.curve = Curve::Power {
            fast: 20.0,
            lower: vec![Level { seconds: 60.0, exponent: 1.5 }],
            remote: Some(Level { seconds: 35.0, exponent: 1.0 }),
        };
        scenario.sources = vec![sampling(2500)];
        run(&scenario)
    };
    let (one, both) = (two("pghot:threshold=1"), two("pghot-precise:threshold=1"));
    let ours = two("pagelab");
    assert!(both.seconds() < 0.9 * one.seconds(), "{} {}", both.seconds(), one.seconds());
    assert_eq!(one.placed[1], 0);
    for outcome in [both, ours] {
        let (left, right) = (outcome.placed[0], outcome.placed[1]);
        assert!(left.abs_diff(right) < 8192 / 20, "{left} {right}");
    }
}

#[test]
fn a_set_slightly_too_large_is_no_reason_to_exchange() {
    let ping_pongs = |policy| {
        let outcome = run(&scenario("slightly-larger", 8192, 4096, policy));
        outcome.ping_pongs as f64 / outcome.promoted.max(1) as f64
    };
    assert!(ping_pongs("pagelab") <= 0.02, "{}", ping_pongs("pagelab"));
    assert!(ping_pongs("threshold:threshold=1") > 0.1, "{}", ping_pongs("threshold:threshold=1"));
}

#[test]
fn the_oracle_follows_the_hot_set() {
    let oracle = run(&scenario("gups:moves=3", 8192, 1024, "oracle"));
    assert!(oracle.top_share > 0.85, "{}", oracle.top_share);
    assert!(oracle.promoted >= 3 * 700, "{}", oracle.promoted);
}

#[test]
fn histograms_and_averages_find_the_hot_set() {
    for policy in ["histogram", "two-ema", "pagelab", "threshold:threshold=2,window=10000"] {
        let mut scenario = scenario("gups:moves=0", 8192, 1024, policy);
        scenario.sources = vec![sampling(2500)];
        let outcome = run(&scenario);
        let last = outcome.series.last().unwrap();
        assert!(last.top_share > 0.6, "{policy}: {}", last.top_share);
    }
}

#[test]
fn regions_find_ranges_and_no_scattered_pages() {
    let with = |generator| {
        let outcome = run(&scenario(generator, 16_384, 2048, "damon-region"));
        outcome.series.last().unwrap().top_share
    };
    let (range, scattered) = (with("phases:parts=8,steps=1,share=0.9999"), with("gups:moves=0"));
    assert!(range > 0.5, "{range}");
    assert!(scattered < range, "{scattered}");
}

#[test]
fn balance_stops_before_the_top_tier_is_the_slow_one() {
    let loaded =
        |idle_ns, bytes_per_second| Loaded { idle_ns, bytes_per_second, write_weight: 1.0 };
    let with = |policy: &str| {
        let mut scenario = scenario("uniform", 8192, 8192, policy);
        scenario.threads = 256;
        // A top tier with little bandwidth: everything in it is slower than a part.
        scenario.curve = Curve::Physical {
            tiers: vec![loaded(100.0, 20e9), loaded(200.0, 20e9)],
            remote_ns: 0.0,
            in_flight: 8.0,
            think_ns: 0.0,
        };
        scenario.accesses = 8192 * 260_000;
        run(&scenario)
    };
    let balanced = with("latency-balance");
    let share = balanced.series.last().unwrap().top_share;
    assert!((0.3..0.9).contains(&share), "{share}");
    assert!(balanced.seconds() < with("threshold:threshold=1").seconds());
}

#[test]
fn interleaving_keeps_its_weights() {
    let outcome = run(&scenario("uniform", 8000, 8000, "interleave:top=3,lower=1"));
    assert_eq!(outcome.placed, [6000, 2000]);
    let everything = run(&scenario("uniform", 8000, 5000, "all-at-once"));
    assert_eq!((everything.promoted, everything.full), (5000, 0));
}

#[test]
fn three_tiers_are_two_steps() {
    let mut scenario: Scenario = scenario("zipf", 8192, 1024, "threshold:threshold=1");
    let node = |tier, pages, cpus| Node { tier, pages, cpus };
    scenario.tiers.nodes = vec![node(0, 1024, true), node(1, 1024, false), node(2, 8192, false)];
    scenario.tiers.start = Placement::Node(2);
    scenario.curve = Curve::Power {
        fast: 20.0,
        lower: vec![Level { seconds: 40.0, exponent: 1.0 }, Level { seconds: 80.0, exponent: 1.5 }],
        remote: None,
    };
    let outcome = run(&scenario);
    crate::setup::conserves(&scenario, &outcome);
    // What leaves the top tier goes to the middle one as long as there is room.
    assert!(outcome.placed[1] > 0 && outcome.placed[0] > 900, "{:?}", outcome.placed);
}

#[test]
fn samples_of_the_top_tier_may_be_passed_over_where_nobody_wants_them() {
    let nodes =
        [Node { tier: 0, pages: 300, cpus: true }, Node { tier: 1, pages: 300, cpus: false }];
    let place: Vec<u8> = (0..300).map(|page| u8::from(page % 3 == 0)).collect();
    let below: PageSet = place.iter().map(|&node| node > 0).collect();
    let prices =
        Prices { saved_ns: 1.0, move_ns: 0.0, busy_ns: 0.0, sample_ns: 0.0, latency_ns: [0.0; 4] };
    let world = World {
        now: 2 * SECOND,
        nodes: &nodes,
        place: &place,
        below: &below,
        free: &[100, 200],
        prices: &prices,
        period: 1000,
        future: None,
    };
    let at = |number: u32| 2 * SECOND - 1000 + u64::from(number);
    let sample = |number| Sample { at: at(number), page: number * 7 % 300, node: 0, store: false };
    let all: Vec<Sample> = (0..900).map(sample).collect();
    let told: Vec<Sample> = all.iter().filter(|sample| below.has(sample.page)).copied().collect();
    let setting = Setting { pages: 300, nodes: &nodes, periods: (0, 0) };
    let mut asked = 0;
    for row in POLICIES {
        let spec = PolicySpec::parse(row.name).unwrap();
        let [mut every, mut some] = [spec.build(&setting), spec.build(&setting)];
        if every.wants_top() {
            continue;
        }
        every.observe(&all, &world);
        some.observe(&told, &world);
        some.passed_over((all.len() - told.len()) as u64);
        let [mut left, mut right] = [Vec::new(), Vec::new()];
        every.decide(&world, &mut |_| false, &mut left);
        some.decide(&world, &mut |_| false, &mut right);
        assert!(!left.is_empty(), "{}", row.name);
        assert_eq!((left, every.counts()), (right, some.counts()), "{}", row.name);
        asked += 1;
    }
    assert!(asked >= 4, "{asked}");
}
