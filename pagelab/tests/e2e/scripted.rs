//! A whole run with a scripted clock, in which every reading is 1000 ns later than the one before:
//! faults are real, times are exact, so the record and the report can be pinned to the last digit.

use std::fs;

use pagelab_record::{Clock, Data, Measured, Nature, Record, Series, latency};

use serde_json::Value;

use crate::support::{Lab, measured, plain, until};

const THROUGHPUT: &str = "fault/throughput page=4k size=16m rounds=2";
const LATENCY: &str = "fault/latency page=4k size=4m rounds=2";

fn run(lab: &Lab, cases: &[&str]) -> String {
    let suite = lab.suite(cases);
    until("a run without cold memory", || {
        let _ = fs::remove_dir_all(lab.path("run"));
        let ended = lab.pagelab(&["run", "--suite", &suite, "--clock", "scripted", "-o", "run"]);
        ended.exits(0);
        (!has_cold_memory(lab)).then_some(ended.stdout)
    })
}

/// Whether the host took memory back in every attempt at a repetition: what it took is in series of
/// their own.
fn has_cold_memory(lab: &Lab) -> bool {
    let is_cold = |series: &Series| plain(&series.name) != series.name;
    lab.records("run").iter().any(|record| measured(record).series.iter().any(is_cold))
}

/// Takes out what differs between machines and moments: whether there is perf, whether a host
/// takes memory back, and what else the machine was doing.
fn without_the_machine(measured: &Measured) -> Measured {
    let mut measured = measured.clone();
    measured.witness.retain(|claim| !claim.claim.contains("by perf") && !claim.arm.is_empty());
    measured.warnings.retain(|warning| {
        !warning.starts_with("free page reporting")
            && !warning.starts_with("the kernel moved pages")
            && !warning.starts_with("a claim did not hold in one repetition")
            && !warning.starts_with("the hypervisor gave")
    });
    let is_ours = |name: &str| {
        let of_the_moment = [
            "preemptions",
            "migrated_samples",
            "repetitions_discarded_reporting",
            "repetitions_discarded_reclaim",
            "repetitions_discarded_migration",
            "repetitions_discarded_unproven",
            "steal_ms",
            "interrupts",
            "softirqs",
            "run_delay_us",
            "loop_us",
        ];
        let is_of_the_machine = name.starts_with("machine_") || name.starts_with("stalls");
        !is_of_the_machine && !of_the_moment.contains(&name)
    };
    measured.counters.retain(|name, _| is_ours(name));
    measured
}

/// A record as text to review: one line for each series, counter and claim.
fn text(record: &Record) -> String {
    let measured = without_the_machine(measured(record));
    let Record { schema, workload, case, .. } = record;
    let mut text = format!("{schema} {workload}\nnature {:?}\n{case}\n", record.nature);
    let value = serde_json::to_value(&measured).unwrap();
    for part in ["series", "counters", "witness", "tables", "warnings"] {
        text.push_str(&format!("{part}\n"));
        match &value[part] {
            Value::Array(lines) => lines.iter().for_each(|l| text.push_str(&format!("  {l}\n"))),
            other => text.push_str(&format!("  {other}\n")),
        }
    }
    text
}

/// The report from its headline on; above it stand the machine and the command line.
fn results(report: &str) -> String {
    let from = report.find("simulated").expect("the report says what its numbers are");
    let (shown, _) = report[from..].split_once("\nWitness\n").expect("there is a witness");
    let line = |line: &str| {
        // How many claims there are depends on what the machine can count.
        let line = line.split(" (").next().filter(|_| line.contains(" valid")).unwrap_or(line);
        let words = line.rsplit_once("  ");
        match words.and_then(|(start, last)| Some((start, last.split_once('/')?))) {
            Some((start, (held, all))) if held == all => format!("{start}  all hold"),
            _ => line.trim_end().to_owned(),
        }
    };
    // Whether there were any is the doing of the host, or of a machine that is busy.
    let is_ours = |line: &&str| !line.starts_with("Repetitions dropped because");
    shown.lines().filter(is_ours).map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_scripted_run_leaves_exact_records() {
    let lab = Lab::new();
    run(&lab, &[THROUGHPUT, LATENCY]);
    let records = lab.records("run");
    assert_eq!(records.len(), 2);
    insta::assert_snapshot!("record_of_throughput", text(&records[0]));
    insta::assert_snapshot!("record_of_latency", text(&records[1]));
}

#[test]
fn a_scripted_run_is_reported_exactly_and_as_simulated() {
    let lab = Lab::new();
    let printed = run(&lab, &[THROUGHPUT, LATENCY]);
    insta::assert_snapshot!("report", results(&printed));
    let again = lab.pagelab(&["report", "run"]);
    assert_eq!(again.exits(0).stdout, printed, "report draws what run drew");
}

#[test]
fn every_phase_takes_one_step_of_the_clock_and_three_of_the_cpu() {
    let lab = Lab::new();
    run(&lab, &[THROUGHPUT]);
    let records = lab.records("run");
    assert_eq!(records[0].nature, Nature::Simulated);
    let series = &measured(&records[0]).series;
    // Two repetitions of four phases by two clocks.
    assert_eq!(series.len(), 2 * 4 * 2);
    for series in series {
        let expected = if series.clock == Clock::Cpu { 3000 } else { 1000 };
        assert_eq!(series.data, Data::Values(vec![expected]), "{}", series.name);
    }
    let touch = series.iter().find(|series| series.name == "touch").unwrap();
    assert_eq!((touch.ops, touch.bytes, touch.clock), (4096, 16 << 20, Clock::Scripted));
}

#[test]
fn every_sample_of_a_latency_takes_one_step_of_the_clock() {
    let lab = Lab::new();
    run(&lab, &[LATENCY]);
    let records = lab.records("run");
    let count = |name: &str, arm: &str| -> u64 {
        let series = measured(&records[0]).series.iter();
        let ours = series.filter(|series| series.name == name && series.arm == arm);
        ours.map(|series| {
            let Data::Histogram(text) = &series.data else { panic!("{:?}", series.data) };
            let histogram = latency::decode(text).unwrap();
            assert!(histogram.equivalent(histogram.min(), 1000));
            assert!(histogram.equivalent(histogram.max(), 1000));
            histogram.len()
        })
        .sum()
    };
    // 1024 pages in two page-table pages, two repetitions.
    assert_eq!(count("fault", "pagelab"), 2 * 1022);
    assert_eq!(count("fault-pagetable", "pagelab"), 2 * 2);
    assert_eq!(count("fault", "control"), 2 * 1024);
}

#[test]
fn a_scripted_run_is_resumed_with_the_script() {
    let lab = Lab::new();
    run(&lab, &[THROUGHPUT, LATENCY]);
    let lines = lab.lines("run");
    until("a run from which the host takes no memory", || {
        fs::write(lab.path("run/journal.jsonl"), lines[..2].concat()).unwrap();
        lab.pagelab(&["resume", "run"]).exits(0).complains(&["1 of 2 cases are done, 1 are left"]);
        (!has_cold_memory(&lab)).then_some(())
    });
    let records = lab.records("run");
    assert_eq!(records[1].nature, Nature::Simulated);
    insta::assert_snapshot!("record_of_latency", text(&records[1]));
}
