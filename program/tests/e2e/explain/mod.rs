//! `pagelab explain`: programs whose faults are known, and programs that do not end well.

mod callers;
mod captured;
mod cases;
mod disturbed;
mod rights;
mod walks;

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::support::{
    Beside, Ended, Lab, Machine, binary, is_root, let_in, measured, signal, skip, undisturbed,
    until,
};
use pagelab_record::{Measured, Record};

/// A program whose faults are known; none without a C compiler.
fn touch(lab: &Lab) -> Option<PathBuf> {
    compiled(lab, "touch")
}

pub(crate) fn compiled(lab: &Lab, name: &str) -> Option<PathBuf> {
    compiled_with(lab, name, &["-O1", "-pthread", "-fno-omit-frame-pointer"])
}

/// The same, by a compiler with these flags.
pub(crate) fn compiled_with(lab: &Lab, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/programs/{name}.c"));
    let program = lab.path(name);
    let mut cc = Command::new("cc");
    cc.args(flags).arg("-o").arg(&program).arg(source);
    match cc.status() {
        Ok(status) if status.success() => Some(program),
        _ => {
            skip("there is no C compiler", "apt-get install gcc");
            None
        }
    }
}

/// What `explain` recorded of a program.
fn explained(lab: &Lab, run: &str) -> Measured {
    let records: Vec<Record> = lab.records(run);
    assert_eq!(records[0].workload, "explain/program");
    let measured = measured(&records[0]).clone();
    assert!(measured.is_valid(), "{:?}", measured.witness);
    measured
}

/// Explains a program of which every fault is counted; `None` where they are not seen here. Faults
/// that come faster than a busy host reads them are told in brief, and one may be lost where that
/// begins: such a run is repeated.
fn count(
    lab: &Lab,
    run: &str,
    words: &[&str],
    wrong: impl Fn(&Measured) -> Option<String>,
) -> Option<Measured> {
    let is_brief = |measured: &Measured| {
        measured
            .tables
            .iter()
            .filter(|table| table.name.starts_with("fault/"))
            .any(|table| table.cell("brief").is_some_and(|brief| brief > 0))
    };
    let sees_all = |measured: &Measured| {
        ["sees_perf", "sees_exceptions", "sees_calls"].iter().all(|what| sees(measured, what))
    };
    let wrong = |found: &Option<Measured>| wrong(found.as_ref()?);
    undisturbed(wrong, || {
        let told = until("a run whose faults are all told in full", || {
            let _ = fs::remove_dir_all(lab.path(run));
            lab.pagelab(words).exits(0);
            Some(explained(lab, run)).filter(|measured| !is_brief(measured))
        });
        Some(told).filter(sees_all)
    })
}

fn sees(measured: &Measured, what: &str) -> bool {
    let sees = measured.counters.get(what) == Some(&1);
    if !sees {
        skip(&format!("{what} is 0 here"), "run as root, or sysctl kernel.perf_event_paranoid=-1");
    }
    sees
}

/// Faults of a kind that came from a function.
fn faults_at(measured: &Measured, function: &str, group: &str) -> i64 {
    let mine = measured
        .tables
        .iter()
        .filter(|table| table.name.starts_with(&format!("site/{function} (touch)")));
    mine.filter_map(|table| table.cell(group)).sum()
}

#[test]
fn whole_stacks_are_folded_for_a_flame_graph() {
    let lab = Lab::new();
    let Some(program) = touch(&lab) else { return };
    let flags = ["explain", "-q", "-o", "run", "--costs", "none", "--folded", "stacks", "--"];
    let words = [&flags[..], &[program.to_str().unwrap(), "write", "2000", "fault"]].concat();
    lab.pagelab(&words).exits(0);
    let seen = explained(&lab, "run");
    if !sees(&seen, "sees_perf") {
        return;
    }
    let stacks = fs::read_to_string(lab.path("stacks")).unwrap();
    let weighed = |line: &str| {
        let (stack, ns) = line.rsplit_once(' ')?;
        Some((stack.to_owned(), ns.parse::<u64>().ok()?))
    };
    let weighed: Option<Vec<_>> = stacks.lines().map(weighed).collect();
    let weighed = weighed.expect("a stack and a number");
    // Without prices the weight is the time that was seen: of 2000 faults of 50 ns at least. One
    // fault of another function may have waited longer than all of them.
    if sees(&seen, "sees_exceptions") {
        let mine = weighed.iter().filter(|(stack, _)| stack.ends_with("store_ascending"));
        assert!(mine.map(|(_, ns)| ns).sum::<u64>() >= 2000 * 50, "{stacks}");
    }
    lab.pagelab(&words).exits(2).complains(&["stacks", "exists"]);
}

