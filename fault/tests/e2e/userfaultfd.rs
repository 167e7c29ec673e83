//! Faults that user space resolves: several resolvers with a scripted clock, and lies.

use pagelab_record::{Data, latency};

use crate::support::{Lab, is_skipped, measured, plain};

const SMALL: &str = "size=4m rounds=1";

/// Touches of an arm that were filed under a series.
fn samples(record: &pagelab_record::Record, arm: &str, name: &str) -> u64 {
    let mine = measured(record).series.iter().filter(|s| s.arm == arm && plain(&s.name) == name);
    mine.map(|series| match &series.data {
        Data::Histogram(text) => latency::decode(text).unwrap().len(),
        _ => 0,
    })
    .sum()
}

#[test]
fn every_kind_of_resolver_is_proven() {
    let lab = Lab::new();
    let resolvers = [
        "handler=sigbus op=copy",
        "handler=sigbus op=zeropage-write",
        "handler=sigbus op=poison",
        "handler=same-cpu op=copy",
        "handler=same-cpu op=zeropage",
        "handler=same-cpu op=continue",
        "handler=same-cpu op=wp",
        "handler=same-cpu op=move",
        "handler=any-cpu op=poison",
        "handler=other-cpu op=copy",
        "handler=other-cpu-poll op=wp",
        "handler=none op=wp-async",
    ];
    let cases = resolvers.map(|resolver| format!("fault/userfaultfd {resolver} {SMALL}"));
    let suite = lab.suite(&cases.each_ref().map(String::as_str));
    lab.pagelab(&["run", "--suite", &suite, "--clock", "scripted", "-o", "run"]);
    for (record, resolver) in lab.records("run").iter().zip(resolvers) {
        if is_skipped(record) {
            continue;
        }
        let broken = measured(record).witness.iter().filter(|claim| !claim.holds);
        let broken: Vec<String> = broken
            .map(|c| format!("{}: expected {}, observed {}", c.claim, c.expected, c.observed))
            .collect();
        assert!(broken.is_empty(), "{resolver}: {broken:?}");
        let apart = samples(record, "pagelab", "fault-pagetable");
        assert_eq!(samples(record, "pagelab", "fault") + apart, 1024, "{resolver}");
        assert_eq!(samples(record, "control", "fault"), 1024, "{resolver}");
    }
}

#[test]
fn one_fault_resolves_a_batch_and_only_it_is_a_sample() {
    let lab = Lab::new();
    let case = format!("fault/userfaultfd handler=sigbus batch=16 {SMALL}");
    lab.measure("run", &[&case]);
    let records = lab.records("run");
    if !is_skipped(&records[0]) {
        assert!(measured(&records[0]).is_valid());
        assert_eq!(samples(&records[0], "pagelab", "fault"), 64);
    }
}

#[test]
fn several_threads_share_a_userfaultfd_or_have_one_each() {
    let lab = Lab::new();
    let case =
        |uffds: &str| format!("fault/userfaultfd handler=any-cpu threads=2 uffds={uffds} {SMALL}");
    lab.measure("run", &[&case("one"), &case("each")]);
    for record in lab.records("run") {
        if !is_skipped(&record) {
            assert!(measured(&record).is_valid(), "{:?}", measured(&record).witness);
        }
    }
}

/// Runs a case with a lie: it must come out invalid, by this claim.
#[track_caller]
fn is_caught(resolver: &str, lie: &str, claim: &str) {
    let lab = Lab::new();
    let ended = lab.measure("lying", &[&format!("fault/userfaultfd {resolver} {SMALL} lie={lie}")]);
    let records = lab.records("lying");
    if is_skipped(&records[0]) {
        return;
    }
    ended.exits(6).shows(&["INVALID", claim]);
    let witness = &measured(&records[0]).witness;
    assert!(witness.iter().any(|one| !one.holds && one.claim == claim), "{witness:?}");
}

#[test]
fn pages_that_were_present_send_no_message() {
    is_caught("handler=same-cpu op=copy", "present", "messages read");
}

#[test]
fn pages_that_were_never_protected_are_noticed() {
    is_caught("handler=same-cpu op=wp", "present", "base pages write-protected beforehand");
}

#[test]
fn another_source_is_noticed() {
    let claim = "lines whose contents are not what was resolved";
    is_caught("handler=sigbus op=copy", "content", claim);
}

#[test]
fn a_handler_that_does_twice_as_much_is_noticed() {
    is_caught("handler=sigbus op=copy", "double", "signals in place of messages");
}

#[test]
fn a_handler_on_another_cpu_is_noticed() {
    let claim = "handlers on another CPU than the case says";
    is_caught("handler=same-cpu op=copy", "elsewhere", claim);
}
