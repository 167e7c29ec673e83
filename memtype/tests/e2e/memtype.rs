//! Memory types: on ordinary memory everywhere, and with the kernel module where it is loaded.

use pagelab_record::{Data, Measured, Record};
use serde_json::Value;

use crate::support::{Ended, Lab, Machine, is_skipped, measured, skip, with_huge_pages};

/// Measures some cases into `name`, no longer than it takes to prove them.
fn run(lab: &Lab, name: &str, cases: &[&str]) -> Ended {
    let suite = lab.suite(cases);
    lab.pagelab(&["run", "--suite", &suite, "--budget", "0.01", "-o", name])
}

/// The values of every series of this name.
fn values(measured: &Measured, name: &str) -> Vec<u64> {
    let of = |data: &Data| match data {
        Data::Values(values) => values.clone(),
        other => panic!("{name}: {other:?}"),
    };
    measured.series.iter().filter(|series| series.name == name).flat_map(|s| of(&s.data)).collect()
}

fn counter(measured: &Measured, name: &str) -> u64 {
    *measured.counters.get(name).unwrap_or_else(|| panic!("no counter {name}"))
}

/// Two 32-bit halves of a sum.
fn sum(measured: &Measured, name: &str) -> u64 {
    counter(measured, &format!("{name}_high")) << 32 | counter(measured, &format!("{name}_low"))
}

fn case_of<'r>(record: &'r Record, name: &str) -> &'r str {
    record.case.get(name).unwrap_or_default()
}

/// Needs that every processor of today has, so that ordinary memory never skips.
const WB: &str = "memtype/bandwidth frames=ordinary size=256k iterations=5";

#[test]
fn every_test_of_the_original_that_needs_no_module_is_valid_on_ordinary_memory() {
    let lab = Lab::new();
    let tests = "write,write_nofence,ntwrite,ntwrite_nofence,ntwrite_nofence_deferred,read,\
                 ntwrite_readback";
    run(&lab, "run", &[&format!("{WB} test={tests} arms=pagelab,c")]).exits(0);
    let records = lab.records("run");
    assert_eq!(records.len(), 7);
    for record in &records {
        let (test, measured) = (case_of(record, "test"), measured(record));
        assert!(measured.is_valid(), "{test}");
        let repetitions = measured.series.iter().filter(|series| series.name == "test").count();
        // One observation for each round, whatever the arm.
        assert_eq!(values(measured, "test").len(), 5 * repetitions, "{test}");
        let stores = values(measured, "issue").len();
        assert_eq!(stores, if test == "read" { 0 } else { 5 * repetitions }, "{test}");
        assert_eq!(values(measured, "completion").len(), stores, "{test}");
        let verified = if test == "ntwrite_nofence_deferred" { 1 } else { 5 };
        assert_eq!(counter(measured, "verified_rounds"), verified * repetitions as u64, "{test}");
    }
}

#[test]
fn issue_ends_no_later_than_the_test_and_the_test_no_later_than_completion() {
    let lab = Lab::new();
    let cases = format!("{WB} test=write,ntwrite,ntwrite_nofence,ntwrite_readback");
    let suite = lab.suite(&[&cases]);
    let words = ["run", "--suite", &suite, "--budget", "0.01", "--clock", "scripted", "-o", "run"];
    lab.pagelab(&words).exits(0);
    for record in lab.records("run") {
        let measured = measured(&record);
        let mut arms = measured.series.iter().filter(|series| series.name == "issue");
        assert!(arms.all(|series| series.arm == "pagelab"), "{}", record.case);
        let of = |name| values(measured, name);
        let is_nofence = case_of(&record, "fence") == "none" && case_of(&record, "load") == "none";
        // By the script each reading is one step later; without a fence one reading ends both.
        let test = if is_nofence { 1000 } else { 2000 };
        assert!(of("issue").iter().all(|ns| *ns == 1000), "{}", record.case);
        assert!(of("test").iter().all(|ns| *ns == test), "{}", record.case);
        assert!(of("completion").iter().all(|ns| *ns == test + 1000), "{}", record.case);
        let counts = ["issue", "test", "completion"].map(|name| of(name).len());
        assert!(counts[0] > 0 && counts == [counts[0]; 3], "{counts:?}");
    }
}

