//! Settings of the machine: set for a case, and as they were after it, however the run ends.
//!
//! These tests change the machine they run on (64 KiB folios, the pool of 2 MiB pages), so they
//! need root, take turns, and put back what a failure would leave.

mod frequency;

use std::{fs, path::Path};

use pagelab_sys::knobs::Place;

use crate::support::{
    Lab, Live, Machine, Saved, failure, measured, pool, signal, small_folio, until,
};

const FOLIO: &str = "fault/throughput page=64k size=16m rounds=2";
pub(crate) const ENDLESS_FOLIO: &str = "fault/throughput page=64k size=16m rounds=1000000";
const POOL: &str = "fault/throughput page=hugetlb-2m size=16m rounds=2";
/// What a refusal by a lock names as the fix.
pub(crate) const WAIT: &str = "--wait waits for it to end";
const ENDLESS_POOL: &str = "fault/throughput page=hugetlb-2m size=16m rounds=1000000";

/// A run in the middle of a case that needs a knob, which is turned.
pub(crate) fn endless(lab: &Lab, run: &str, case: &str, knob: &Saved) -> Live {
    let suite = lab.suite(&[case]);
    let mut live = Live::start(lab, &["run", "--suite", &suite, "-o", run]);
    live.case();
    assert_ne!(knob.now(), knob.found(), "the knob is turned while the case runs");
    live
}

/// The watchdog has ended, so whatever it does is done, and the journal of changes is empty.
fn all_is_over() {
    let place = Path::new(Place::MACHINE);
    let lock = fs::File::open(place.join("knobs.lock")).unwrap();
    until("the lock to be free", || lock.try_lock().ok());
    let journal = fs::read_to_string(place.join("knobs.jsonl")).unwrap_or_default();
    assert!(!journal.contains("\"old\""), "something is left to restore: {journal}");
}

#[test]
fn a_folio_size_is_offered_for_its_case_and_no_longer() {
    let Some(_machine) = Machine::as_root() else { return };
    let Some(folio) = small_folio() else { return };
    let lab = Lab::new();
    lab.measure("run", &[FOLIO]).exits(0);
    assert!(measured(&lab.records("run")[0]).is_valid());
    folio.is_back();
    all_is_over();
}

#[test]
fn a_pool_grows_for_its_case_and_shrinks_again() {
    let Some(_machine) = Machine::as_root() else { return };
    let Some((pages, _)) = pool(8) else { return };
    let lab = Lab::new();
    lab.measure_huge("run", &[POOL], 0).exits(0);
    assert!(measured(&lab.records("run")[0]).is_valid());
    pages.is_back();
    all_is_over();
}

#[test]
fn a_knob_is_back_after_an_interrupt() {
    let Some(_machine) = Machine::as_root() else { return };
    let Some(folio) = small_folio() else { return };
    let lab = Lab::new();
    let run = endless(&lab, "run", ENDLESS_FOLIO, &folio);
    signal("INT", run.pid());
    run.end().exits(130);
    folio.is_back();
    all_is_over();
}

#[test]
fn a_knob_is_back_after_its_case_died() {
    let Some(_machine) = Machine::as_root() else { return };
    let Some(folio) = small_folio() else { return };
    let lab = Lab::new();
    let mut run = endless(&lab, "run", ENDLESS_FOLIO, &folio);
    signal("KILL", run.case());
    run.end().exits(1);
    assert!(failure(&lab.records("run")[0]).contains("SIGKILL"));
    folio.is_back();
    all_is_over();
}

#[test]
fn a_knob_is_back_after_the_whole_process_group_was_killed() {
    let Some(_machine) = Machine::as_root() else { return };
    let Some(folio) = small_folio() else { return };
    let lab = Lab::new();
    let run = endless(&lab, "run", ENDLESS_FOLIO, &folio);
    run.kill_group();
    assert_eq!(run.end().code, None, "it was killed");
    folio.becomes(folio.found());
    all_is_over();
}

#[test]
fn a_pool_is_as_it_was_after_the_whole_process_group_was_killed() {
    let Some(_machine) = Machine::as_root() else { return };
    let Some((pages, _)) = pool(8) else { return };
    let lab = Lab::new();
    let run = endless(&lab, "run", ENDLESS_POOL, &pages);
    run.kill_group();
    assert_eq!(run.end().code, None, "it was killed");
    pages.becomes(pages.found());
    all_is_over();
}

/// A run in the middle of a case that needs a folio size, killed with its watchdog.
fn left_by_a_run_and_its_watchdog(lab: &Lab, folio: &Saved) {
    left_unattended(endless(lab, "run", ENDLESS_FOLIO, folio));
    assert_ne!(folio.now(), folio.found());
}

