//! The commands that measure nothing or report no times: list, check, doctor, completions,
//! generate, selftest.

use std::{env, fs, process::Command};

use pagelab_bench::{Row, Workload as _};
use pagelab_parts::PARTS;
use pagelab_record::{Outcome, Record};
use serde_json::Value;

use crate::support::{Ended, Lab, Machine, skip, until, with_huge_pages};

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.exits(0).stdout).unwrap()
}

/// Every workload.
fn workloads() -> impl Iterator<Item = Row> {
    PARTS.iter().flat_map(|part| part.workloads).copied()
}

#[test]
fn list_shows_every_workload_and_suite() {
    let listed = Lab::new().pagelab(&["list"]);
    listed.exits(0).shows(&["workloads", "suites", "page-fault-latency", "micro-pagefault"]);
    for workload in workloads() {
        listed.shows(&[workload.name(), workload.about().summary]);
    }
}

#[test]
fn list_of_a_workload_shows_its_parameters_and_refusals() {
    let listed = Lab::new().pagelab(&["list", "fault/throughput"]);
    listed.exits(0).shows(&["refused, because they would measure something else", "align=ragged"]);
    for param in pagelab_fault::throughput::THROUGHPUT.params() {
        listed.shows(&[&format!("{} {}", param.name, param.help)]);
        listed.shows(&[&format!("default {}", param.default)]);
    }
}

#[test]
fn list_as_json_holds_the_same_table() {
    let lab = Lab::new();
    let listed = json(&lab.pagelab(&["list", "--format", "json"]));
    let names: Vec<&str> = listed["workloads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w["name"].as_str().unwrap())
        .collect();
    let text = lab.pagelab(&["list"]).exits(0).stdout.clone();
    let expected: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| word.contains('/'))
        .collect();
    assert_eq!(names, expected);
    assert_eq!((names[0], names.len()), ("limit/timer", 21));
    assert!(listed["suites"].as_array().unwrap().contains(&Value::from("quick")));
    let one = json(&lab.pagelab(&["list", "fault/latency", "--format", "json"]));
    assert_eq!(one["name"], "fault/latency");
    assert_eq!(one["parameters"][0]["name"], "kind");
    assert!(!one["refused"].as_array().unwrap().is_empty());
}

/// How many cases a check has on this machine.
fn checked(lab: &Lab, workloads: &[&str]) -> usize {
    let words = [&["check", "--dry-run"], workloads].concat();
    lab.pagelab(&words).exits(0).stdout.lines().count()
}

#[test]
fn check_says_of_every_case_what_came_of_it() {
    let _machine = Machine::alone();
    let lab = Lab::new();
    let ended = with_huge_pages(
        |ended: &Ended| ended.code == Some(0),
        || lab.pagelab(&["check", "--time-limit", "3600"]),
    );
    ended.exits(0).shows(&["ok limit/timer", "ok fault/latency kind=read page=4k"]);
    let words = ended.stdout.lines().map(|line| line.split_whitespace().next().unwrap());
    assert!(words.clone().all(|word| matches!(word, "ok" | "skip")), "{}", ended.stdout);
    assert_eq!(words.count(), checked(&lab, &[]));
    assert_eq!(fs::read_dir(lab.path(".")).unwrap().count(), 0, "a check leaves no run");
}

/// Some that measure everywhere and some that are skipped without our module.
const SOME: &[&str] = &["limit/timer", "fault/userfaultfd", "memtype/latency"];

#[test]
fn check_in_the_kernels_test_protocol_is_numbered_throughout() {
    let _machine = Machine::alone();
    let lab = Lab::new();
    let ended = lab.pagelab(&[&["check", "--time-limit", "3600", "--ktap"], SOME].concat());
    ended.exits(0);
    let mut lines = ended.stdout.lines();
    assert_eq!(lines.next(), Some("KTAP version 1"));
    let count = checked(&lab, SOME);
    assert!((SOME.len()..checked(&lab, &[])).contains(&count), "{count}");
    assert_eq!(lines.next(), Some(format!("1..{count}").as_str()));
    let results: Vec<&str> = lines.filter(|line| !line.starts_with('#')).collect();
    assert_eq!(results.len(), count);
    for (number, line) in (1..).zip(results) {
        assert!(line.starts_with(&format!("ok {number} ")), "{line}");
    }
}