#[test]
fn every_width_stores_and_loads_the_same_words_by_one_thread_and_by_two() {
    let lab = Lab::new();
    let cases = [
        format!("{WB} store=plain,nt test=unnamed width=8,16,32,64 threads=1,2"),
        format!("{WB} store=none load=plain,nt test=unnamed width=8,16,32,64 threads=1,2"),
    ];
    run(&lab, "run", &[&cases[0], &cases[1]]);
    let records = lab.records("run");
    // Loads of 8 bytes cannot be non-temporal.
    assert_eq!(records.len(), 16 + 14);
    for record in records.iter().filter(|record| !is_skipped(record)) {
        let measured = measured(record);
        assert!(measured.is_valid(), "{}", record.case);
        assert_eq!(counter(measured, "width_bytes").to_string(), case_of(record, "width"));
        if case_of(record, "store") == "none" {
            assert_eq!(sum(measured, "sum"), sum(measured, "expected_sum"), "{}", record.case);
        }
    }
}

#[test]
fn the_published_read_sum_is_reproduced_by_its_accumulation() {
    let lab = Lab::new();
    run(&lab, "run", &["memtype/bandwidth frames=ordinary test=read sum=accumulated"]).exits(0);
    let records = lab.records("run");
    let measured = measured(&records[0]);
    assert_eq!(sum(measured, "sum"), 0x6601_3530_0000);
    assert_eq!(sum(measured, "expected_sum"), 0x6601_3530_0000);
    assert!(measured.is_valid());
}

/// Runs the case honestly (valid) and with a lie (invalid, exit 6, this claim broken).
#[track_caller]
fn comes_out_invalid(case: &str, lie: &str, claim: &str) {
    let lab = Lab::new();
    run(&lab, "honest", &[case]);
    let records = lab.records("honest");
    if is_skipped(&records[0]) {
        return;
    }
    assert!(measured(&records[0]).is_valid());
    let ended = with_huge_pages(
        |ended: &Ended| ended.code == Some(6),
        || {
            let _ = std::fs::remove_dir_all(lab.path("lying"));
            run(&lab, "lying", &[&format!("{case} lie={lie}")])
        },
    );
    ended.exits(6).shows(&["INVALID", claim]);
    let records = lab.records("lying");
    let witness = &measured(&records[0]).witness;
    assert!(witness.iter().any(|broken| !broken.holds && broken.claim == claim), "{witness:?}");
}

#[test]
fn values_of_another_round_are_noticed_by_their_sum() {
    let claim = "sum of the words loaded";
    comes_out_invalid(&format!("{WB} test=read"), "stale", claim);
}

#[test]
fn huge_leaves_where_base_pages_are_named_are_noticed() {
    let _machine = Machine::alone();
    let enabled = "/sys/kernel/mm/transparent_hugepage/enabled";
    if std::fs::read_to_string(enabled).is_ok_and(|policy| policy.contains("[never]")) {
        return skip("there are no huge pages to lie with", &format!("echo madvise > {enabled}"));
    }
    let claim = "base pages mapped by a PMD or larger";
    comes_out_invalid("memtype/bandwidth frames=ordinary size=4m iterations=5", "huge", claim);
}

#[test]
fn wb_memory_under_the_name_of_another_type_is_noticed_in_the_page_table() {
    let case = "memtype/bandwidth type=wc size=256k iterations=5";
    comes_out_invalid(case, "wb", "leaves that are not WC, by the page table, before and after");
}

#[test]
fn types_that_need_the_module_are_measured_or_skipped_with_its_cure() {
    let lab = Lab::new();
    let cases = [
        "memtype/bandwidth type=uc,wc test=write,write_ucfence,ntwrite,read size=64k iterations=2",
        "memtype/latency type=uc,wc size=64k samples=1k op=load,store,uc-fence",
        "memtype/order type=uc,wc rounds=10k fence=none,uc-store",
    ];
    let ended = run(&lab, "run", &cases);
    let records = lab.records("run");
    assert_eq!(records.len(), 8 + 2 + 4);
    let all_skipped = records.iter().filter(|record| is_skipped(record)).count() == records.len();
    if all_skipped {
        ended.exits(4).shows(&["the kernel module of pagelab"]);
        return;
    }
    for record in records {
        assert!(measured(&record).is_valid(), "{}", record.case);
    }
}

