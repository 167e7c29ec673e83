//! `pagelab try` of programs that a shell would run, and that a measurement might not expect.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    process::Command,
};

use pagelab_record::vocabulary::tried;

use super::{ALONE, goes_on, rungs, seen, values};
use crate::{
    edges::SmallDisk,
    explain::compiled,
    support::{Lab, binary, failure, is_root, is_skipped, lacked, measured, skip},
};

const NOBODY: u32 = 65_534;

#[test]
fn a_daemon_outlives_its_starter_but_not_its_run() {
    let lab = Lab::new();
    let daemon = "echo $$ >> pids; touch up; exec sleep 1000 <&- >&- 2>&-";
    let script =
        format!("rm -f up; setsid sh -c '{daemon}' & until test -f up; do sleep 0.01; done");
    super::tried(&lab, "malloc-thp", &["sh", "-c", &script]).exits(0);
    assert!(measured(&rungs(&lab, "run")[tried::PLAIN]).counters[tried::LEFT] >= 2);
    let pids = fs::read_to_string(lab.path("pids")).unwrap();
    assert!(pids.lines().count() >= 4, "{pids}");
    let mut pids = pids.lines().map(|pid| pid.parse().unwrap());
    assert!(pids.all(|pid| !goes_on(&lab, pid)));
}

#[test]
fn a_program_that_closes_what_it_was_given_or_ends_at_once_is_timed() {
    let lab = Lab::new();
    for script in ["exec 0<&- 1>&- 2>&- 3>&- 4>&-; exec sleep 0.05", "exit 0"] {
        super::tried(&lab, "malloc-thp", &["sh", "-c", script]).exits(0).shows(&["as-set-up"]);
        let times = values(&rungs(&lab, "run")[tried::PLAIN], tried::ELAPSED);
        assert!(times.len() == 2 && times.iter().all(|ns| *ns > 0), "{times:?}");
        fs::remove_dir_all(lab.path("run")).unwrap();
    }
}

#[test]
fn a_program_that_fails_every_time_is_said_to_fail() {
    let lab = Lab::new();
    let script = "echo run >> runs; test -t 1 || { echo this needs a terminal >&2; exit 5; }";
    let failed = super::tried(&lab, "malloc-thp", &["sh", "-c", script]);
    let why = "as it is set up, the program exited with 5 both times: this needs a terminal";
    failed.exits(2).complains(&[why, "--exit 5"]);
    assert_eq!(fs::read_to_string(lab.path("runs")).unwrap().lines().count(), 2);
    fs::remove_dir_all(lab.path("run")).unwrap();
    let killed = super::tried(&lab, "malloc-thp", &["sh", "-c", "kill -SEGV $$"]);
    killed.exits(2).complains(&["the program was ended by signal 11 both times"]);
    fs::remove_dir_all(lab.path("run")).unwrap();
    // It may be what it does when all is well.
    let words = ["try", "-q", ALONE, "-o", "run", "--rounds", "2", "--exit", "5", "--rung"];
    lab.pagelab(&[&words[..], &["malloc-thp", "--", "sh", "-c", script]].concat()).exits(0);
    assert_eq!(measured(&rungs(&lab, "run")[tried::PLAIN]).counters[tried::EXIT], 5);
    let said = fs::read_to_string(lab.path("run/plain.stderr")).unwrap();
    assert_eq!(said, "this needs a terminal\n");
}

#[test]
fn what_a_program_says_anew_each_time_says_nothing_of_the_rungs() {
    let lab = Lab::new();
    let script = "cat /proc/sys/kernel/random/uuid";
    let ended = super::tried(&lab, "malloc-thp", &["sh", "-c", script]);
    ended.exits(0).shows(&["differs from run to run"]);
    assert_eq!(measured(&rungs(&lab, "run")[tried::PLAIN]).counters[tried::OUTPUT_STEADY], 0);
}

#[test]
fn a_program_that_does_not_end_or_say_the_same_each_time_is_said_to_vary() {
    let lab = Lab::new();
    // Does something else in the runs of these numbers, from 0 on, of those on this rung alone.
    let run = |flag: &str, rung: &str, runs: &str, other: &str| {
        let count = "n=$(cat n || echo 0); echo $((n + 1)) > n";
        let script = format!(
            "case $GLIBC_TUNABLES in *hugetlb=1*) of=malloc-thp;; *hugetlb*) of=plain;; \
             *) of=as-set-up;; esac; \
             test $of = {rung} || exit 0; {count}; case $n in {runs}) {other};; esac"
        );
        let words = ["try", "-q", ALONE, "-o", "run", "--rounds", "2", "--rung", "malloc-thp"];
        let ended = lab.pagelab(&[&words[..], &[flag, "--", "sh", "-c", &script]].concat());
        let rungs = lab.path("run/journal.jsonl").exists().then(|| rungs(&lab, "run"));
        let _ = (fs::remove_dir_all(lab.path("run")), fs::remove_file(lab.path("n")));
        (ended, rungs.unwrap_or_default())
    };
    // The first run, and one of each round.
    for runs in ["0", "1", "2", "[12]"] {
        let why = ["the program varies: it exited with", "no run can be compared"];
        run("--exit=0", "as-set-up", runs, "exit 1").0.exits(2).complains(&why);
    }
    let (ended, _) = run("--same-output", "as-set-up", "[12]", "echo other");
    ended.exits(2).complains(&["the program varies: its output is not that of its first run"]);
    // What ends so on one rung alone is that rung's.
    let (ended, rungs) = run("--exit=0", "malloc-thp", "0", "exit 1");
    if is_skipped(&rungs["malloc-thp"]) {
        return skip("sh is not of glibc, or nobody may have huge pages", "a glibc with tunables");
    }
    ended.exits(1);
    let why = failure(&rungs["malloc-thp"]);
    assert!(why.contains("exited with 1; run again at once it exited with 0"), "{why}");
}

