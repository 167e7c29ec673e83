//! The same work over many machines: tasks, shards, results, and one run of them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use pagelab_record::{Data, Outcome, Record, journal};

use crate::support::{Ended, Lab, Live, Machine, binary, is_root, skip, until};

const SUITE: &str = "name = 'mine'\nsummary = 'mine'\nforks = 1\nlimit = 600\n\
    [[case]]\nworkload = 'fault/latency'\npage = '4k'\nsize = ['1m', '2m', '3m']\nrounds = 2\n\
    budget = 0.01\nrepetitions-min = 1\n\
    [[case]]\nworkload = 'limit/timer'\nbudget = 0.01\nrepetitions-min = 1\n";

/// A plan of four tasks.
fn planned(lab: &Lab, shards: &str) {
    lab.file("mine.toml", SUITE);
    let ended = lab.pagelab(&["fleet", "plan", "mine.toml", "--shards", shards, "-o", "plan"]);
    ended.exits(0).shows(&["plan/tasks.jsonl: 4 tasks in"]);
}

fn exec(lab: &Lab, shard: &str, into: &str) -> Ended {
    lab.pagelab(&["fleet", "exec", "plan", "--wait", "-q", "--shard", shard, "-o", into])
}

/// Results in a folder.
fn results(folder: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_result = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        !name.starts_with('.') && name != "tasks.jsonl"
    };
    let mut all: Vec<PathBuf> = all.filter(is_result).collect();
    all.sort();
    all
}

#[test]
fn shards_come_together_as_one_run_and_nothing_is_measured_twice() {
    let lab = Lab::new();
    planned(&lab, "2");
    let again = lab.pagelab(&["fleet", "plan", "mine.toml", "--shards", "2", "-o", "again"]);
    again.exits(0);
    let read = |folder: &str| fs::read_to_string(lab.path(folder).join("tasks.jsonl")).unwrap();
    assert_eq!(read("plan"), read("again"));
    exec(&lab, "1/2", "one").exits(0).complains(&["0 of 2 tasks are done here, 2 are left"]);
    let there = results(&lab.path("one"));
    let written = |path: &PathBuf| fs::metadata(path).unwrap().modified().unwrap();
    let times: Vec<_> = there.iter().map(written).collect();
    exec(&lab, "1/2", "one").exits(0).complains(&["2 of 2 tasks are done here, 0 are left"]);
    assert_eq!(there.iter().map(written).collect::<Vec<_>>(), times);
    // What is missing is named, and resume knows it too.
    let half = lab.pagelab(&["fleet", "merge", "one", "-o", "half"]);
    half.exits(1).complains(&["missing: task", "limit/timer"]);
    assert_eq!(lab.records("half").len(), 2);
    exec(&lab, "2/2", "two").exits(0);
    let ended = lab.pagelab(&["fleet", "merge", "one", "two", "-o", "whole"]);
    ended.exits(0).shows(&["4 records of 4 tasks from 1 host"]);
    let order: Vec<String> =
        lab.records("whole").iter().map(|record| record.case.to_string()).collect();
    let contents = journal::read(&lab.path("whole")).unwrap();
    let asked: Vec<String> =
        contents.header.plan.iter().map(|(_, case)| case.to_string()).collect();
    assert_eq!(order, asked);
    lab.pagelab(&["report", "whole"]).exits(0).shows(&["Fault latency"]);
    lab.pagelab(&["resume", "-q", "--wait", "whole"])
        .exits(0)
        .complains(&["4 of 4 cases are done"]);
    // The same results by another way count once.
    fs::rename(lab.path("two"), lab.path("three")).unwrap();
    for path in results(&lab.path("one")) {
        fs::copy(&path, lab.path("three").join(path.file_name().unwrap())).unwrap();
    }
    let ended = lab.pagelab(&["fleet", "merge", "one", "three", "-o", "once"]);
    ended.exits(0).shows(&["4 records of 4 tasks"]);
}

