//! Bodies with made costs and claims: what is kept, tried again and proven.

use std::cell::Cell;

use pagelab_record::Clock as Source;
use pagelab_record::vocabulary::Check;

use super::*;
use crate::{
    losses::{HostWatch, KEPT_COLD, MoveWatch},
    planted::share,
};

thread_local! {
    static REPORTED: Cell<u64> = const { Cell::new(0) };
}

/// A host that takes memory back all the time.
#[expect(clippy::unnecessary_wraps, reason = "in place of what a kernel may not say")]
fn never_rests() -> Option<u64> {
    Some(REPORTED.replace(REPORTED.get() + 1))
}

/// An arm that proves a repetition and cannot tell what was cold in it.
#[derive(Debug)]
struct Touches;

impl Trial for Touches {
    fn arm(&self) -> &'static str {
        "a"
    }

    fn is_first_touch(&self) -> bool {
        true
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        meter.time("touch", 1, 4096, || ());
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        witness.expect(Check::FaultsOfTouch, 7, 7);
        witness.count("faults", 7);
        Ok(())
    }
}

#[test]
fn a_repetition_that_the_host_never_spares_is_proven_and_filed_apart() {
    let mut meter = Meter::new(Clock::new(ClockChoice::Scripted { step_ns: 7 }), 0);
    let mut witness = Witness::default();
    let host = HostWatch::of(never_rests);
    let mut losses = Losses { host, ..Losses::new(2, REST_NS) };
    for repetition in [None, Some(0), Some(1), Some(2)] {
        let is_kept = repeat(&mut Touches, repetition, &mut meter, &mut witness, &mut losses);
        assert!(is_kept.unwrap());
        if repetition.is_some() {
            meter.keep();
            witness.keep();
        }
    }
    losses.testify(&mut witness);
    witness.keep();
    let (measured, _) = witness.finish(meter.finish());
    let names: Vec<&str> = measured.series.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["touch-cold"; 3]);
    assert!(measured.is_valid());
    assert_eq!((measured.counters["faults"], measured.counters[KEPT_COLD]), (21, 3));
    assert!(measured.warnings.iter().any(|said| said.contains("-cold")), "it says so");
}

thread_local! {
    static MOVED: Cell<u64> = const { Cell::new(0) };
}

/// An arm that takes a fault too many so many times, maybe because pages are moved.
#[derive(Debug)]
struct Stumbles {
    times: u32,
    moves: bool,
    counts: bool,
}

impl Trial for Stumbles {
    fn arm(&self) -> &'static str {
        "a"
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        meter.time("touch", 1, 4096, || ());
        Ok(())
    }

    fn counts_faults(&self) -> bool {
        self.counts
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let stumbles = self.times > 0;
        self.times -= u32::from(stumbles);
        MOVED.set(MOVED.get() + u64::from(stumbles && self.moves));
        witness.expect(Check::FaultsOfTouch, 7, 7 + u64::from(stumbles));
        Ok(())
    }
}

/// What a record says of a repetition of this arm, given so many attempts.
fn stumbled(mut trial: Stumbles, attempts_max: u32, rest_ns: u64) -> (bool, [u64; 2]) {
    let mut meter = Meter::new(Clock::new(ClockChoice::Scripted { step_ns: 7 }), 0);
    let mut witness = Witness::default();
    let kernel = MoveWatch::of(|| Some(MOVED.get()));
    let mut losses = Losses { kernel, ..Losses::new(attempts_max, rest_ns) };
    assert!(repeat(&mut trial, Some(0), &mut meter, &mut witness, &mut losses).unwrap());
    meter.keep();
    witness.keep();
    losses.testify(&mut witness);
    witness.keep();
    let (measured, _) = witness.finish(meter.finish());
    assert_eq!(measured.series.len(), 1);
    let told = |of: &str| measured.counters.get(&format!("repetitions_discarded_{of}"));
    let told = ["migration", "unproven"].map(|of| told(of).copied().unwrap_or(0));
    (measured.is_valid(), told)
}

#[test]
fn a_claim_that_breaks_is_tried_again_while_pages_are_moved_and_otherwise_once() {
    for (counts, times, moves, told) in [
        (true, 2, true, (true, [2, 0])),
        (true, 9, true, (false, [2, 0])),
        (true, 1, false, (true, [0, 1])),
        (true, 2, false, (false, [0, 1])),
        (false, 1, true, (false, [0, 0])),
    ] {
        assert_eq!(stumbled(Stumbles { times, moves, counts }, 3, REST_NS), told);
    }
}

