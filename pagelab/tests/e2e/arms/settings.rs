//! Arms that are settings of the machine.

use std::{fs, path::Path};

use pagelab_record::{journal, vocabulary::Check};

use super::{arms, run};
use crate::support::{Lab, Live, Machine, Saved, is_root, measured, signal, skip, small_folio};

const FOLIO: &str = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";

fn folio(value: &str) -> String {
    format!("set:{FOLIO}={value}")
}

#[test]
fn a_setting_of_the_machine_is_an_arm_and_put_back() {
    let Some(_machine) = Machine::as_root() else { return };
    let Some(saved) = small_folio() else { return };
    let lab = Lab::new();
    let words = ["--ab", &folio("always"), &folio("never"), "--forks", "6", "-o", "ab"];
    // What the machine is set to outside of a process is no difference; what the arms hold is.
    run(&lab, &words).exits(0).shows(&["6+6", "hugepages-64kB/enabled", "allowed"]);
    saved.is_back();
    for (record, value) in arms(&lab, "ab").iter().zip(["always", "never"]) {
        let turns = record.ab.as_ref().unwrap();
        assert_eq!(turns.arm.setting(), Some((FOLIO, value)));
        let mut claims = measured(record).witness.iter();
        let claim = claims.find(|claim| claim.is(Check::SettingInForce)).unwrap();
        assert!(claim.claim.ends_with(value) && claim.holds, "{claim:?}");
        assert_eq!((claim.expected, claim.observed, claim.checks), (2, 2, 6));
    }
    // Any other setting that moved still forbids it.
    let path = lab.path("ab/journal.jsonl");
    let mut contents = journal::read(&path).unwrap();
    let last = contents.records.last_mut().unwrap();
    last.host.settings.insert("swappiness".into(), 1_000.into());
    let lines = [serde_json::to_string(&contents.header).unwrap()];
    let records = contents.records.iter().map(|record| serde_json::to_string(record).unwrap());
    let text: Vec<String> = lines.into_iter().chain(records).collect();
    lab.file("ab/journal.jsonl", text.join("\n") + "\n");
    lab.pagelab(&["compare", "ab"]).exits(5).shows(&["--allow swappiness"]);
}

#[test]
fn a_case_that_needs_the_arms_setting_otherwise_is_skipped_and_says_so() {
    let Some(_machine) = Machine::as_root() else { return };
    let Some(saved) = small_folio() else { return };
    let lab = Lab::new();
    let words = ["run", "fault/throughput", "--page", "64k", "--size", "4m", "--rounds", "2"];
    let more = ["--forks", "4", "-o", "ab", "--ab", &folio("always"), &folio("never")];
    let ended = lab.pagelab(&[&words[..], &more].concat());
    ended.exits(0).shows(&["skipped in set:", "transparent pages of 64k"]);
    saved.is_back();
}

#[test]
fn a_killed_run_leaves_no_setting_and_goes_on() {
    let Some(_machine) = Machine::as_root() else { return };
    let Some(saved) = small_folio() else { return };
    let lab = Lab::new();
    let (a, b) = (folio("always"), folio("madvise"));
    let words = ["run", "fault/latency", "--size", "1m", "--rounds", "30", "--forks", "4"];
    let words = [&words[..], &["--ab", &a, &b, "-o", "ab"]].concat();
    let (live, _) = Live::halted(|| {
        let _ = fs::remove_dir_all(lab.path("ab"));
        Live::start(&lab, &words)
    });
    assert_ne!(saved.now(), saved.found());
    live.kill_group();
    live.end();
    saved.becomes(saved.found());
    // The watchdog may still hold the lock, with the setting back already.
    lab.pagelab(&["resume", "--wait", "ab", "--ab", &a, &b]).exits(0).shows(&["4+4"]);
    saved.is_back();
}

#[test]
fn a_run_without_its_watchdog_is_interrupted_and_says_why() {
    let Some(_machine) = Machine::as_root() else { return };
    let Some(saved) = small_folio() else { return };
    let lab = Lab::new();
    let (a, b) = (folio("always"), folio("madvise"));
    let words = ["run", "fault/latency", "--size", "1m", "--rounds", "30", "--forks", "4"];
    let words = [&words[..], &["--ab", &a, &b, "-o", "ab"]].concat();
    let (live, case) = Live::halted(|| {
        let _ = fs::remove_dir_all(lab.path("ab"));
        Live::start(&lab, &words)
    });
    signal("KILL", live.watchdog());
    signal("CONT", case);
    let ended = live.end();
    ended.exits(130).complains(&["interrupted: the watchdog of the knobs has died: signal: 9"]);
    assert!(!ended.stdout.contains("--forks"), "{}", ended.stdout);
    saved.is_back();
    lab.pagelab(&["resume", "--wait", "ab", "--ab", &a, &b]).exits(0).shows(&["4+4"]);
    saved.is_back();
}

#[test]
fn a_value_that_the_kernel_does_not_take_or_keep_is_refused_before_anything_is_measured() {
    let Some(_machine) = Machine::as_root() else { return };
    let lab = Lab::new();
    let swappiness = Saved::of(Path::new("/proc/sys/vm/swappiness"));
    if Path::new(FOLIO).exists() {
        let ended = run(&lab, &["--ab", &folio("never"), &folio("perhaps"), "-o", "ab"]);
        ended.exits(3).complains(&["does not accept \"perhaps\""]);
    }
    let of = |value: &str| format!("set:/proc/sys/vm/swappiness={value}");
    for (value, says) in [("many", "does not accept"), ("012", "holds \"10\" after \"012\"")] {
        run(&lab, &["--ab", &of("11"), &of(value), "-o", "ab"]).exits(3).complains(&[says]);
    }
    swappiness.is_back();
    assert!(!lab.path("ab").exists());
}

#[test]
fn what_is_damons_is_never_written() {
    let file = "/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds";
    if !Path::new(file).exists() {
        return skip("this kernel has no DAMON", "use one with CONFIG_DAMON_SYSFS");
    }
    let found = fs::read_to_string(file);
    let lab = Lab::new();
    let arms = ["1", "2"].map(|value| format!("set:{file}={value}"));
    let ended = run(&lab, &["--ab", &arms[0], &arms[1]]);
    ended.exits(2).complains(&["DAMON's, which pagelab never writes to"]);
    assert_eq!(found.ok(), fs::read_to_string(file).ok());
}

#[test]
fn without_root_a_setting_is_refused_with_what_to_do() {
    let lab = Lab::new();
    let of = |value: &str| format!("set:/proc/sys/vm/swappiness={value}");
    let words = ["--dry-run", "--ab", &of("11"), &of("12")];
    let planned = run(&lab, &words);
    if is_root() {
        planned.exits(0).shows(&["sets /proc/sys/vm/swappiness to 11"]);
        return skip("root may change settings", "run the tests as another user");
    }
    planned.exits(0).shows(&["refused, needs /proc/sys/vm/swappiness at 11", "they are refused"]);
    run(&lab, &words[1..]).exits(3).complains(&["try sudo"]);
}
