//! Kinds of fault in bulk, workers of both sorts, calls beside them, and memory that is short: real
//! faults, a scripted clock, every claim.
//!
//! What a machine lacks (a disk, a second CPU, root) is a skipped record with its cure.

use pagelab_mappings::kinds::KINDS;
use pagelab_record::{Measured, Outcome};

use crate::support::{Lab, Machine, is_skipped, measured, plain};

/// Runs cases of `fault/throughput` at their smallest size; each is valid, or skipped with a cure.
#[track_caller]
fn valid(cases: &[String]) -> Vec<Measured> {
    let lab = Lab::new();
    let of = |case: &String| format!("fault/throughput size=4m rounds=2 {case}");
    let cases: Vec<String> = cases.iter().map(of).collect();
    let suite = lab.suite(&cases.iter().map(String::as_str).collect::<Vec<_>>());
    let ended = lab.pagelab(&["run", "--suite", &suite, "--clock", "scripted", "-o", "run"]);
    let records = lab.records("run");
    assert_eq!(records.len(), cases.len(), "{}", ended.stderr);
    let mut found = Vec::new();
    for record in &records {
        if is_skipped(record) {
            let Outcome::Skipped { cure, .. } = &record.outcome else { unreachable!() };
            assert!(cure.len() > 10, "a skip says what to do: {cure}");
            continue;
        }
        let measured = measured(record);
        let broken: Vec<_> = measured.witness.iter().filter(|claim| !claim.holds).collect();
        assert!(broken.is_empty(), "{}: {broken:?}", record.case);
        found.push(measured.clone());
    }
    found
}

/// Every kind that is measured in bulk, as a case.
fn kinds(with: &str) -> Vec<String> {
    let mine = KINDS.iter().filter(|kind| kind.in_throughput);
    // Waiting for a scanner of the whole machine is for the tests of that kind.
    let quick = mine.filter(|kind| !matches!(kind.name, "ksm" | "numa-hint"));
    quick.map(|kind| format!("kind={} {with}", kind.name)).collect()
}

#[test]
fn every_kind_is_valid_in_bulk() {
    let _machine = Machine::alone();
    assert!(!valid(&kinds("")).is_empty());
}

#[test]
fn every_kind_is_valid_in_two_threads() {
    let _machine = Machine::alone();
    valid(&kinds("threads=2"));
}

#[test]
fn every_kind_is_valid_in_two_processes() {
    let _machine = Machine::alone();
    valid(&kinds("processes=2"));
}

#[test]
fn threads_with_a_mapping_each_map_twice() {
    for measured in valid(&["threads=2 vmas=each".to_owned()]) {
        let map = measured.series.iter().find(|series| plain(&series.name) == "map").unwrap();
        assert_eq!(map.ops, 2);
        assert_eq!(measured.counters["faults_per_repetition"], 1024);
    }
}

#[test]
fn calls_are_made_beside_the_touches_and_take_no_fault_of_theirs() {
    for call in ["munmap", "mprotect", "madvise"] {
        for measured in valid(&[format!("beside={call}"), format!("kind=read beside={call}")]) {
            assert!(measured.counters["calls_beside"] > 0);
            assert_eq!(measured.counters["faults_per_repetition"], 1024);
            let has = |name: &str, arm: &str| {
                let mut mine = measured.series.iter().filter(|series| series.arm == arm);
                mine.any(|series| plain(&series.name) == name)
            };
            for arm in ["pagelab", "alone", "present"] {
                assert!(has("touch", arm), "{arm}");
            }
            for arm in ["pagelab", "present", "idle"] {
                assert!(has("beside", arm) && has("beside-call", arm), "{arm}");
            }
            assert!(!has("beside", "alone") && !has("touch", "idle"));
        }
    }
}

#[test]
fn touches_in_a_full_group_make_the_page_cache_give_way() {
    let _machine = Machine::alone();
    for measured in valid(&["pressure=memcg".to_owned()]) {
        assert!(measured.counters["cache_pages_reclaimed"] > 0);
        assert!(measured.counters["limit_hits"] > 0);
    }
}

#[test]
fn a_node_with_much_free_memory_is_not_broken_up_and_the_skip_says_what_to_do() {
    let _machine = Machine::alone();
    let lab = Lab::new();
    let case = "fault/throughput size=4m rounds=2 page=2m pressure=fragmented";
    let suite = lab.suite(&[case]);
    let ended = lab.pagelab(&["run", "--suite", &suite, "--clock", "scripted", "-o", "run"]);
    let records = lab.records("run");
    let Outcome::Skipped { need, cure } = &records[0].outcome else {
        // A machine that is small enough.
        assert!(measured(&records[0]).is_valid(), "{}", ended.stderr);
        return;
    };
    ended.exits(4);
    if need.starts_with("a node") {
        assert!(need.contains("at most 2.00 GiB of free memory"), "{need}");
        assert!(cure.contains("mem=2G") && cure.contains("are free"), "{cure}");
    }
}
