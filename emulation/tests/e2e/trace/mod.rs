//! `pagelab trace`: what is done with a trace that is good.

mod refusals;

use std::{fs, process::Command};

use pagelab_record::{Clock, Data, Measured, Outcome};
use serde_json::Value;

use crate::support::{Ended, Lab, Live, MemoryGroup, binary, failure, measured, signal, until};

#[test]
fn a_trace_longer_than_memory_is_mapped_and_the_record_says_so() {
    let lab = Lab::new();
    synth(&lab, &["fib", "--ops", "20m", "-o", "long.bin"]);
    // Less than the 200 MB of the trace, and enough for the program.
    let Some(group) = MemoryGroup::of(160 << 20) else { return };
    let mut limited = Command::new("sh");
    limited.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(group.processes());
    limited.arg(binary()).args(["trace", "replay", "long.bin", "--backend", "noop"]);
    limited.args(["--rounds", "1", "--forks", "1", "-q", "-o", "run"]);
    let ended = limited.current_dir(lab.path(".")).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{said}");
    let replays = lab.records("run").into_iter().filter(|r| r.workload == "emu/replay");
    let [record] = <[_; 1]>::try_from(replays.collect::<Vec<_>>()).unwrap();
    assert_eq!(record.case.get("reader"), Some("mmap"));
    let warnings = measured(&record).warnings.join("; ");
    assert!(warnings.contains("the trace has 191 MiB"), "{warnings}");
    assert!(warnings.contains("read as it is replayed"), "{warnings}");
}

/// The record of a read.
fn load(addr: u64, width: u8) -> Vec<u8> {
    [&[2, width][..], &addr.to_le_bytes()].concat()
}

/// The record of a write of eight bytes.
fn store(addr: u64, value: u64) -> Vec<u8> {
    [&[1, 8][..], &addr.to_le_bytes(), &value.to_le_bytes()].concat()
}

/// A small program: fetches in a loop, and every eighth operation goes to one of 32 pages.
fn program(ops: u64) -> Vec<u8> {
    let op = |at: u64| match at % 8 {
        7 if at % 16 == 7 => store(0x7f_0000 + at * 512 % 0x2_0000, at),
        7 => load(0x7f_0000 + (at - 8) * 512 % 0x2_0000, 8),
        _ => load(0x1_0000 + at * 2 % 4096, 2),
    };
    (0..ops).flat_map(op).collect()
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}:\n{ended:?}"))
}

/// One process and two repetitions by the script.
const QUICK: &[&str] = &["--forks", "1", "--rounds", "2", "--clock", "scripted"];

fn replay(lab: &Lab, words: &[&str]) -> Ended {
    lab.pagelab(&[&["trace", "replay"], words, QUICK].concat())
}

#[test]
fn a_replay_compares_backends_and_leaves_a_run() {
    let lab = Lab::new();
    lab.file("t.bin", program(4000));
    let words = ["t.bin", "--backend", "noop,base,paged-fx", "--format", "json", "-o", "run"];
    let ended = replay(&lab, &words);
    ended.exits(0);
    let found = json(&ended);
    assert_eq!((&found["ops"], &found["valid"]), (&Value::from(4000), &Value::from(true)));
    let backends = found["backends"].as_array().unwrap();
    let names: Vec<&str> = backends.iter().map(|b| b["backend"].as_str().unwrap()).collect();
    assert_eq!(names, ["noop", "base", "paged-fx"], "in the order that was asked for");
    assert_eq!(backends[1]["decoder"], "safe");
    assert_eq!(backends[1]["digest"], backends[2]["digest"]);
    assert_ne!(backends[0]["digest"], backends[1]["digest"], "noop forgets");
    for backend in backends {
        // Two readings of the CPU clock with a pair of the other between: three steps of 1000 ns.
        assert_eq!(backend["ns_per_op"].as_f64(), Some(3000.0 / 4000.0));
        assert_eq!(backend["wall_ns_per_op"].as_f64(), Some(1000.0 / 4000.0));
        assert_eq!(backend["ratio_to_noop"].as_f64(), Some(1.0));
    }
    let records = lab.records("run");
    assert_eq!((records.len(), records[0].workload.as_str()), (1, "emu/replay"));
    assert!(lab.path("run/report.html").exists());
    lab.pagelab(&["report", "run"]).exits(0).shows(&["1 valid"]);
}