#[test]
fn what_does_not_belong_together_is_told() {
    let lab = Lab::new();
    planned(&lab, "2");
    let refused = |words: &[&str], why: &[&str]| {
        lab.pagelab(&[&["fleet"], words].concat()).exits(2).complains(why);
    };
    refused(&["exec", "plan", "--shard", "3/2", "-o", "r"], &["there is no shard 3 of 2"]);
    refused(&["exec", "plan", "--shard", "1/3", "-o", "r"], &["is cut into 2, not 3: --shard 1/2"]);
    refused(&["exec", "nowhere", "-o", "r"], &["nowhere/tasks.jsonl", "pagelab fleet plan"]);
    refused(&["plan", "mine.toml", "-o", "plan"], &["plan holds a plan already"]);
    // A plan that was changed, cut short, or is of another version.
    let text = fs::read_to_string(lab.path("plan/tasks.jsonl")).unwrap();
    let other = |name: &str, text: &str| {
        fs::create_dir(lab.path(name)).unwrap();
        lab.file(&format!("{name}/tasks.jsonl"), text);
    };
    other("changed", &text.replacen("\"1m\"", "\"1g\"", 1));
    refused(&["exec", "changed", "-o", "r"], &["changed/tasks.jsonl:2", "was changed"]);
    other(
        "short",
        &(text.lines().take(3).collect::<Vec<_>>().join(
            "
",
        ) + "
"),
    );
    refused(&["exec", "short", "-o", "r"], &["short/tasks.jsonl:4", "2 tasks of 4"]);
    other("schema", &text.replacen("pagelab.tasks/1", "pagelab.tasks/9", 1));
    refused(&["exec", "schema", "-o", "r"], &["schema/tasks.jsonl:1", "`pagelab.tasks/9`"]);
    let ours = format!("\"pagelab\":\"{}\"", env!("CARGO_PKG_VERSION"));
    other("older", &text.replacen(&ours, "\"pagelab\":\"0.0.1\"", 1));
    let why = "older/tasks.jsonl:1: it was planned by pagelab 0.0.1";
    refused(&["exec", "older", "-o", "r"], &[why, "use one version everywhere"]);
    // Results of another plan.
    exec(&lab, "1/2", "r").exits(0);
    let words = ["fleet", "plan", "mine.toml", "--shards", "2", "--forks", "2", "-o", "forks"];
    lab.pagelab(&words).exits(0);
    refused(&["exec", "forks", "--shard", "1/2", "-o", "r"], &["holds results of another plan"]);
    let taken = ["fleet", "exec", "forks", "--wait", "-q", "--shard", "2/2", "-o", "s"];
    lab.pagelab(&taken).exits(0);
    refused(&["merge", "r", "s", "-o", "m"], &["two plans"]);
    // A result that was cut short, one under another's name, and what is none.
    let there = results(&lab.path("r"));
    let whole = fs::read_to_string(&there[0]).unwrap();
    fs::write(&there[0], &whole[..whole.len() - 9]).unwrap();
    let name = there[1].file_name().unwrap().to_string_lossy().into_owned();
    let (task, rest) = name.split_once('.').unwrap();
    let (_, boot) = rest.rsplit_once('.').unwrap().0.rsplit_once('.').unwrap();
    fs::rename(&there[1], lab.path("r").join(format!("{task}.another.{boot}.jsonl"))).unwrap();
    lab.file("r/note.txt", "not one of ours\n");
    let ended = lab.pagelab(&["fleet", "merge", "r", "-o", "m"]);
    ended.exits(1).complains(&[
        "cannot be read",
        "its record is of ",
        "note.txt is no result",
        "missing: task",
    ]);
    assert_eq!(lab.records("m").len(), 0);
    // Results of another schema, and of another version.
    let there = results(&lab.path("s"));
    let change = |path: &Path, from: &str, to: &str| {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replacen(from, to, 1)).unwrap();
    };
    change(&there[0], "pagelab.record/1", "pagelab.record/9");
    change(&there[1], &ours, "\"pagelab\":\"0.0.1\"");
    let ended = lab.pagelab(&["fleet", "merge", "s", "-o", "n"]);
    ended.exits(1).complains(&["`pagelab.record/9`", "it is of pagelab 0.0.1, and the plan of"]);
    assert_eq!(lab.records("n").len(), 0);
}

#[test]
fn one_process_at_a_time_measures_a_shard_into_a_folder() {
    let lab = Lab::new();
    planned(&lab, "2");
    fs::create_dir(lab.path("r")).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let lock = lab.path(format!("r/.shard-1-of-2.{}.lock", &boot[..8]));
    let other = fs::File::create(lock).unwrap();
    other.lock().unwrap();
    let held = "another pagelab of this machine measures shard 1";
    for patience in [&[][..], &["--wait=0.1"]] {
        let words = ["fleet", "exec", "plan", "-q", "--shard", "1/2", "-o", "r"];
        lab.pagelab(&[&words[..], patience].concat()).exits(3).complains(&[held, "--wait waits"]);
    }
    // What another machine measures is no hindrance: of a fleet each does all of it.
    let elsewhere = fs::File::create(lab.path("r/.shard-2-of-2.00000000.lock")).unwrap();
    elsewhere.lock().unwrap();
    exec(&lab, "2/2", "r").exits(0);
    let words = ["fleet", "exec", "plan", "--wait", "-q", "--shard", "1/2", "-o", "r"];
    let waiting = Live::start(&lab, &words);
    until("it to say whom it waits for", || waiting.said().contains(held).then_some(()));
    drop(other);
    waiting.end().exits(0).complains(&["0 of 2 tasks are done here"]);
}

