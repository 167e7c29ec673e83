//! Lies: the kernel is really told something else than the case says, and the witness must notice.
//!
//! Each lie has an honest twin, the same case without it, so that what is tested is the lie and
//! not the case.

use crate::support::{Lab, Machine, is_skipped, measured};

/// Runs the case honestly (valid, exit 0) and with a lie (invalid, exit 6, this claim broken).
#[track_caller]
fn comes_out_invalid(case: &str, lie: &str, claim: &str) {
    // Where THP are off altogether, root's runs turn them on, one run at a time.
    let _machine = case.contains("page=2m").then(Machine::alone);
    let lab = Lab::new();
    let case = format!("{case} size=16m rounds=2");
    let honest = lab.measure("honest", &[&case]);
    let records = lab.records("honest");
    if is_skipped(&records[0]) {
        honest.exits(4);
        return;
    }
    honest.exits(0).shows(&["1 of 1 cases valid by their witness"]);
    assert!(!honest.stdout.contains("INVALID"), "{}", honest.stdout);
    assert!(measured(&records[0]).is_valid());

    let lying = lab.measure("lying", &[&format!("{case} lie={lie}")]);
    lying.exits(6).complains(&["INVALID"]).shows(&["INVALID", "0 of 1 cases valid", claim]);
    let records = lab.records("lying");
    let witness = &measured(&records[0]).witness;
    let broken: Vec<&str> =
        witness.iter().filter(|claim| !claim.holds).map(|claim| claim.claim.as_str()).collect();
    assert!(broken.contains(&claim), "{broken:?}");
    // What a report says of it later is no better.
    lab.pagelab(&["report", "lying"]).exits(0).shows(&["INVALID", claim]);
}

const TOUCH_FAULTS: &str = "minor faults of the touch";
const LOOP_FAULTS: &str = "minor faults of the loop";
const PRESENT: &str = "base pages present afterwards";
const HUGE: &str = "base pages mapped by a PMD or larger";

#[test]
fn huge_pages_in_a_base_page_case_are_noticed_by_the_faults_that_are_missing() {
    comes_out_invalid("fault/throughput page=4k", "thp-on", TOUCH_FAULTS);
}

#[test]
fn huge_pages_in_a_base_page_case_are_noticed_in_the_page_table() {
    comes_out_invalid("fault/throughput page=4k", "thp-on", HUGE);
}

#[test]
fn a_silent_fallback_to_base_pages_is_noticed() {
    comes_out_invalid("fault/throughput page=2m", "thp-off", HUGE);
}

#[test]
fn a_silent_fallback_is_noticed_by_the_faults_where_every_base_page_is_touched() {
    comes_out_invalid("fault/throughput page=2m touch=8@4k", "thp-off", TOUCH_FAULTS);
}

#[test]
fn ragged_ends_of_an_aligned_case_are_noticed() {
    comes_out_invalid("fault/throughput page=2m", "ragged", PRESENT);
}

#[test]
fn ragged_ends_are_noticed_by_the_faults_where_every_base_page_is_touched() {
    comes_out_invalid("fault/throughput page=2m touch=8@4k", "ragged", TOUCH_FAULTS);
}

#[test]
fn memory_populated_before_the_policy_was_set_is_noticed() {
    comes_out_invalid("fault/throughput page=2m populate=madvise-populate", "early-populate", HUGE);
}

#[test]
fn a_touch_of_pages_that_were_present_is_noticed() {
    comes_out_invalid("fault/throughput page=4k", "present", TOUCH_FAULTS);
}

#[test]
fn a_touch_of_huge_pages_that_were_present_is_noticed() {
    comes_out_invalid("fault/throughput page=2m", "present", TOUCH_FAULTS);
}

#[test]
fn latency_of_base_pages_notices_huge_ones() {
    comes_out_invalid("fault/latency page=4k", "thp-on", LOOP_FAULTS);
}

#[test]
fn latency_of_reads_notices_the_huge_zero_page() {
    comes_out_invalid("fault/latency kind=read page=4k", "thp-on", HUGE);
}

#[test]
fn latency_of_huge_pages_notices_a_silent_fallback() {
    comes_out_invalid("fault/latency page=2m", "thp-off", HUGE);
}

#[test]
fn latency_of_huge_pages_notices_ragged_ends() {
    comes_out_invalid("fault/latency page=2m", "ragged", PRESENT);
}

#[test]
fn latency_notices_memory_populated_before_the_policy_was_set() {
    comes_out_invalid("fault/latency page=2m", "early-populate", HUGE);
}

#[test]
fn latency_notices_pages_that_were_present() {
    comes_out_invalid("fault/latency page=4k", "present", LOOP_FAULTS);
}

#[test]
fn latency_of_reads_notices_that_the_zero_page_is_not_there() {
    let claim = "base pages that are the zero page";
    comes_out_invalid("fault/latency kind=read page=4k", "present", claim);
}
