//! What is refused, with a sentence that says what.

use std::sync::Arc;

use pagelab_tier::{
    Curve, PolicySpec, Scenario, Source, Work, WorkSpec,
    policy::Node,
    sim::{Level, Loaded, Placement, Sampling, TraceWork},
    simulate,
};

use crate::setup;

fn refused(change: impl FnOnce(&mut Scenario), expected: &str) {
    let mut scenario = setup::scenario("uniform", 1000, 500, "threshold");
    change(&mut scenario);
    let why = simulate(&scenario).unwrap_err();
    assert!(why.contains(expected), "`{why}` does not say `{expected}`");
}

#[test]
fn sizes_of_zero_are_refused() {
    refused(|scenario| scenario.pages = 0, "`pages` is 0");
    refused(|scenario| scenario.accesses = 0, "`accesses` is 0");
    refused(|scenario| scenario.threads = 0, "`threads` is 0");
    refused(|scenario| scenario.mover.batch = 0, "`batch` is 0");
    refused(|scenario| scenario.mover.sleep_ns = 0, "`sleep_ns` is 0");
    refused(|scenario| scenario.mover.limit = Some(0), "rate limit is 0");
    refused(
        |scenario| scenario.sources = vec![Source::Sampling(Sampling::every(0))],
        "`period` is 0",
    );
}

#[test]
fn impossible_tiers_are_refused() {
    let node = |tier, pages, cpus| Node { tier, pages, cpus };
    let nodes = |nodes: Vec<Node>| move |scenario: &mut Scenario| scenario.tiers.nodes = nodes;
    refused(nodes(vec![node(0, 500, true)]), "`nodes` is 1");
    refused(nodes(vec![node(0, 500, true), node(0, 900, false)]), "all nodes are in tier 0");
    refused(nodes(vec![node(0, 500, true), node(2, 900, false)]), "no node is in tier 1");
    refused(nodes(vec![node(1, 500, false), node(2, 900, false)]), "no node is in tier 0");
    refused(nodes(vec![node(0, 500, true), node(1, 900, true)]), "node 1 has processors");
    refused(nodes(vec![node(0, 500, true), node(1, 400, false)]), "room for 900 pages");
    refused(|scenario| scenario.tiers.start = Placement::Node(2), "start on node 2");
    refused(|scenario| scenario.tiers.start = Placement::Weighted(vec![1]), "1 weights for 2");
    refused(|scenario| scenario.tiers.start = Placement::Weighted(vec![0, 0]), "every weight is 0");
}

#[test]
fn impossible_curves_are_refused() {
    let power = |seconds, exponent| Curve::Power {
        fast: 20.0,
        lower: vec![Level { seconds, exponent }],
        remote: None,
    };
    refused(|scenario| scenario.curve = power(10.0, 1.0), "no slower");
    refused(|scenario| scenario.curve = power(60.0, 0.5), "`exponent` of `lower` is 0.5");
    refused(|scenario| scenario.curve = power(f64::NAN, 1.0), "`lower` is NaN");
    let table = |points: &[(f64, f64)]| Curve::Table(points.to_vec());
    refused(|scenario| scenario.curve = table(&[(0.0, 1.0)]), "points of the curve");
    refused(|scenario| scenario.curve = table(&[(0.0, 2.0), (1.0, 1.0)]), "must rise");
    let tier = Loaded { idle_ns: 0.0, bytes_per_second: 1e9, write_weight: 1.0 };
    refused(
        |scenario| {
            scenario.curve = Curve::Physical {
                tiers: vec![tier; 2],
                remote_ns: 0.0,
                in_flight: 1.0,
                think_ns: 0.0,
            };
        },
        "`idle_ns` is 0",
    );
}

#[test]
fn sources_and_policies_must_fit() {
    refused(|scenario| scenario.sources.clear(), "sees nothing");
    refused(|scenario| scenario.policy = PolicySpec::parse("numab2").unwrap(), "hint faults");
    refused(|scenario| scenario.sources.push(setup::sampling(5000)), "given twice");
    refused(|scenario| scenario.stores = 1.5, "`stores` is 1.5");
    refused(
        |scenario| {
            let sampling = Sampling { bias: 2.0, ..Sampling::every(10) };
            scenario.sources = vec![Source::Sampling(sampling)];
        },
        "`bias` is 2",
    );
}

#[test]
fn traces_bring_their_own_pages() {
    refused(
        |scenario| scenario.work = Work::Trace(Arc::new(TraceWork::default())),
        "was not finished",
    );
    assert!(TraceWork::default().finish().unwrap_err().contains("no data accesses"));
}

#[test]
fn names_and_numbers_are_checked() {
    for (text, expected) in [
        ("pghots", "no policy is called `pghots`; there are none, all-at-once"),
        ("pghot:treshold=1", "no parameter `treshold`; it has threshold"),
        ("pghot:threshold=4", "outside 1 to 3"),
        ("pghot:threshold=1.5", "whole number"),
        ("pghot:threshold", "no NAME=VALUE"),
        ("pghot:threshold=two", "is no number"),
        ("pghot:threshold=1,threshold=2", "twice"),
        ("none:threshold=1", "`none` has no parameters"),
    ] {
        let why = PolicySpec::parse(text).unwrap_err();
        assert!(why.contains(expected), "{text}: {why}");
    }
    assert!(WorkSpec::parse("random").unwrap_err().contains("no generator is called"));
    let text = "gups:hot=0.25,share=0.5,moves=2";
    assert_eq!(WorkSpec::parse(text).unwrap().to_string(), text);
}
