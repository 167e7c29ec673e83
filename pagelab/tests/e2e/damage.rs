//! Journals that are cut short, damaged, foreign or missing.

use std::fs;

use crate::support::{Ended, Lab, measured};

/// A run of three short cases.
fn three(lab: &Lab) -> Vec<Vec<u8>> {
    let case = |size: &str| format!("fault/latency page=4k size={size} rounds=2");
    lab.measure("run", &[&case("1m"), &case("2m"), &case("4m")]).exits(0);
    let lines = lab.lines("run");
    assert_eq!(lines.len(), 4);
    lines
}

/// The same run with another journal.
fn rewrite(lab: &Lab, bytes: &[u8]) {
    fs::write(lab.path("run/journal.jsonl"), bytes).unwrap();
}

/// The report of a journal that is good up to a line.
#[track_caller]
fn reports_up_to(lab: &Lab, line: usize) -> Ended {
    let good = line - 2;
    let ended = lab.pagelab(&["report", "run"]);
    ended.exits(0).shows(&[&crate::support::done(good, 3)]).complains(&[
        "warning: run: ",
        &format!("line {line} cannot be read"),
        &format!("the {good} records before it are used"),
    ]);
    ended
}

#[test]
fn a_last_line_cut_short_is_named_and_the_lines_before_it_are_reported() {
    let lab = Lab::new();
    let whole = three(&lab).concat();
    rewrite(&lab, &whole[..whole.len() - 100]);
    reports_up_to(&lab, 4).complains(&["cut short"]);
}

#[test]
fn a_last_line_that_lacks_only_its_end_is_measured_again() {
    let lab = Lab::new();
    let lines = three(&lab);
    let whole = lines.concat();
    rewrite(&lab, &whole[..whole.len() - 1]);
    let resumed = lab.pagelab(&["resume", "run"]);
    resumed.exits(0).complains(&["line 4 cannot be read", "2 of 3 cases are done, 1 are left"]);
    let after = lab.lines("run");
    assert_eq!(after[..3], lines[..3]);
    assert_eq!(lab.records("run").len(), 3);
    assert_eq!(measured(&lab.records("run")[2]).counters["repetitions"], 2);
}

#[test]
fn a_cut_at_any_place_leaves_a_run_that_can_be_reported() {
    let lab = Lab::new();
    let lines = three(&lab);
    let whole = lines.concat();
    let header = lines[0].len();
    for share in 0..8 {
        let cut = header + (whole.len() - header) * share / 8;
        rewrite(&lab, &whole[..cut]);
        let lengths = lines[1..].iter().scan(header, |end, line| {
            *end += line.len();
            Some(*end)
        });
        let good = lengths.filter(|end| *end <= cut).count();
        lab.pagelab(&["report", "run"]).exits(0).shows(&[&crate::support::done(good, 3)]);
    }
}

#[test]
fn a_damaged_line_in_the_middle_is_named_and_what_follows_it_is_not_used() {
    let lab = Lab::new();
    let mut lines = three(&lab);
    let middle = lines[2].len() / 2;
    lines[2][middle] = 0xff;
    rewrite(&lab, &lines.concat());
    reports_up_to(&lab, 3);
}

#[test]
fn a_line_of_a_newer_version_is_named_with_its_schema() {
    let lab = Lab::new();
    let whole = three(&lab).concat();
    let text =
        String::from_utf8(whole).unwrap().replacen("pagelab.record/1", "pagelab.record/9", 1);
    rewrite(&lab, text.as_bytes());
    reports_up_to(&lab, 2).complains(&["pagelab.record/9"]);
}

#[test]
fn a_journal_whose_first_line_is_cut_short_is_refused_by_name() {
    let lab = Lab::new();
    let lines = three(&lab);
    for cut in [0, 1, lines[0].len() - 1] {
        rewrite(&lab, &lines[0][..cut]);
        for command in ["report", "resume"] {
            let refused = lab.pagelab(&[command, "run"]);
            refused.exits(2).complains(&["run/journal.jsonl", "line 1"]);
            assert!(refused.stdout.is_empty(), "{}", refused.stdout);
        }
        let left = fs::read(lab.path("run/journal.jsonl")).unwrap();
        assert_eq!(left, lines[0][..cut], "what cannot be read is not written either");
    }
}

