//! What is wrong with a command line, a suite or a place is said by name, before any measuring.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::Path,
};

use pagelab_record::Outcome;

use crate::support::{Ended, Lab, Machine, binary, is_root, pool, skip};

/// Refused with exit 2 and these words, with nothing measured and nothing left behind.
#[track_caller]
fn is_refused(words: &[&str], named: &[&str]) {
    let lab = Lab::new();
    lab.pagelab(words).exits(2).complains(named);
    assert_eq!(fs::read_dir(lab.path(".")).unwrap().count(), 0, "something was left behind");
}

#[test]
fn an_argument_that_is_not_utf8_is_refused_by_every_command() {
    let lab = Lab::new();
    let odd = OsStr::from_bytes(b"\xff");
    for command in [
        "",
        "run",
        "run fault/latency",
        "list",
        "check",
        "doctor",
        "report",
        "resume",
        "selftest",
        "advise",
        "explain --pid",
        "completions",
        "help",
        "trace",
        "trace synth",
        "trace stats",
        "trace replay",
        "trace verify",
        "trace capture -o",
        "tier",
        "tier simulate",
        "tier promote --pid",
        "tier replay",
        "tier status",
    ] {
        let mut words: Vec<&OsStr> = command.split_whitespace().map(OsStr::new).collect();
        words.push(odd);
        let ended = lab.pagelab(&words);
        assert_eq!(ended.code, Some(2), "{command}: {}", ended.stderr);
    }
    // The hidden ones take no words of anybody's.
    let ended = lab.pagelab(&[OsStr::new("__case"), odd]);
    assert!(ended.code.is_some_and(|code| code != 101), "{}", ended.stderr);
    assert_eq!(fs::read_dir(lab.path(".")).unwrap().count(), 0, "something was left behind");
}

#[test]
fn an_unknown_workload_is_refused_by_name() {
    is_refused(&["run", "fault/nothing"], &["fault/nothing"]);
    is_refused(&["list", "fault/nothing"], &["`fault/nothing`", "fault/throughput"]);
}

#[test]
fn an_unknown_parameter_is_refused_by_name() {
    is_refused(&["run", "fault/throughput", "--pages", "4k"], &["--pages"]);
    is_refused(&["run", "limit/timer", "--page", "4k"], &["--page"]);
}

#[test]
fn an_unknown_word_is_refused_with_the_words_there_are() {
    let words = ["run", "fault/throughput", "--order", "sideways"];
    is_refused(&words, &["sideways", "ascending", "random"]);
}

#[test]
fn a_page_size_that_does_not_exist_is_refused_with_those_that_do() {
    for page in ["5k", "0", "3m", "hugetlb-4m", "huge"] {
        is_refused(&["run", "fault/throughput", "--page", page], &[page, "hugetlb-2m", "--page"]);
    }
}

#[test]
fn a_size_that_is_none_is_refused_by_name() {
    for size in ["0", "12q", "-4k", "1.5.2m", "", "99999999999999999999g"] {
        let size_is = format!("--size={size}");
        is_refused(&["run", "fault/throughput", &size_is], &["--size", size]);
    }
}

#[test]
fn a_count_out_of_bounds_is_refused_with_the_bounds() {
    is_refused(&["run", "fault/throughput", "--threads", "0"], &["--threads", "from 1 to"]);
    is_refused(&["run", "fault/throughput", "--rounds", "x"], &["--rounds", "from 1 to"]);
    is_refused(&["run", "fault/throughput", "--forks", "0"], &["--forks", "from 1 to 1000"]);
    is_refused(&["run", "fault/throughput", "--budget=-1"], &["--budget"]);
    for time in ["inf", "1e12"] {
        is_refused(&["run", "--time-limit", time], &["--time-limit", time, "at most 31536000"]);
    }
}

#[test]
fn a_touch_or_a_list_of_cpus_that_is_none_is_refused() {
    is_refused(&["run", "fault/throughput", "--touch", "8by4k"], &["--touch", "8by4k"]);
    is_refused(&["run", "fault/throughput", "--cpu", "1-x"], &["--cpu", "1-x", "0-3"]);
}

#[test]
fn a_combination_that_would_measure_something_else_is_refused_with_the_reason() {
    let words = ["run", "fault/throughput", "--page", "4k", "--align", "ragged"];
    is_refused(&words, &["align=ragged", "no ends smaller than a base page"]);
    let words = ["run", "fault/latency", "--page", "64k", "--kind", "read"];
    is_refused(&words, &["kind=read", "zero page"]);
}

