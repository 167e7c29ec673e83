//! `pagelab segment run`: programs say the same with segments, and what they lacked is counted.

mod calls;
mod limits;
mod programs;
mod told;

use std::{fs, os::unix::process::CommandExt, path::Path, process::Command};

use pagelab_interpose::segment::PACKAGE;
use serde_json::Value;

use crate::{
    explain::{compiled, compiled_with},
    support::{
        Ended, Lab, Live, Machine, binary, build_library, is_root, pool, signal, skip, until,
    },
};

/// A command with segments, and what was counted of it.
fn segmented(lab: &Lab, flags: &[&str], words: &[&str]) -> (Ended, Value) {
    build_library(PACKAGE);
    let _ = fs::remove_file(lab.path("told.json"));
    let run = ["segment", "run", "--report", "told.json"];
    let ended = lab.pagelab(&[&run, flags, &["--"], words].concat());
    let told = fs::read_to_string(lab.path("told.json")).unwrap_or_default();
    (ended, serde_json::from_str(&told).unwrap_or_default())
}

fn plain(lab: &Lab, words: &[&str]) -> Ended {
    lab.ended(assert_cmd::Command::new(words[0]).args(&words[1..]))
}

/// Whether a program is there.
fn has(name: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {name}")]).output();
    let has = found.is_ok_and(|found| found.status.success());
    if !has {
        skip(&format!("there is no {name}"), &format!("apt-get install {name}"));
    }
    has
}

/// Whether programs are of glibc here.
fn is_glibc(told: &Value) -> bool {
    let is = told["programs"].as_u64().is_some_and(|programs| programs > 0);
    if !is {
        skip("the program is not of glibc here", "a system of glibc");
    }
    is
}

#[test]
fn threads_that_allocate_map_and_fork_find_what_they_left() {
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "segments") else { return };
    let words = [program.to_str().unwrap(), "8000", "and became another"];
    let without = plain(&lab, &words);
    without.exits(0);
    for leaf in ["4k", "2m", "1g"] {
        let flags = ["--heap", "256m", "--mmap", "256m", "--leaf", leaf];
        let (ended, told) = segmented(&lab, &flags, &words);
        ended.exits(0);
        if !is_glibc(&told) {
            return;
        }
        assert_eq!(ended.stdout, without.stdout, "{leaf}");
        assert_eq!(told["programs"], 2, "itself, and what it became: {told:#}");
        assert!(told["served"]["maps"].as_u64().unwrap() > 100, "{told:#}");
        for reason in ["heap-full", "mmap-full", "busy"] {
            assert_eq!(told["fallbacks"][reason]["calls"], 0, "{told:#}");
        }
        if leaf == "4k" {
            assert_eq!(told["end"]["heap"]["huge"], 0, "{told:#}");
        }
    }
}

#[test]
fn programs_that_know_nothing_of_it_say_the_same() {
    let lab = Lab::new();
    let python = "d = {str(i): [i] * 9 for i in range(200000)}; b = bytearray(30000000); \
                  print(len(d), sum(b), sum(len(v) for v in d.values()))";
    let sql = "create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from \
               c where x < 50000) insert into t select x, hex(x * 7919) from c; create index i on \
               t(b); select count(*), sum(a), max(b) from t;";
    lab.file("small.c", "#include <stdio.h>\nint main(void) { return printf(\"so\"); }\n");
    for words in [
        vec!["python3", "-c", python],
        vec!["sqlite3", ":memory:", sql],
        vec!["gcc", "-O2", "-S", "-o", "-", "small.c"],
    ] {
        if !has(words[0]) {
            continue;
        }
        let (ended, told) = segmented(&lab, &["--heap", "1g", "--mmap", "1g"], &words);
        let without = plain(&lab, &words);
        assert_eq!((ended.code, &ended.stdout), (without.code, &without.stdout), "{words:?}");
        if !is_glibc(&told) {
            return;
        }
        let heap = &told["end"]["heap"];
        let had = heap["huge"].as_u64().unwrap() + heap["base"].as_u64().unwrap();
        assert!(had > 0, "{words:?}: {told:#}");
    }
}

#[test]
fn a_segment_that_is_full_falls_back_and_is_counted_or_ends_the_program() {
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "segments") else { return };
    let words = [program.to_str().unwrap(), "hold", "96"];
    let small = ["--heap", "64m", "--mmap", "32m"];
    let (ended, told) = segmented(&lab, &small, &words);
    ended.exits(0);
    assert_eq!(ended.stdout, "held\n");
    if !is_glibc(&told) {
        return;
    }
    for (reason, least) in [("heap-full", 32), ("mmap-full", 64)] {
        let calls = told["fallbacks"][reason]["calls"].as_u64().unwrap();
        assert!(calls >= least && calls <= 96, "{reason}: {told:#}");
    }
    ended.complains(&["the heap was full", "the segment of maps had no room"]);
    let (ended, _) = segmented(&lab, &[&small[..], &["--strict"]].concat(), &words);
    assert_eq!(ended.code, None, "{}", ended.stderr);
    ended.complains(&["is full, and SMM_STRICT=1 ends the program: more by SMM_"]);
}

