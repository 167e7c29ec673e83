//! Page walks of programs that are too short to sample: captured, in a modelled TLB.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use pagelab_record::{
    Record,
    walks::{Captured, End},
};

use super::compiled;
use crate::support::{Ended, Lab, Machine, binary, build_library, measured, skip};

/// Random loads over so many MiB, so many of them; the pages were stored to in order before. What
/// it reads goes to stdout.
const LOADS: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
int main(int argc, char **argv)
{
    size_t words = ((size_t)atol(argv[1]) << 20) / 8;
    uint64_t at = 88172645463325252u;
    uint64_t *memory = mmap(NULL, words * 8, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t word = 0; word < words; word += 512)
        memory[word] = word;
    for (long load = 0; load < atol(argv[2]); load++) {
        at = (at ^ memory[at % words]) * 6364136223846793005u + 1442695040888963407u;
        at ^= at >> 29;
    }
    int byte = getchar();
    printf("%s %c\n", at == 0 ? "zero" : "done", byte == EOF ? '-' : byte);
    return argc > 3 ? atoi(argv[3]) : 0;
}
"#;

/// Whether this machine has what captures; says what is missing otherwise.
fn has_qemu() -> bool {
    let found = Command::new("qemu-x86_64").arg("--version").output();
    if !cfg!(target_arch = "x86_64") || found.is_err() {
        skip("no qemu-x86_64, or no x86-64", "sudo apt-get install qemu-user");
        return false;
    }
    build_library("pagelab-capture");
    true
}

/// The program, where this machine can compile and capture it.
fn loads(lab: &Lab) -> Option<()> {
    if !has_qemu() {
        return None;
    }
    lab.file("loads.c", LOADS);
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-o"]).arg(lab.path("loads")).arg(lab.path("loads.c"));
    if cc.status().is_ok_and(|status| status.success()) {
        return Some(());
    }
    skip("there is no C compiler", "apt-get install gcc");
    None
}

/// Explains with a capture, with stdin from a file, which need not be there.
fn explain(lab: &Lab, stdin: &str, words: &[&str]) -> Ended {
    let _machine = Machine::alone();
    let script = format!("exec \"$@\" < {stdin}");
    let mut command = assert_cmd::Command::new("sh");
    command.args(["-c", &script, "sh"]).arg(binary());
    command.args(["explain", "--translation=capture", "--costs", "none"]).args(words);
    lab.ended(&mut command)
}

fn captured(lab: &Lab, run: &str) -> Captured {
    let records: Vec<Record> = lab.records(run);
    let measured = measured(&records[0]);
    assert!(measured.is_valid(), "{:?}", measured.witness);
    Captured::of(measured).unwrap()
}

#[test]
fn random_loads_over_much_memory_miss_as_often_as_the_model_says_and_nothing_is_told_twice() {
    let lab = Lab::new();
    let Some(()) = loads(&lab) else { return };
    lab.file("in", "x");
    let words = ["-o", "run", "--", "./loads", "32", "50000"];
    let ended = explain(&lab, "in", &words);
    ended.exits(0);
    assert_eq!(ended.stdout, "done x\n");
    let captured = captured(&lab, "run");
    assert_eq!(captured.end, End::Whole);
    let at = captured.places.iter().position(|place| place == "anonymous").unwrap();
    let base = captured.pages(4096).unwrap();
    // 8,192 pages, each used again after as many others as there are, on average: of 50,000 loads
    // seven eighths miss in 1,024 entries.
    assert!(base.first[at].all >= 8192, "{base:?}");
    let misses = base.misses(at, 1024);
    assert!((42_000..46_000).contains(&misses.all), "{misses:?}");
    assert!(misses.whole > misses.all / 2, "most of it could be large: {misses:?}");
    // In pages of 2 MiB it is seventeen of them at most.
    assert!(captured.pages(2 << 20).unwrap().misses(at, 64).all < 100);
    let code = captured.places.len() - 1;
    assert_eq!(captured.places[code], "instructions");
    let executed: u64 = base.again.iter().map(|(_, uses)| uses[code].all).sum();
    assert!(executed > 300_000, "{executed}");
    ended.complains(&["Captured under emulation", "exact accesses, modelled TLB", "anonymous"]);
    lab.pagelab(&["report", "run", "--format", "json"]).exits(0).shows(&["\"walks\""]);
}

