//! A run as something to read, in every format, now and later.

use std::fs;

use pagelab_record::{Nature, Record};
use serde_json::Value;

use crate::support::{Ended, Lab, Machine, with_huge_pages};

/// A run with one record of each outcome but a failed one.
fn mixed(lab: &Lab) {
    let cases = [
        "fault/latency page=4k size=1m rounds=2",
        "fault/latency page=4k size=2m rounds=2 lie=present",
        "fault/throughput page=4k size=512t",
    ];
    lab.measure("run", &cases).exits(6);
}

fn report(lab: &Lab, format: &str) -> String {
    let ended = lab.pagelab(&["report", "run", "--format", format]);
    ended.exits(0);
    assert_eq!(ended.stderr, "", "{format}");
    ended.stdout
}

#[test]
fn json_holds_every_case_with_its_outcome() {
    let lab = Lab::new();
    mixed(&lab);
    let json: Value = serde_json::from_str(&report(&lab, "json")).unwrap();
    assert_eq!(json["run"], "run");
    assert_eq!(json["cases"].as_array().unwrap().len(), 3);
    let text = json.to_string();
    assert!(text.contains("minor faults of the loop") && text.contains("512 TiB of memory"));
}

/// The cells of a line of CSV.
fn cells(line: &str) -> usize {
    let outside = line.split('"').step_by(2);
    1 + outside.map(|text| text.matches(',').count()).sum::<usize>()
}

#[test]
fn csv_is_rectangular_and_quotes_no_number_of_an_invalid_case() {
    let lab = Lab::new();
    mixed(&lab);
    let csv = report(&lab, "csv");
    let mut lines = csv.lines();
    let header = lines.next().unwrap();
    assert!(header.starts_with("run,workload,lie,size,standing,"), "{header}");
    assert!(csv.lines().all(|line| cells(line) == cells(header)), "{csv}");
    assert!(
        lines.clone().any(|line| line.contains(",none,1048576,") && line.contains(",p50,")),
        "{csv}"
    );
    let of_the_lie: Vec<&str> = lines.filter(|line| line.contains(",present,")).collect();
    assert!(of_the_lie.iter().all(|line| !line.contains(",p50,")), "{of_the_lie:?}");
}

#[test]
fn markdown_has_tables_and_names_the_invalid_case() {
    let lab = Lab::new();
    mixed(&lab);
    let markdown = report(&lab, "markdown");
    assert!(markdown.starts_with("# ") && markdown.contains("INVALID"), "{markdown}");
    assert!(markdown.lines().any(|line| line.starts_with('|')), "{markdown}");
}

#[test]
fn html_is_one_file_that_opens_offline_and_is_what_the_run_left() {
    let lab = Lab::new();
    mixed(&lab);
    let html = report(&lab, "html");
    assert!(html.to_lowercase().starts_with("<!doctype html>"));
    for outside in ["src=\"http", "href=\"http", "src=\"//", "@import", "url(http"] {
        assert!(!html.contains(outside), "{outside}");
    }
    let left = fs::read_to_string(lab.path("run/report.html")).unwrap();
    // Without assert_eq: two pages of HTML in a message help nobody.
    assert!(left.trim_end() == html.trim_end(), "report.html is not what report makes of the run");
}

