//! Stages of a fault, other tools' loops, and what disturbed a latency: real faults, no durations.

use crate::support::{Lab, is_skipped, measured};

#[test]
fn the_stages_of_both_kinds_are_proven_or_skipped_with_a_cure() {
    let lab = Lab::new();
    let case = |kind| format!("fault/stages kind={kind} size=4m rounds=2");
    let ended = lab.measure("run", &[&case("write"), &case("read")]);
    let records = lab.records("run");
    assert_eq!(records.len(), 2);
    if records.iter().any(is_skipped) {
        ended.shows(&["the kernel's tracepoints of page faults", "run as root"]);
        return;
    }
    ended.exits(0).shows(&["Stages of a fault", "end-to-end, untraced"]);
    for (record, stages) in records.iter().zip([2, 1]) {
        let measured = measured(record);
        let has = |name: &str, arm: &str| {
            measured.series.iter().any(|series| series.name == name && series.arm == arm)
        };
        // What lies between entry and return depends on the kernel; these two do not.
        for stage in ["entry", "return", "end-to-end"] {
            assert!(has(stage, "traced"), "{stage}");
        }
        assert!(has("end-to-end", "untraced") && has("end-to-end", "control"));
        let tied = measured.witness.iter().filter(|claim| claim.claim.starts_with("events lost"));
        assert_eq!(tied.count(), 2, "both arms with events");
        assert!(measured.counters["events_per_fault"] > stages, "{:?}", measured.counters);
    }
}

#[test]
fn other_tools_loops_take_the_same_faults_alone_in_threads_and_in_processes() {
    for workers in ["", "threads=2", "processes=2"] {
        let lab = Lab::new();
        let arms = if workers.is_empty() {
            "pagelab,c,page-fault1,pft"
        } else {
            "pagelab,page-fault1,pft"
        };
        let case =
            format!("fault/throughput page=4k size=4m rounds=2 cpu=none arms={arms} {workers}");
        lab.measure("run", &[&case]).exits(0).shows(&["vs page_fault1", "vs pft"]);
        let records = lab.records("run");
        let claims = &measured(&records[0]).witness;
        for arm in ["page-fault1", "pft"] {
            let claim = claims.iter().find(|claim| claim.arm == arm && claim.expected == 1024);
            assert!(claim.is_some_and(|claim| claim.holds), "{arm} {workers}: {claims:?}");
        }
    }
}

#[test]
fn every_stall_is_explained_or_said_to_be_unexplained() {
    let lab = Lab::new();
    lab.measure("run", &["fault/latency page=4k size=4m rounds=4"]).exits(0);
    let records = lab.records("run");
    let counters = &measured(&records[0]).counters;
    let of = |name: &str| counters[&format!("stalls{name}")];
    let causes = of("_preempted") + of("_stolen") + of("_interrupted") + of("_unexplained");
    assert_eq!(of(""), causes, "{counters:?}");
    assert!(counters["loop_us"] > 0);
}
