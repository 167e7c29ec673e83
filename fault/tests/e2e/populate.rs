//! Every way of populating, in both fault workloads: valid by its own claims, or skipped with a
//! cure; and what the touches afterwards are called.

use pagelab_record::Measured;

use crate::support::{Lab, is_skipped, measured, plain};

const WAYS: [&str; 8] = [
    "map-populate",
    "madvise-populate",
    "populate-read",
    "mlock",
    "mlock-onfault",
    "mlockall-current",
    "mlockall-future",
    "map-locked",
];

fn series(measured: &Measured) -> Vec<&str> {
    let ours = measured.series.iter().filter(|series| series.arm == "pagelab");
    let mut names: Vec<&str> = ours.map(|series| plain(&series.name)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn a_touch_that_takes_no_fault_is_not_called_a_fault() {
    let lab = Lab::new();
    let cases: Vec<String> =
        WAYS.iter().map(|way| format!("fault/latency size=4m rounds=2 populate={way}")).collect();
    let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
    // No time is as long as that of memory which a host must find first.
    let suite = lab.suite(&cases);
    let words = ["run", "--wait", "--suite", &suite, "--clock", "scripted", "-o", "run"];
    lab.pagelab(&words).exits(0);
    for (record, way) in lab.records("run").iter().zip(WAYS) {
        if is_skipped(record) {
            continue;
        }
        let measured = measured(record);
        assert!(measured.is_valid(), "{way}: {:?}", measured.witness);
        let expected: &[&str] = match way {
            "mlock-onfault" => &["call", "fault", "fault-pagetable"],
            "populate-read" => &["call", "fault"],
            _ => &["call", "touch"],
        };
        assert_eq!(series(measured), expected, "{way}");
    }
}

#[test]
fn what_a_call_made_present_takes_no_fault_when_it_is_touched() {
    let lab = Lab::new();
    let mut cases: Vec<String> = WAYS
        .iter()
        .map(|way| format!("fault/throughput size=8m rounds=2 populate={way}"))
        .collect();
    cases.push("fault/throughput size=8m rounds=2 threads=2 populate=madvise-populate-each".into());
    let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
    lab.measure("run", &cases);
    for record in &lab.records("run") {
        if is_skipped(record) {
            continue;
        }
        let way = record.case.get("populate").unwrap();
        let measured = measured(record);
        assert!(measured.is_valid(), "{way}: {:?}", measured.witness);
        let by_touch = matches!(way, "mlock-onfault" | "populate-read");
        let faults = measured.counters["faults_per_repetition"];
        assert_eq!(faults, if by_touch { 2048 } else { 0 }, "{way}");
        let locks = way.contains("lock");
        let claimed = measured.witness.iter().any(|claim| claim.claim.starts_with("bytes locked"));
        assert_eq!(claimed, locks, "{way}");
    }
}

#[test]
fn pages_that_were_there_before_the_call_are_noticed() {
    let lab = Lab::new();
    let lie = "fault/latency size=4m rounds=2 populate=populate-read lie=present";
    lab.measure("run", &[lie]).exits(6);
    assert!(!measured(&lab.records("run")[0]).is_valid());
}