#[test]
fn the_case_of_the_short_name_is_the_case_of_run() {
    let lab = Lab::new();
    lab.file("t.bin", program(500));
    replay(&lab, &["t.bin", "--backend", "noop,base", "-o", "short"]).exits(0);
    lab.measure("long", &["emu/replay trace=t.bin backend=noop,base rounds=2"]).exits(0);
    let (short, long) = (lab.records("short"), lab.records("long"));
    assert_eq!((&short[0].workload, &short[0].case), (&long[0].workload, &long[0].case));
    assert_eq!(short[0].case.get("ops"), Some("all"));
    let digest = |measured: &Measured| measured.counters["trace_digest"];
    assert_eq!(digest(measured(&short[0])), digest(measured(&long[0])));
}

/// What a replay of `t.bin` by some reader counted.
fn read_by(lab: &Lab, reader: &str, cache: &str) -> Measured {
    let run = format!("{reader}-{cache}");
    let words = ["t.bin", "--backend", "noop,base", "--reader", reader, "--cache", cache];
    replay(lab, &[&words[..], &["-o", &run]].concat()).exits(0);
    measured(&lab.records(&run)[0]).clone()
}

fn values(measured: &Measured, series: &str, arm: &str) -> Vec<u64> {
    let mine = measured.series.iter().filter(|s| s.name == series && s.arm == arm);
    let values = mine.map(|series| match &series.data {
        Data::Values(values) => values.clone(),
        other => panic!("{other:?}"),
    });
    values.flatten().collect()
}

#[test]
fn every_reader_replays_the_same_trace_and_counts_its_calls() {
    let lab = Lab::new();
    let bytes = program(8000);
    lab.file("t.bin", &bytes);
    let in_memory = read_by(&lab, "memory", "warm");
    assert_eq!(values(&in_memory, "read-calls", "base"), [0, 0]);
    let calls = bytes.len().div_ceil(8192) as u64;
    for (reader, reads) in
        [("buffered-8k", calls), ("buffered-4m", 1), ("mmap", 0), ("mmap-populate", 0)]
    {
        let found = read_by(&lab, reader, "warm");
        assert!(found.is_valid(), "{:?}", found.witness);
        for name in ["trace_digest", "digest/base", "digest/noop", "trace_bytes"] {
            assert_eq!(found.counters[name], in_memory.counters[name], "{reader}: {name}");
        }
        assert_eq!(values(&found, "read-calls", "base"), [reads, reads], "{reader}");
        assert_eq!(values(&found, "user-time", "noop"), [1000, 1000]);
        let elapsed = found.series.iter().filter(|s| s.clock == Clock::Scripted);
        assert!(elapsed.count() > 0);
    }
}

#[test]
fn a_cold_trace_is_out_of_the_page_cache_or_the_case_says_why_not() {
    let lab = Lab::new();
    lab.file("t.bin", program(8000));
    let words = ["t.bin", "--backend", "noop", "--reader", "mmap", "--cache", "cold"];
    let ended = replay(&lab, &[&words[..], &["-o", "run"]].concat());
    let records = lab.records("run");
    match &records[0].outcome {
        // Where the temporary directory is on a disk.
        Outcome::Measured(measured) => {
            ended.exits(0);
            let claim = "pages of the trace in the page cache beforehand";
            assert!(measured.witness.iter().any(|c| c.claim == claim && c.checks == 2));
        }
        _ => assert!(failure(&records[0]).contains("TMPDIR"), "{ended:?}"),
    }
}

/// Writes a trace of a generator and returns its digest, as the summary has it.
fn synth(lab: &Lab, words: &[&str]) -> String {
    let ended = lab.pagelab(&[&["trace", "synth"], words].concat());
    ended.exits(0);
    let (_, rest) = ended.stdout.split_once("digest ").expect("the summary has a digest");
    rest[..16].to_owned()
}

