//! What is said of a trace that is not good, and of words that make no sense together.

use std::fs;

use super::{is_refused, load, program, replay, store};
use crate::support::{Lab, failure, measured};

#[test]
fn a_trace_that_cannot_be_read_is_named_before_anything_starts() {
    let lab = Lab::new();
    lab.file("empty.bin", "");
    lab.file("text.bin", "this is no trace at all");
    fs::create_dir(lab.path("directory")).unwrap();
    for command in ["replay", "verify", "stats"] {
        is_refused(&lab, &[command, "none.bin"], &["none.bin", "No such file", "exec-block"]);
        is_refused(&lab, &[command, "empty.bin"], &["empty.bin", "is empty"]);
        is_refused(&lab, &[command, "text.bin"], &["text.bin", "is no trace", "74 68 69 73"]);
        is_refused(&lab, &[command, "directory"], &["directory"]);
    }
}

/// A trace with something wrong at byte 120, and what is said of it.
fn damaged() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let good: Vec<u8> = (0..12).flat_map(|at| load(at * 2, 2)).collect();
    let with = |end: &[u8]| [&good[..], end].concat();
    vec![
        ("op.bin", with(&[7; 30]), "at byte 120: operation 7"),
        ("width.bin", with(&[2, 3, 0, 0, 0, 0, 0, 0, 0, 0]), "at byte 120: width 3"),
        ("value.bin", with(&store(1, 2)[..15]), "at byte 120: the trace ends inside the value"),
    ]
}

#[test]
fn a_damaged_record_is_named_by_its_offset_with_what_can_be_used() {
    let lab = Lab::new();
    for (name, bytes, what) in damaged() {
        lab.file(name, bytes);
        let named = [name, what, "--ops 12"];
        for command in ["replay", "verify"] {
            is_refused(&lab, &[command, name, "--backend", "base"], &named);
        }
        // Statistics are collected on the way: the damage is found in the middle.
        let words = ["trace", "stats", name, "-o", name.strip_suffix(".bin").unwrap()];
        lab.pagelab(&words).exits(2).complains(&named);
        // What comes before the damage is good.
        lab.pagelab(&["trace", "stats", name, "--ops", "12"]).exits(0).shows(&["ops: 12"]);
        replay(&lab, &[name, "--ops", "12", "--backend", "noop"]).exits(0);
    }
}

#[test]
fn a_damaged_trace_fails_its_case_and_the_run_goes_on() {
    let lab = Lab::new();
    let (name, bytes, what) = damaged().remove(0);
    lab.file(name, bytes);
    lab.file("t.bin", program(100));
    let case = |trace: &str| format!("emu/replay trace={trace} backend=noop rounds=2");
    let ended = lab.measure("run", &[&case(name), &case("t.bin"), "limit/timer"]);
    ended.exits(1).complains(&["FAILED", what]);
    let records = lab.records("run");
    assert!(failure(&records[0]).contains(what), "{}", failure(&records[0]));
    assert!(measured(&records[1]).is_valid());
}

#[test]
fn bytes_that_trail_are_warned_of_and_left_alone() {
    let lab = Lab::new();
    lab.file("t.bin", [program(100), vec![2, 2, 0]].concat());
    replay(&lab, &["t.bin", "--backend", "base", "-o", "run"]).exits(0);
    let records = lab.records("run");
    let warnings = &measured(&records[0]).warnings;
    assert!(warnings.iter().any(|w| w.contains("3 bytes trail")), "{warnings:?}");
    let stats = lab.pagelab(&["trace", "stats", "t.bin"]);
    stats.exits(0).complains(&["3 bytes trail"]);
    let total = program(100).len();
    stats.shows(&[&format!("{}/{}", thousands(total), thousands(total + 3))]);
}

fn thousands(count: usize) -> String {
    format!("{},{:03}", count / 1000, count % 1000)
}

#[test]
fn what_makes_no_sense_together_is_refused_with_the_reason() {
    let lab = Lab::new();
    lab.file("t.bin", program(10));
    let refuse = |words: &[&str], named: &[&str]| is_refused(&lab, words, named);
    refuse(&["replay", "t.bin", "--cache", "cold"], &["cache=cold", "another reader"]);
    refuse(&["replay", "t.bin", "--backend", "noop,noop"], &["named twice"]);
    refuse(&["replay", "t.bin", "--backend", "tbl"], &["tbl", "noop", "paged-fx"]);
    refuse(&["replay", "t.bin", "--seed", "7"], &["seed", "only generators"]);
    refuse(&["replay", "fib", "--ops", "all"], &["ops=all", "no end"]);
    refuse(&["replay", "fib", "--ops", "4q"], &["4q", "20m"]);
    refuse(&["replay", "t.bin", "--image", "generator"], &["image=generator"]);
    refuse(&["verify", "t.bin", "--backend", "noop"], &["forgets on purpose"]);
    refuse(&["stats", "t.bin", "--page-shift", "64"], &["64", "from 0 to 63"]);
    refuse(&["stats", "t.bin", "--cache-sizes", "4,0"], &["cache-sizes", "from 1 to"]);
}
