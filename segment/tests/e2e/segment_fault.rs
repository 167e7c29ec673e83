//! Segments beside pages: faults by the formula, and arms that are left out named.

use pagelab_record::Outcome;

use crate::support::{Lab, Machine, is_skipped, measured, plain};

#[test]
fn a_segment_faults_in_its_first_pass_only_and_no_arm_is_left_out_in_silence() {
    // Where THP are off altogether, root's runs turn them on, one run at a time.
    let _machine = Machine::alone();
    let lab = Lab::new();
    let ended = lab.measure_huge("run", &["segment/fault size=8m rounds=3"], 0);
    ended.exits(0).shows(&["1 valid", "Segments: first pass, and taken again"]);
    let records = lab.records("run");
    let measured = measured(&records[0]);
    let expected = |arm: &str, id: &str| {
        let mut mine = measured.witness.iter().filter(|claim| claim.arm == arm && claim.id == id);
        mine.next().map(|claim| (claim.holds, claim.expected))
    };
    let left_out = |arm: &str| measured.left_out.iter().find(|left_out| left_out.arm == arm);
    // 8 MiB are no leaf of 1 GiB, whatever the machine has.
    let giant = left_out("segment-1g").expect("it does not fit");
    assert!(giant.need.contains("1g") && giant.cure.contains("--size 1g"), "{giant:?}");
    ended.shows(&["arm segment-1g", "--size 1g"]);
    assert_eq!(expected("plain", "faults-of-touch"), Some((true, 2048)));
    let Some(huge) = left_out("thp") else {
        assert_eq!(expected("thp", "faults-of-touch"), Some((true, 4)));
        assert_eq!(expected("segment-2m", "faults-of-segment-first"), Some((true, 4)));
        assert_eq!(expected("segment-2m", "faults-of-segment-again"), Some((true, 0)));
        assert_eq!(expected("segment-2m", "marked-words"), Some((true, 0)));
        assert_eq!(expected("segment-2m", "huge"), Some((true, 2048)));
        assert_eq!(measured.counters["faults_per_repetition/segment-2m"], 4);
        let of = |name: &str| {
            let mine =
                measured.series.iter().filter(|s| s.arm == "segment-2m" && plain(&s.name) == name);
            mine.filter(|s| s.clock == pagelab_record::Clock::Cpu).count()
        };
        assert_eq!((of("first-process"), of("process"), of("setup"), of("zero")), (1, 2, 1, 2));
        return;
    };
    ended.shows(&[&huge.cure]);
}

#[test]
fn leaves_at_ragged_ends_are_counted_one_by_one() {
    let _machine = Machine::alone();
    let lab = Lab::new();
    let case = "segment/fault arms=segment-2m align=ragged size=8m rounds=2 zero=";
    let ended = lab.measure_huge("run", &[&format!("{case}release,fault,ahead")], 0);
    let records = lab.records("run");
    if records.iter().any(is_skipped) {
        ended.exits(4);
        return;
    }
    ended.exits(0).shows(&["3 valid"]);
    for record in &records {
        // Three whole leaves between two halves.
        let faults = measured(record).counters["faults_per_repetition/segment-2m"];
        assert_eq!(faults, 3 + 512, "{}", record.case);
    }
}

#[test]
fn the_first_arm_is_what_a_case_cannot_do_without() {
    let lab = Lab::new();
    let ended = lab.measure("run", &["segment/fault arms=segment-1g size=8m rounds=2"]);
    ended.exits(4).shows(&["a size that a leaf of 1g fits into", "--size 1g"]);
    assert!(matches!(lab.records("run")[0].outcome, Outcome::Skipped { .. }));
    let planned = lab.pagelab(&["run", "segment/fault", "--size", "8m", "--dry-run"]);
    planned.exits(0).shows(&["without the arms that lack something"]);
}