#[test]
fn a_number_is_read_back_to_its_last_digit() {
    let lab = Lab::new();
    lab.measure("run", &["fault/latency page=4k size=1m rounds=2"]).exits(0);
    let journal = lab.path("run/journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    // One that a quick parser gets wrong by one in the last digit.
    let exact = "\"load_1m\":0.0009953734954217105";
    let (before, after) = text.split_once("\"load_1m\":").expect("the load is recorded");
    let rest = &after[after.find([',', '}']).unwrap()..];
    fs::write(&journal, format!("{before}{exact}{rest}")).unwrap();
    let json = report(&lab, "json").replace(": ", ":");
    assert!(json.contains(exact), "the number came back as another");
}

#[test]
fn a_report_goes_into_a_new_file_and_never_over_an_old_one() {
    let lab = Lab::new();
    mixed(&lab);
    for format in ["json", "csv", "markdown", "html", "terminal"] {
        let words = ["report", "run", "--format", format, "-o", format];
        assert_eq!(lab.pagelab(&words).exits(0).stdout, "");
        let written = fs::read_to_string(lab.path(format)).unwrap();
        assert_eq!(written, report(&lab, format));
        lab.pagelab(&words).exits(2).complains(&["cannot create", format, "exists"]);
        assert_eq!(fs::read_to_string(lab.path(format)).unwrap(), written);
    }
}

#[test]
fn several_runs_are_reported_one_after_the_other() {
    let lab = Lab::new();
    for run in ["one", "two"] {
        lab.measure(run, &["fault/latency page=4k size=1m rounds=2"]).exits(0);
    }
    let both = lab.pagelab(&["report", "one", "two"]);
    both.exits(0);
    let single = |run: &str| lab.pagelab(&["report", run]).stdout;
    assert_eq!(both.stdout, single("one") + &single("two"));
    let page = lab.pagelab(&["report", "one", "two", "--format", "html"]);
    page.exits(0).shows(&["one → two"]);
}

#[test]
fn published_results_stand_beside_the_suite_that_repeats_them() {
    // It turns knobs where it may, and its ragged case needs small folios to be off.
    let _machine = Machine::alone();
    let lab = Lab::new();
    let small = ["--size", "16m", "--rounds", "2", "--forks", "1", "--budget", "0.5"];
    let small = [&small[..], &["--time-limit", "600"]].concat();
    let words = ["run", "--suite", "micro-pagefault", "-q", "-o", "run"];
    let ended = with_huge_pages(
        |ended: &Ended| ended.code == Some(0),
        || {
            let _ = fs::remove_dir_all(lab.path("run"));
            lab.pagelab(&[&words[..], &small].concat())
        },
    );
    ended.exits(0).shows(&["published", "Published numbers come from another machine"]);
    // They are shown beside the run, not mixed into it.
    let of_others = |record: &Record| record.nature == Nature::Published;
    assert!(!lab.records("run").iter().any(of_others));
    let json: Value = serde_json::from_str(&report(&lab, "json")).unwrap();
    let published = json["published"].as_array().unwrap();
    assert!(published.iter().any(|case| case["counters"]["faults"] == 112_620), "{published:?}");
}

#[test]
fn anybodys_own_publication_stands_beside_a_run_and_a_mistake_in_it_is_named() {
    let lab = Lab::new();
    lab.measure("run", &["fault/latency page=4k size=1m rounds=2"]).exits(0);
    let claims = "title = 'Their paper'\nworkload = 'fault/latency'\n\
        [figures.write]\nworkload = 'fault/latency'\nseries = 'fault'\n\
        [[claims]]\nname = 'it is cheap'\nverdict = 'verdict(of(\"write\"), 1, 1000000000)'\n\
        agrees = 'A fault takes {{ of(\"write\") }}.'\nopen = 'a'\nrefuted = 'b'\n";
    fs::create_dir(lab.path("their-paper")).unwrap();
    lab.file("their-paper/records.jsonl", "");
    lab.file("their-paper/claims.toml", claims);
    let report = lab.pagelab(&["report", "run", "--published", "their-paper"]);
    report.exits(0).shows(&["Their paper", "agrees: it is cheap: A fault takes "]);
    lab.file("their-paper/claims.toml", claims.replace("workload = 'f", "workload_ = 'f"));
    let refused = lab.pagelab(&["report", "run", "--published", "their-paper"]);
    refused.exits(2).complains(&["their-paper/claims.toml:4: unknown field `workload_`"]);
    let refused = lab.pagelab(&["report", "run", "--published", "nosuch"]);
    refused.exits(2).complains(&["nosuch/records.jsonl", "a folder with records.jsonl"]);
}

#[test]
fn a_run_is_printed_as_the_program_of_a_publication_would_have() {
    let lab = Lab::new();
    let suite = lab.suite(&[
        "fault/throughput page=4k size=4m rounds=2 touch=8@4k",
        "fault/throughput page=4k size=4m rounds=2 touch=8@4k populate=madvise-populate",
        "fault/throughput page=2m size=4m rounds=2 touch=8@4k align=ragged",
        "limit/timer",
    ]);
    let words = ["run", "--suite", &suite, "--wait", "-q", "-o", "run"];
    let ended = with_huge_pages(
        |ended: &Ended| ended.code == Some(0),
        || {
            let _ = fs::remove_dir_all(lab.path("run"));
            lab.pagelab(&words)
        },
    );
    ended.exits(0);
    let frame = lab.pagelab(&["report", "run", "--frame"]);
    frame.exits(0).shows(&["Populate  Mode   :      1", "Populate  Mode   :      0", "ragged"]);
    assert!(!frame.stdout.contains("Witness"), "{}", frame.stdout);
    lab.pagelab(&["report", "run", "--frame", "--format", "json"]).exits(2);
    let other = lab.suite(&["limit/timer"]);
    lab.pagelab(&["run", "--suite", &other, "--wait", "-q", "-o", "other"]).exits(0);
    lab.pagelab(&["report", "other", "--frame"]).exits(2).complains(&["no case"]);
}
