//! Two runs compared by the program: exit codes, and what it says of bad input.

use std::fs;

use serde_json::{Value, json};

use crate::support::Lab;

/// A case of so many processes, each of which took about so many nanoseconds.
fn record(page: &str, ns: u64, processes: u64) -> Value {
    let series = |process: u64| {
        json!({
            "name": "fault", "arm": "pagelab", "process": process, "repetition": 0, "clock": "tsc",
            "unit": "ns", "ops": 1, "bytes": 4096,
            "values": (0..9).map(|n| ns + process % 5 + n % 3).collect::<Vec<_>>(),
        })
    };
    let all: Vec<Value> = (0..processes).map(series).collect();
    json!({
        "schema": "pagelab.record/1", "run": "run", "boot": "one", "workload": "fault/latency",
        "nature": "measured", "case": {"kind": "write", "page": page},
        "host": {
            "identity": {"cpu_model": "any", "kernel_release": "6.18"}, "settings": {},
            "volatile": {},
        },
        "outcome": {"measured": {"series": all}},
    })
}

fn header(version: &str) -> Value {
    json!({"schema": "pagelab.run/1", "run": "run", "pagelab": version, "plan": []})
}

fn write(lab: &Lab, name: &str, header: &Value, records: &[Value]) {
    let lines: Vec<String> =
        [header].into_iter().chain(records).map(|line| format!("{line}\n")).collect();
    lab.file(name, lines.concat());
}

/// `a`, and `b` that takes so many per cent more.
fn pair(more: u64) -> Lab {
    let lab = Lab::new();
    write(&lab, "a", &header("0.1.0"), &[record("4k", 100_000, 8)]);
    write(&lab, "b", &header("0.1.0"), &[record("4k", 100_000 + 1000 * more, 8)]);
    lab
}

#[test]
fn a_comparison_is_printed_and_ends_well() {
    let lab = pair(8);
    lab.pagelab(&["compare", "a", "b"]).exits(0).shows(&["SLOWER", "+8.0 %", "8+8"]);
    lab.pagelab(&["compare", "a", "a", "b", "--baseline", "b"]).exits(0).shows(&["FASTER"]);
    for format in ["markdown", "lkml", "json", "csv", "html"] {
        lab.pagelab(&["compare", "a", "b", "--format", format]).exits(0).shows(&["SLOWER"]);
    }
    lab.pagelab(&["compare", "a", "b", "--format", "html", "-o", "page.html"]).exits(0);
    assert!(fs::read_to_string(lab.path("page.html")).unwrap().contains("SLOWER"));
    let reported = lab.pagelab(&["report", "a", "b", "--format", "html"]);
    let page = fs::read_to_string(lab.path("page.html")).unwrap();
    assert_eq!(reported.exits(0).stdout.trim(), page.trim());
    lab.pagelab(&["compare", "a", "b", "-o", "page.html"]).exits(2).complains(&["page.html"]);
}

#[test]
fn a_threshold_fails_and_a_bisection_is_told_what_it_wants() {
    let lab = pair(8);
    let code = |words: &[&str], code| {
        lab.pagelab(&[&["compare", "a", "b"], words].concat()).exits(code);
    };
    code(&["--fail-on", "p50:3%"], 1);
    code(&["--fail-on", "p50:20%"], 0);
    code(&["--bisect"], 1);
    code(&["--bisect", "--fail-on", "p50:20%"], 0);
    lab.pagelab(&["compare", "a", "a", "--bisect"]).exits(0);
    lab.pagelab(&["compare", "a", "missing", "--bisect"]).exits(125).complains(&["missing"]);
    let few = Lab::new();
    write(&few, "a", &header("0.1.0"), &[record("4k", 100_000, 1)]);
    few.pagelab(&["compare", "a", "a", "--bisect"]).exits(125);
}

#[test]
fn what_is_not_comparable_has_its_code_and_a_cure() {
    let lab = pair(0);
    write(&lab, "newer", &header("0.2.0"), &[record("4k", 100_000, 8)]);
    let mut other = record("4k", 100_000, 8);
    other["host"]["identity"]["cpu_model"] = "another".into();
    write(&lab, "other", &header("0.1.0"), &[other]);
    write(&lab, "else", &header("0.1.0"), &[record("2m", 100_000, 8)]);
    lab.pagelab(&["compare", "a", "newer"]).exits(5).shows(&["--allow pagelab", "0.2.0"]);
    lab.pagelab(&["compare", "a", "newer", "--allow", "pagelab"]).exits(0).shows(&["SAME"]);
    lab.pagelab(&["compare", "a", "other"]).exits(5).shows(&["cpu_model", "another", "forbidden"]);
    lab.pagelab(&["compare", "a", "other", "--allow", "cpu_model"]).exits(0);
    lab.pagelab(&["compare", "a", "else"]).exits(5).shows(&["only in", "no case was measured"]);
    let mut invalid = record("4k", 100_000, 8);
    invalid["outcome"]["measured"]["witness"] =
        json!([{"claim": "major faults", "expected": 0, "observed": 1, "holds": false}]);
    write(&lab, "invalid", &header("0.1.0"), &[invalid]);
    lab.pagelab(&["compare", "a", "invalid"]).exits(6).shows(&["INVALID"]);
    let mut skipped = record("4k", 0, 0);
    skipped["outcome"] = json!({"skipped": {"need": "a pool", "cure": "make one"}});
    write(&lab, "skipped", &header("0.1.0"), &[skipped]);
    lab.pagelab(&["compare", "skipped", "skipped"]).exits(4).shows(&["a pool"]);
    lab.pagelab(&["compare", "published/page-fault-latency", "a"]).exits(5);
}

