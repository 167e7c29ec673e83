//! Runs as a history: what is there, which is the newest, and what each is called.

use std::fs;

use serde_json::Value;

use crate::support::Lab;

/// Two runs that started at known times: one where runs go, and one beside, which is newer.
fn two() -> Lab {
    let lab = Lab::new();
    lab.measure("pagelab-runs/first", &["limit/timer"]).exits(0);
    lab.measure("second", &["limit/timer", "limit/syscall"]).exits(0);
    for (run, started) in [("pagelab-runs/first", "2026-01-02"), ("second", "2026-01-03")] {
        let lines = lab.lines(run);
        let mut header: Value = serde_json::from_slice(&lines[0]).unwrap();
        header["started"] = format!("{started}T00:00:00Z").into();
        let rest = lines[1..].concat();
        let whole = [format!("{header}\n").as_bytes(), &rest].concat();
        fs::write(lab.path(run).join("journal.jsonl"), whole).unwrap();
    }
    lab
}

#[test]
fn runs_are_listed_from_the_oldest_to_the_newest_wherever_they_are() {
    let lab = two();
    fs::create_dir(lab.path("no-run")).unwrap();
    let listed = lab.pagelab(&["ls"]);
    listed.exits(0);
    let lines: Vec<&str> = listed.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", listed.stdout);
    assert_eq!(lines[0], "pagelab-runs/first  2026-01-02T00:00:00Z  suite e2e  1 valid");
    assert_eq!(lines[1], "second              2026-01-03T00:00:00Z  suite e2e  2 valid");
    let json = lab.pagelab(&["ls", "pagelab-runs", "--format", "json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["runs"][0]["path"], "pagelab-runs/first");
    assert_eq!(json["runs"][0]["cases"]["valid"], 1);
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_tag_and_last_stand_for_a_run_in_every_command() {
    let lab = two();
    lab.pagelab(&["tag", "LAST", "v2", "after"]).exits(0);
    lab.pagelab(&["tag", "first", "v1"]).exits(0);
    lab.pagelab(&["show", "v1"]).exits(0).shows(&["run      pagelab-runs/first", "tags     v1"]);
    lab.pagelab(&["show"]).exits(0).shows(&["run      second", "tags     after v2", "kernel"]);
    let csv = |run: &str| lab.pagelab(&["report", run, "--format", "csv"]).stdout;
    assert_eq!(csv("v2"), csv("second"));
    assert_eq!(csv("LAST"), csv("second"));
    assert_ne!(csv("v1"), csv("second"));
    lab.pagelab(&["resume", "v1"]).exits(0).complains(&["1 of 1 cases are done"]);
    // The tags move with the directory.
    fs::rename(lab.path("second"), lab.path("moved")).unwrap();
    lab.pagelab(&["show", "after"]).exits(0).shows(&["run      moved"]);
    lab.pagelab(&["tag", "--remove", "moved", "after", "v2"]).exits(0);
    assert!(!lab.path("moved/tags").exists());
}

#[test]
fn a_name_that_would_mean_two_things_is_refused() {
    let lab = two();
    lab.pagelab(&["tag", "second", "v1"]).exits(0);
    let refused = |words: &[&str], why: &str| {
        lab.pagelab(words).exits(2).complains(&[why]);
    };
    refused(&["tag", "first", "v1"], "second has the tag `v1`: pagelab tag --remove second v1");
    refused(&["tag", "first", "second"], "`second` is a path here");
    refused(&["tag", "first", "LAST"], "`LAST` is always the newest run");
    refused(&["tag", "first", "a b"], "`a b` is no tag");
    refused(&["tag", "--remove", "first", "v1"], "pagelab-runs/first has no tag `v1`");
    refused(&["tag", "nosuch", "v3"], "nosuch: No such file or directory");
    refused(&["ls", "nosuch"], "nosuch: no such directory");
    let empty = Lab::new();
    empty.pagelab(&["report", "LAST"]).exits(2).complains(&["LAST: there is no run here"]);
    empty.pagelab(&["ls"]).exits(0).complains(&["there is no run here"]);
}