#[test]
fn what_cannot_be_said_or_had_is_refused_before_the_program_starts() {
    let lab = Lab::new();
    build_library(PACKAGE);
    let refused = |name: &str, value: &str, flags: &[&str], why: &[&str]| {
        let mut command = assert_cmd::Command::new(binary());
        let touch = ["--", "touch", "started"];
        command.args(["segment", "run"]).args(flags).args(touch).env(name, value);
        lab.ended(&mut command).exits(2).complains(why);
        assert!(!lab.path("started").exists(), "{name}={value} {flags:?}");
    };
    refused("SMM_MMAP", "much", &[], &["SMM_MMAP is not a size, as SMM_MMAP=11g"]);
    refused("SMM_HEAP", "1m", &[], &["SMM_HEAP is not a size of 64m or more, as SMM_HEAP=1g"]);
    refused("SMM_PMD", "yes", &[], &["SMM_PMD is not 0 or 1, as SMM_PMD=1"]);
    refused("SMM_HEAP", "900000g", &[], &["--heap (or SMM_HEAP)", "of memory: ask for less"]);
    refused("NONE", "", &["--mmap", "1x"], &["write a whole number and k, m or g, as in 512m"]);
    refused("NONE", "", &["--backing", "device"], &["there are thp (", "hugetlb (", "module ("]);
    refused("SMM_BACKING", "shm", &[], &["SMM_BACKING is not thp, hugetlb or module"]);
    for backing in ["hugetlb", "module"] {
        let why = format!("--backing {backing} sets memory aside");
        refused("NONE", "", &["--backing", backing], &[&why, "--heap or --mmap"]);
    }
    refused("SMM_ZERO", "ahead", &[], &["--zero ahead takes the memory", "--heap or --mmap"]);
    let small = ["--backing", "hugetlb", "--heap", "64m", "--leaf", "4k"];
    refused("NONE", "", &small, &["pages of 2m and of 1g", "--leaf 2m or --leaf 1g"]);
    let nobody = lab.pagelab(&["segment", "run", "--", "./no-such-program"]);
    nobody.exits(2).complains(&["no-such-program"]);
}

/// The words of a run with a pool.
const POOL: [&str; 6] = ["--backing", "hugetlb", "--heap", "64m", "--mmap", "64m"];
/// Pages of 2 MiB that it takes.
const POOL_PAGES: u64 = 64;

/// The claims of the witness, all of which hold.
fn claims(told: &Value) -> Vec<&str> {
    let claims = told["witness"].as_array().unwrap();
    assert!(claims.iter().all(|claim| claim["holds"] == true), "{told:#}");
    claims.iter().map(|claim| claim["claim"].as_str().unwrap()).collect()
}

#[test]
fn a_pool_is_set_aside_for_a_program_and_given_back() {
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "segments") else { return };
    let Some(_machine) = Machine::as_root() else { return };
    let Some((saved, _)) = pool(POOL_PAGES) else { return };
    let words = [program.to_str().unwrap(), "8000", "and became another"];
    let (ended, told) = segmented(&lab, &POOL, &words);
    ended.exits(0);
    saved.is_back();
    if !is_glibc(&told) {
        return;
    }
    assert_eq!(ended.stdout, "fine\nand became another\n");
    let leaves = &told["leaves"];
    assert!(leaves["demoted"].as_u64().unwrap() > 0, "it cuts leaves: {told:#}");
    assert!(leaves["fork"]["copied"].as_u64().unwrap() > 0, "it forks: {told:#}");
    for nothing in ["unsplit", "bounded"] {
        assert_eq!(leaves[nothing], 0, "{told:#}");
    }
    assert_eq!(leaves["fork"]["lost"], 0, "{told:#}");
    assert!(claims(&told).contains(&"map-bytes"), "{told:#}");
    // Each of its leaves is one fault.
    let words = [program.to_str().unwrap(), "faults", "32"];
    let (ended, told) = until("a pool of which nothing else takes a page", || {
        let ran = segmented(&lab, &POOL, &words);
        (leaves_of(&ran.1, "reserved", "short") == 0).then_some(ran)
    });
    assert_eq!(ended.stdout, "16\n", "{told:#}");
    assert_eq!(leaves_of(&told, "reserved", "2m"), POOL_PAGES << 21, "{told:#}");
    assert!(leaves_of(&told, "present", "2m") >= 16, "{told:#}");
    assert!(claims(&told).contains(&"leaves-2m"), "{told:#}");
    saved.is_back();
}

