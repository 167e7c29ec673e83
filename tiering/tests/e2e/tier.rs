//! `pagelab tier simulate`: what comes out of a scenario, and what is said of one that is wrong.

use pagelab_record::Nature;
use serde_json::Value;

use crate::support::{Ended, Lab, measured};

/// A scenario that takes no time: 16 MiB, two runs, two published results.
const SMALL: &str = r#"
name = "small"
summary = "a test"
seed = 1
generator = "uniform"

[memory]
size = "16m"
fast = { value = "16m", assumed = "all of it" }

[work]
accesses = 40960000
threads = 4
stores = 0.5

[curve]
fast = { value = "1s", fitted = "HOT/time_s" }
slow = { value = "4s", identity = "STILL/time_s" }

[sampling]
period = 10000

[[run]]
source = "STILL"
policy = "none"

[[run]]
source = "HOT"
policy = "pghot:threshold=1"

[published]
"STILL/time_s" = { value = 4, source = "a test" }
"HOT/time_s" = { value = 3, source = "a test" }
"HOT/pgpromote_success" = { value = 2500, source = "a test", chance = "occupancy", runs = 3 }
"#;

fn simulate(lab: &Lab, words: &[&str]) -> Ended {
    lab.pagelab(&[&["tier", "simulate", "-q"], words].concat())
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}:\n{ended:?}"))
}

fn row<'v>(found: &'v Value, source: &str, metric: &str) -> &'v Value {
    let rows = found["rows"].as_array().unwrap();
    let mine = |row: &&Value| row["source"] == source && row["metric"] == metric;
    rows.iter().find(mine).unwrap_or_else(|| panic!("no {source}/{metric} in {found:#}"))
}

#[test]
fn a_scenario_sets_published_beside_simulated() {
    let lab = Lab::new();
    lab.file("small.toml", SMALL);
    let words = ["--scenario", "small.toml", "--format", "json", "-o", "run"];
    let ended = simulate(&lab, &words);
    ended.exits(0);
    let found = json(&ended);
    let keys: Vec<&String> = found.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["preset", "rows"]);
    let of_row: Vec<&String> = found["rows"][0].as_object().unwrap().keys().collect();
    assert_eq!(of_row, ["error", "kind", "metric", "published", "simulated", "source"]);
    let still = row(&found, "STILL", "time_s");
    assert_eq!((still["kind"].as_str(), still["error"].as_f64()), (Some("identity"), Some(0.0)));
    assert_eq!(row(&found, "HOT", "time_s")["kind"], "fitted");
    let promoted = row(&found, "HOT", "pgpromote_success");
    assert_eq!(promoted["kind"], "predicted");
    // 4096 samples over 4096 pages reach all but one in e of them.
    let pages = promoted["simulated"].as_f64().unwrap();
    assert!((pages / 4096.0 - 0.632).abs() < 0.03, "{pages}");
    assert!(row(&found, "HOT", "hwhint_total_events")["published"].is_null());

    let records = lab.records("run");
    assert_eq!((records.len(), records[0].nature), (1, Nature::Simulated));
    let measured = measured(&records[0]);
    assert!(measured.is_valid());
    assert_eq!(measured.counters["hwhint_total_events/HOT"], 4095);
    let shares = measured.table("shares/HOT").unwrap();
    assert!(shares.rows.len() > 2 && shares.rows.len() <= 201, "{}", shares.rows.len());
    lab.pagelab(&["report", "run"]).exits(0).shows(&[
        "Published beside simulated",
        "3 published numbers: 1 put in (identity), 1 fitted by 1 constant, which leaves 0 degrees \
         of freedom among them, and 1 predicted.",
        "times come from a script or a model",
    ]);
}

#[test]
fn the_same_scenario_gives_the_same_rows_and_another_one_others() {
    let lab = Lab::new();
    lab.file("small.toml", SMALL);
    lab.file("other.toml", SMALL.replace("value = \"1s\"", "value = \"2s\""));
    let rows = |file: &str, out: &str| {
        let ended = simulate(&lab, &["--scenario", file, "--format", "json", "-o", out]);
        ended.exits(0);
        json(&ended)["rows"].clone()
    };
    assert_eq!(rows("small.toml", "a"), rows("small.toml", "b"));
    let (one, other) = (rows("small.toml", "c"), rows("other.toml", "d"));
    assert_ne!(one, other);
    let digest = |run: &str| measured(&lab.records(run)[0]).counters["digest/HOT"];
    assert_eq!(digest("a"), digest("b"));
    assert_ne!(digest("a"), digest("d"));
}

