//! `run --ab`: two arms of one run.

mod programs;
mod settings;

use pagelab_record::{Record, journal};
use serde_json::Value;

use crate::support::{Ended, Lab, Machine, is_root, is_skipped};

const WORDS: [&str; 6] = ["run", "fault/latency", "--size", "1m", "--rounds", "2"];

/// The same in a suite, which brings no limits along as a grid does.
const CASE: &str = "fault/latency size=1m rounds=2";

fn run(lab: &Lab, more: &[&str]) -> Ended {
    lab.pagelab(&[&WORDS[..], more].concat())
}

/// The last record of each arm of a run of one cell.
fn arms(lab: &Lab, name: &str) -> Vec<Record> {
    let mut records = lab.records(name);
    let ends = records.split_off(records.len() - 2);
    assert!(ends.iter().all(|record| record.ab.is_some()), "{records:?}");
    ends
}

#[test]
fn two_values_of_a_parameter_are_compared_block_by_block() {
    let _machine = Machine::alone();
    let lab = Lab::new();
    let words = ["--ab", "order=ascending", "order=random", "--forks", "8", "-o", "ab"];
    run(&lab, &words).exits(0).shows(&["the order", "8+8", "order=random"]);
    let [a, b] = arms(&lab, "ab").try_into().unwrap();
    let turns = [a, b].map(|record| record.ab.unwrap());
    assert_eq!(turns.each_ref().map(|turns| (turns.cell, turns.blocks)), [(0, 8); 2]);
    // Each block has one that came first, and each arm is that as often.
    assert_eq!(turns.each_ref().map(|turns| turns.first.len()), [4; 2]);
    assert!(turns[0].first.iter().all(|block| !turns[1].first.contains(block)));
    // The same again, in the forms that compare has.
    let told = lab.pagelab(&["compare", "ab", "--format", "json"]);
    let told: Value = serde_json::from_str(&told.exits(0).stdout).unwrap();
    assert_eq!(told["cells"].as_array().map(Vec::len), Some(1), "{told}");
    assert!(told["cells"][0]["ratio"].is_number(), "{told}");
    lab.pagelab(&["report", "ab"]).exits(0).shows(&["the order", "2 valid"]);
}

#[test]
fn pages_of_two_sizes_are_compared_by_bandwidth() {
    let _machine = Machine::alone();
    let lab = Lab::new();
    let words = ["run", "fault/throughput", "--size", "4m", "--rounds", "2", "--forks", "4"];
    let ended = lab.pagelab(&[&words[..], &["--ab", "page=4k", "page=2m", "-o", "ab"]].concat());
    if !is_root() && arms(&lab, "ab").iter().any(is_skipped) {
        return;
    }
    ended.exits(0).shows(&["fault-in bandwidth"]);
}

#[test]
fn a_variable_of_the_environment_is_an_arm() {
    let _machine = Machine::alone();
    let lab = Lab::new();
    let words = ["--ab", "env:PAGELAB_ARM=1", "env:PAGELAB_ARM", "--forks", "4", "-o", "ab"];
    run(&lab, &words).exits(0).shows(&["4+4", "fewer than six blocks"]);
    let names = arms(&lab, "ab").into_iter().map(|record| record.ab.unwrap().arm.name);
    assert_eq!(names.collect::<Vec<_>>(), ["env:PAGELAB_ARM=1", "env:PAGELAB_ARM"]);
}

#[test]
fn what_counts_as_no_difference_is_kept_with_the_run() {
    let _machine = Machine::alone();
    let lab = Lab::new();
    let words = ["--ab", "order=ascending", "order=random", "--forks", "4", "--delta", "90%"];
    run(&lab, &[&words[..], &["-o", "ab"]].concat()).exits(0).shows(&["within 90.0 %"]);
    lab.pagelab(&["compare", "ab"]).exits(0).shows(&["within 90.0 %"]);
    lab.pagelab(&["compare", "ab", "--delta", "1%"]).exits(0).shows(&["within 1.0 %"]);
    let alone = run(&lab, &["--delta", "1%"]);
    alone.exits(2).complains(&["--delta is about two arms", "--ab A B"]);
}