/// Both commands that read a run refuse this with exit 2 and these words.
#[track_caller]
fn is_refused(lab: &Lab, run: &str, words: &[&str]) {
    for command in ["report", "resume"] {
        let refused = lab.pagelab(&[command, run]);
        refused.exits(2).complains(words);
        assert!(refused.stdout.is_empty(), "{}", refused.stdout);
    }
}

#[test]
fn a_directory_without_a_journal_is_refused_by_name() {
    let lab = Lab::new();
    fs::create_dir(lab.path("empty")).unwrap();
    is_refused(&lab, "empty", &["empty/journal.jsonl", "No such file"]);
}

#[test]
fn a_run_that_is_not_there_is_refused_by_name() {
    is_refused(&Lab::new(), "nowhere", &["nowhere", "No such file"]);
}

#[test]
fn a_journal_that_cannot_be_read_is_refused_by_name() {
    let lab = Lab::new();
    // Permissions do not stop root; a directory in its place stops everybody.
    fs::create_dir_all(lab.path("odd/journal.jsonl")).unwrap();
    is_refused(&lab, "odd", &["odd/journal.jsonl", "directory"]);
}

#[test]
fn a_foreign_file_is_refused_by_name() {
    let lab = Lab::new();
    lab.file("notes.txt", "bought milk\n");
    lab.file("other.json", "{\"schema\":\"somebody/1\"}\n");
    lab.pagelab(&["report", "notes.txt"]).exits(2).complains(&["notes.txt", "line 1"]);
    lab.pagelab(&["report", "other.json"]).exits(2).complains(&["other.json", "somebody/1"]);
}

#[test]
fn a_file_of_noise_is_refused_by_name() {
    let lab = Lab::new();
    let noise: Vec<u8> =
        (0..100_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    lab.file("noise", noise);
    lab.pagelab(&["report", "noise"]).exits(2).complains(&["noise", "line 1"]);
}

#[test]
fn a_journal_may_be_named_itself() {
    let lab = Lab::new();
    three(&lab);
    lab.pagelab(&["report", "run/journal.jsonl"]).exits(0).shows(&["3 valid"]);
}

#[test]
fn published_results_that_this_version_does_not_have_are_left_out_of_a_report() {
    let lab = Lab::new();
    let lines = three(&lab);
    let whole = String::from_utf8(lines.concat()).unwrap();
    rewrite(&lab, whole.replace("\"published\":[]", "\"published\":[\"nosuch\"]").as_bytes());
    for command in ["report", "resume"] {
        let ended = lab.pagelab(&[command, "run"]);
        ended.exits(0).shows(&["3 valid"]).complains(&["`nosuch`", "does without"]);
    }
}

#[test]
fn a_planned_value_that_this_version_does_not_know_is_named_and_nothing_is_measured() {
    let lab = Lab::new();
    let lines = three(&lab);
    let header = String::from_utf8(lines[0].clone()).unwrap();
    for (known, unknown) in [
        ("\"size\":\"4m\"", "\"size\":\"auto\""),
        ("\"size\":\"4m\"", "\"size\":\"much\""),
        ("\"page\":\"4k\"", "\"page\":\"3k\""),
        ("\"kind\":\"write\"", "\"kind\":\"wrote\""),
        ("\"order\":", "\"ordering\":"),
    ] {
        rewrite(&lab, header.replace(known, unknown).as_bytes());
        let refused = lab.pagelab(&["resume", "run"]);
        let (name, value) = unknown.split_once(':').unwrap();
        let (name, value) = (name.trim_matches('"'), value.trim_matches('"'));
        refused.exits(2).complains(&["run: ", "fault/latency", name, value]);
        assert_eq!(lab.lines("run").len(), 1, "nothing was measured");
    }
}

#[test]
fn of_two_records_of_one_case_the_last_one_counts() {
    let lab = Lab::new();
    let lines = three(&lab);
    // The second half of a journal, written twice.
    let twice = [&lines[..], &lines[2..]].concat().concat();
    rewrite(&lab, &twice);
    let said = ["5 records are of 3 cases: the last record of each counts"];
    lab.pagelab(&["report", "run"]).exits(0).shows(&["3 valid"]).complains(&said);
    let resumed = lab.pagelab(&["resume", "run"]);
    resumed.exits(0).complains(&said).complains(&["3 of 3 cases are done, 0 are left"]);
    assert_eq!(lab.lines("run").concat(), twice, "no line is taken away");
}