/// Reads KTAP as `kunit.py` does and says how many passed, failed, crashed, were skipped, and how
/// many errors of form there are.
const PARSER: &str = "
import sys
sys.path.insert(0, sys.argv[1])
import kunit_parser
came = kunit_parser.parse_run_tests(open(sys.argv[2]))
counts = getattr(came, 'test', came).counts
print(counts.passed, counts.failed, counts.crashed, counts.skipped, counts.errors)
";

#[test]
fn the_kernels_own_parser_reads_a_check() {
    let Some(kunit) = env::var_os("PAGELAB_KUNIT") else {
        let cure = "apt-get install linux-source; tar -xf /usr/src/linux-source-*.tar.xz \
                    --wildcards '*/tools/testing/kunit'; PAGELAB_KUNIT=…/tools/testing/kunit";
        return skip("the parser of the kernel's tests is not at hand", cure);
    };
    let _machine = Machine::alone();
    let lab = Lab::new();
    lab.file(
        "ktap",
        lab.pagelab(&[&["check", "--time-limit", "3600", "--ktap"], SOME].concat())
            .exits(0)
            .stdout
            .clone(),
    );
    let mut python = Command::new("python3");
    let came = python.args(["-c", PARSER]).arg(kunit).arg(lab.path("ktap")).output().unwrap();
    let (said, why) =
        (String::from_utf8(came.stdout).unwrap(), String::from_utf8_lossy(&came.stderr));
    let counts = said.lines().last().unwrap_or_else(|| panic!("{why}"));
    let counts: Vec<usize> = counts.split(' ').map(|count| count.parse().unwrap()).collect();
    let [passed, failed, crashed, skipped, errors] = counts[..] else { panic!("{said}") };
    assert_eq!((failed, crashed, errors), (0, 0, 0), "{said}");
    assert_eq!(passed + skipped, checked(&lab, SOME));
}

#[test]
fn doctor_gives_every_need_with_its_cure() {
    let lab = Lab::new();
    let needs = PARTS.iter().flat_map(|part| part.requirements).flat_map(|row| row());
    let needs = needs.count();
    let printed = lab.pagelab(&["doctor"]);
    printed.exits(0);
    let findings =
        printed.stdout.lines().filter(|l| l.starts_with("have  ") || l.starts_with("lack  "));
    assert_eq!(findings.count(), needs);
    let lacks = printed.stdout.lines().filter(|line| line.starts_with("lack  ")).count();
    let cures = printed.stdout.lines().filter(|line| line.starts_with("   cure  ")).count();
    assert_eq!(lacks, cures);

    // What another process does to memory, or with DAMON, may come between two commands.
    let tiers = || json(&lab.pagelab(&["tier", "status", "--once", "--json"]))["reasons"].take();
    let (printed, found, reasons) = until("nothing that moves pages to come or go", || {
        let before = tiers();
        let printed = lab.pagelab(&["doctor"]);
        let found = json(&lab.pagelab(&["doctor", "--format", "json"]));
        (tiers() == before).then_some((printed, found, before))
    });
    let found_needs = found["needs"].as_array().unwrap();
    assert_eq!(found_needs.len(), needs);
    for need in found_needs {
        assert!(need["have"].is_boolean() && need["cure"].as_str().unwrap().len() > 10, "{need}");
    }
    assert!(found["facts"].as_array().unwrap().len() > 40, "some forty facts are recorded");
    assert!(found["warnings"].is_array());
    assert_eq!(found["tiers"], reasons, "both say why nothing moves");
    for why in found["tiers"].as_array().unwrap() {
        assert!(printed.stdout.contains(why["says"].as_str().unwrap()), "{why}");
    }
}

#[test]
fn every_shell_gets_a_completion_that_knows_the_workloads() {
    let lab = Lab::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = lab.pagelab(&["completions", shell]);
        script.exits(0).shows(&["fault/throughput", "mlock-onfault"]);
        assert!(!script.stdout.contains("__case"));
    }
    lab.pagelab(&["completions", "cmd"]).exits(2).complains(&["cmd", "bash"]);
}