#[test]
fn a_run_that_was_cut_off_goes_on_in_the_same_order() {
    let _machine = Machine::alone();
    let lab = Lab::new();
    let words = ["--ab", "order=ascending", "order=random", "--forks", "4", "-o", "whole"];
    run(&lab, &words).exits(0);
    let text = std::fs::read_to_string(lab.path("whole/journal.jsonl")).unwrap();
    // Killed between the two records of its only cell, and before the first of them.
    for (name, lines) in [("half", 2), ("none", 1)] {
        let kept: String = text.split_inclusive('\n').take(lines).collect();
        std::fs::create_dir(lab.path(name)).unwrap();
        std::fs::write(lab.path(name).join("journal.jsonl"), kept).unwrap();
        lab.pagelab(&["resume", name]).exits(0).shows(&["4+4"]);
        let firsts = |run: &str| arms(&lab, run).into_iter().map(|record| record.ab.unwrap());
        assert!(firsts(name).eq(firsts("whole")), "{name}");
        assert!(journal::read(&lab.path(name).join("journal.jsonl")).unwrap().damage.is_none());
    }
}

#[test]
fn a_journal_alone_chooses_nothing_beyond_its_cases() {
    let _machine = Machine::alone();
    let lab = Lab::new();
    let words = ["--ab", "env:LD_BIND_NOW=1 2", "env:LD_BIND_NOW", "--forks", "4", "-o", "ab"];
    run(&lab, &words).exits(0);
    let text = std::fs::read_to_string(lab.path("ab/journal.jsonl")).unwrap();
    lab.file("ab/journal.jsonl", text.split_inclusive('\n').take(1).collect::<String>());
    let named = "--ab 'env:LD_BIND_NOW=1 2' env:LD_BIND_NOW";
    lab.pagelab(&["resume", "ab"]).exits(2).complains(&["a journal alone", named]);
    lab.pagelab(&["show", "ab"]).exits(0).shows(&["pagelab resume", named]);
    let again = |a: &str, b: &str| lab.pagelab(&["resume", "ab", "--ab", a, b]);
    again("env:LD_BIND_NOW", "env:LD_BIND_NOW=1 2").exits(2).complains(&[named]);
    again("env:LD_BIND_NOW=1 2", "env:LD_BIND_NOW").exits(0).shows(&["4+4"]);
    lab.measure("plain", &[CASE]).exits(0);
    let ended = lab.pagelab(&["resume", "plain", "--ab", "page=4k", "page=2m"]);
    ended.exits(2).complains(&["no run of two arms"]);
}

#[test]
fn arms_that_make_no_sense_are_refused_by_name() {
    let _machine = Machine::alone();
    let lab = Lab::new();
    for (a, b, says) in [
        ("page=4k", "page=4096", "both arms are page=4k"),
        ("page=4k", "order=random", "differ in one thing"),
        ("page=4k", "page=all", "no single value"),
        ("page=4k", "page=3k", "is no page size"),
        ("nosuch=1", "nosuch=2", "no parameter `nosuch`"),
        ("page", "page=4k", "`page` is no arm"),
        ("env:", "env:A", "names no variable"),
        ("set:vm/swappiness=1", "set:vm/swappiness=2", "is no setting: write set:PATH=VALUE"),
        ("set:/proc/sys/vm/swappiness", "page=4k", "is no setting"),
        ("set:/proc/sys/vm/swappiness=1", "set:/proc/sys/vm/overcommit_memory=1", "in one thing"),
        ("set:/proc/sys/vm/swappiness=1", "set:/proc/sys/vm/../vm/swappiness=1", "both arms are"),
        ("set:/proc/sys/vm/swappiness=1", "env:A", "in one thing"),
        ("set:/proc/sys/vm/nosuch=1", "set:/proc/sys/vm/nosuch=2", "vm/nosuch"),
        ("set:/etc/passwd=1", "set:/etc/passwd=2", "is not a file below /sys or /proc"),
        ("set:/proc/version=1", "set:/proc/version=2", "can be read only"),
        ("set:/proc/sys/vm/drop_caches=1", "set:/proc/sys/vm/drop_caches=3", "drop_caches"),
    ] {
        run(&lab, &["--ab", a, b]).exits(2).complains(&[says]);
    }
    lab.measure("plain", &[CASE]).exits(0);
    lab.pagelab(&["compare", "plain"]).exits(2).complains(&["one run alone", "--by page"]);
}