#[test]
fn a_generated_trace_is_the_same_trace_in_every_form() {
    let lab = Lab::new();
    let words = |file| ["exec-block", "--ops", "30k", "--seed", "7", "--no-image", "-o", file];
    let digest = synth(&lab, &words("t.bin"));
    for file in ["t.bin.gz", "t.bin.xz", "t.bin.zst"] {
        assert_eq!(synth(&lab, &words(file)), digest, "{file}");
        let (packed, plain) = (fs::metadata(lab.path(file)), fs::metadata(lab.path("t.bin")));
        assert!(packed.unwrap().len() < plain.unwrap().len() / 2, "{file} is compressed");
    }
    let generator = ["exec-block", "--ops", "30k", "--seed", "7", "--image", "none"];
    for source in [&["t.bin"][..], &["t.bin.gz"], &["t.bin.xz"], &["t.bin.zst"], &generator] {
        for reader in ["memory", "mmap"] {
            let how = ["--backend", "base,tlb", "--reader", reader, "--format", "json"];
            let ended = replay(&lab, &[source, &how].concat());
            ended.exits(0);
            let found = json(&ended);
            assert_eq!(found["trace_digest"], digest.as_str(), "{source:?} by {reader}");
            assert_eq!(found["ops"], 30_000);
            assert_eq!(found["backends"][0]["digest"], found["backends"][1]["digest"]);
        }
        let how = ["--format", "json", "--tlb", "--stack", "exact"];
        let source = source.iter().filter(|word| !["--image", "none"].contains(word)).copied();
        let words: Vec<&str> = ["trace", "stats"].into_iter().chain(source).chain(how).collect();
        let stats = json(&lab.pagelab(&words));
        assert_eq!((&stats["ops"], &stats["valid"]), (&30_000.into(), &true.into()));
    }
    lab.pagelab(&["trace", "verify", "t.bin.zst", "--backend", "tlb,base"]).exits(0);
}

#[test]
fn the_image_of_a_trace_lies_beside_it_and_is_loaded_before_it() {
    let lab = Lab::new();
    let digest = synth(&lab, &["exec-block", "--ops", "20k", "-o", "t.bin"]);
    assert!(lab.path("t.bin.image").exists());
    let image = |words: &[&str]| -> (Value, Value) {
        let ended = replay(&lab, &[words, &["--backend", "tlb", "--format", "json"]].concat());
        ended.exits(0);
        let found = json(&ended);
        assert_eq!(found["trace_digest"], digest.as_str());
        (found["case"]["image"].clone(), found["backends"][0]["digest"].clone())
    };
    let (name, beside) = image(&["t.bin"]);
    assert!(name.as_str().unwrap().ends_with("t.bin.image"), "{name}");
    let (none, without) = image(&["t.bin", "--image", "none"]);
    assert_eq!(none, "none");
    assert_ne!(beside, without, "loads of code find something");
    assert_eq!(image(&["exec-block", "--ops", "20k"]), ("generator".into(), beside.clone()));
    assert_eq!(image(&["t.bin", "--image", "t.bin.image"]).1, beside);
    is_refused(&lab, &["replay", "t.bin", "--image", "none.elf"], &["none.elf", "No such file"]);
    lab.pagelab(&["trace", "verify", "t.bin", "--backend", "tlb,base"]).exits(0);
}

#[test]
fn what_is_there_is_replaced_only_when_asked() {
    let lab = Lab::new();
    let words = ["fib", "--ops", "1k", "-o", "t.bin"];
    synth(&lab, &words);
    let before = fs::read(lab.path("t.bin")).unwrap();
    let again = lab.pagelab(&[&["trace", "synth"], &words[..]].concat());
    again.exits(2).complains(&["t.bin", "--force"]);
    assert_eq!(fs::read(lab.path("t.bin")).unwrap(), before);
    // An image that belonged to another trace must not pass for this one's.
    let other = ["uniform:footprint=1m", "--ops", "1k", "-o", "t.bin", "--force"];
    synth(&lab, &other);
    assert!(!lab.path("t.bin.image").exists());
    lab.file("u.bin.image", "x");
    let stale = lab.pagelab(&["trace", "synth", "fib", "--ops", "1k", "-o", "u.bin"]);
    stale.exits(2).complains(&["u.bin.image", "--force"]);
    assert!(!lab.path("u.bin").exists());
}

#[test]
fn a_generator_or_a_place_that_is_none_is_refused_by_name() {
    let lab = Lab::new();
    let synth = |words: &[&str], named: &[&str]| {
        is_refused(&lab, &[&["synth"], words, &["-o", "t.bin"]].concat(), named);
    };
    synth(&["fibb"], &["`fibb`", "exec-block"]);
    synth(&["zipf:steep=3"], &["`steep`", "exponent"]);
    synth(&["fib", "--ops", "4q"], &["4q", "20m"]);
    synth(&["uniform", "--image"], &["--image", "uniform"]);
    synth(&["uniform", "--fit"], &["--fit", "uniform"]);
    let nowhere = ["synth", "fib", "--ops", "10", "-o", "no/where/t.bin"];
    is_refused(&lab, &nowhere, &["no/where/t.bin", "No such file"]);
}

