//! Numbers that were published, and the loop's own promise, seen from outside.

use std::{collections::BTreeMap, fs};

use crate::support::{Lab, Machine, binary, is_skipped, measured, skip};

/// Faults of twenty rounds over 64 MiB, as counted by the kernel.
#[track_caller]
fn faults(case: &str) -> Option<u64> {
    // Ragged ends are base pages only while small folios are off.
    let _machine = case.contains("page=2m").then(Machine::alone);
    let lab = Lab::new();
    let case = format!("fault/throughput touch=8@4k size=64m rounds=20 {case}");
    let ended = lab.measure_huge("run", &[&case], 0);
    let records = lab.records("run");
    if is_skipped(&records[0]) {
        return None;
    }
    ended.exits(0);
    let measured = measured(&records[0]);
    assert_eq!(measured.counters["repetitions"], 20);
    Some(measured.counters["faults"])
}

#[test]
fn the_published_faults_of_ragged_huge_pages_are_reproduced() {
    // micro_pagefault, 10 GiB: 20 × (5119 + 512) = 112,620. One page less than fits, two halves.
    if let Some(faults) = faults("page=2m align=ragged") {
        assert_eq!(faults, 20 * (31 + 512));
    }
}

#[test]
fn aligned_huge_pages_take_one_fault_each() {
    if let Some(faults) = faults("page=2m align=aligned") {
        assert_eq!(faults, 20 * 32);
    }
}

#[test]
fn base_pages_take_one_fault_each() {
    assert_eq!(faults("page=4k"), Some(20 * 16384));
}

/// The system calls of a latency case, in order, as strace saw them; none where it cannot see.
fn calls_of_a_case(size: &str) -> Option<Vec<String>> {
    let lab = Lab::new();
    let suite = lab.suite(&[&format!("fault/latency page=4k rounds=2 size={size}")]);
    let mut strace = assert_cmd::Command::new("strace");
    strace.args(["-f", "-qq", "-s", "4096", "-o", "trace"]).arg(binary());
    strace.args(["run", "--suite", &suite, "-o", "run"]).current_dir(lab.path("."));
    let Ok(output) = strace.output() else {
        skip("strace is not here", "apt-get install strace");
        return None;
    };
    let trace = fs::read_to_string(lab.path("trace")).unwrap_or_default();
    if !trace.contains("execve(") {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        skip(&format!("strace may not trace here ({})", said.trim()), "allow ptrace");
        return None;
    }
    assert!(measured(&lab.records("run")[0]).is_valid(), "it is valid under strace as well");
    let mut calls: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut case = None;
    for line in trace.lines() {
        let (pid, call) = line.split_once(' ').unwrap();
        let call = call.trim_start();
        if call.starts_with("execve(") && call.contains("\"__case\"") {
            case = Some(pid);
        }
        if !call.starts_with("<...") {
            let name = call.split('(').next().unwrap_or(call);
            calls.entry(pid).or_default().push(name.to_owned());
        }
    }
    calls.remove(case.expect("a case was started"))
}

#[test]
fn the_measured_loop_makes_no_system_call() {
    let mut totals = Vec::new();
    for size in ["4m", "32m"] {
        let Some(calls) = calls_of_a_case(size) else { return };
        // The fault counter (getrusage) is read right before and right after each loop: what the
        // loop calls would stand between the two.
        let readings: Vec<usize> =
            (0..calls.len()).filter(|at| calls[*at] == "getrusage").collect();
        let (pairs, rest) = readings.as_chunks::<2>();
        assert!(rest.is_empty(), "readings come in pairs");
        // Two arms, a warm-up and two repetitions each; more where the host took memory back.
        assert!(pairs.len() >= 6, "{} loops", pairs.len());
        for [before, after] in pairs {
            assert_eq!(*after, before + 1, "inside the loop: {:?}", &calls[*before..*after]);
        }
        totals.push((calls.len(), pairs.len()));
    }
    // 7168 more samples in each of six loops; what grows is the reading of the page table.
    let [(few, loops), (many, more_loops)] = totals[..] else { unreachable!("two sizes") };
    if loops == more_loops {
        assert!(many.abs_diff(few) < 200, "{few} calls for 4m, {many} for 32m");
    }
}
