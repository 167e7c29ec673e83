//! Processes that run already, and what an ordinary user may not see of them.

use std::{
    fs,
    os::unix::{fs::MetadataExt, process::CommandExt},
    process::Command,
};

use super::{compiled, explained, faults_at, touch};
use crate::support::{Beside, Lab, Machine, binary, is_root, let_in, skip, until};

/// Has an ordinary user run it: another one than root, or whoever runs the tests.
fn as_ordinary(command: &mut Command) -> &mut Command {
    if is_root() { command.uid(65534).gid(65534) } else { command }
}

#[test]
fn a_process_that_runs_is_watched_for_a_while_and_runs_on() {
    let lab = Lab::new();
    let mut sleeper = Beside::start(Command::new("sleep").arg("1000"));
    let pid = sleeper.pid().to_string();
    let words = ["explain", "-o", "run", "--costs", "none", "--duration", "0.2", "--pid", &pid];
    let ended = lab.pagelab(&words);
    let runs_on = sleeper.is_running();
    drop(sleeper);
    if ended.code == Some(3) {
        return skip("perf is not allowed here", "sysctl kernel.perf_event_paranoid=2");
    }
    ended.exits(0).shows(&["What faults cost this program"]);
    assert!(runs_on);
    assert!(!explained(&lab, "run").counters.contains_key("exit_code"));
}

#[test]
fn a_process_of_many_threads_takes_descriptors_and_the_limit_is_raised_or_named() {
    let lab = Lab::new();
    let _machine = Machine::alone();
    let Some(program) = touch(&lab) else { return };
    let binary = lab.binary_for_everybody();
    let mut sleepers = Command::new(&program);
    let sleepers = as_ordinary(sleepers.args(["sleepers", "500", "fault"]));
    let sleepers = Beside::start(sleepers);
    let pid = sleepers.pid().to_string();
    let tasks = format!("/proc/{pid}/task");
    until("500 threads", || (fs::read_dir(&tasks).ok()?.count() > 500).then_some(()));
    // Root writes nothing where others may write.
    let own = Lab::new();
    let watch = |lab: &Lab, user: u32| {
        let mut pagelab = Command::new("sh");
        pagelab.args(["-c", "ulimit -n 512; exec \"$@\"", "sh"]).arg(&binary);
        pagelab.args(["explain", "-o", "run", "--costs", "none"]);
        pagelab.args(["--duration", "0.1", "--pid", &pid]);
        if is_root() {
            pagelab.uid(user).gid(user);
        }
        pagelab.envs(let_in()).current_dir(lab.path(".")).output().unwrap()
    };
    let (user, root) = (watch(&lab, 65534), watch(&own, 0));
    drop(sleepers);
    let said = String::from_utf8_lossy(&user.stderr).into_owned();
    assert_eq!(user.status.code(), Some(3), "{said}");
    assert!(said.contains("the limit is 512") && said.contains("ulimit -n"), "{said}");
    assert!(!said.contains("sudo pagelab"), "it lacks no right: {said}");
    let may_raise = Command::new("sh").args(["-c", "ulimit -n 512; ulimit -Hn 1024"]).status();
    if !is_root() || !may_raise.unwrap().success() {
        skip("a hard limit may not be raised here", "run as root with CAP_SYS_RESOURCE");
    } else {
        let said = String::from_utf8_lossy(&root.stderr).into_owned();
        assert_eq!(root.status.code(), Some(0), "{said}");
    }
}

#[test]
fn somebody_elses_process_is_refused_with_a_cure() {
    let owner = |of: &str| fs::metadata(of).map(|folder| folder.uid()).ok();
    if !is_root() && owner("/proc/1") == owner("/proc/self") {
        return skip("process 1 is this user's", "run as another user");
    }
    let lab = Lab::new();
    let mut pagelab = Command::new(lab.binary_for_everybody());
    as_ordinary(pagelab.args(["explain", "-o", "run", "--pid", "1"]));
    let output = pagelab.current_dir(lab.path(".")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("process 1") && said.contains("sudo pagelab"), "{said}");
}

#[test]
fn an_ordinary_user_is_told_what_was_not_seen() {
    let lab = Lab::new();
    let _machine = Machine::alone();
    let Some(program) = touch(&lab) else { return };
    let mut pagelab = Command::new(lab.binary_for_everybody());
    pagelab.args(["explain", "-o", "run", "--costs", "none", "--"]).arg(&program);
    let pagelab = as_ordinary(pagelab.args(["write", "512", "fault"]));
    let output = pagelab.envs(let_in()).current_dir(lab.path(".")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let measured = explained(&lab, "run");
    let warned = |text: &str| measured.warnings.iter().any(|warning| warning.contains(text));
    let sees = |what: &str| measured.counters[what] == 1;
    // What this kernel allows to everybody differs; what it does not is said.
    assert_eq!(!sees("sees_perf"), warned("perf is not allowed"));
    if sees("sees_perf") {
        assert_eq!(!sees("sees_exceptions") || !sees("sees_allocations"), warned("tracepoints"));
        assert_eq!(!sees("sees_kernel"), warned("inside system calls"));
        // What nobody looked at in time stays unknown, and nothing else is said of it.
        let groups = ["write/4k/anonymous", "unknown/4k/anonymous"];
        let found = groups.map(|group| faults_at(&measured, "store_ascending", group));
        assert!(found.iter().sum::<i64>() >= 512, "{found:?}");
    }
}

#[test]
fn where_perf_is_denied_the_program_runs_and_its_totals_are_a_record() {
    let lab = Lab::new();
    let _machine = Machine::alone();
    let (Some(program), Some(deny)) = (touch(&lab), compiled(&lab, "deny")) else { return };
    let under = |words: &[&str]| {
        let mut pagelab = Command::new(&deny);
        pagelab.arg(binary()).arg("explain").args(words).current_dir(lab.path("."));
        let output = pagelab.envs(let_in()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let program = program.to_str().unwrap();
    let (code, said) = under(&["-o", "run", "--", program, "write", "512", "fault"]);
    if code == Some(77) {
        return skip("there are no seccomp filters here", "a kernel with CONFIG_SECCOMP_FILTER");
    }
    assert_eq!(code, Some(0), "{said}");
    let measured = explained(&lab, "run");
    assert_eq!(measured.counters["sees_perf"], 0);
    assert!(measured.counters["minflt"] >= 512);
    assert!(measured.warnings.iter().any(|warning| warning.contains("perf is not allowed")));
    assert_eq!(lab.records("run").len(), 1, "nothing is priced");
    let pid = std::process::id().to_string();
    let (code, said) = under(&["-o", "other", "--duration", "0.1", "--pid", &pid]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("may not be watched"), "{said}");
}
