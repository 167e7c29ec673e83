//! Other runs that hold the settings, settings that change meanwhile, and runs that hang.

use std::fs;

use pagelab_record::{Outcome, vocabulary::tried};

use super::{ALONE, rungs};
use crate::{
    knobs::{ENDLESS_FOLIO, WAIT, endless},
    support::{Lab, Live, Machine, measured, signal, small_folio, until},
};

#[test]
fn what_another_run_has_set_is_waited_for_and_no_variant_is_unknown() {
    let Some(_machine) = Machine::as_root() else { return };
    let Some(folio) = small_folio() else { return };
    let lab = Lab::new();
    let first = endless(&lab, "first", ENDLESS_FOLIO, &folio);
    let holder = format!("another pagelab run (pid {}, first)", first.pid());
    let of_try = ["try", "-o", "run", "--rung", "mthp-64k", "--", "true"];
    for words in [&of_try[..], &["explain", "-o", "run", "--costs", "none", "--", "true"]] {
        let refused = lab.pagelab(words);
        refused.exits(3).complains(&[&holder, "holds the machine's settings", WAIT]);
        assert!(!refused.stderr.contains("no such"), "{}", refused.stderr);
        assert!(!lab.path("run").exists(), "it has left something behind");
    }
    signal("INT", first.pid());
    first.end().exits(130);
    folio.is_back();
    let waited = ["try", "-q", ALONE, "--wait", "--rounds", "1"];
    lab.pagelab(&[&waited[..], &of_try[1..]].concat()).exits(0);
}

#[test]
fn a_run_under_other_settings_does_not_count_and_its_variant_is_refused() {
    let Some(_machine) = Machine::as_root() else { return };
    let Some(folio) = small_folio() else { return };
    let lab = Lab::new();
    let own = format!("mine=sh -c 'echo madvise > {}'", folio.path().display());
    let flags = ["try", ALONE, "-o", "run", "--rounds", "1", "--rung", "plain"];
    let ended = lab.pagelab(&[&flags[..], &["--own", &own, "--", "true"]].concat());
    let changed = "mthp_enabled.64kB was never, then madvise";
    ended.complains(&[changed, "it is run again", "it is left out of this round"]);
    let Outcome::Skipped { need, cure } = &rungs(&lab, "run")["mine"].outcome else {
        panic!("{ended:?}");
    };
    assert!(need.contains(changed) && cure.contains("--wait"), "{need} ({cure})");
}

#[test]
fn what_was_measured_survives_the_death_of_the_watchdog() {
    let Some(_machine) = Machine::as_root() else { return };
    let lab = Lab::new();
    // The last run of the first round waits: as-set-up, plain and the variant, behind the first.
    let script = "echo run >> runs; n=$(wc -l < runs); \
                  until test $n -lt 4 || test -e go; do sleep 0.01; done";
    let words = ["try", ALONE, "-o", "run", "--rounds", "2", "--rung", "thp-always", "--"];
    let run = Live::start(&lab, &[&words[..], &["sh", "-c", script]].concat());
    until("the last run of the first round", || {
        let runs = fs::read_to_string(lab.path("runs")).unwrap_or_default();
        (runs.lines().count() == 4).then_some(())
    });
    signal("KILL", run.watchdog());
    lab.file("go", "");
    let why = "interrupted: the watchdog of the knobs has died";
    run.end().exits(130).complains(&[why, "pagelab resume"]);
    let records = rungs(&lab, "run");
    for variant in [tried::PLAIN, tried::AS_SET_UP, "thp-always"] {
        assert!(!super::values(&records[variant], tried::ELAPSED).is_empty(), "{variant}");
    }
    lab.pagelab(&["resume", "-q", "--wait", "run"]).exits(0);
}

#[test]
fn a_run_that_hangs_is_ended_within_the_budget_and_loses() {
    let lab = Lab::new();
    let flags = ["try", ALONE, "-o", "run", "--budget", "20", "--rung", "plain"];
    let ended = lab.pagelab(&[&flags[..], &["--own", "mine=sleep 1000", "--", "true"]].concat());
    ended.exits(0).shows(&["too slow: mine: took longer than"]);
    ended.complains(&["mine: took longer than"]);
    let mine = &rungs(&lab, "run")["mine"];
    assert!(measured(mine).counters[tried::LATE_NS] > 0, "{mine:?}");
    // It goes on without it: what is late stays so.
    lab.pagelab(&["resume", "-q", "run"]).exits(0).shows(&["too slow: mine"]);
}
