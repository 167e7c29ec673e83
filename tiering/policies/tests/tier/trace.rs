//! Traces as input.

use std::sync::Arc;

use pagelab_tier::{
    Scenario, Source, Work,
    sim::{Placement, Sampling, TraceWork},
};
use pagelab_trace::synth::Spec;

use crate::setup::{bits, conserves, hints, run, scenario};

fn work(spec: &str, ops: u64) -> Arc<TraceWork> {
    let mut work = TraceWork::default();
    let Ok(()) = Spec::parse(spec).unwrap().with_ops(ops).generate(&mut work);
    Arc::new(work.finish().unwrap())
}

fn traced(work: &Arc<TraceWork>, top: u64, policy: &str) -> Scenario {
    let pages = u64::from(work.pages());
    let mut scenario = scenario("uniform", pages, top, policy);
    (scenario.pages, scenario.accesses) = (0, work.ops() * 4);
    scenario.work = Work::Trace(Arc::clone(work));
    scenario.mover.copy_accesses = 0.0;
    scenario.mover.flush_ns = 0;
    scenario
}

#[test]
fn a_trace_is_followed_access_by_access() {
    let work = work("zipf:footprint=4m,stores=0.25", 200_000);
    let pages = u64::from(work.pages());
    let mut scenario = traced(&work, pages, "threshold:threshold=1");
    scenario.sources =
        vec![Source::Sampling(Sampling { loads_only: true, ..Sampling::every(100) })];
    let outcome = run(&scenario);
    conserves(&scenario, &outcome);
    assert_eq!((outcome.pages, outcome.accesses), (pages, 800_000));
    // Exactly the loads among every hundredth access.
    let stores = work.stores();
    let expected = 8000.0 * (1.0 - stores);
    assert!((outcome.hw_events as f64 / expected - 1.0).abs() < 0.02, "{outcome:?}");
    assert!(outcome.promoted > 0 && outcome.seconds() < 60.0);
    // Every page that was promoted is one that the trace accesses: each is.
    assert!(outcome.promoted <= pages);
}

#[test]
fn the_ends_of_the_curve_are_met_exactly() {
    let work = work("uniform:footprint=1m", 50_000);
    let mut scenario = traced(&work, 1000, "none");
    assert!((run(&scenario).seconds() - 60.0).abs() < 1e-3);
    scenario.tiers.start = Placement::Node(0);
    assert!((run(&scenario).seconds() - 20.0).abs() < 1e-3);
}

#[test]
fn every_source_works_on_a_trace() {
    let work = work("sequential:footprint=2m,stride=64", 200_000);
    let pages = u64::from(work.pages());
    let faults = traced(&work, 2 * pages, "numab2");
    assert_eq!(run(&Scenario { sources: vec![hints(pages)], ..faults }).promoted, pages);
    let young = traced(&work, 2 * pages, "pagelab");
    let outcome = run(&Scenario { sources: vec![Source::Young(bits(1000))], ..young });
    assert_eq!(outcome.promoted, pages);
    // It knows the whole trace: half of the pages from the first access on.
    let oracle = run(&traced(&work, pages / 2, "oracle"));
    assert!((oracle.top_share - 0.5).abs() < 0.02, "{oracle:?}");
}