#[test]
fn a_rate_or_a_host_that_makes_no_sense_is_refused() {
    is_refused(&["run", "fault/latency", "--rate", "0"], &["--rate 0", "1 to 100m", "max"]);
    is_refused(&["run", "fault/latency", "--host", "tepid"], &["tepid", "warm", "cold"]);
    let words = ["run", "fault/latency", "--host", "cold", "--kind", "present"];
    is_refused(&words, &["host=cold", "nothing is cold"]);
    let words = ["run", "fault/latency", "--rate", "1k", "--fifo", "--size", "8m"];
    is_refused(&words, &["rate and fifo", "smaller size"]);
}

#[test]
fn an_unknown_suite_is_refused_with_those_there_are() {
    is_refused(&["run", "--suite", "quickly"], &["`quickly`", "quick", "micro-pagefault"]);
    is_refused(&["run", "--suite", "./none.toml"], &["./none.toml", "No such file"]);
}

#[test]
fn a_suite_flag_before_a_workload_is_refused_with_what_to_do() {
    is_refused(&["run", "--size", "4m", "fault/latency"], &["--size", "after fault/latency"]);
}

/// A suite of this text is refused with exit 2, its own name and these words.
#[track_caller]
fn suite_is_refused(text: &str, named: &[&str]) {
    let lab = Lab::new();
    lab.file("mine.toml", text);
    let refused = lab.pagelab(&["run", "--suite", "./mine.toml", "-o", "run"]);
    refused.exits(2).complains(named);
    assert!(!lab.path("run").exists());
}

#[test]
fn an_unknown_key_of_a_suite_is_refused_by_name() {
    let case = "[[case]]\nworkload = 'fault/latency'\n";
    suite_is_refused(&format!("name = 'x'\nspeed = 3\n{case}"), &["./mine.toml", "`speed`"]);
    let unknown = format!("name = 'x'\n{case}pages = '4k'\n");
    suite_is_refused(&unknown, &["./mine.toml", "`pages`", "fault/latency", "order"]);
}

#[test]
fn an_unknown_workload_or_value_of_a_suite_is_refused_by_name() {
    let suite = "name = 'x'\n[[case]]\nworkload = 'fault/late'\n";
    suite_is_refused(suite, &["./mine.toml", "`fault/late`"]);
    let suite = "name = 'x'\n[[case]]\nworkload = 'fault/latency'\nsize = '4q'\n";
    suite_is_refused(suite, &["`x`", "case 1", "4q"]);
}

#[test]
fn a_suite_has_the_bounds_of_the_flags() {
    let case = "[[case]]\nworkload = 'fault/latency'\n";
    for (key, bounds) in [
        ("limit = inf", "at most 31536000"),
        ("limit = 1e12", "at most 31536000"),
        ("budget = inf", "at most 31536000"),
        ("forks = 1_000_000_000", "from 1 to 1000"),
    ] {
        let name = key.split(' ').next().unwrap();
        suite_is_refused(&format!("name = 'x'\n{key}\n{case}"), &["./mine.toml", name, bounds]);
        suite_is_refused(&format!("name = 'x'\n{case}{key}\n"), &["case 1", name, bounds]);
    }
}

#[test]
fn published_results_that_do_not_exist_are_refused_before_anything_is_measured() {
    let suite = "name = 'x'\npublished = 'nosuch'\n[[case]]\nworkload = 'fault/latency'\n";
    suite_is_refused(suite, &["./mine.toml", "`nosuch`", "micro-pagefault"]);
}

#[test]
fn a_product_of_a_million_cases_is_refused_with_their_number() {
    let numbers: Vec<String> = (1..=1000).map(|number| number.to_string()).collect();
    let numbers = numbers.join(",");
    let words = ["run", "fault/throughput", "--rounds", &numbers, "--threads", &numbers];
    is_refused(&words, &["1000000 cases", "at most 120000"]);
}

#[test]
fn a_suite_that_is_no_toml_is_refused_with_the_line() {
    suite_is_refused("name = 'x'\n[[case\n", &["./mine.toml", "line 2"]);
}

#[test]
fn more_memory_than_there_is_is_said_before_anything_is_measured() {
    let lab = Lab::new();
    for workload in ["fault/throughput", "fault/latency"] {
        let refused = lab.pagelab(&["run", workload, "--size", "1024t", "-o", "run"]);
        refused.exits(3).complains(&["this host lacks", "choose a smaller --size", "limited by"]);
        assert!(refused.stdout.is_empty() && !lab.path("run").exists());
    }
}

