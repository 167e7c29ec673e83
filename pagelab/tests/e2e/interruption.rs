//! A run that is interrupted or killed: what was done is there, and is never done again.

use std::collections::BTreeSet;

use pagelab_record::Record;

use crate::support::{Lab, Live, binary, measured, signal, until};

/// Five different cases, each long enough to be stopped in the middle.
const CASES: &[&str] = &[
    "limit/timer budget=0.001",
    "fault/throughput page=4k size=16m rounds=20",
    "fault/throughput page=4k size=16m rounds=20 order=random",
    "fault/latency page=4k size=8m rounds=20",
    "fault/latency page=4k size=8m rounds=20 kind=read",
];

fn start(lab: &Lab, quiet: &str) -> Live {
    let suite = suite(lab);
    Live::start(lab, &["run", "--suite", &suite, quiet, "-o", "run"])
}

/// The suite of [`CASES`]; a budget is a number, not a parameter.
fn suite(lab: &Lab) -> String {
    lab.suite(CASES);
    let text = std::fs::read_to_string(lab.path("suite.toml")).unwrap();
    lab.file("suite.toml", text.replace("budget = \"0.001\"", "budget = 0.001"));
    "./suite.toml".to_owned()
}

/// A run that is stopped in the middle of a case, after this many records; with it, that case.
fn halted_after(lab: &Lab, records: usize) -> (Live, u32) {
    Live::halted(|| {
        let _ = std::fs::remove_dir_all(lab.path("run"));
        let mut run = start(lab, "-q");
        wait_for_records(lab, &mut run, records);
        run
    })
}

/// Waits until the journal has the header and this many records.
fn wait_for_records(lab: &Lab, run: &mut Live, records: usize) {
    until("records", || {
        // In this order: a run that has ended has written all it will.
        let is_running = run.is_running();
        let is_enough = lab.lines("run").len() > records;
        assert!(is_running || is_enough, "the run ended before {records} records");
        is_enough.then_some(())
    });
}

/// Every planned case once, in the order of the plan, all of them valid.
#[track_caller]
fn is_complete(lab: &Lab) {
    let records = lab.records("run");
    assert_eq!(records.len(), CASES.len());
    let distinct: BTreeSet<String> = records.iter().map(key).collect();
    assert_eq!(distinct.len(), CASES.len(), "a case was measured twice");
    for record in &records {
        assert!(measured(record).is_valid(), "{}", key(record));
    }
}

fn key(record: &Record) -> String {
    format!("{} {}", record.workload, record.case)
}

/// Resumes and asserts that what was there is there still, byte for byte.
#[track_caller]
fn resumes(lab: &Lab) {
    let before = lab.lines("run");
    let done = before.len() - 1;
    let counted = format!("{done} of 5 cases are done, {} are left", 5 - done);
    lab.pagelab(&["resume", "run"]).exits(0).complains(&[&counted]).shows(&["5 valid"]);
    let after = lab.lines("run");
    assert_eq!(after[..before.len()], before, "a finished record was written again");
    is_complete(lab);
}

#[test]
fn what_was_done_before_an_interrupt_is_saved_reported_and_continued() {
    let lab = Lab::new();
    let (run, _) = halted_after(&lab, 1);
    let done = lab.lines("run").len() - 1;
    signal("INT", run.pid());
    let ended = run.end();
    ended.exits(130).complains(&["interrupted; go on with: pagelab resume run"]);
    ended.shows(&[&format!("{done} valid")]);
    assert_eq!(lab.records("run").len(), done, "a case that was interrupted leaves nothing");
    assert!(lab.path("run/report.html").exists());
    resumes(&lab);
}

#[test]
fn an_interrupt_ends_the_process_of_the_case_too() {
    let lab = Lab::new();
    let (run, case) = halted_after(&lab, 0);
    signal("INT", run.pid());
    run.end().exits(130);
    until("the case to be gone", || {
        matches!(crate::support::state(case), None | Some('Z')).then_some(())
    });
}

/// Kills the whole run when it has this many records (or at once), then reports and resumes it.
#[track_caller]
fn survives_being_killed_after(records: usize, mid_case: bool) {
    let lab = Lab::new();
    let run = if mid_case {
        halted_after(&lab, records).0
    } else {
        let mut run = start(&lab, "-q");
        wait_for_records(&lab, &mut run, records);
        run
    };
    signal("KILL", run.pid());
    // On a busy machine it may have been faster than the kill, which is then one moment more.
    assert!(matches!(run.end().code, None | Some(0)));
    let done = lab.lines("run").len() - 1;
    let report = lab.pagelab(&["report", "run"]);
    report.exits(0).shows(&[&crate::support::done(done, 5)]);
    // A write may be cut short by the kill; then, and only then, there is something to say.
    let is_torn = !std::fs::read(lab.path("run/journal.jsonl")).unwrap().ends_with(b"\n");
    assert_eq!(report.stderr.contains("cannot be read"), is_torn, "{}", report.stderr);
    resumes(&lab);
}

