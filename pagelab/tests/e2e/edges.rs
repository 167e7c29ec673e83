//! Files that are not what they should be, disks that are full, programs that are replaced.

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

use crate::support::{Lab, Live, binary, is_root, measured, signal, skip};

const CASE: &str = "fault/latency page=4k size=1m rounds=2";

/// A disk of a few KiB, unmounted with the test.
pub(crate) struct SmallDisk<'l>(&'l Lab);

impl<'l> SmallDisk<'l> {
    /// `None` where none can be made.
    pub(crate) fn mount(lab: &'l Lab, kib: u32) -> Option<Self> {
        fs::create_dir(lab.path("disk")).unwrap();
        let size = format!("size={kib}k");
        let words = ["-t", "tmpfs", "-o", &size, "pagelab-test"];
        let mount = Command::new("mount").args(words).arg(lab.path("disk")).status();
        if !is_root() || !mount.is_ok_and(|status| status.success()) {
            skip("a small disk cannot be mounted", "run the tests as root");
            return None;
        }
        Some(Self(lab))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path("disk")).status();
    }
}

#[test]
fn a_program_that_is_replaced_while_it_measures_measures_on() {
    let lab = Lab::new();
    let copy = lab.path("copy");
    // Another process writes the copy: no child of this one can hold it open for writing.
    assert!(Command::new("cp").arg(binary()).arg(&copy).status().unwrap().success());
    let suite = lab.suite(&[CASE, "fault/latency page=4k size=2m rounds=2"]);
    let (run, case) = Live::halted(|| {
        let _ = fs::remove_dir_all(lab.path("run"));
        Live::start_as(&copy, &lab, &["run", "--suite", &suite, "-o", "run"])
    });
    let other = lab.file("other", "#!/bin/sh\nexit 9\n");
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(other, copy).unwrap();
    signal("CONT", case);
    run.end().exits(0);
    let records = lab.records("run");
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|record| measured(record).is_valid()));
}

#[test]
fn every_reader_has_a_bound_and_names_the_file() {
    let lab = Lab::new();
    assert!(Command::new("mkfifo").arg(lab.path("pipe")).status().unwrap().success());
    File::create(lab.path("sparse")).unwrap().set_len(20 << 30).unwrap();
    let refused = |words: &[&str], named: &[&str]| {
        lab.pagelab(words).exits(2).complains(named);
    };
    let odd = "no regular file";
    refused(&["run", "--suite", "/dev/zero"], &["/dev/zero", odd]);
    refused(&["run", "--suite", "./pipe"], &["./pipe", odd]);
    refused(&["run", "--suite", "./sparse"], &["./sparse", "longer than 1.00 MiB"]);
    refused(&["tier", "simulate", "--scenario", "./pipe"], &["pipe", odd]);
    refused(&["tier", "simulate", "--scenario", "./sparse"], &["sparse", "longer than 1.00 MiB"]);
    refused(&["report", "pipe"], &["pipe", odd]);
    refused(&["report", "/dev/zero"], &["/dev/zero", odd]);
    refused(&["report", "sparse"], &["sparse", "line 1", "longer than 256 MiB"]);
    refused(&["trace", "stats", "pipe"], &["pipe", "must be a regular file"]);
    refused(&["trace", "replay", "fib", "--ops", "10", "--image", "sparse"], &["sparse", "4 GiB"]);
    refused(&["trace", "replay", "fib", "--ops", "10", "--image", "pipe"], &["pipe", "regular"]);
    fs::create_dir(lab.path("odd")).unwrap();
    fs::rename(lab.path("pipe"), lab.path("odd/journal.jsonl")).unwrap();
    refused(&["report", "odd"], &["odd/journal.jsonl", odd]);
    refused(&["resume", "odd"], &["odd/journal.jsonl", odd]);
}

#[test]
fn a_disk_that_fills_up_leaves_whole_records_and_says_how_to_go_on() {
    let lab = Lab::new();
    let Some(disk) = SmallDisk::mount(&lab, 32) else { return };
    let sizes = ["1m", "2m", "4m", "8m"];
    let cases = sizes.map(|size| format!("fault/latency page=4k size={size} rounds=2"));
    let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
    let full = lab.measure("disk/run", &cases);
    let kept = lab.records("disk/run").len();
    assert!(kept < 4, "the disk is too large for this test");
    let safe = format!("the {kept} before it are safe in disk/run");
    full.exits(3).complains(&[&safe, "No space left", "pagelab resume disk/run"]);
    let more = ["-o", "remount,size=8m"];
    assert!(Command::new("mount").args(more).arg(lab.path("disk")).status().unwrap().success());
    let resumed = lab.pagelab(&["resume", "disk/run"]);
    resumed.exits(0).complains(&[&format!("{kept} of 4 cases are done")]);
    assert!(!resumed.stderr.contains("warning"), "no torn line was left: {}", resumed.stderr);
    drop(disk);
}

#[test]
fn what_cannot_be_written_ends_every_command_with_the_same_code() {
    let lab = Lab::new();
    lab.measure("run", &[CASE]).exits(0);
    let full = |words: &[&str], what: &str| {
        let to = |path: &str| File::options().write(true).open(path).unwrap();
        let mut command = Command::new(binary());
        command.args(words).current_dir(lab.path(".")).stdin(Stdio::null());
        let output = command.stdout(to("/dev/full")).stderr(Stdio::piped()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{words:?}: {stderr}");
        assert!(stderr.contains(what) && stderr.contains("No space left"), "{stderr}");
    };
    full(&["list"], "stdout");
    full(&["report", "run"], "stdout");
    full(&["completions", "bash"], "stdout");
    full(&["report", "run", "-o", "/dev/full"], "/dev/full");
    full(&["trace", "synth", "fib", "-o", "/dev/full", "--no-image"], "/dev/full");
    assert!(Path::new("/dev/full").exists());
}

#[test]
fn a_reader_that_has_enough_is_no_mistake() {
    let lab = Lab::new();
    lab.measure("run", &[CASE]).exits(0);
    for words in ["list", "report run", "report run --format html", "completions zsh", "--help"] {
        let script = format!("{{ '{}' {words}; echo $? >&3; }} 3>&2 | :", binary().display());
        let ended = lab.ended(assert_cmd::Command::new("sh").args(["-c", &script]));
        assert_eq!(ended.stderr, "0\n", "{words}");
    }
}

#[test]
fn names_of_others_reach_no_terminal_raw() {
    let lab = Lab::new();
    let name = "\u{1b}[2J\u{202e}x`|";
    let ended = lab.pagelab(&["report", name]);
    ended.exits(2).complains(&["\\u001b[2J\\u202ex`|"]);
    assert!(!ended.stderr.contains('\u{1b}') && !ended.stderr.contains('\u{202e}'));
    lab.measure(name, &[CASE]).exits(0);
    for format in ["terminal", "markdown", "html", "json", "csv"] {
        let report = lab.pagelab(&["report", name, "--format", format]);
        report.exits(0);
        let raw = |c| matches!(c, '\u{1b}' | '\u{202e}');
        assert!(!report.stdout.contains(raw), "{format}: {}", report.stdout);
        assert!(report.stdout.contains("u202ex"), "{format}");
    }
}