#[test]
fn a_suite_skips_what_does_not_fit_and_measures_the_rest() {
    let lab = Lab::new();
    let ended =
        lab.measure("run", &["fault/throughput size=512t", "fault/latency size=1m rounds=2"]);
    ended.exits(0).complains(&["skipped, needs 512 TiB of memory"]);
    let records = lab.records("run");
    assert!(
        matches!(&records[0].outcome, Outcome::Skipped { cure, .. } if cure.contains("--size"))
    );
    assert!(matches!(records[1].outcome, Outcome::Measured(_)));
}

/// Refused because of its place: exit 2, the place's name, nothing measured.
#[track_caller]
fn place_is_refused(ended: &Ended, named: &[&str]) {
    ended.exits(2).complains(named);
    assert!(!ended.stderr.contains("[1/") && ended.stdout.is_empty(), "{}", ended.stderr);
}

#[test]
fn a_place_that_cannot_be_made_is_told_before_measuring() {
    let lab = Lab::new();
    lab.file("file", "");
    place_is_refused(&lab.measure("file/run", &["limit/timer"]), &["file/run"]);
    place_is_refused(&lab.measure("/proc/pagelab-run", &["limit/timer"]), &["/proc/pagelab-run"]);
}

#[test]
fn a_place_that_holds_a_run_already_is_not_written_to() {
    let lab = Lab::new();
    lab.measure("run", &["fault/latency size=1m rounds=2"]).exits(0);
    let before = lab.lines("run");
    let again = lab.measure("run", &["fault/latency size=1m rounds=2"]);
    place_is_refused(&again, &["run holds a run already", "pagelab resume run"]);
    assert_eq!(lab.lines("run"), before);
}

/// Runs the binary as somebody who owns nothing, in a place where they may write.
fn unprivileged(lab: &Lab, words: &[&str]) -> Option<Ended> {
    if !is_root() {
        return Some(lab.pagelab(words));
    }
    let is_there = |program: &str| {
        ["/usr/bin", "/bin", "/usr/sbin"].iter().any(|d| Path::new(d).join(program).exists())
    };
    if !is_there("setpriv") {
        skip("setpriv is not here", "install util-linux, or run the tests without root");
        return None;
    }
    // The build's own directory may be closed to others.
    let copy = lab.program(binary(), "pagelab");
    fs::set_permissions(lab.path("."), fs::Permissions::from_mode(0o755)).unwrap();
    let open = lab.path("open");
    fs::create_dir_all(&open).unwrap();
    fs::set_permissions(open, fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = assert_cmd::Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    Some(lab.ended(command.arg(copy).args(words)))
}

#[test]
fn a_pool_that_is_missing_is_skipped_with_the_command_that_makes_it() {
    let _machine = Machine::alone();
    let Some((_saved, pool)) = pool(32) else { return };
    let lab = Lab::new();
    let case = "fault/throughput page=hugetlb-2m size=64m rounds=2";
    let suite = lab.suite(&[case]);
    let words = ["run", "--suite", &suite, "-o", "open/run"];
    fs::create_dir(lab.path("open")).unwrap();
    let Some(ended) = unprivileged(&lab, &words) else { return };
    let missing = 32 - (pool.free - pool.reserved);
    let cure = format!("echo {} | sudo tee {}", pool.pages + missing, pool.path.display());
    ended.exits(4).complains(&["skipped, needs 32 free hugetlb pages of 2m"]).shows(&[&cure]);
    let records = lab.records("open/run");
    let expected = Outcome::Skipped { need: "32 free hugetlb pages of 2m".to_owned(), cure };
    assert_eq!(records[0].outcome, expected);
}

#[test]
fn a_skipped_case_beside_a_measured_one_is_fine() {
    let _machine = Machine::alone();
    if pool(32).is_none() {
        return;
    }
    let lab = Lab::new();
    let hugetlb = "fault/throughput page=hugetlb-2m size=64m rounds=2";
    let suite = lab.suite(&[hugetlb, "fault/latency size=1m rounds=2"]);
    fs::create_dir(lab.path("open")).unwrap();
    let words = ["run", "--suite", &suite, "-o", "open/run"];
    if let Some(ended) = unprivileged(&lab, &words) {
        ended.exits(0);
    }
}

#[test]
fn a_place_that_may_not_be_written_is_told_before_measuring() {
    let lab = Lab::new();
    let suite = lab.suite(&["fault/latency size=1m rounds=2"]);
    let closed = lab.path("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    for (place, named) in [("closed", "closed/journal.jsonl"), ("closed/run", "closed/run")] {
        let words = ["run", "--suite", &suite, "-o", place];
        let Some(ended) = unprivileged(&lab, &words) else { return };
        place_is_refused(&ended, &[named, "ermission denied"]);
    }
}