#[test]
fn an_environment_that_was_cleaned_is_why_the_pages_did_not_come() {
    let lab = Lab::new();
    let Some(_) = compiled(&lab, "random") else { return };
    let words = ["env", "-i", "./random", "64", "20000000"];
    let run = || super::tried(&lab, "malloc-thp", &words);
    let (ended, rungs) = seen(&lab, &["malloc-thp"], run);
    if is_skipped(&rungs["malloc-thp"]) {
        return skip("malloc has no tunable, or nobody may have huge pages here", "glibc 2.35");
    }
    ended.exits(0);
    assert!(measured(&rungs["malloc-thp"]).counters[tried::STRIPPED] > 0);
    ended.shows(&["did not take", "did not reach its processes"]);
}

#[test]
fn a_setuid_program_ignores_tunables_and_is_told_so() {
    if !is_root() {
        return skip("a file cannot be given to another user", "run the tests as root");
    }
    let lab = Lab::new();
    let program = lab.path("other");
    assert!(Command::new("cp").args(["/bin/sleep"]).arg(&program).status().unwrap().success());
    chown(&program, Some(NOBODY), Some(NOBODY)).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    super::tried(&lab, "malloc-thp", &["./other", "0.05"]).exits(0);
    let rungs = rungs(&lab, "run");
    lacked(&rungs["malloc-thp"]);
    assert_eq!(values(&rungs[tried::PLAIN], tried::ELAPSED).len(), 2);
}

#[test]
fn a_program_of_32_bits_is_tried_as_far_as_it_can_be() {
    let lab = Lab::new();
    let source = lab.file("small.c", "int main(void) { return 0; }\n");
    let mut cc = Command::new("cc");
    let built = cc.args(["-m32", "-nostdlib", "-static", "-o"]).arg(lab.path("small"));
    let start = "void _start(void) { __asm__(\"movl $1,%eax; xorl %ebx,%ebx; int $0x80\"); }\n";
    fs::write(&source, start).unwrap();
    if !built.arg(&source).status().is_ok_and(|status| status.success()) {
        return skip("nothing of 32 bits can be built here", "apt-get install gcc");
    }
    if !Command::new(lab.path("small")).status().is_ok_and(|status| status.success()) {
        return skip("this kernel runs nothing of 32 bits", "CONFIG_IA32_EMULATION");
    }
    super::tried(&lab, "malloc-thp", &["./small"]).exits(0);
    lacked(&rungs(&lab, "run")["malloc-thp"]);
}

#[test]
fn a_server_that_ignores_being_asked_is_killed_after_its_load() {
    let lab = Lab::new();
    let server = "trap '' TERM; echo ready; while :; do sleep 0.1; done";
    super::served(&lab, "echo rate 1", server).exits(0);
    assert_eq!(measured(&rungs(&lab, "run")[tried::PLAIN]).counters[tried::EXIT], 256 + 9);
}

#[test]
fn a_program_that_fills_the_disk_is_told_and_leaves_a_readable_run() {
    let lab = Lab::new();
    let Some(_disk) = SmallDisk::mount(&lab, 4096) else { return };
    let script = "head -c 16m /dev/zero || exit 7";
    let flags =
        ["try", "--wait", "-q", "-o", "disk/run", "--rounds", "2", "--rung", "malloc-thp", "--"];
    let ended = lab.pagelab(&[&flags[..], &["sh", "-c", script]].concat());
    assert!(matches!(ended.code, Some(2 | 3)), "{ended:?}");
    lab.pagelab(&["show", "disk/run"]).exits(0);
}

#[test]
fn whoever_is_not_root_is_offered_what_needs_nothing() {
    let lab = Lab::new();
    let home = lab.path(".");
    let mut command = Command::new(if is_root() { "setpriv".into() } else { binary() });
    if is_root() {
        chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
        fs::set_permissions(&home, fs::Permissions::from_mode(0o755)).unwrap();
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(binary());
    }
    let words = ["try", "-q", ALONE, "-o", "run", "--rounds", "2", "--rung"];
    let ended = command
        .args(words)
        .arg("malloc-thp,thp-always")
        .args(["--", "sleep", "0.05"])
        .current_dir(&home)
        .output();
    let ended = ended.unwrap();
    if ended.status.code().is_none_or(|code| code > 3) {
        return skip("no program of ours can be another user's here", "apt-get install util-linux");
    }
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(0), "{said}");
    let rungs = rungs(&lab, "run");
    lacked(&rungs["thp-always"]);
    assert_eq!(values(&rungs[tried::PLAIN], tried::ELAPSED).len(), 2);
}