#[test]
fn a_claim_that_breaks_again_waits_for_whoever_moves_pages_slowly() {
    thread_local! {
        static LOOKS: Cell<u64> = const { Cell::new(0) };
    }
    // One look before each attempt, two after the first, and then it moves.
    let slow = || Some(u64::from(LOOKS.replace(LOOKS.get() + 1) >= 10));
    let mut losses = Losses { kernel: MoveWatch::of(slow), ..Losses::new(12, REST_NS) };
    let mut trial = Stumbles { times: 2, moves: false, counts: true };
    let mut meter = Meter::new(Clock::new(ClockChoice::Scripted { step_ns: 7 }), 0);
    let mut witness = Witness::default();
    repeat(&mut trial, Some(0), &mut meter, &mut witness, &mut losses).unwrap();
    assert!(witness.holds());
    assert_eq!((losses.unproven, losses.moved, losses.patience), (1, 1, 1));
}

#[test]
fn a_claim_that_breaks_is_tried_again_a_few_times_however_long_that_takes() {
    let trial = |times| Stumbles { times, moves: true, counts: true };
    assert_eq!(stumbled(trial(3), 12, 0), (true, [3, 0]));
    assert_eq!(stumbled(trial(9), 12, 0), (false, [3, 0]));
}

/// What is left of two repetitions of an arm that a slowdown is planted into or not.
fn planted(into: &mut dyn Trial, planted: Option<Planted>) -> Measured {
    let mut meter = Meter::new(Clock::new(ClockChoice::Scripted { step_ns: 7 }), 0);
    let mut witness = Witness::default();
    meter.plant(planted);
    for repetition in 0..2 {
        meter.begin(into.arm(), Some(repetition));
        into.run(&mut meter).unwrap();
        meter.keep();
    }
    if let Some(planted) = planted {
        testify(planted, meter.kept(), &mut witness);
    }
    witness.keep();
    witness.finish(meter.finish()).0
}

#[test]
fn what_is_planted_is_within_the_clock_pair_and_timed_by_itself() {
    let with = planted(&mut Touches, Some(Planted { turns: 3 }));
    let names: Vec<&str> = with.series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["touch", PLANTED, "touch", PLANTED]);
    // Four readings, a step apart: the body's pair holds the pair of what was planted.
    assert_eq!(with.series[0].data, Data::Values(vec![21]));
    assert_eq!(with.series[1].data, Data::Values(vec![7]));
    assert_eq!(share(&with), Some(0.5));
    assert!(with.is_valid() && with.warnings.len() == 1);
    assert_eq!(with.witness[0].id, "planted");
    let without = planted(&mut Touches, None);
    assert_eq!((without.series.len(), share(&without)), (2, None));
    assert!(without.witness.is_empty() && without.warnings.is_empty());
}

/// An arm that reads the clock itself.
struct TimedElsewhere;

impl Trial for TimedElsewhere {
    fn arm(&self) -> &'static str {
        "a"
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        meter.observe("touch", meter.elapsed(), 1, 4096, 7);
        Ok(())
    }

    fn verify(&mut self, _: &mut Witness) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn a_body_that_is_not_made_slower_is_a_claim_that_fails() {
    let measured = planted(&mut TimedElsewhere, Some(Planted { turns: 3 }));
    assert!(!measured.is_valid());
    assert_eq!(measured.witness[0].observed, 2);
}

fn series(repetition: u32, value: u64) -> Series {
    Series { repetition, ..Series::new("touch", "a", Source::Tsc, Unit::Ns, vec![value]) }
}

#[test]
fn arms_alternate_forwards_and_backwards() {
    assert_eq!((abba(3, 0), abba(3, 1)), (vec![0, 1, 2], vec![2, 1, 0]));
}

#[test]
fn equal_values_are_narrow_and_scattered_ones_are_not() {
    let equal: Vec<Series> = (0..6).map(|r| series(r, 1000)).collect();
    let scattered: Vec<Series> = (0..6).map(|r| series(r, 1000 + u64::from(r) * 100)).collect();
    assert!(is_narrow(&equal, 0.01));
    assert!(!is_narrow(&scattered, 0.01));
    assert!(!is_narrow(&equal[..5], 0.01), "too few to say");
}
