//! Claims and counters over repetitions that are kept or thrown away.

use pagelab_record::vocabulary::Check;
use pagelab_sys::time::ClockChoice;

use super::*;

fn scripted() -> Meter {
    Meter::new(Clock::new(ClockChoice::Scripted { step_ns: 7 }), 3)
}

#[test]
fn a_repetition_that_is_not_kept_leaves_nothing() {
    let (mut meter, mut witness) = (scripted(), Witness::default());
    meter.begin("a", Some(0));
    witness.begin("a");
    meter.time("touch", 1, 4096, || ());
    witness.expect((Check::Present, "faults"), 1, 2);
    witness.count("faults", 2);
    meter.begin("a", Some(0));
    witness.begin("a");
    meter.time("touch", 1, 4096, || ());
    witness.expect((Check::Present, "faults"), 1, 1);
    meter.keep();
    witness.keep();
    let (measured, _) = witness.finish(meter.finish());
    assert_eq!(measured.series.len(), 1);
    assert_eq!(measured.series[0].data, Data::Values(vec![7]));
    assert_eq!((measured.series[0].process, measured.series[0].arm.as_str()), (3, "a"));
    assert!(measured.is_valid() && measured.counters.is_empty());
}

/// What is left of one repetition of arm `a`.
fn left(say: impl FnOnce(&mut Witness)) -> (Measured, BTreeMap<String, u64>) {
    let mut witness = Witness::default();
    witness.begin("a");
    say(&mut witness);
    witness.keep();
    witness.finish(Vec::new())
}

fn claim(text: &str, expected: i64, observed: i64) -> Claim {
    Claim::check((Check::Present, text), "a", expected, observed, 0)
}

#[test]
fn a_claim_stands_in_the_record_as_it_was_made() {
    let (measured, _) = left(|witness| {
        witness.expect((Check::Present, "faults"), 3, 4);
        witness.expect((Check::Present, "bytes"), u64::MAX, 0);
        assert_eq!(witness.drafted(), [claim("faults", 3, 4), claim("bytes", i64::MAX, 0)]);
    });
    assert_eq!(measured.witness, [claim("faults", 3, 4), claim("bytes", i64::MAX, 0)]);
    assert!(!measured.is_valid());
}

#[test]
fn digests_are_compared_in_their_lowest_63_bits() {
    let top = 1 << 63;
    let (measured, _) = left(|witness| {
        witness.expect_digest((Check::Present, "same"), top | 6, 6);
        witness.expect_digest((Check::Present, "other"), 6, top | 7);
    });
    assert_eq!(measured.witness, [claim("same", 6, 6), claim("other", 6, 7)]);
}

#[test]
fn more_than_enough_is_enough_and_less_is_not() {
    let (measured, _) = left(|witness| {
        witness.expect_at_least((Check::Present, "folios"), 10, 25);
        witness.expect_at_least((Check::Present, "blocks"), 10, 9);
    });
    assert_eq!(measured.witness, [claim("folios", 10, 10), claim("blocks", 10, 9)]);
}

#[test]
fn what_lasts_outlives_a_repetition_that_is_thrown_away() {
    let mut witness = Witness::default();
    witness.begin("a");
    witness.expect_lasting((Check::Present, "moved"), 0, 1);
    witness.expect((Check::Present, "faults"), 1, 2);
    witness.keep_lasting();
    witness.begin("a");
    witness.expect_lasting((Check::Present, "moved"), 0, 0);
    witness.keep();
    let (measured, _) = witness.finish(Vec::new());
    assert_eq!(measured.witness, [Claim { checks: 2, ..claim("moved", 0, 1) }]);
}

#[test]
fn counters_add_up_over_repetitions_and_what_is_set_is_the_latest() {
    let mut witness = Witness::default();
    for repetition in 1..=2 {
        witness.begin("a");
        witness.count("faults", 5);
        witness.count("faults", repetition);
        witness.set("tsc_hz", repetition);
        witness.keep();
    }
    let (measured, latest) = witness.finish(Vec::new());
    assert_eq!(measured.counters, BTreeMap::from([("faults".to_owned(), 13)]));
    assert_eq!(latest, BTreeMap::from([("tsc_hz".to_owned(), 2)]));
}

#[test]
fn a_table_takes_the_place_of_the_one_of_its_name_and_a_warning_is_said_once() {
    let table = |name: &str, row| Table {
        name: name.to_owned(),
        columns: Vec::new(),
        rows: vec![vec![row]],
    };
    let mut witness = Witness::default();
    for repetition in 1..=2 {
        witness.begin("a");
        witness.table(table("first", repetition));
        witness.warn("loud".to_owned());
        witness.keep();
    }
    witness.begin("a");
    witness.table(table("second", 7));
    witness.warn("quiet".to_owned());
    witness.keep();
    let (measured, _) = witness.finish(Vec::new());
    assert_eq!(measured.tables, [table("first", 2), table("second", 7)]);
    assert_eq!(measured.warnings, ["loud", "quiet"]);
}