#[test]
fn a_run_killed_before_its_first_record_can_be_continued() {
    survives_being_killed_after(0, false);
}

#[test]
fn a_run_killed_between_two_cases_can_be_continued() {
    survives_being_killed_after(1, false);
}

#[test]
fn a_run_killed_in_the_middle_of_a_case_can_be_continued() {
    survives_being_killed_after(2, true);
}

#[test]
fn a_run_killed_in_its_last_cases_can_be_continued() {
    survives_being_killed_after(4, false);
}

#[test]
fn a_run_that_is_killed_again_and_again_gets_there() {
    let lab = Lab::new();
    let mut run = start(&lab, "-q");
    for records in 0..CASES.len() {
        wait_for_records(&lab, &mut run, records);
        signal("KILL", run.pid());
        run.end();
        let before = lab.lines("run");
        run = Live::start(&lab, &["resume", "-q", "run"]);
        wait_for_records(&lab, &mut run, (records + 1).min(CASES.len()));
        assert_eq!(lab.lines("run")[..before.len()], before);
    }
    run.end().exits(0);
    is_complete(&lab);
}

#[test]
fn a_run_that_is_complete_is_resumed_without_measuring() {
    let lab = Lab::new();
    lab.measure("run", &["fault/latency page=4k size=4m rounds=2"]).exits(0);
    let before = lab.lines("run");
    let again = lab.pagelab(&["resume", "run"]);
    again.exits(0).complains(&["1 of 1 cases are done, 0 are left"]);
    assert!(!again.stderr.contains("[1/"), "{}", again.stderr);
    assert_eq!(lab.lines("run"), before);
}

#[test]
fn a_record_is_not_said_to_be_finished_before_it_is_in_the_journal() {
    let lab = Lab::new();
    let suite = lab.suite(&["fault/latency page=4k size=1m rounds=2"]);
    // Room for the header and a part of the record.
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" run --suite \"$1\" -o run";
    let mut command = assert_cmd::Command::new("sh");
    let ended = lab.ended(command.args(["-c", script]).arg(binary()).arg(suite));
    assert_ne!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(lab.lines("run").len(), 1, "only the header fits");
    assert!(!ended.stderr.contains("[1/1]"), "{}", ended.stderr);
}

#[test]
fn a_run_goes_on_with_another_kernel_and_says_so() {
    let lab = Lab::new();
    let suite = lab.suite(&["limit/syscall", "fault/latency page=4k size=1m rounds=2"]);
    lab.pagelab(&["run", "--suite", &suite, "-o", "run"]).exits(0);
    let journal = lab.path("run/journal.jsonl");
    let whole = std::fs::read_to_string(&journal).unwrap();
    let mut lines = whole.lines().take(2);
    let header = lines.next().unwrap();
    let mut first: Record = serde_json::from_str(lines.next().unwrap()).unwrap();
    let now = first.boot.clone();
    first.boot = "before".into();
    let keep = |first: &Record| {
        let first = serde_json::to_string(first).unwrap();
        std::fs::write(&journal, format!("{header}\n{first}\n")).unwrap();
    };
    keep(&first);
    let ended = lab.pagelab(&["resume", "run"]);
    assert!(ended.exits(0).stderr.contains("this is another boot than"), "{}", ended.stderr);
    first.host.identity.insert("kernel_release".into(), "5.4.0".into());
    keep(&first);
    let ended = lab.pagelab(&["resume", "run"]);
    assert!(ended.exits(0).stderr.contains("in place of 5.4.0"), "{}", ended.stderr);
    let boots: Vec<String> = lab.records("run").into_iter().map(|record| record.boot).collect();
    assert_eq!(boots, ["before".to_owned(), now]);
}

#[test]
fn a_run_in_turns_goes_on_with_the_processes_that_are_left() {
    let lab = Lab::new();
    let case = |page: &str| format!("[[case]]\nworkload = 'fault/latency'\nsize = '8m'\n{page}\n");
    let text = ["name = 'turns'\nsummary = 'x'\nforks = 4\nturns = 2\nbudget = 4\n".to_owned()]
        .into_iter()
        .chain(["kind = 'read'", "kind = 'write'"].map(case));
    lab.file("turns.toml", text.collect::<String>());
    let (run, _) = Live::halted(|| {
        let _ = std::fs::remove_dir_all(lab.path("run"));
        Live::start(&lab, &["run", "-q", "--suite", "./turns.toml", "-o", "run"])
    });
    signal("INT", run.pid());
    run.end().exits(130);
    lab.pagelab(&["resume", "run"]).exits(0).shows(&["2 valid"]);
    let records = lab.records("run");
    for record in &records[records.len() - 2..] {
        let processes: BTreeSet<u32> =
            measured(record).series.iter().map(|series| series.process).collect();
        assert_eq!(processes, (0..4).collect(), "{}", key(record));
        let first = |series: &&pagelab_record::Series| series.repetition == 0;
        let arms = measured(record).series.iter().filter(first).count();
        assert_eq!(arms % 4, 0, "{}: each process once", key(record));
    }
}
