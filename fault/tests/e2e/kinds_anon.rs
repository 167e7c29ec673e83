//! Kinds of fault on anonymous memory, each at its smallest: valid, or skipped with a cure; and
//! lies about the state that their touches start from, which the witness must notice.
//!
//! The clock is scripted: the faults are real, the times are not looked at.

use pagelab_record::{Data, Measured, Record, latency};

use crate::support::{Ended, Lab, Machine, Saved, is_skipped, measured, plain, with_huge_pages};

/// Measures one case with the scripted clock.
fn one(lab: &Lab, case: &str, code: i32) -> Option<Record> {
    let suite = lab.suite(&[&format!("fault/latency {case} rounds=2")]);
    let ended = with_huge_pages(
        |ended: &Ended| matches!(ended.code, Some(4)) || ended.code == Some(code),
        || {
            let _ = std::fs::remove_dir_all(lab.path("run"));
            lab.pagelab(&["run", "--suite", &suite, "--clock", "scripted", "-o", "run"])
        },
    );
    let record = lab.records("run").remove(0);
    if is_skipped(&record) {
        ended.exits(4);
        return None;
    }
    ended.exits(code);
    Some(record)
}

/// Samples of a series of the fault arm, over both repetitions.
fn samples(measured: &Measured, name: &str) -> u64 {
    let mine = measured.series.iter().filter(|s| plain(&s.name) == name && s.arm == "pagelab");
    mine.map(|series| match &series.data {
        Data::Histogram(text) => latency::decode(text).unwrap().len(),
        other => panic!("{other:?}"),
    })
    .sum()
}

/// The case is valid and left so many samples of this series, or is skipped.
#[track_caller]
fn is_proven(case: &str, series: &[&str], count: u64) -> Option<Record> {
    let _machine = Machine::alone();
    let record = one(&Lab::new(), case, 0)?;
    let measured = measured(&record);
    assert!(measured.is_valid(), "{:?}", measured.witness);
    let found: u64 = series.iter().map(|name| samples(measured, name)).sum();
    assert_eq!(found, 2 * count, "{case}");
    Some(record)
}

/// With a lie the case is invalid, by this claim among others.
#[track_caller]
fn is_noticed(case: &str, lie: &str, claim: &str) {
    let _machine = Machine::alone();
    let Some(record) = one(&Lab::new(), &format!("{case} lie={lie}"), 6) else { return };
    let witness = &measured(&record).witness;
    let broken: Vec<&str> = witness.iter().filter(|c| !c.holds).map(|c| c.claim.as_str()).collect();
    assert!(broken.contains(&claim), "{broken:?}");
}

const FAULT: &[&str] = &["fault"];
/// What kernels differ in.
const EITHER: &[&str] = &["fault", "touch"];
const LOOP_FAULTS: &str = "minor faults of the loop";
const HUGE_BEFORE: &str = "base pages mapped by a PMD or larger before the touches";

#[test]
fn a_page_that_a_forked_process_holds_is_copied() {
    is_proven("kind=fork-cow page=4k size=4m", FAULT, 1024);
}

#[test]
fn a_huge_page_that_a_forked_process_holds_is_split_and_one_base_page_copied() {
    is_proven("kind=fork-cow page=2m size=8m", FAULT, 4);
}

#[test]
fn a_hugetlb_page_that_a_forked_process_holds_is_copied_whole() {
    is_proven("kind=fork-cow page=hugetlb-2m size=8m", FAULT, 4);
}

#[test]
fn the_last_owner_of_a_page_keeps_it() {
    for (page, count) in [("4k", 2048), ("2m", 4), ("hugetlb-2m", 4)] {
        is_proven(&format!("kind=reuse page={page} size=8m"), FAULT, count);
    }
}

#[test]
fn what_was_protected_and_is_writable_again_faults_everywhere_or_nowhere() {
    for (page, count) in [("4k", 2048), ("2m", 4), ("hugetlb-2m", 4)] {
        is_proven(&format!("kind=mprotect page={page} size=8m"), EITHER, count);
    }
}

#[test]
fn what_was_given_up_is_allocated_again() {
    for (page, count) in [("4k", 2048), ("64k", 128), ("2m", 4), ("hugetlb-2m", 4)] {
        is_proven(&format!("kind=dontneed page={page} size=8m"), FAULT, count);
    }
}

#[test]
fn what_was_freed_and_not_taken_takes_no_fault_and_is_kept() {
    for (page, count) in [("4k", 2048), ("2m", 4)] {
        is_proven(&format!("kind=free page={page} size=8m"), EITHER, count);
    }
}