fn leaves_of(told: &Value, what: &str, size: &str) -> u64 {
    told["leaves"][what][size].as_u64().unwrap()
}

#[test]
fn a_leaf_of_1_gib_is_one_fault_where_the_machine_has_one() {
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "segments") else { return };
    let _machine = Machine::alone();
    let flags = ["--backing", "hugetlb", "--leaf", "1g", "--mmap", "1026m"];
    let (ended, told) = segmented(&lab, &flags, &[program.to_str().unwrap(), "faults", "1024"]);
    if ended.code == Some(3) {
        ended.complains(&["--backing hugetlb needs", "hugetlb pages of 1g"]);
        return skip("no page of 1 GiB can be had", "boot with hugepagesz=1G hugepages=1");
    }
    ended.exits(0);
    if !is_glibc(&told) {
        return;
    }
    assert_eq!(ended.stdout, "1\n", "{told:#}");
    assert_eq!(leaves_of(&told, "reserved", "1g"), 1 << 30, "{told:#}");
    assert_eq!(leaves_of(&told, "reserved", "2m"), 2 << 20, "{told:#}");
    assert!(claims(&told).contains(&"leaves-1g"), "{told:#}");
}

#[test]
fn a_pool_is_given_back_though_pagelab_is_killed() {
    let lab = Lab::new();
    let Some(_machine) = Machine::as_root() else { return };
    let Some((saved, _)) = pool(POOL_PAGES) else { return };
    build_library(PACKAGE);
    let run = [&["segment", "run"], &POOL[..], &["--", "sh", "-c"]].concat();
    let script = "echo ready >&2; read line; echo over >&2";
    let live = Live::start(&lab, &[&run[..], &[script]].concat());
    until("the program", || live.said().contains("ready").then_some(()));
    signal("KILL", live.pid());
    drop(live);
    saved.becomes(saved.found());
}

#[test]
fn a_child_meets_no_lock_of_a_thread_that_was_starting() {
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "segments") else { return };
    let words = [program.to_str().unwrap(), "start", "500"];
    let (ended, told) = segmented(&lab, &["--heap", "256m", "--mmap", "64m"], &words);
    ended.exits(0);
    assert_eq!(ended.stdout, "started\n", "{told:#}");
}

#[test]
fn a_child_gives_back_what_a_thread_was_taking_over() {
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "segments") else { return };
    let words = [program.to_str().unwrap(), "ended", "2000"];
    let (ended, told) = segmented(&lab, &["--heap", "256m", "--mmap", "64m"], &words);
    ended.exits(0);
    assert_eq!(ended.stdout, "ended\n", "{told:#}");
}

#[test]
fn a_child_has_memory_of_one_moment() {
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "segments") else { return };
    let words = [program.to_str().unwrap(), "torn", "200"];
    let (ended, told) = segmented(&lab, &["--heap", "64m", "--mmap", "64m"], &words);
    ended.exits(0);
    assert_eq!(ended.stdout, "whole\n", "{told:#}");
    let Some((saved, _)) = pool(POOL_PAGES) else { return };
    let (ended, told) = segmented(&lab, &POOL, &words);
    saved.is_back();
    // Where nothing keeps others from writing it is counted.
    if told["leaves"]["fork"]["torn"] == 0 {
        ended.exits(0);
        assert_eq!(ended.stdout, "whole\n", "{told:#}");
    }
}

#[test]
fn leaves_are_right_by_the_page_table_or_not_proven() {
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "segments") else { return };
    let words = [program.to_str().unwrap(), "hold", "16"];
    let (ended, told) = segmented(&lab, &["--heap", "256m", "--mmap", "64m"], &words);
    ended.exits(0).complains(&["  witness     "]);
    if !is_glibc(&told) {
        return;
    }
    assert!(claims(&told).contains(&"map-bytes"), "{told:#}");
    if told["proven"] == false {
        ended.complains(&["leaves not proven"]);
        return skip("page tables are for root to see", "run the tests as root, on Linux 6.7");
    }
    let huge = told["end"]["mmap"]["huge"].as_u64().unwrap();
    assert!(leaves_of(&told, "present", "2m") >= huge >> 21, "{told:#}");
}