#[test]
fn generate_writes_completions_and_man_pages() {
    let lab = Lab::new();
    lab.pagelab(&["generate", "--out", "share/pagelab"]).exits(0);
    for file in [
        "completions/pagelab.bash",
        "completions/_pagelab",
        "completions/pagelab.fish",
        "man1/pagelab.1",
        "man1/pagelab-run.1",
        "man1/pagelab-run-fault-throughput.1",
    ] {
        let text = fs::read_to_string(lab.path("share/pagelab").join(file)).unwrap();
        assert!(text.contains("pagelab"), "{file}");
    }
    lab.file("taken", "");
    lab.pagelab(&["generate", "--out", "taken"]).exits(2).complains(&["taken"]);
}

#[test]
fn help_names_every_exit_code_and_no_hidden_command() {
    let lab = Lab::new();
    let help = lab.pagelab(&["--help"]);
    help.exits(0).shows(&["Exit codes", "130 interrupted", "6 a witness failed", "generate --out"]);
    assert!(!help.stdout.contains("__"), "{}", help.stdout);
    let help = lab.pagelab(&["run", "fault/latency", "--help"]);
    help.exits(0).shows(&["--kind", "--arms"]);
    assert!(!help.stdout.contains("--clock"), "{}", help.stdout);
    lab.pagelab(&["--version"]).exits(0).shows(&["pagelab 0."]);
    // Without a command there is nothing to do.
    lab.pagelab(&[""; 0]).exits(2).complains(&["Usage"]);
}

#[test]
fn a_slowdown_that_was_planted_is_said_measured_and_not_comparable_by_accident() {
    // As above: a setting that somebody else changes is one more fact that differs.
    let _machine = Machine::alone();
    let lab = Lab::new();
    let words = ["selftest", "--power", "--planted", "50%", "--trials", "1", "--forks", "9"];
    let words = [&words[..], &["--time-limit", "600"]].concat();
    let ended = lab.pagelab(&[&words[..], &["-o", "p", "--budget", "0.01"]].concat());
    ended.exits(0).shows(&["of slowdowns by 50.0 % are found", "limit/syscall"]);
    let told = json(&lab.pagelab(&[&words[..], &["-o", "j", "--format", "json"]].concat()));
    let question = &told["questions"][0];
    assert_eq!((&question["trials"], &question["planted"]), (&1.into(), &0.5.into()));
    assert!(question["planted_measured"].as_f64().unwrap() > 0.0);
    let trial = "p/slower-50.0%-0001";
    let records = lab.records(trial);
    let planted = |record: &Record| match &record.outcome {
        Outcome::Measured(measured) => {
            assert!(measured.is_valid());
            let is_said = measured.warnings.iter().any(|said| said.contains("planted into every"));
            assert_eq!(measured.counters.contains_key("planted_turns"), is_said);
            is_said
        }
        _ => panic!("it was measured"),
    };
    // As it is beside slower, as it is beside as it is.
    let planted: Vec<bool> = records.iter().map(planted).collect();
    assert_eq!(planted, [false, true, false, false]);
    lab.pagelab(&["compare", trial]).exits(5).shows(&["--allow planted", "turns"]);
    lab.pagelab(&["compare", trial, "--allow", "planted"]).exits(0).shows(&["slower"]);
}

#[test]
fn the_two_self_tests_do_not_take_each_others_flags() {
    let lab = Lab::new();
    for words in ["--aa --power", "--aa --planted 5%", "--power --suite quick", "--trials 3", ""] {
        let words: Vec<&str> = ["selftest"].into_iter().chain(words.split_whitespace()).collect();
        lab.pagelab(&words).exits(2);
    }
    lab.pagelab(&["selftest", "--power", "--planted", "0%"]).exits(2).complains(&["not above 0"]);
    // Nothing that measures for its own sake can be asked for it.
    lab.pagelab(&["run", "limit/syscall", "--planted", "5%"]).exits(2).complains(&["--planted"]);
}