#[test]
fn latency_is_a_distribution_of_each_operation() {
    let lab = Lab::new();
    let case = "memtype/latency frames=ordinary size=256k samples=2k state=hot,flushed";
    run(&lab, "run", &[case]).exits(0);
    for record in lab.records("run") {
        let measured = measured(&record);
        assert!(measured.is_valid(), "{}", record.case);
        let arms: std::collections::BTreeSet<&str> =
            measured.series.iter().map(|series| series.arm.as_str()).collect();
        assert_eq!(arms.len(), 7, "{arms:?}");
        assert!(measured.series.iter().all(|series| series.name == "op"));
    }
}

#[test]
fn order_claims_only_what_the_manual_forbids() {
    let lab = Lab::new();
    let case = "memtype/order frames=ordinary rounds=20k store=plain,nt fence=none,sfence,mfence";
    let ended = run(&lab, "run", &[case]);
    let records = lab.records("run");
    if records.iter().all(is_skipped) {
        ended.exits(4);
        return;
    }
    ended.exits(0);
    for record in records {
        let measured = measured(&record);
        let claims = measured.witness.iter().filter(|claim| claim.claim.contains("reorder"));
        let may_reorder = case_of(&record, "store") == "nt" && case_of(&record, "fence") == "none";
        assert_eq!(claims.count(), usize::from(!may_reorder), "{}", record.case);
        assert_eq!(
            values(measured, "reorderings").iter().sum::<u64>(),
            counter(measured, "reorderings")
        );
        assert!(counter(measured, "observed") <= counter(measured, "rounds"));
    }
}

#[test]
fn what_would_measure_something_else_is_refused_with_what_to_ask_for() {
    let lab = Lab::new();
    for (words, sentence) in [
        (&["--type", "wc", "--frames", "ordinary"][..], "use frames=scattered"),
        (&["--test", "read", "--fence", "sfence"], "use fence=none"),
        (&["--test", "read", "--load", "nt", "--width", "8"], "use width=16"),
        (&["--test", "write_ucfence", "--fence-word", "overlap"], "use fence-word=own"),
        (&["--sum", "accumulated"], "use test=read"),
    ] {
        let all = [&["run", "memtype/bandwidth"][..], words].concat();
        lab.pagelab(&all).exits(2).complains(&[sentence]);
    }
    lab.pagelab(&["run", "memtype/order", "--pattern", "8"]).exits(2).complains(&["cache line"]);
}

#[test]
fn a_dry_run_says_what_uncached_memory_costs() {
    let lab = Lab::new();
    let words = ["run", "memtype/bandwidth", "--type", "uc", "--test", "read", "--dry-run"];
    let planned = lab.pagelab(&words);
    planned.exits(0).shows(&["memtype/bandwidth"]);
    let line = planned.stdout.lines().find(|line| line.contains("memtype/bandwidth")).unwrap();
    // Five processes of four repetitions of 8.4 s.
    assert!(line.trim_start().starts_with("168 s"), "{line}");
}

#[test]
fn doctor_says_what_is_known_of_the_module() {
    let lab = Lab::new();
    let ended = lab.pagelab(&["doctor", "--format", "json"]);
    let found: Value = serde_json::from_str(&ended.exits(0).stdout).unwrap();
    let needs = found["needs"].as_array().unwrap();
    let module = needs.iter().find(|need| need["need"] == "the kernel module of pagelab").unwrap();
    assert!(module["found"].as_str().unwrap().len() > 20, "{module}");
    if module["have"] == false {
        assert!(module["cure"].as_str().unwrap().len() > 10);
        let affected = module["affects"].as_array().unwrap();
        for workload in ["memtype/bandwidth", "memtype/latency", "memtype/order"] {
            let names = |text: &Value| text.as_str().unwrap().starts_with(workload);
            assert!(affected.iter().any(names), "{workload} in {affected:?}");
        }
    }
}