#[test]
fn what_was_freed_and_taken_is_allocated_again() {
    for (page, count) in [("4k", 2048), ("64k", 128)] {
        is_proven(&format!("kind=free-reclaimed page={page} size=8m"), FAULT, count);
    }
}

#[test]
fn the_huge_zero_page_is_mapped_by_loads_and_replaced_by_stores() {
    is_proven("kind=read page=2m size=8m", FAULT, 4);
    is_proven("kind=zero-write page=2m size=8m", FAULT, 4);
}

#[test]
fn merged_pages_are_copied_and_the_settings_of_ksm_are_put_back() {
    let settings = ["run", "pages_to_scan", "sleep_millisecs", "smart_scan", "advisor_mode"];
    let paths = settings.map(|name| std::path::Path::new("/sys/kernel/mm/ksm").join(name));
    let saved: Vec<Saved> = paths.iter().filter(|p| p.is_file()).map(|p| Saved::of(p)).collect();
    is_proven("kind=ksm page=4k size=4m", FAULT, 1024);
    saved.iter().for_each(Saved::is_back);
}

#[test]
fn hint_faults_and_moves_need_a_second_node_and_say_so() {
    is_proven("kind=numa-hint page=4k size=4m", FAULT, 1024);
    is_proven("kind=migrate page=4k size=4m", &["call"], 1024);
    is_proven("kind=migrate page=2m size=8m", &["call"], 4);
}

#[test]
fn base_pages_are_collapsed_by_a_call() {
    is_proven("kind=collapse page=2m size=8m", &["call"], 4);
}

#[test]
fn a_report_says_which_kinds_took_no_fault_and_which_are_calls() {
    let _machine = Machine::alone();
    let lab = Lab::new();
    let cases = ["kind=free page=4k size=4m", "kind=collapse page=2m size=8m"];
    let cases = cases.map(|case| format!("fault/latency {case} rounds=2"));
    let suite = lab.suite(&[&cases[0], &cases[1]]);
    let ended = lab.pagelab(&["run", "--suite", &suite, "--clock", "scripted", "-o", "run"]);
    for (record, word) in lab.records("run").iter().zip(["free (no fault)", "collapse (call)"]) {
        let is_named = |name| samples(measured(record), name) > 0;
        if !is_skipped(record) && (is_named("touch") || is_named("call")) {
            ended.shows(&[word]);
        }
    }
}

#[test]
fn a_page_that_was_touched_before_the_clock_is_noticed() {
    for kind in ["fork-cow", "reuse", "dontneed", "free-reclaimed"] {
        is_noticed(&format!("kind={kind} page=4k size=4m"), "present", LOOP_FAULTS);
    }
    is_noticed("kind=read page=2m size=8m", "present", "KiB of memory taken by the pages");
}

#[test]
fn huge_pages_below_a_case_of_base_pages_are_noticed_before_they_are_split() {
    for kind in ["fork-cow", "reuse", "free", "mprotect"] {
        is_noticed(&format!("kind={kind} page=4k size=4m"), "thp-on", HUGE_BEFORE);
    }
}

#[test]
fn base_pages_below_a_case_of_huge_pages_are_noticed() {
    for kind in ["fork-cow", "reuse", "free", "mprotect"] {
        is_noticed(&format!("kind={kind} page=2m size=8m"), "thp-off", HUGE_BEFORE);
    }
    let claim = "base pages present afterwards";
    is_noticed("kind=read page=2m size=8m", "thp-off", claim);
}

#[test]
fn a_lie_that_a_kind_cannot_tell_is_refused() {
    let lab = Lab::new();
    for case in [
        ["--kind", "free", "--lie", "present"],
        ["--kind", "mprotect", "--lie", "present"],
        ["--kind", "fork-cow", "--lie", "early-populate"],
    ] {
        let words = [&["run", "fault/latency", "--dry-run"][..], &case[..]].concat();
        lab.pagelab(&words).exits(2).complains(&["nothing would be proven"]);
    }
}

#[test]
fn sizes_that_a_kind_does_not_come_in_are_refused_with_what_to_ask_for() {
    let lab = Lab::new();
    for (kind, page) in [
        ("fork-cow", "64k"),
        ("reuse", "64k"),
        ("free", "hugetlb-2m"),
        ("free-reclaimed", "2m"),
        ("ksm", "2m"),
        ("numa-hint", "2m"),
        ("migrate", "64k"),
        ("collapse", "4k"),
        ("zero-write", "64k"),
    ] {
        let words = ["run", "fault/latency", "--kind", kind, "--page", page, "--dry-run"];
        lab.pagelab(&words).exits(2).complains(&[kind, "use "]);
    }
}