#[test]
fn a_grid_is_a_case_for_each_in_the_order_of_the_plan() {
    let lab = Lab::new();
    lab.file("small.toml", SMALL);
    let words = [
        "--scenario",
        "small.toml",
        "--period",
        "5000,10000,20000",
        "--threshold",
        "1,2",
        "--format",
        "json",
        "-o",
        "run",
    ];
    let ended = simulate(&lab, &words);
    ended.exits(0);
    let found = json(&ended);
    let of = |case: &Value| {
        let text = |name: &str| case["case"][name].as_str().unwrap().to_owned();
        (text("period"), text("threshold"))
    };
    let cases: Vec<(String, String)> = found.as_array().unwrap().iter().map(of).collect();
    let records = lab.records("run");
    let planned: Vec<(String, String)> = records
        .iter()
        .map(|record| {
            let text = |name: &str| record.case.get(name).unwrap().to_owned();
            (text("period"), text("threshold"))
        })
        .collect();
    assert_eq!(cases, planned);
    assert_eq!(cases.len(), 6);
    assert_eq!(cases[0], ("5000".to_owned(), "1".to_owned()));
    // Half the period is twice the samples, and another experiment than the published one.
    let first = &found[0];
    assert_eq!(row(first, "HOT", "hwhint_total_events")["simulated"], 8191.0);
    assert!(row(first, "HOT", "time_s")["published"].is_null());
    // What does not sample is what it was.
    assert_eq!(row(first, "STILL", "time_s")["kind"], "identity");
}

#[test]
fn policies_are_arms_and_regret_is_shown() {
    let lab = Lab::new();
    lab.file("small.toml", SMALL);
    let words = [
        "--scenario",
        "small.toml",
        "--policy",
        "none,pghot:threshold=1+window=1000,oracle",
        "--fast",
        "50%",
        "--generator",
        "uniform,zipf",
        "-o",
        "run",
    ];
    let ended = simulate(&lab, &words);
    ended.exits(0).shows(&["Regret against the oracle", "pghot:threshold=1+window=1000"]);
    let records = lab.records("run");
    assert_eq!(records.len(), 2);
    for record in &records {
        let of = |name: &str| measured(record).counters[name];
        assert_eq!(of("pgpromote_success/none"), 0);
        assert_eq!(of("pages/oracle"), 4096);
    }
}

#[test]
fn a_trace_is_simulated_access_by_access() {
    let lab = Lab::new();
    lab.file("small.toml", SMALL);
    let op = |at: u64| [&[2, 8][..], &(0x1000 * (at % 64)).to_le_bytes()].concat();
    lab.file("t.bin", (0..20_000).flat_map(op).collect::<Vec<u8>>());
    let words = [
        "--scenario",
        "small.toml",
        "--trace",
        "t.bin",
        "--policy",
        "none,oracle",
        "--fast",
        "128k",
        "-o",
        "run",
    ];
    simulate(&lab, &words).exits(0);
    let record = &lab.records("run")[0];
    assert_eq!(measured(record).counters["pages/none"], 64);
    assert_eq!(measured(record).counters["accesses/none"], 20_000);
    // Fetches of instructions are no accesses to data.
    let fetch = |at: u64| [&[2, 2][..], &(0x1000 * at).to_le_bytes()].concat();
    lab.file("code.bin", (0..100).flat_map(fetch).collect::<Vec<u8>>());
    let words =
        ["--scenario", "small.toml", "--trace", "code.bin", "--policy", "none", "-o", "code"];
    simulate(&lab, &words).exits(1).complains(&["code.bin", "data"]);
    let words = ["--scenario", "small.toml", "--trace", "no.bin", "--policy", "none", "-o", "no"];
    let ended = simulate(&lab, &words);
    assert_ne!(ended.code, Some(0), "{ended:?}");
    ended.complains(&["no.bin"]);
}

#[test]
fn what_is_wrong_with_a_scenario_is_said_with_its_line() {
    let lab = Lab::new();
    let swap = |from: &str, to: &str| SMALL.replace(from, to);
    for (text, named) in [
        (swap("threads = 4", "threads = four"), "line 13"),
        (swap("threads = 4", "thread = 4"), "line 13"),
        (swap("size = \"16m\"", "size = 0"), "pages"),
        (swap("fast = { value = \"16m\", assumed = \"all of it\" }", "fast = 0"), "tier"),
        (swap("accesses = 40960000", "accesses = 0"), "accesses"),
        (swap("period = 10000", "period = 0"), "period"),
        (swap("[sampling]", "[mover]\nrate-limit = 0\n[sampling]"), "rate-limit"),
        (swap("policy = \"none\"", "policy = \"nothing\""), "all-at-once"),
        (swap("HOT/pgpromote_success", "HOT/promoted"), "pgpromote_success"),
        (swap("fitted = \"HOT/time_s\"", "fitted = \"COLD/time_s\""), "COLD/time_s"),
        (swap("slow = { value = \"4s\"", "slow = { value = \"-4s\""), "-4s"),
        (swap("slow = { value = \"4s\", identity = \"STILL/time_s\" }", ""), "[curve] slow"),
        ("name = 'x'\nsummary = ''\nrun = []".to_owned(), "[[run]]"),
    ] {
        lab.file("bad.toml", &text);
        let ended = simulate(&lab, &["--scenario", "bad.toml"]);
        ended.exits(2).complains(&[named]);
    }
    simulate(&lab, &["--rate-limit", "0"]).exits(2).complains(&["--rate-limit"]);
    simulate(&lab, &["--fast", "0%"]).exits(2).complains(&["--fast"]);
    simulate(&lab, &["--preset", "pghot"]).exits(2).complains(&["pghot-v7/scan-1s", "--scenario"]);
    simulate(&lab, &["--scenario", "none.toml"]).exits(2).complains(&["none.toml"]);
    simulate(&lab, &["--policy", "hot"]).exits(2).complains(&["no policy", "oracle"]);
    assert!(!lab.path("pagelab-runs").exists(), "a mistake leaves nothing behind");
}