#[test]
fn every_fault_of_a_known_program_is_of_its_kind_and_at_its_function() {
    let lab = Lab::new();
    let Some(program) = touch(&lab) else { return };
    let program = program.to_str().unwrap();
    for (kind, function, group) in [
        ("write", "store_ascending", "write/4k/anonymous"),
        ("scattered", "store_scattered", "write/4k/anonymous"),
        ("read", "load_ascending", "read/4k/anonymous"),
        ("zero-write", "store_ascending", "zero-write/4k/anonymous"),
        ("fork", "store_ascending", "fork-cow/4k/anonymous"),
    ] {
        let words = ["explain", "-o", kind, "--costs", "none", "--", program, kind, "512", "fault"];
        let wrong = |measured: &Measured| {
            let lost = measured.counters["perf_minor_lost"];
            let found = faults_at(measured, function, group);
            ((lost, found) != (0, 512)).then(|| format!("{kind}: {found} of 512, {lost} lost"))
        };
        if count(&lab, kind, &words, wrong).is_none() {
            return;
        }
    }
}

#[test]
fn faults_that_come_fast_are_all_counted_and_told_in_full_or_in_brief() {
    let lab = Lab::new();
    let Some(program) = touch(&lab) else { return };
    let faults = 150_000;
    let words = [program.to_str().unwrap(), "write", &faults.to_string(), "fault"];
    let flags = ["explain", "-q", "-o", "run", "--costs", "none", "--"];
    lab.pagelab(&[&flags[..], &words].concat()).exits(0);
    let measured = explained(&lab, "run");
    if !sees(&measured, "sees_exceptions") {
        return;
    }
    // Where the reader gets no CPU the rings overflow, and what is lost has no kind.
    let told = i64::try_from(measured.counters["perf_minor"]).unwrap();
    assert!((faults..=faults + faults / 10).contains(&told), "{told} of {faults}");
    let group = |column| row(&measured, "fault/write/4k/anonymous", column);
    let (brief, stretches) = (group("brief"), measured.counters.get("stretches"));
    assert!(brief == 0 || stretches.is_some(), "{brief} in brief, and no stretch in full");
    assert!(group("timed") + group("inferred") + brief >= group("faults"));
    let at_function = faults_at(&measured, "store_ascending", "write/4k/anonymous");
    assert!(at_function >= group("faults") * 9 / 10, "{at_function} of {told}");
}

#[test]
fn a_larger_page_is_one_that_could_have_come_when_its_first_page_was_touched() {
    // 4 MiB: touched as it grows, at once, and where it may have no larger pages.
    has_density(&[
        ("grow", [0, 0, 0, 1024]),
        ("plain", [2, 1024, 0, 0]),
        ("write", [0, 0, 1024, 0]),
        ("never", [0, 0, 1024, 0]),
    ]);
}

#[test]
fn a_larger_page_comes_again_where_memory_was_given_back() {
    has_density(&[("again", [4, 2048, 0, 0])]);
}

/// Asserts for phases of the program how often a page of 2 MiB could have come, the faults that it
/// would have spared, and the pages that may have no larger ones or that came too late for one.
fn has_density(phases: &[(&str, [i64; 4])]) {
    // Somebody who lets everybody have huge pages for a moment takes faults away.
    let _machine = Machine::alone();
    let lab = Lab::new();
    let Some(program) = touch(&lab) else { return };
    let program = program.to_str().unwrap();
    if policy_is_always() {
        return skip("THP is always on here", "echo madvise > transparent_hugepage/enabled");
    }
    for &(kind, [waves, faults, denied, late]) in phases {
        let words =
            ["explain", "-o", kind, "--costs", "none", "--", program, kind, "1024", "fault"];
        let wrong = |measured: &Measured| {
            let table = measured.table("density/anonymous").unwrap();
            let sum = |block: i64, column: &str| table.cell_of(block, column).unwrap();
            let thp = 2 << 20;
            let whole = (sum(thp, "waves"), sum(thp, "faults"));
            // The program's libraries have a few pages of their own.
            let is_right = whole == (waves, faults)
                && [(sum(4096, "denied"), denied), (sum(thp, "late"), late)]
                    .iter()
                    .all(|(found, least)| (*least..least + 64).contains(found));
            (!is_right).then(|| format!("{kind}: {table:?}"))
        };
        if count(&lab, kind, &words, wrong).is_none() {
            return;
        }
    }
}