#[test]
fn what_an_older_version_does_not_state_is_as_it_was() {
    let lab = pair(0);
    let newer = |governor: &str| {
        let mut record = record("4k", 100_000, 8);
        record["case"]["governor"] = json!(governor);
        write(&lab, governor, &header("0.1.0"), &[record]);
        lab.pagelab(&["compare", "a", governor])
    };
    newer("as-is").exits(0).shows(&["SAME"]);
    newer("performance").exits(5).shows(&["only in"]);
}

#[test]
fn a_damaged_run_and_a_case_twice_are_said_and_compared() {
    let lab = pair(0);
    let twice = [record("4k", 500_000, 8), record("4k", 100_000, 8)];
    write(&lab, "twice", &header("0.1.0"), &twice);
    let ended = lab.pagelab(&["compare", "a", "twice"]);
    ended.exits(0).shows(&["SAME"]);
    assert!(ended.stderr.contains("the last record of each counts"), "{}", ended.stderr);
    let whole = fs::read_to_string(lab.path("a")).unwrap();
    lab.file("torn", format!("{whole}{{\"schema\":"));
    let ended = lab.pagelab(&["compare", "a", "torn"]);
    ended.exits(0).shows(&["SAME", "line 3 of"]);
    lab.file("none", "not a journal");
    lab.pagelab(&["compare", "a", "none"]).exits(2).complains(&["none", "line 1"]);
}

/// One boot of a machine on which a boot moves everything: so many nanoseconds, its own name.
fn boot(name: &str, ns: u64) -> Value {
    let mut record = record("4k", ns, 8);
    record["boot"] = name.into();
    record
}

#[test]
fn several_boots_of_a_side_are_its_units_and_say_how_many_would_decide() {
    let lab = Lab::new();
    // Boots lie 4 % apart, processes of one next to nothing.
    for (nth, more) in [0, 4000, 1000, 3000, 2000, 500].into_iter().enumerate() {
        let ns = 100_000 + more;
        write(&lab, &format!("a{nth}"), &header("0.1.0"), &[boot(&format!("a{nth}"), ns)]);
        write(&lab, &format!("b{nth}"), &header("0.1.0"), &[boot(&format!("b{nth}"), ns + 20_000)]);
    }
    let compare = |a: &str, b: &str| lab.pagelab(&["compare", a, b]);
    // Of one boot each, 48 processes would call a boot a difference.
    compare("a0", "a1").exits(0).shows(&["SLOWER", "each side is of one boot"]);
    let three = compare("a0,a2,a4", "a1,a3,a5");
    three.exits(0).shows(&["INCONCLUSIVE", "sides of 3 and 3 boots", "fewer than four boots"]);
    let six = compare("a0,a1,a2,a3,a4,a5", "b0,b1,b2,b3,b4,b5");
    six.exits(0).shows(&["SLOWER", "sides of 6 and 6 boots", "48+48"]);
    // What differs within a side forbids as much.
    let mut other = boot("c", 100_000);
    other["host"]["identity"]["cpu_model"] = "another".into();
    write(&lab, "c", &header("0.1.0"), &[other]);
    compare("a0,c", "b0").exits(5).shows(&["cpu_model"]);
    write(&lab, "newer", &header("0.2.0"), &[boot("d", 100_000)]);
    compare("a0,newer", "b0").exits(2).complains(&["0.2.0", "one version"]);
    compare("a0,a0", "b0").exits(2).complains(&["a0 is named twice"]);
    compare("a0,none", "b0").exits(2).complains(&["none"]);
}

#[test]
fn a_run_against_itself_is_said_and_an_unknown_fact_is_refused_by_name() {
    let lab = pair(0);
    let ended = lab.pagelab(&["compare", "a", "a"]);
    ended.exits(0).shows(&["SAME"]);
    assert!(ended.stderr.contains("a is compared with itself"), "{}", ended.stderr);
    let ended = lab.pagelab(&["compare", "a", "b", "--allow", "kernel_relase"]);
    ended.exits(2).complains(&["--allow kernel_relase is no fact", "kernel_release"]);
    lab.pagelab(&["compare", "a", "b", "--allow", "mitigations.retbleed,kernel_config"]).exits(0);
}

#[test]
fn flags_that_make_no_sense_are_refused_by_name() {
    let lab = pair(0);
    let refused = |words: &[&str], of: &[&str]| {
        lab.pagelab(&[&["compare"], words].concat()).exits(2).complains(of);
    };
    refused(&["a"], &["--by page"]);
    refused(&["a", "b", "--delta", "300%"], &["300%", "3%"]);
    refused(&["a", "b", "--metric", "mean"], &["mean", "p99.9"]);
    refused(&["a", "b", "--fail-on", "p50"], &["p50:3%"]);
    refused(&["a", "b", "--baseline", "c"], &["c is none of a, b"]);
    refused(&["a", "--by", "page"], &["all records agree"]);
    refused(&["a", "published/nothing"], &["nothing", "micro-pagefault"]);
    refused(&["a", "b", "--floor", "a"], &["a"]);
}
