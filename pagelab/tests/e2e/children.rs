//! A case whose process dies, hangs or is killed for memory: a record says so, and the run goes on.

use std::process::Command;

use pagelab_record::{Outcome, Record};

use crate::support::{Ended, Lab, Live, MemoryGroup, failure, measured, signal, state, until};

/// More rounds than any test waits for.
const ENDLESS: &str = "fault/throughput size=64m rounds=1000000";
const SHORT: &str = "fault/throughput size=4m rounds=2";

/// A run of an endless case and a short one.
fn endless_then_short(lab: &Lab) -> Live {
    let suite = lab.suite(&[ENDLESS, SHORT]);
    Live::start(lab, &["run", "--suite", &suite, "-o", "run"])
}

/// The first case failed for this reason, the second was measured all the same.
#[track_caller]
fn failed_and_went_on(lab: &Lab, ended: &Ended, reason: &str) {
    ended.exits(1).complains(&["FAILED", reason]).shows(&[reason]);
    let records = lab.records("run");
    assert_eq!(records.len(), 2);
    assert!(failure(&records[0]).contains(reason), "{}", failure(&records[0]));
    assert!(measured(&records[1]).is_valid());
    lab.pagelab(&["report", "run"]).exits(0).shows(&[reason]);
}

#[track_caller]
fn a_death_by(name: &str) {
    let lab = Lab::new();
    let mut run = endless_then_short(&lab);
    let case = run.case();
    // Sent until it dies: a Rust program's own handler lets the first SIGSEGV or SIGBUS pass, and
    // counts on the faulting instruction to raise it again.
    until("the case to die", || {
        signal(name, case);
        matches!(state(case), None | Some('Z')).then_some(())
    });
    failed_and_went_on(&lab, &run.end(), &format!("killed by SIG{name}"));
}

#[test]
fn a_segmentation_fault_is_a_failed_record_and_the_run_goes_on() {
    a_death_by("SEGV");
}

#[test]
fn a_bus_error_is_a_failed_record_and_the_run_goes_on() {
    a_death_by("BUS");
}

#[test]
fn a_killed_case_is_a_failed_record_and_the_run_goes_on() {
    a_death_by("KILL");
}

#[test]
fn a_case_that_hangs_is_ended_at_the_time_limit_and_the_run_goes_on() {
    for limit in ["10", "60", "400"] {
        let lab = Lab::new();
        let suite = lab.suite(&[ENDLESS, SHORT]);
        let words = ["run", "--suite", &suite, "--time-limit", limit, "-o", "run"];
        let run = Live::start(&lab, &words);
        let mut is_stopped = false;
        until("the first case to be stopped, or its record", || {
            let is_over = lab.lines("run").len() > 1;
            let Some(case) = run.find_case().filter(|_| !is_over) else {
                return is_over.then_some(());
            };
            signal("STOP", case);
            is_stopped = lab.lines("run").len() == 1;
            if !is_stopped {
                // It was the other one.
                signal("CONT", case);
            }
            Some(())
        });
        let ended = run.end();
        // The other case has as long, which is too little where it waits for a processor.
        let hung = |record: &Record| match &record.outcome {
            Outcome::Failed { reason } => reason.starts_with("hung"),
            _ => false,
        };
        if is_stopped && !hung(&lab.records("run")[1]) {
            return failed_and_went_on(&lab, &ended, &format!("hung: no answer within {limit} s"));
        }
    }
    panic!("the case after the one that hangs has no answer within 400 s");
}

#[test]
fn a_failed_case_does_not_hide_behind_an_invalid_or_a_skipped_one() {
    let lab = Lab::new();
    let invalid = format!("{SHORT} lie=present");
    let suite = lab.suite(&[&invalid, ENDLESS, SHORT]);
    let mut run = Live::start(&lab, &["run", "--suite", &suite, "-o", "run"]);
    until("the first record", || (lab.lines("run").len() == 2).then_some(()));
    let case = run.case();
    signal("KILL", case);
    // 1 comes before 6 in the order of the manual.
    run.end().exits(1);
    let records = lab.records("run");
    assert!(!measured(&records[0]).is_valid());
    assert!(matches!(records[1].outcome, Outcome::Failed { .. }));
}

#[test]
fn a_case_that_is_killed_for_memory_says_so() {
    let Some(group) = MemoryGroup::of(32 << 20) else { return };
    let lab = Lab::new();
    let suite = lab.suite(&["fault/throughput size=256m rounds=1000000", SHORT]);
    let mut run = Live::start(&lab, &["run", "--suite", &suite, "-o", "run"]);
    // What it has already is charged elsewhere; the next round is more than the group may have.
    let case = run.case();
    group.take(case);
    failed_and_went_on(&lab, &run.end(), "out of memory (choose a smaller --size)");
}

#[test]
fn a_copied_program_runs_while_other_threads_start_programs() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let (lab, done) = (Lab::new(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    Command::new("true").status().unwrap();
                }
            });
        }
        // Where a thread of ours writes the copy, one start in ten of these is "text file busy".
        let failed =
            (0..100).find_map(|_| Command::new(lab.program("/bin/true", "copy")).status().err());
        done.store(true, Ordering::Relaxed);
        assert!(failed.is_none(), "{failed:?}");
    });
}