/// Whether every mapping has huge pages without asking.
fn policy_is_always() -> bool {
    let policy = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    policy.is_ok_and(|policy| policy.contains("[always]"))
}

#[test]
fn a_program_that_a_user_may_not_watch_makes_the_record_invalid() {
    if !is_root() {
        return skip("making a setuid program takes root", "run as root");
    }
    let lab = Lab::new();
    let _machine = Machine::alone();
    let Some(program) = touch(&lab) else { return };
    let binary = lab.binary_for_everybody();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let script = format!("{} write 4096 fault; exit 0", program.to_str().unwrap());
    let itself = [program.to_str().unwrap(), "write", "4096", "fault"];
    for (run, words) in [("itself", &itself[..]), ("child", &["sh", "-c", &script])] {
        let mut pagelab = Command::new(&binary);
        pagelab.args(["explain", "-o", run, "--costs", "none", "--"]).args(words);
        pagelab.uid(65534).gid(65534).envs(let_in()).current_dir(lab.path("."));
        let output = pagelab.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let measured = measured(&lab.records(run)[0]).clone();
        if !sees(&measured, "sees_perf") {
            return;
        }
        let counted = measured.counters["minflt"] - measured.counters["perf_minor"];
        if measured.is_valid() && measured.counters["minflt"] < 4096 {
            return skip("setuid has no effect here", "a temporary directory without nosuid");
        }
        assert!(counted >= 4096, "{said}");
        assert_eq!((measured.is_valid(), output.status.code()), (false, Some(6)), "{said}");
        assert!(said.contains("setuid") && said.contains("run as root"), "{said}");
        assert!(!said.contains(" of its time"), "no number of it is quoted: {said}");
    }
}

#[test]
fn faults_of_every_thread_are_counted_and_those_that_met_are_among_them() {
    let lab = Lab::new();
    let Some(program) = touch(&lab) else { return };
    let program = program.to_str().unwrap();
    let words =
        ["explain", "-o", "run", "--costs", "none", "--", program, "threads", "8192", "fault"];
    lab.pagelab(&words).exits(0);
    let measured = explained(&lab, "run");
    if !sees(&measured, "sees_perf") || !sees(&measured, "sees_exceptions") {
        return;
    }
    let group = "write/4k/anonymous";
    let told = 8192 - i64::try_from(measured.counters["perf_minor_lost"]).unwrap();
    assert!(faults_at(&measured, "store_half", group) >= told, "{told}");
    assert_eq!(measured.counters["faulting_threads"], 2);
    let of = |column| row(&measured, &format!("fault/{group}"), column);
    // How many meet is the scheduler's affair; each meeting is of two.
    let (crowded, faults) = (of("crowded"), of("faults"));
    assert!(crowded <= faults && of("crowd") == 2 * crowded && of("shared") <= crowded);
}

#[test]
fn programs_that_a_program_starts_are_told_apart_by_name() {
    let lab = Lab::new();
    let Some(program) = touch(&lab) else { return };
    let program = program.to_str().unwrap();
    let script = format!("{program} write 512 fault; {program} read 512 fault & wait");
    let words = ["explain", "-o", "run", "--costs", "none", "--", "sh", "-c", &script];
    lab.pagelab(&words).exits(0);
    let measured = explained(&lab, "run");
    if !sees(&measured, "sees_perf") || !sees(&measured, "sees_exceptions") {
        return;
    }
    assert_eq!(measured.counters["processes"], 3);
    assert_eq!(row(&measured, "thread/touch", "threads"), 2);
    assert!(row(&measured, "thread/touch", "write/4k/anonymous") >= 512);
    assert!(row(&measured, "thread/touch", "read/4k/anonymous") >= 512);
    assert!(row(&measured, "thread/sh", "threads") >= 1, "and those that became touch");
}