/// What gives a machine of another name to those who are not root.
const RENAMED: &str = "allow user namespaces, or run the tests as root";

/// A script on a machine whose name it may change, with the binary as `$0`.
fn renamed(script: &str) -> Command {
    let mut unshare = Command::new("unshare");
    if !is_root() {
        unshare.args(["--user", "--map-current-user", "--keep-caps"]);
    }
    unshare.args(["--uts", "sh", "-c", script]).arg(binary());
    unshare
}

#[test]
fn hosts_of_a_fleet_stay_apart() {
    // Two hosts of other settings are not comparable.
    let _machine = Machine::alone();
    let lab = Lab::new();
    planned(&lab, "1");
    if !renamed("hostname other").status().is_ok_and(|status| status.success()) {
        return skip("no machine of another name can be had", RENAMED);
    }
    // Both in namespaces: what capabilities a run has is a fact of its host.
    for (name, into) in [("$(uname -n)", "here"), ("other", "there")] {
        let script = format!("hostname {name} && exec \"$0\" fleet exec plan --wait -q -o {into}");
        lab.ended(&mut assert_cmd::Command::from_std(renamed(&script))).exits(0);
    }
    // One task is missing of one of them.
    fs::remove_file(&results(&lab.path("there"))[0]).unwrap();
    let ended = lab.pagelab(&["fleet", "merge", "here", "there", "-o", "all"]);
    ended.exits(1).shows(&["7 records of 4 tasks from 2 hosts"]).complains(&["on other: "]);
    assert_eq!(lab.records("all").len(), 7);
    let refused = lab.pagelab(&["report", "all"]);
    refused.exits(2).complains(&["is of 2 hosts: name one (--host ", "--by host"]);
    lab.pagelab(&["report", "all", "--host", "other"]).exits(0).shows(&["3  valid"]);
    lab.pagelab(&["report", "all", "--host", "nobody"])
        .exits(2)
        .complains(&["no record of the host"]);
    let compared = lab.pagelab(&["compare", "all", "--by", "host", "--baseline", "other"]);
    compared.exits(0).shows(&["host=other"]);
}

/// The results in a folder as if those of a host of another name, each record changed.
fn as_of(lab: &Lab, from: &str, into: &str, host: &str, change: impl Fn(&mut Record)) {
    fs::create_dir_all(lab.path(into)).unwrap();
    fs::copy(lab.path(from).join("tasks.jsonl"), lab.path(into).join("tasks.jsonl")).unwrap();
    for path in results(&lab.path(from)) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let (task, _) = name.split_once('.').unwrap();
        let (_, boot) = name.strip_suffix(".jsonl").unwrap().rsplit_once('.').unwrap();
        let mut contents = journal::read(&path).unwrap();
        let record = &mut contents.records[0];
        record.host.volatile.insert("host_name".to_owned(), host.into());
        change(record);
        let header = serde_json::to_string(&contents.header).unwrap();
        let line = String::from_utf8(journal::line(record)).unwrap();
        lab.file(&format!("{into}/{task}.{host}.{boot}.jsonl"), format!("{header}\n{line}"));
    }
}

#[test]
fn a_host_that_lies_about_itself_is_told() {
    let lab = Lab::new();
    planned(&lab, "1");
    exec(&lab, "1/1", "r").exits(0);
    let there = results(&lab.path("r"));
    let change = |path: &Path, from: &str, to: &str| {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.contains(from), "{from}");
        fs::write(path, text.replace(from, to)).unwrap();
    };
    // Another machine under the same name and boot, another boot than the file's name says, and
    // what another pagelab measured.
    change(&there[1], "\"architecture\":\"", "\"architecture\":\"not-");
    change(&there[2], "\"boot\":\"", "\"boot\":\"00000000");
    change(&there[3], "\"pagelab\":\"", "\"pagelab\":\"9");
    let ended = lab.pagelab(&["fleet", "merge", "r", "-o", "m"]);
    ended.exits(1).shows(&["1 records of 4 tasks"]).complains(&[
        "another machine gives this name and boot as its own: architecture differs",
        "its record is of ",
        "boot 00000000",
        "it is of pagelab 9",
    ]);
    assert_eq!(lab.records("m").len(), 1);
}

