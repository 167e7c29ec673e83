//! What another user planted is neither followed nor overwritten.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown, lchown, symlink},
};

use pagelab_interpose::heat::PACKAGE;

use crate::support::{Lab, build_library, is_root, skip};

const CASE: &str = "fault/latency page=4k size=1m rounds=2";
const SECRET: &str = "a file of root's\n";

/// A run, a file that nobody wants to lose, and the second user's number.
fn lab_with_a_run() -> Lab {
    let lab = Lab::new();
    lab.measure("run", &[CASE]).exits(0);
    lab.file("secret", SECRET);
    lab
}

#[track_caller]
fn is_unharmed(lab: &Lab) {
    assert_eq!(fs::read_to_string(lab.path("secret")).unwrap(), SECRET);
}

#[test]
fn a_page_that_became_a_link_is_replaced_and_not_followed() {
    let lab = lab_with_a_run();
    fs::remove_file(lab.path("run/report.html")).unwrap();
    symlink("../secret", lab.path("run/report.html")).unwrap();
    lab.pagelab(&["resume", "run"]).exits(0);
    is_unharmed(&lab);
    let page = lab.path("run/report.html");
    assert!(fs::symlink_metadata(&page).unwrap().is_file());
    assert!(fs::read_to_string(&page).unwrap().contains("<html"));
}

#[test]
fn the_copy_of_a_damaged_journal_takes_a_name_that_nothing_has() {
    let lab = lab_with_a_run();
    let whole = lab.lines("run").concat();
    fs::write(lab.path("run/journal.jsonl"), &whole[..whole.len() - 9]).unwrap();
    symlink("../secret", lab.path("run/journal.jsonl.damaged")).unwrap();
    symlink("../new", lab.path("run/journal.jsonl.damaged-2")).unwrap();
    lab.pagelab(&["resume", "run"]).exits(0).complains(&["line 2 cannot be read"]);
    is_unharmed(&lab);
    assert!(!lab.path("new").exists(), "not even a link to nowhere is followed");
    let copy = fs::read(lab.path("run/journal.jsonl.damaged-3")).unwrap();
    assert_eq!(copy, &whole[..whole.len() - 9]);
}

#[test]
fn a_journal_that_is_a_link_is_not_written() {
    let lab = lab_with_a_run();
    fs::rename(lab.path("run/journal.jsonl"), lab.path("elsewhere")).unwrap();
    symlink("../elsewhere", lab.path("run/journal.jsonl")).unwrap();
    let refused = lab.pagelab(&["resume", "run"]);
    refused.exits(2).complains(&["run/journal.jsonl", "it is a link"]);
}

#[test]
fn root_writes_no_run_where_another_user_can_interfere() {
    if !is_root() {
        return skip("only root can play a second user", "run the tests as root");
    }
    let lab = Lab::new();
    let suite = lab.suite(&[CASE]);
    let runs = lab.path("pagelab-runs");
    fs::create_dir(&runs).unwrap();
    chown(&runs, Some(65534), Some(65534)).unwrap();
    let why = ["pagelab-runs belongs to user 65534", "root's alone"];
    lab.pagelab(&["run", "--suite", &suite, "-q"]).exits(2).complains(&why);
    lab.pagelab(&["run", "--suite", &suite, "-q", "-o", "pagelab-runs/a"]).exits(2).complains(&why);
    lab.pagelab(&["generate", "--out", "pagelab-runs"]).exits(2).complains(&why);
    lab.pagelab(&["trace", "synth", "fib", "-o", "pagelab-runs/t"]).exits(2).complains(&why);
    assert_eq!(fs::read_dir(&runs).unwrap().count(), 0);
    chown(&runs, Some(0), Some(0)).unwrap();
    fs::set_permissions(&runs, fs::Permissions::from_mode(0o777)).unwrap();
    let why = ["pagelab-runs can be written by every user"];
    lab.pagelab(&["run", "--suite", &suite, "-q"]).exits(2).complains(&why);
    assert_eq!(fs::read_dir(&runs).unwrap().count(), 0);
}

#[test]
fn root_replaces_no_file_through_the_link_of_another_user() {
    if !is_root() {
        return skip("only root can play a second user", "run the tests as root");
    }
    let lab = lab_with_a_run();
    symlink("secret", lab.path("link")).unwrap();
    lchown(lab.path("link"), Some(65534), Some(65534)).unwrap();
    let why = ["link belongs to user 65534"];
    lab.pagelab(&["trace", "synth", "fib", "-o", "link", "--force"]).exits(2).complains(&why);
    lab.pagelab(&["report", "run", "-o", "link"]).exits(2).complains(&why);
    is_unharmed(&lab);
}

#[test]
fn root_writes_no_log_through_the_link_of_another_user() {
    if !is_root() {
        return skip("only root can play a second user", "run the tests as root");
    }
    let lab = Lab::new();
    build_library(PACKAGE);
    for folder in ["shared", "own"] {
        fs::create_dir(lab.path(folder)).unwrap();
    }
    fs::set_permissions(lab.path("shared"), fs::Permissions::from_mode(0o1777)).unwrap();
    for (name, to) in [("folder", "../own"), ("file", "../own/new")] {
        let link = lab.path("shared").join(name);
        symlink(to, &link).unwrap();
        lchown(&link, Some(65534), Some(65534)).unwrap();
    }
    let promote = |log: &str| {
        let words = ["tier", "promote", "--source", "prot-none", "--log", log, "--"];
        lab.pagelab(&[&words[..], &["sh", "-c", "test -f shared/log; echo $?"]].concat())
    };
    for (log, link) in [("shared/folder/new", "folder"), ("shared/file", "file")] {
        let refused = promote(log);
        refused.exits(2).complains(&[&format!("{link} belongs to user 65534"), "root's alone"]);
        assert_eq!(refused.stdout, "", "the program does not run");
    }
    assert_eq!(fs::read_dir(lab.path("own")).unwrap().count(), 0);
    assert_eq!(promote("shared/log").exits(0).stdout, "0\n", "it is there before the program");
    lab.file("shared/kept", "mine");
    promote("shared/kept").exits(2).complains(&["it exists"]);
}

#[test]
fn a_link_that_one_named_oneself_works() {
    let lab = lab_with_a_run();
    let report = lab.pagelab(&["report", "run", "--format", "json", "-o", "/dev/stdout"]);
    report.exits(0).shows(&["\"workload\": \"fault/latency\""]);
    symlink("t.real", lab.path("t")).unwrap();
    lab.pagelab(&["trace", "synth", "fib", "-o", "t"]).exits(0);
    assert!(lab.path("t.real").is_file());
}