#[test]
fn the_fit_stands_beside_what_was_published() {
    let lab = Lab::new();
    let words = ["trace", "synth", "exec-block", "--ops", "50k", "-o", "t.bin.zst", "--fit"];
    let ended = lab.pagelab(&words);
    ended.exits(0).shows(&["fitted published", "89.56 %", "17.36 %", "hits in 32 pages"]);
}

#[test]
fn an_interrupted_synthesis_leaves_no_file() {
    let lab = Lab::new();
    // Compressed, so that the disk does not fill up before the signal comes.
    let words = ["trace", "synth", "exec-block", "--ops", "100g", "-q", "-o", "t.bin.gz"];
    let run = Live::start(&lab, &words);
    until("the trace to be written", || {
        let length = fs::metadata(lab.path("t.bin.gz")).ok()?.len();
        (length > 0).then_some(())
    });
    signal("INT", run.pid());
    run.end().exits(130).complains(&["t.bin.gz was removed"]);
    for name in ["t.bin.gz", "t.bin.gz.image", "t.bin.image"] {
        assert!(!lab.path(name).exists(), "{name}");
    }
}

#[test]
fn a_damaged_archive_is_named() {
    let lab = Lab::new();
    for file in ["t.bin.gz", "t.bin.xz", "t.bin.zst"] {
        synth(&lab, &["uniform", "--ops", "50k", "-o", file]);
        let whole = fs::read(lab.path(file)).unwrap();
        lab.file(file, &whole[..whole.len() / 2]);
        is_refused(&lab, &["replay", file, "--backend", "noop"], &[file]);
        // In the middle, or at the start where nothing before the damage can be unpacked.
        let stats = lab.pagelab(&["trace", "stats", file, "-o", file.trim_start_matches("t.")]);
        stats.complains(&[file]);
        assert!(matches!(stats.code, Some(1 | 2)), "{stats:?}");
    }
}

#[test]
fn a_verification_compares_every_load() {
    let lab = Lab::new();
    lab.file("t.bin", program(4000));
    let words = ["trace", "verify", "t.bin", "--format", "json", "-o", "run"];
    let ended = lab.pagelab(&words);
    let found = json(&ended);
    ended.exits(0);
    let backends = found["backends"].as_array().unwrap();
    assert!(backends.len() > 10, "every backend that remembers");
    for backend in backends.iter().filter(|backend| backend["left_out"] != true) {
        assert_eq!(backend["differing_loads"], 0, "{backend}");
        assert_eq!(backend["verified"], true, "{backend}");
    }
    assert_eq!(found["loads"], 4000 - 250);
    assert_eq!(lab.records("run")[0].workload, "emu/verify");
    let plain = lab.pagelab(&["trace", "verify", "t.bin", "--backend", "base", "-q"]);
    plain.exits(0).shows(&["ok base: 3750 loads as the naive memory's"]);
}

#[test]
fn statistics_come_in_the_layout_of_the_seed() {
    let lab = Lab::new();
    let trace = [load(0x11078, 2), store(0x7fff_fff8, 1), load(0x11080, 2), load(0x11082, 2)];
    lab.file("t.bin", trace.concat());
    let words = ["trace", "stats", "t.bin", "--top-k", "1", "--cache-sizes", "4", "-o", "run"];
    let ended = lab.pagelab(&words);
    ended.exits(0).shows(&[
        "ops: 4",
        "bytes: 48/48",
        "reads: 3",
        "u16: 3 (100.00%)",
        "page transitions: 2 (66.67%)",
        "0x11: 3 (75.00%)",
        "cold misses: 2",
    ]);
    assert!(!ended.stdout.contains("N=8"), "one size was asked for");
    let found = json(&lab.pagelab(&["trace", "stats", "t.bin", "--format", "json"]));
    assert_eq!((&found["transitions"], &found["reuse"]["cold"]), (&2.into(), &2.into()));
    let page = lab.pagelab(&["trace", "stats", "t.bin", "--format", "html"]);
    page.exits(0).shows(&["<!doctype html>"]);
    assert_eq!(lab.records("run")[0].case.get("cache-sizes"), Some("4"));
}

/// Refused with exit 2 and these words, before a run is there.
#[track_caller]
fn is_refused(lab: &Lab, words: &[&str], named: &[&str]) {
    let before = fs::read_dir(lab.path(".")).unwrap().count();
    // Nothing is measured, so no clock need be calibrated.
    let clock: &[&str] = if words[0] == "synth" { &[] } else { &["--clock", "raw"] };
    lab.pagelab(&[&["trace"], words, clock].concat()).exits(2).complains(named);
    assert_eq!(fs::read_dir(lab.path(".")).unwrap().count(), before, "something was left");
}

