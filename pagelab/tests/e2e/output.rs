//! Where what goes: results to stdout, the rest to stderr, runs into their directory.

use std::{
    fs,
    process::{Command, Stdio},
};

use crate::support::{Lab, binary, skip};

const CASE: &str = "fault/latency page=4k size=1m rounds=2";

#[test]
fn stdout_holds_results_only_and_stderr_the_progress() {
    let lab = Lab::new();
    let ended = lab.measure("run", &[CASE]);
    ended.exits(0).complains(&["[1/1] fault/latency", ": measured", "report: run/report.html"]);
    assert!(!ended.stdout.contains("[1/1]") && !ended.stdout.contains("report: "));
    let report = lab.pagelab(&["report", "run"]);
    assert_eq!(report.exits(0).stdout, ended.stdout, "what a run prints is its report");
    assert_eq!(report.stderr, "");
}

#[test]
fn quiet_leaves_the_progress_out_and_the_results_in() {
    let lab = Lab::new();
    let suite = lab.suite(&[CASE]);
    let ended = lab.pagelab(&["run", "--suite", &suite, "--quiet", "-o", "run"]);
    ended.exits(0).shows(&["1 valid"]);
    assert!(!ended.stderr.contains("[1/1]"), "{}", ended.stderr);
}

#[test]
fn a_run_goes_into_a_directory_of_its_own_when_none_is_named() {
    let lab = Lab::new();
    let suite = lab.suite(&[CASE]);
    for _ in 0..2 {
        lab.pagelab(&["run", "--suite", &suite, "-q"]).exits(0);
    }
    let runs: Vec<_> = fs::read_dir(lab.path("pagelab-runs")).unwrap().flatten().collect();
    assert_eq!(runs.len(), 2, "a second run never writes into the first");
    for run in runs {
        let name = run.file_name().into_string().unwrap();
        assert!(name.starts_with("20") && name.contains("Z-"), "{name}");
        let mut files: Vec<_> =
            fs::read_dir(run.path()).unwrap().flatten().map(|file| file.file_name()).collect();
        files.sort();
        assert_eq!(files, ["journal.jsonl", "report.html"]);
    }
}

#[test]
fn a_grid_brings_the_limits_of_the_machine_along() {
    let lab = Lab::new();
    let words = ["run", "fault/latency", "--page", "4k", "--size", "1m,2m", "--rounds", "2"];
    let few = ["--forks", "1", "--budget", "0.01", "--time-limit", "600", "-q", "-o", "run"];
    lab.pagelab(&[&words[..], &few].concat()).exits(0).shows(&["16 valid"]);
    let records = lab.records("run");
    let limits = records.iter().filter(|record| record.workload.starts_with("limit/")).count();
    assert_eq!((limits, records.len()), (14, 16));
}

#[test]
fn a_dry_run_shows_the_cases_and_writes_nothing() {
    let lab = Lab::new();
    let dry = lab.pagelab(&[
        "run",
        "fault/throughput",
        "--page",
        "4k",
        "--order",
        "ascending,random",
        "--size",
        "8m",
        "--dry-run",
        "-o",
        "run",
    ]);
    dry.exits(0).shows(&[
        "fault/throughput kind=write page=4k size=8m",
        "fault/throughput kind=write page=4k order=random size=8m",
        "16 cases, about",
        "of memory at once",
        "no setting of this machine would be changed",
    ]);
    lab.pagelab(&["run", "--dry-run"]).exits(0).shows(&["limit/clear level=dram", "cases, about"]);
    assert_eq!(fs::read_dir(lab.path(".")).unwrap().count(), 0);
}

/// Runs a command whose stdout nobody reads any more.
#[track_caller]
fn survives_a_closed_pipe(lab: &Lab, words: &[&str]) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(binary());
    let command = command.args(words).current_dir(lab.path(".")).stdout(writer);
    let output = command.stderr(Stdio::piped()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {stderr}");
    assert!(!stderr.contains("panicked") && !stderr.contains("error"), "{words:?}: {stderr}");
}

#[test]
fn a_reader_that_goes_away_ends_the_output_and_nothing_else() {
    let lab = Lab::new();
    let suite = lab.suite(&[CASE]);
    survives_a_closed_pipe(&lab, &["run", "--suite", &suite, "-o", "run"]);
    assert_eq!(lab.records("run").len(), 1, "the run was finished all the same");
    for words in [
        &["list"][..],
        &["list", "fault/latency"],
        &["--help"],
        &["run", "fault/latency", "--help"],
        &["doctor"],
        &["completions", "bash"],
        &["run", "--dry-run"],
        &["report", "run"],
        &["report", "run", "--format", "html"],
        &["report", "run", "--format", "json"],
    ] {
        survives_a_closed_pipe(&lab, words);
    }
}

#[test]
fn the_first_line_can_be_had_alone() {
    let lab = Lab::new();
    lab.measure("run", &[CASE]).exits(0);
    let mut head = assert_cmd::Command::new("sh");
    head.args(["-c", "{ \"$0\" report run --format html; echo $? >&2; } | head -1"]).arg(binary());
    let ended = lab.ended(&mut head);
    assert_eq!((ended.stdout.lines().count(), ended.stderr.trim()), (1, "0"));
}

const ESCAPE: char = '\u{1b}';

#[test]
fn there_are_no_colours_where_stdout_is_no_terminal() {
    let lab = Lab::new();
    let ended = lab.measure("run", &[&format!("{CASE} lie=present")]);
    assert!(!ended.exits(6).stdout.contains(ESCAPE) && !ended.stderr.contains(ESCAPE));
}

/// What `report` draws on a terminal, under these settings of the environment.
fn on_a_terminal(lab: &Lab, settings: &str) -> Option<String> {
    let mut script = assert_cmd::Command::new("script");
    let report = format!("env {settings} {} report run", binary().display());
    script.args(["-qec", &report, "/dev/null"]).current_dir(lab.path("."));
    if let Ok(output) = script.output() {
        return Some(String::from_utf8(output.stdout).unwrap());
    }
    skip("there is no `script` to make a terminal with", "install util-linux (bsdutils)");
    None
}

#[test]
fn colours_on_a_terminal_can_be_turned_off() {
    let lab = Lab::new();
    lab.measure("run", &[&format!("{CASE} lie=present")]).exits(6);
    let Some(coloured) = on_a_terminal(&lab, "-u NO_COLOR TERM=xterm") else { return };
    assert!(coloured.contains("INVALID") && coloured.contains(ESCAPE), "{coloured}");
    let plain = on_a_terminal(&lab, "NO_COLOR=1 TERM=xterm").unwrap();
    assert!(plain.contains("INVALID") && !plain.contains(ESCAPE), "{plain}");
    let dumb = on_a_terminal(&lab, "-u NO_COLOR TERM=dumb").unwrap();
    assert!(!dumb.contains(ESCAPE), "{dumb}");
}