#[test]
fn a_static_program_is_refused_with_what_goes_without_a_library() {
    let lab = Lab::new();
    build_library(PACKAGE);
    lab.file("own.c", "int main(void) { return 0; }\n");
    let mut cc = Command::new("cc");
    cc.args(["-static", "-o", "own", "own.c"]).current_dir(lab.path("."));
    if !cc.output().is_ok_and(|built| built.status.success()) {
        return skip("no static program can be built", "apt-get install gcc libc6-dev");
    }
    let ended = lab.pagelab(&["segment", "run", "--", "./own"]);
    ended.exits(2).complains(&["./own is static", "pagelab try --rung collapse,thp-always"]);
}

#[test]
fn the_programs_end_its_streams_and_its_signals_are_its_own() {
    let lab = Lab::new();
    build_library(PACKAGE);
    let run = |words: &[&str]| {
        let mut command = assert_cmd::Command::new(binary());
        command.args(["segment", "run", "-q", "--"]).args(words).write_stdin("said\n");
        lab.ended(&mut command)
    };
    let seven = run(&["sh", "-c", "cat; exit 7"]);
    seven.exits(7);
    assert_eq!((seven.stdout.as_str(), seven.stderr.as_str()), ("said\n", ""));
    assert_eq!(run(&["sh", "-c", "kill -USR2 $$"]).code, None);
    let script = "trap 'echo ended >&2; exit 9' TERM; echo ready >&2; while :; do sleep 0.02; done";
    let live = Live::start(&lab, &["segment", "run", "--", "sh", "-c", script]);
    until("the program", || live.said().contains("ready").then_some(()));
    signal("TERM", live.pid());
    let ended = live.end();
    ended.exits(9).complains(&["ended", "segments"]);
}

#[test]
fn a_wrapped_program_is_started_with_segments_and_its_arguments() {
    let lab = Lab::new();
    build_library(PACKAGE);
    let script =
        lab.file("it's a program", "#!/bin/sh\nexec env printf '%s|' \"$@\" \"$SMM_HEAP\"\n");
    let script = lab.program(script, "it's mine");
    let file = script.to_str().unwrap();
    let wrap = ["segment", "wrap", file, "-o", "wrapped", "--heap", "1g", "--mmap", "64m"];
    lab.pagelab(&wrap).exits(0);
    let ended = plain(&lab, &["./wrapped", "a b", "'$HOME'"]);
    ended.exits(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("a b|'$HOME'|1073741824|", ""));
    lab.pagelab(&wrap).exits(2).complains(&["wrapped: it exists"]);
}

#[test]
fn in_a_tree_only_what_is_named_has_segments() {
    let lab = Lab::new();
    let flags = ["--heap", "64m", "--mmap", "64m", "--only", "sleep"];
    let (ended, told) = segmented(&lab, &flags, &["sh", "-c", "sleep 0; sleep 0"]);
    ended.exits(0);
    if told["others"] == 0 {
        return skip("the program is not of glibc here", "a system of glibc");
    }
    let sleep = fs::canonicalize("/bin/sleep").unwrap_or_default();
    if sleep.file_name() != Path::new("sleep").file_name() {
        return skip("sleep is another program's name", "coreutils as files of their own");
    }
    assert_eq!((&told["programs"], &told["others"]), (&Value::from(2), &Value::from(1)));
}

#[test]
fn a_program_that_is_started_with_an_emptied_environment_is_told() {
    let lab = Lab::new();
    let flags = ["--heap", "64m", "--mmap", "64m"];
    let tree = "env -i /bin/true; env /bin/true; env -i PATH=/nowhere no-such-program";
    let (ended, told) = segmented(&lab, &flags, &["sh", "-c", tree]);
    ended.exits(127);
    if !is_glibc(&told) {
        return skip("the program is not of glibc here", "a system of glibc");
    }
    assert_eq!(told["emptied"], 1, "one has what its parent had, and one is found nowhere: {told}");
}

#[test]
fn published_variables_touch_the_stack_and_tell_what_became_of_the_code() {
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "segments") else { return };
    build_library(PACKAGE);
    let mut command = assert_cmd::Command::new(binary());
    let published =
        [("SMM_CODE", "2m"), ("SMM_STACK", "4m"), ("SMM_HEAP", "1g"), ("SMM_MMAP", "2g")];
    command.envs(published).env("SMM_PMD", "1");
    command.args(["segment", "run", "--report", "told.json", "--"]);
    let ended = lab.ended(command.arg(&program).args(["hold", "4"]));
    ended.exits(0).complains(&["heap 1.00 GiB, maps 2.00 GiB", "leaves of 2 MiB", "  code  "]);
    let told = fs::read_to_string(lab.path("told.json")).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    if !is_glibc(&told) {
        return;
    }
    let touched = told["stack"]["touched"].as_u64().unwrap();
    assert!((3 << 20..=4 << 20).contains(&touched), "{told:#}");
}