#[test]
fn hosts_are_a_distribution_and_who_lies_apart_is_named() {
    let lab = Lab::new();
    planned(&lab, "1");
    exec(&lab, "1/1", "r").exits(0);
    for host in 0..6 {
        as_of(&lab, "r", "all", &format!("h{host}"), |_| ());
    }
    as_of(&lab, "r", "all", "slow", |record| {
        let Outcome::Measured(measured) = &mut record.outcome else { panic!() };
        for series in &mut measured.series {
            series.data = Data::Values(vec![u64::from(u32::MAX); 3]);
        }
        record.host.settings.insert("aslr".to_owned(), "another".into());
    });
    let merged = lab.pagelab(&["fleet", "merge", "all", "-o", "run"]);
    merged.exits(0).shows(&["28 records of 4 tasks from 7 hosts"]);
    let by_host = ["compare", "run", "--by", "host"];
    lab.pagelab(&by_host).exits(0).shows(&["7  hosts (in 1 group)", "slow", "aslr", "(6 hosts)"]);
    for format in ["json", "csv", "markdown"] {
        let words = [&by_host[..], &["--format", format]].concat();
        lab.pagelab(&words).exits(0).shows(&["slow"]);
    }
    let page = [&by_host[..], &["--format", "html", "-o", "page.html"]].concat();
    lab.pagelab(&page).exits(0);
    lab.pagelab(&[&by_host[..], &["--fail-on", "p50:10%"]].concat()).exits(1);
    let refused = lab.pagelab(&[&by_host[..], &["--format", "lkml"]].concat());
    refused.exits(2).complains(&["two sides", "--baseline"]);
    lab.pagelab(&[&by_host[..], &["--allow", "nothing"]].concat()).exits(2).complains(&["no fact"]);
    lab.pagelab(&["report", "run", "--host", "h3"]).exits(0).shows(&["4  valid"]);
    // Another kernel is another machine, until somebody says that it is not.
    as_of(&lab, "r", "all", "newer", |record| {
        record.host.identity.insert("kernel_release".to_owned(), "9".into());
    });
    lab.pagelab(&["fleet", "merge", "all", "-o", "more"]).exits(0);
    let by_host = ["compare", "more", "--by", "host"];
    let refused = lab.pagelab(&by_host);
    refused.exits(5).shows(&["newer is like no other host", "--allow kernel_release"]);
    let allowed = lab.pagelab(&[&by_host[..], &["--allow", "kernel_release"]].concat());
    allowed.exits(0).shows(&["8  hosts (in 1 group)"]);
    // One host is no fleet.
    lab.pagelab(&["fleet", "merge", "r", "-o", "one"]).exits(0);
    lab.pagelab(&["compare", "one", "--by", "host"]).exits(2).complains(&["name runs of several"]);
}

#[test]
fn a_machine_whose_name_is_no_part_of_a_path_is_told_before_anything_is_measured() {
    let lab = Lab::new();
    planned(&lab, "1");
    // The file is root's, and `hostname` refuses this one.
    let script = "{ printf ../x > /proc/sys/kernel/hostname || \
                  python3 -c 'import socket; socket.sethostname(\"../x\")'; } && \
                  exec \"$0\" fleet exec plan -q -o there";
    let ended = renamed(script).current_dir(lab.path(".")).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    if !said.contains("this machine is called") {
        return skip("no machine of another name can be had", RENAMED);
    }
    assert_eq!(ended.status.code(), Some(3), "{said}");
    assert!(!lab.path("there").exists());
}

#[test]
fn an_array_of_a_batch_system_runs_every_shard_once() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../contrib/slurm/fleet.sbatch");
    let lab = Lab::new();
    planned(&lab, "2");
    let syntax = Command::new("sh").args(["-n", script]).output().unwrap();
    assert!(syntax.status.success(), "{}", String::from_utf8_lossy(&syntax.stderr));
    // What a scheduler would set: every element of the array is started like this.
    for element in ["1", "2"] {
        let mut shell = Command::new("sh");
        shell.arg(script).args(["plan", "results"]).current_dir(lab.path("."));
        shell.env("PAGELAB", binary()).env("SLURM_ARRAY_TASK_ID", element);
        let ended = shell.env("SLURM_ARRAY_TASK_COUNT", "2").output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    assert_eq!(results(&lab.path("results")).len(), 4);
    lab.pagelab(&["fleet", "merge", "results", "-o", "run"]).exits(0);
}