/// A cell of a table of one row.
fn row(measured: &Measured, table: &str, column: &str) -> i64 {
    measured.table(table).unwrap().cell(column).unwrap()
}

#[test]
fn memory_that_is_populated_takes_no_faults() {
    let lab = Lab::new();
    let Some(program) = touch(&lab) else { return };
    let program = program.to_str().unwrap();
    let words =
        ["explain", "-o", "run", "--costs", "none", "--", program, "write", "512", "populated"];
    lab.pagelab(&words).exits(0);
    let measured = explained(&lab, "run");
    if sees(&measured, "sees_perf") {
        assert_eq!(faults_at(&measured, "store_ascending", "write/4k/anonymous"), 0);
        // The kernel's other account has them.
        let counted = |name: &str| measured.counters[name];
        let inside = counted("minflt") - counted("minflt_before_exec") - counted("perf_minor");
        assert!(inside >= 512, "{inside}");
    }
}

#[test]
fn what_faults_cost_is_measured_once_and_can_be_taken_again() {
    let lab = Lab::new();
    let Some(program) = touch(&lab) else { return };
    let program = program.to_str().unwrap();
    let watch = |run: &str, more: &[&str]| {
        let words =
            [&["explain", "--wait", "-o", run], more, &["--", program, "write", "4096", "fault"]];
        with_prices(&lab, &words.concat())
    };
    // A price that other programs disturb twice is invalid.
    let first = until("prices that are all valid", || {
        let _ = fs::remove_dir_all(lab.path("first"));
        let first = watch("first", &[]);
        if !sees(&explained(&lab, "first"), "sees_perf") {
            return Some(None);
        }
        (first.code == Some(0)).then_some(Some(first.stderr))
    });
    let Some(first) = first else { return };
    assert!(first.contains(" of its time") && first.contains("store_ascending"), "{first}");
    assert!(first.contains("MADV_POPULATE_WRITE") || first.contains("THP"), "{first}");
    let priced = lab.records("first").len();
    assert!(priced > 1);
    let second = watch("second", &["--costs", "first"]).stderr;
    assert!(second.contains(" of its time"), "{second}");
    let faults = |record: &&Record| record.workload.starts_with("fault/");
    assert_eq!(lab.records("second").iter().filter(faults).count(), priced - 1);
    // A run like any other.
    for format in ["json", "csv", "markdown", "html"] {
        lab.pagelab(&["report", "second", "--format", format]).exits(0);
    }
    with_prices(&lab, &["resume", "--wait", "second"]);
}

/// Runs what measures prices. Others may disturb one twice, which makes it invalid: that is no
/// matter here.
fn with_prices(lab: &Lab, words: &[&str]) -> Ended {
    let ended = lab.pagelab(words);
    assert!(matches!(ended.code, Some(0 | 6)), "{}", ended.stderr);
    ended
}

#[test]
fn a_run_that_stopped_before_its_prices_goes_on_with_them() {
    let lab = Lab::new();
    let Some(program) = touch(&lab) else { return };
    let program = program.to_str().unwrap();
    let words = ["explain", "--wait", "-q", "-o", "run", "--", program, "write", "4096", "fault"];
    with_prices(&lab, &words);
    let lines = lab.lines("run");
    if !sees(&explained(&lab, "run"), "sees_perf") {
        return;
    }
    let all = lines.len() - 1;
    assert!(all > 2, "a program and two prices at least");
    for kept in [1, all - 1] {
        // As after a kill: the header, the program, and perhaps prices.
        fs::write(lab.path("run/journal.jsonl"), lines[..=kept].concat()).unwrap();
        let said = format!("{kept} of {all} cases are done, {} are left", all - kept);
        with_prices(&lab, &["resume", "--wait", "run", "-q"])
            .complains(&[&said])
            .shows(&["Fault latency"]);
        assert_eq!(lab.lines("run").len(), lines.len());
    }
    let said = format!("{all} of {all} cases are done, 0 are left");
    with_prices(&lab, &["resume", "--wait", "run", "-q"]).complains(&[&said]);
    // Killed while the program ran.
    fs::write(lab.path("run/journal.jsonl"), &lines[0]).unwrap();
    lab.pagelab(&["resume", "run"]).exits(2).complains(&["start again with pagelab explain"]);
    // Prices that were not wanted are not measured now.
    lab.pagelab(&["explain", "-o", "none", "--costs", "none", "--", "true"]).exits(0);
    lab.pagelab(&["resume", "none"]).exits(0).complains(&["1 of 1 cases are done, 0 are left"]);
    assert_eq!(lab.lines("none").len(), 2);
}