/// Kills a run with its watchdog: nobody is left to put anything back.
fn left_unattended(run: Live) {
    signal("KILL", run.watchdog());
    run.kill_group();
    run.end();
    until("the lock to be free", || {
        let lock = fs::File::open(Path::new(Place::MACHINE).join("knobs.lock")).unwrap();
        lock.try_lock().ok()
    });
}

#[test]
fn what_was_left_is_put_back_by_the_next_run_also_where_it_meets_its_needs() {
    let Some(_machine) = Machine::as_root() else { return };
    let Some(folio) = small_folio() else { return };
    for (name, case) in [("same", FOLIO), ("none", "fault/latency page=4k size=1m rounds=2")] {
        let lab = Lab::new();
        left_by_a_run_and_its_watchdog(&lab, &folio);
        lab.measure(name, &[case]).exits(0);
        folio.is_back();
        all_is_over();
    }
}

#[test]
fn what_a_run_and_its_watchdog_left_is_put_back_on_request() {
    let Some(_machine) = Machine::as_root() else { return };
    let Some(folio) = small_folio() else { return };
    let lab = Lab::new();
    left_by_a_run_and_its_watchdog(&lab, &folio);
    let left = ["a killed run left changed", "hugepages-64kB", "sudo pagelab doctor --restore"];
    lab.pagelab(&["doctor"]).exits(0).shows(&left);
    lab.pagelab(&["doctor", "--restore"]).exits(0).shows(&["hugepages-64kB"]);
    folio.is_back();
    lab.pagelab(&["doctor", "--restore"]).exits(0).shows(&["nothing was left changed"]);
}

#[test]
fn a_second_run_that_needs_knobs_is_refused_and_the_first_is_not_disturbed() {
    let Some(_machine) = Machine::as_root() else { return };
    let Some(folio) = small_folio() else { return };
    let lab = Lab::new();
    let mut first = endless(&lab, "first", ENDLESS_FOLIO, &folio);
    let case = first.case();
    let turned = folio.now();
    let suite = lab.suite(&[FOLIO, "fault/throughput page=128k size=16m rounds=2"]);
    let second = lab.pagelab(&["run", "--suite", &suite, "-o", "second"]);
    let holder = format!("pid {}", first.pid());
    second.exits(3).complains(&["holds the machine's settings", &holder, "first", WAIT]);
    assert!(!lab.path("second").exists(), "it has left something behind");
    let restore = lab.pagelab(&["doctor", "--restore"]);
    restore.exits(3).complains(&[&holder, WAIT]);
    // One that needs no knob need not wait.
    lab.measure("third", &["fault/latency page=4k size=1m rounds=2"]).exits(0);

    assert!(first.is_running());
    assert_eq!((first.case(), folio.now()), (case, turned));
    signal("INT", first.pid());
    first.end().exits(130);
    folio.is_back();
    all_is_over();
}

#[test]
fn a_run_that_waits_names_the_holder_and_measures_when_it_has_ended() {
    let Some(_machine) = Machine::as_root() else { return };
    let Some(folio) = small_folio() else { return };
    let lab = Lab::new();
    let first = endless(&lab, "first", ENDLESS_FOLIO, &folio);
    // Of two sizes: the first's own is already set.
    let suite = lab.suite(&[FOLIO, "fault/throughput page=128k size=16m rounds=2"]);
    let bounded = lab.pagelab(&["run", "--suite", &suite, "--wait=0.1", "-o", "never"]);
    let holder = format!("another pagelab run (pid {}, first)", first.pid());
    bounded.exits(3).complains(&[&holder, WAIT]);
    assert!(!lab.path("never").exists(), "it has left something behind");
    let second = Live::start(&lab, &["run", "--suite", &suite, "--wait", "-o", "second"]);
    let waits = format!("waiting: {holder}");
    until("it to say whom it waits for", || second.said().contains(&waits).then_some(()));
    signal("INT", first.pid());
    first.end().exits(130);
    second.end().exits(0);
    assert!(measured(&lab.records("second")[0]).is_valid());
    folio.is_back();
    all_is_over();
}

#[test]
fn a_dry_run_names_the_knobs_and_turns_none() {
    let Some(_machine) = Machine::as_root() else { return };
    let Some(folio) = small_folio() else { return };
    let lab = Lab::new();
    let dry = lab.pagelab(&["run", "fault/throughput", "--page", "64k", "--dry-run"]);
    dry.exits(0).shows(&[
        "settings that would be changed for their cases and put back:",
        "hugepages-64kB/enabled = madvise",
    ]);
    folio.is_back();
    assert_eq!(fs::read_dir(lab.path(".")).unwrap().count(), 0);
}
