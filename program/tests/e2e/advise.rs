//! `pagelab advise`: the table is whole, the memory it may take is kept to, and what cannot be
//! measured says why. Which strategy is the fastest is for the machine to say, not for a test.

use std::process::Command;

use pagelab_record::{Nature, Outcome, units::parse_bytes};
use serde_json::Value;

use crate::support::{Lab, Machine, is_skipped, skip};

/// Asks with a scripted clock and time enough, and returns the answer.
fn advise(lab: &Lab, words: &[&str]) -> Value {
    let mut all = vec!["advise", "--clock", "scripted", "--budget", "600", "--format", "json"];
    all.extend(["-o", "run"]);
    all.extend(words);
    let ended = lab.pagelab(&all);
    serde_json::from_str(&ended.exits(0).stdout).unwrap()
}

#[test]
fn every_strategy_has_a_row_and_a_record_within_a_quarter_of_the_memory() {
    let _machine = Machine::alone();
    let lab = Lab::new();
    let advice = advise(&lab, &["--size", "64m", "--threads", "2", "--policy", "base"]);
    let strategies = advice["strategies"].as_array().unwrap();
    let records = lab.records("run");
    assert_eq!((strategies.len(), records.len()), (6, 6));
    for record in &records {
        assert_eq!(record.workload, "fault/throughput");
        let size = record.case.get("size").map(parse_bytes);
        assert!(size.is_some_and(|size| size.unwrap() <= 16 << 20), "{}", record.case);
        if let Outcome::Measured(measured) = &record.outcome {
            assert!(measured.is_valid() && record.nature == Nature::Simulated);
        } else {
            is_skipped(record);
        }
    }
    let named = advice["answer"]["named"].as_str().unwrap();
    assert!(strategies.iter().any(|strategy| strategy["strategy"] == named), "{advice}");
    is_taken_by_a_compiler(&lab, strategies.iter().map(|one| one["code"].as_str().unwrap()));
}

/// Has a compiler read what people are told to paste, each piece as the body of a function.
fn is_taken_by_a_compiler<'c>(lab: &Lab, codes: impl Iterator<Item = &'c str>) {
    let headers = "#define _GNU_SOURCE\n#include <sys/mman.h>\n#include <linux/mman.h>\n\
                   #include <stddef.h>\n#include <sys/prctl.h>\n";
    let body = |(nth, code): (usize, &str)| {
        assert!(code.contains("mmap("), "{code}");
        let thread = if code.contains("t * share") { "size_t t = 0; " } else { "" };
        format!("char *strategy_{nth}(void) {{ {thread}\n{code}\nreturn p;\n}}\n")
    };
    let all: String = codes.enumerate().map(body).collect();
    let source = lab.file("codes.c", format!("{headers}{all}"));
    let mut cc = Command::new("cc");
    let Ok(output) = cc.args(["-fsyntax-only", "-Wall", "-Werror"]).arg(source).output() else {
        return skip("there is no C compiler", "apt-get install gcc");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn settings_are_kept_where_that_is_asked() {
    let lab = Lab::new();
    let _machine = Machine::alone();
    let advice = advise(&lab, &["--size", "64m", "--policy", "keep"]);
    assert!(!advice["strategies"].as_array().unwrap().is_empty());
    for record in lab.records("run") {
        if let Outcome::Skipped { cure, .. } = &record.outcome {
            assert!(!cure.contains("sudo tee"), "a setting would have to be changed: {cure}");
        }
    }
    lab.pagelab(&["report", "run"]).exits(0).shows(&["64.0 MiB of fresh memory with 1 thread"]);
}

#[test]
fn locked_memory_is_named_with_what_is_locked_or_skipped_with_a_cure() {
    let lab = Lab::new();
    let _machine = Machine::alone();
    let words = ["advise", "--clock", "scripted", "--budget", "600", "--size", "64m"];
    let ended = lab.pagelab(&[&words[..], &["--policy", "locked", "-o", "run"]].concat());
    let records = lab.records("run");
    assert!(!records.is_empty());
    for record in &records {
        if let Outcome::Skipped { need, cure } = &record.outcome {
            assert!(cure.len() > 10, "{need}: {cure}");
        }
    }
    if !records.iter().all(is_skipped) {
        ended.exits(0).shows(&["64.0 MiB locked"]);
    }
}

#[test]
fn too_little_and_too_much_are_refused_before_anything_is_written() {
    let lab = Lab::new();
    lab.pagelab(&["advise", "--size", "4m", "-o", "run"]).exits(2).complains(&["ask for 8m"]);
    lab.pagelab(&["advise", "--size", "4000t", "-o", "run"]).exits(3).complains(&["limited by"]);
    lab.pagelab(&["advise", "--size", "1q"]).exits(2).complains(&["1q"]);
    lab.pagelab(&["advise"]).exits(2).complains(&["--size"]);
    assert!(!lab.path("run").exists());
}