#[test]
fn the_same_thing_twice_leaves_a_run_for_each_trial_and_goes_on_behind_the_last() {
    // A setting that somebody else changes between two records forbids to compare them.
    let _machine = Machine::alone();
    let lab = Lab::new();
    let suite = lab.suite(&["fault/latency page=4k size=1m rounds=2", "limit/syscall"]);
    let words = ["selftest", "--aa", "--suite", &suite, "--forks", "6", "-o", "aa"];
    let twice = json(&lab.pagelab(&[&words[..], &["--format", "json"]].concat()));
    assert_eq!((&twice["cells"], &twice["pairs"][0]["pair"]), (&2.into(), &"trial-0001".into()));
    let found = twice["floor"].as_f64().unwrap();
    let trial = "aa/trial-0001";
    let compared = lab.pagelab(&["compare", trial, "--floor", "aa"]);
    compared.exits(0).shows(&[
        "two runs of the same thing differ by",
        "getppid p50",
        "one → other",
    ]);
    assert!(compared.stdout.contains(&format!("{:.1} %", found * 100.0)), "{}", compared.stdout);
    assert_eq!(lab.records(trial).len(), 4, "two cells, two arms");
    // A trial that was killed is no line: its run goes on, and only what is left is measured.
    let lines = lab.path("aa/trials.jsonl");
    let line = fs::read_to_string(&lines).unwrap();
    fs::write(&lines, &line[..line.len() / 2]).unwrap();
    let again = lab.pagelab(&[&words[..], &["--trials", "2", "--budget", "0.1"]].concat());
    again.exits(0).shows(&["of 2; there is none to find", "trial-0001", "trial-0002"]);
    assert_eq!(lab.records(trial).len(), 4);
    let done = lab.pagelab(&[&words[..], &["--trials", "2"]].concat());
    done.exits(0).complains(&["2 of 2 trials are done"]);
    lab.pagelab(&["compare", trial, "--floor", "nowhere"]).exits(2).complains(&["selftest --aa"]);
    let apart = lab.pagelab(&[&words[..4], &["--apart", "--forks", "4", "-o", "apart"]].concat());
    apart.exits(0).shows(&["cells that are SAME"]);
    for side in ["apart/trial-0001/a", "apart/trial-0001/b"] {
        lab.pagelab(&["report", side]).exits(0).shows(&["2 valid"]);
    }
}

#[test]
fn a_share_is_percent_or_a_fraction_wherever_one_is_taken() {
    let lab = Lab::new();
    let arms = ["run", "fault/latency", "--ab", "page=4k", "page=2m", "--dry-run"];
    for (percent, fraction) in [("3%", "0.03"), ("1 %", ".01")] {
        for share in [percent, fraction] {
            lab.pagelab(&["run", "limit/timer", "--precision", share, "--dry-run"]).exits(0);
            lab.pagelab(&[&arms[..], &["--delta", share]].concat()).exits(0);
        }
    }
    for words in [
        &["run", "limit/timer", "--dry-run", "--precision"][..],
        &[&arms[..], &["--delta"]].concat(),
        &["compare", "a", "b", "--delta"],
        &["selftest", "--power", "--delta"],
        &["selftest", "--power", "--planted"],
        &["try", "--delta"],
    ] {
        let ended = lab.pagelab(&[words, &["300%"]].concat());
        ended.exits(2).complains(&["`300%` is no share", "3% or 0.03"]);
    }
}

#[test]
fn every_command_that_measures_can_be_quiet() {
    let lab = Lab::new();
    lab.pagelab(&["advise", "--size", "4m", "-q"]).exits(2).complains(&["ask for 8m"]);
}

#[test]
fn a_run_that_is_being_written_is_waited_for_on_request() {
    let lab = Lab::new();
    lab.measure("run", &["limit/timer"]).exits(0);
    let journal = fs::File::open(lab.path("run/journal.jsonl")).unwrap();
    journal.lock().unwrap();
    for patience in [&[][..], &["--wait=0.1"]] {
        let ended = lab.pagelab(&[&["resume", "run"], patience].concat());
        let held = "another pagelab is writing this run: --wait waits for it to end";
        ended.exits(2).complains(&[held]);
    }
    drop(journal);
    lab.pagelab(&["resume", "run", "--wait"]).exits(0);
}