#[test]
fn what_cannot_be_watched_is_refused_by_name() {
    let lab = Lab::new();
    let refused = |words: &[&str], code: i32, said: &str| {
        let words: Vec<&str> = [&["explain", "-o", said], words].concat();
        let ended = lab.pagelab(&words);
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
        // A cause is said once.
        assert!(ended.stderr.matches("(os error").count() <= 1, "{}", ended.stderr);
    };
    refused(&["--", "./nope"], 2, "nope");
    lab.file("plain", "no program");
    refused(&["--", "./plain"], 2, "plain");
    refused(&["--pid", "4194305"], 2, "4194305");
    refused(&["--costs", "nowhere", "--", "true"], 2, "nowhere");
    let ended = lab.pagelab(&["explain"]);
    assert_eq!(ended.code, Some(2));
}

#[test]
fn a_program_that_ends_badly_is_a_record_that_says_so() {
    let lab = Lab::new();
    let watch = |run: &str, script: &str| {
        lab.pagelab(&["explain", "-o", run, "--costs", "none", "--", "sh", "-c", script])
    };
    let ended = watch("signal", "kill -9 $$");
    ended.exits(0);
    assert!(ended.stderr.contains("signal 9"), "{}", ended.stderr);
    assert_eq!(explained(&lab, "signal").counters["exit_signal"], 9);
    let ended = watch("code", "echo to stdout; exit 7");
    ended.exits(0);
    assert_eq!(ended.stdout, "to stdout\n");
    assert!(ended.stderr.contains("exited with 7"), "{}", ended.stderr);
    assert_eq!(explained(&lab, "code").counters["exit_code"], 7);
}

#[test]
fn stdout_is_the_programs_byte_for_byte_and_the_report_is_elsewhere() {
    let lab = Lab::new();
    let _machine = Machine::alone();
    let watch = |words: &[&str]| {
        let mut pagelab = Command::new(binary());
        pagelab.args(["explain", "-q", "--costs", "none"]).args(words).arg("--");
        // The argument is no UTF-8, and what it prints is none either.
        pagelab
            .arg("printf")
            .arg(OsStr::from_bytes(b"%s\\377\\000\\n"))
            .arg(OsStr::from_bytes(b"\xff"));
        let output = pagelab.envs(let_in()).current_dir(lab.path(".")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert_eq!(output.stdout, b"\xff\xff\0\n", "{said}");
        said
    };
    let is_report = |text: &str| text.contains("What faults cost this program");
    assert!(is_report(&watch(&["-o", "beside"])));
    assert!(!is_report(&watch(&["-o", "filed", "--report", "report.txt"])));
    let report = fs::read_to_string(lab.path("report.txt")).unwrap();
    assert!(is_report(&report) && !report.contains('\u{1b}'), "{report}");
    // Before the program runs: it is not there, and neither is a run.
    for file in ["-", "report.txt"] {
        let words = ["explain", "-o", "no", "--report", file, "--", "touch", "ran"];
        lab.pagelab(&words).exits(2).complains(&[file]);
        assert!(!lab.path("ran").exists() && !lab.path("no").exists());
    }
}

#[test]
fn an_interrupt_goes_to_the_program_and_what_was_seen_stays() {
    let lab = Lab::new();
    let _machine = Machine::alone();
    let mut pagelab = Command::new(binary());
    pagelab.args(["explain", "-o", "run", "--costs", "none", "--", "sh", "-c"]);
    pagelab.arg("echo $$ > started.new; mv started.new started; exec sleep 1000");
    pagelab.envs(let_in()).current_dir(lab.path("."));
    pagelab.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = Beside::start(pagelab.stderr(Stdio::null()));
    until("the program", || lab.path("started").exists().then_some(()));
    signal("INT", child.pid());
    assert_eq!(child.end().code(), Some(0));
    assert_eq!(explained(&lab, "run").counters["exit_signal"], 2);
}