#[test]
fn a_run_is_resumed_with_its_traces_from_anywhere() {
    let lab = Lab::new();
    lab.file("t.bin", program(1000));
    let case = |ops: &str| format!("emu/replay trace=t.bin ops={ops} backend=noop,base rounds=2");
    lab.measure("run", &[&case("100"), &case("200"), &case("all")]).exits(0);
    let lines = lab.lines("run");
    fs::write(lab.path("run/journal.jsonl"), lines[..2].concat()).unwrap();
    let journal = lab.path("run");
    let elsewhere = Lab::new();
    let resumed = elsewhere.pagelab(&["resume", journal.to_str().unwrap()]);
    resumed.exits(0).complains(&["1 of 3 cases are done, 2 are left"]);
    let ops: Vec<u64> =
        lab.records("run").iter().map(|r| measured(r).counters["trace_ops"]).collect();
    assert_eq!(ops, [100, 200, 1000]);
}

#[test]
fn a_trace_that_is_gone_when_a_run_is_resumed_fails_its_case() {
    let lab = Lab::new();
    lab.file("t.bin", program(1000));
    let case = |ops: &str| format!("emu/replay trace=t.bin ops={ops} backend=noop rounds=2");
    lab.measure("run", &[&case("100"), &case("200")]).exits(0);
    let lines = lab.lines("run");
    fs::write(lab.path("run/journal.jsonl"), lines[..2].concat()).unwrap();
    fs::remove_file(lab.path("t.bin")).unwrap();
    lab.pagelab(&["resume", "run"]).exits(1).complains(&["t.bin", "No such file"]);
    assert!(failure(&lab.records("run")[1]).contains("t.bin"));
}

#[test]
fn an_interrupted_replay_is_saved_and_can_be_continued() {
    let lab = Lab::new();
    lab.file("t.bin", program(1000));
    let words = ["trace", "replay", "t.bin", "--backend", "base", "--rounds", "1000000"];
    let words = [&words[..], &["--forks", "1", "--time-limit", "600", "-q", "-o", "run"]].concat();
    let mut run = Live::start(&lab, &words);
    run.halt_case();
    signal("INT", run.pid());
    run.end().exits(130).complains(&["interrupted; go on with: pagelab resume run"]);
    assert_eq!(lab.records("run").len(), 0, "a case that was interrupted leaves nothing");
}

#[test]
fn an_interrupt_while_a_trace_is_loaded_leaves_nothing() {
    let lab = Lab::new();
    // Through a file, of which there is room for more than is written until the signal comes.
    let words = ["trace", "replay", "fib", "--ops", "100g", "--reader", "mmap", "-o", "run"];
    let run = Live::start(&lab, &words);
    until("the trace to be loaded", || {
        let files = fs::read_dir(format!("/proc/{}/fd", run.pid())).ok()?.flatten();
        let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
        targets.find(|target| target.to_string_lossy().ends_with("(deleted)"))
    });
    signal("INT", run.pid());
    run.end().exits(130);
    assert!(!lab.path("run").exists());
}

#[test]
fn the_operations_of_a_suite_can_be_scaled() {
    let lab = Lab::new();
    let words = ["run", "--suite", "fast-memory", "--ops", "100k", "--dry-run"];
    let plan = lab.pagelab(&words);
    plan.exits(0)
        .shows(&["emu/replay trace=fib ops=100k", "trace/stats trace=exec-block ops=100k"]);
    assert!(!plan.stdout.contains("ops=20m"), "{}", plan.stdout);
    let refused = lab.pagelab(&["run", "--suite", "limits", "--ops", "100k"]);
    refused.exits(2).complains(&["`limits`", "--ops"]);
}

#[test]
fn a_trace_that_ends_before_what_was_asked_for_says_so() {
    let lab = Lab::new();
    lab.file("t.bin", program(100));
    let said = "ends after 100 operations; 500 were asked for";
    replay(&lab, &["t.bin", "--ops", "500", "--backend", "base", "-o", "run"]).exits(0);
    let records = lab.records("run");
    let warnings = &measured(&records[0]).warnings;
    assert!(warnings.iter().any(|warning| warning.contains(said)), "{warnings:?}");
    lab.pagelab(&["trace", "stats", "t.bin", "--ops", "500"]).exits(0).complains(&[said]);
}