#[test]
fn a_bound_that_was_reached_is_said_and_what_came_after_it_is_in_no_figure() {
    let lab = Lab::new();
    let Some(()) = loads(&lab) else { return };
    let words = ["--capture-max", "100k", "-o", "run", "--", "./loads", "4", "50000"];
    let ended = explain(&lab, "/dev/null", &words);
    ended.exits(0).complains(&["A part of it was captured", "100 000 operations", "--capture-max"]);
    assert_eq!(ended.stdout, "done -\n");
    let captured = captured(&lab, "run");
    assert_eq!((captured.end, captured.ops), (End::Bound, 100_000));
}

#[test]
fn a_program_that_ends_with_a_code_ends_so_twice_and_one_that_becomes_another_is_said_to() {
    let lab = Lab::new();
    let Some(()) = loads(&lab) else { return };
    let words = ["-o", "coded", "--", "./loads", "1", "10", "7"];
    explain(&lab, "/dev/null", &words).exits(0).complains(&["exited with 7"]);
    assert_eq!(captured(&lab, "coded").end, End::Whole);
    let words = ["-o", "became", "--", "env", "true"];
    explain(&lab, "/dev/null", &words).exits(0).complains(&["became another program"]);
    assert_eq!(captured(&lab, "became").end, End::Became);
}

#[test]
fn what_cannot_be_captured_is_refused_before_anything_runs() {
    let lab = Lab::new();
    let refused = |stdin: &str, words: &[&str], named: &[&str]| {
        explain(&lab, stdin, &[&["-o", "run"], words].concat()).exits(2).complains(named);
        assert!(!lab.path("run").exists(), "{words:?} left a run");
    };
    let pid = std::process::id().to_string();
    refused("/dev/null", &["--pid", &pid], &["--translation=capture", "--translation=sample"]);
    refused("/dev/null", &["--", "no-such-program"], &["there is no program no-such-program"]);
    lab.program(lab.file("text", "#!/bin/sh\ntouch ran\n"), "script");
    let cure = "pagelab explain --translation=capture -- /bin/sh ./script";
    refused("/dev/null", &["--", "./script"], &["is a script", cure]);
    refused("/dev/null", &["--capture-max", "0", "--", "true"], &["--capture-max"]);
    let odd = lab.pagelab(&["explain", "--translation=guess", "--", "true"]);
    odd.exits(2).complains(&["guess", "sample", "capture"]);
    let lone = lab.pagelab(&["explain", "--capture-max", "5", "--", "true"]);
    lone.exits(2).complains(&["--capture-max", "--translation=capture"]);
    // A program of 32 bits is told by its class.
    let mut narrow = fs::read(binary()).unwrap();
    narrow.truncate(1 << 16);
    narrow[4] = 1;
    lab.program(lab.file("bytes", narrow), "narrow");
    explain(&lab, "/dev/null", &["-o", "run", "--", "./narrow"]).exits(2).complains(&["./narrow"]);
    if !has_qemu() {
        return;
    }
    let set = lab.program(binary(), "set");
    fs::set_permissions(set, fs::Permissions::from_mode(0o4755)).unwrap();
    refused("/dev/null", &["--", "./set"], &["./set is setuid", "--translation=sample"]);
    // The tests' own stdin is a pipe.
    let piped = lab.pagelab(&["explain", "--translation=capture", "-o", "run", "--", "true"]);
    piped.exits(2).complains(&["stdin is a pipe", "< /dev/null"]);
    assert!(!lab.path("run").exists() && !lab.path("ran").exists());
}

#[test]
fn a_qemu_that_is_missing_is_a_need_with_its_cure_and_the_program_does_not_run() {
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "touch") else { return };
    let mut command = assert_cmd::Command::new(binary());
    command.args(["explain", "--translation=capture", "-o", "run", "--"]).arg(program);
    let ended = lab.ended(command.env("PATH", "nowhere"));
    ended.exits(3).complains(&["this host lacks qemu-x86_64", "apt-get install qemu-user"]);
    assert!(!lab.path("run").exists());
}
