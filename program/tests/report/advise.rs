//! Advice: the ranking, ties, what is named and why, in every form.

use pagelab_program::views::advise;
use pagelab_record::{Asked, Clock, Data, Measured, Outcome, Record, RunHeader, vocabulary::Check};
use pagelab_report::{Forms, Report, Style};
use serde_json::{Value, json};

use crate::made;

const SAMPLE: u64 = 128 << 20;
const PLAIN: Style = Style { color: false, width: 160 };
const POOL: &str = "512 free hugetlb pages of 2m";

/// Page, way, threads, effort, whether the machine has what it needs, and ns for 4 KiB.
type Row = (&'static str, &'static str, u64, u64, bool, Option<f64>);

/// Touching huge pages in one thread and in two is as fast; the pool is faster and is not there.
const ROWS: [Row; 5] = [
    ("4k", "touch", 1, 0, true, Some(252.0)),
    ("2m", "touch", 1, 4, true, Some(101.0)),
    ("2m", "madvise-populate-each", 2, 15, true, Some(100.8)),
    ("hugetlb-2m", "touch", 1, 30, false, Some(94.0)),
    ("64k", "touch", 2, 20, true, None),
];

fn name((page, populate, threads, ..): &Row) -> String {
    let crew = if *threads > 1 { " ×2" } else { "" };
    format!("{populate} {page}{crew}")
}

fn asked(rows: &[Row]) -> Value {
    let strategy = |row: &Row| {
        let (page, populate, threads, effort, has, _) = *row;
        let lacks = if has { json!([]) } else { json!([{"need": POOL, "cure": "echo 512"}]) };
        let pool = if page == "hugetlb-2m" { 1_u64 << 30 } else { 0 };
        json!({
            "name": name(row), "page": page, "populate": populate, "threads": threads,
            "effort": effort, "memory": {"rounding": 0, "pool": pool, "locked": 0},
            "caveat": "", "lacks": lacks, "code": format!("get({page});"),
        })
    };
    json!({
        "command": "advise", "size": 1_u64 << 30, "threads": 2, "policy": "any",
        "sample": SAMPLE, "cache": 64_u64 << 20,
        "strategies": rows.iter().map(strategy).collect::<Vec<_>>(),
    })
}

fn record(row: &Row) -> Record {
    let (page, populate, threads, .., ns) = *row;
    let threads = threads.to_string();
    let case = made::case(&[
        ("page", page),
        ("populate", populate),
        ("threads", &threads),
        ("size", "128m"),
        ("backing", "anon"),
    ]);
    let Some(ns) = ns else {
        let (need, cure) = ("time within the budget".into(), "--budget 15".into());
        return made::outcome("fault/throughput", case, Outcome::Skipped { need, cure });
    };
    let total = ns * (SAMPLE / 4096) as f64;
    let call = if populate == "touch" { "touch" } else { "populate" };
    let mut series = made::values("map", "pagelab", Clock::Tsc, 1, SAMPLE, 9000.0);
    series.extend(made::values(call, "pagelab", Clock::Tsc, 1, SAMPLE, total));
    if call == "populate" {
        // Touches of what is present: not a part of the time that is compared.
        series.extend(made::values("touch", "pagelab", Clock::Tsc, 1, SAMPLE, total));
    }
    let witness = vec![made::claim(Check::Present, "pagelab", 32768, 32768, 0)];
    made::measured("fault/throughput", case, Measured { series, witness, ..Measured::default() })
}

fn run(rows: &[Row]) -> (RunHeader, Vec<Record>) {
    let mut header = made::journal().header;
    (header.suite, header.asked) = (String::new(), serde_json::from_value(asked(rows)).unwrap());
    let limits = made::journal().records.into_iter();
    let mut records: Vec<Record> =
        limits.filter(|record| record.workload == "limit/clear").collect();
    records.extend(rows.iter().map(record));
    header.plan = records.iter().map(|r| (r.workload.clone(), r.case.clone())).collect();
    (header, records)
}

fn report((header, records): (RunHeader, Vec<Record>)) -> Report {
    Report::of(&header, &records, None, &[], &crate::views())
}

fn json_of(report: &Report) -> Value {
    serde_json::from_str(&advise::json(report.run()).unwrap()).unwrap()
}

/// Makes one round of a strategy slower or faster.
fn scale(records: &mut [Record], populate: &str, process: u32, factor: f64) {
    for record in records.iter_mut().filter(|r| r.case.get("populate") == Some(populate)) {
        let Outcome::Measured(measured) = &mut record.outcome else { continue };
        for series in measured.series.iter_mut().filter(|series| series.process == process) {
            let Data::Values(values) = &mut series.data else { continue };
            for value in values.iter_mut() {
                *value = made::whole(*value as f64 * factor);
            }
        }
    }
}

#[test]
fn advice_for_a_terminal() {
    insta::assert_snapshot!(
        "advice",
        report(run(&ROWS)).only(&["advise", "intervals"], PLAIN).unwrap()
    );
}

#[test]
fn what_needs_nothing_stands_beside_what_is_fastest() {
    let advice = json_of(&report(run(&ROWS)));
    assert_eq!(advice["answer"]["named"], "touch hugetlb-2m");
    assert_eq!(advice["answer_as_set"]["fastest"], "madvise-populate-each 2m ×2");
    let strategies = advice["strategies"].as_array().unwrap();
    let order: Vec<&str> = strategies.iter().map(|s| s["strategy"].as_str().unwrap()).collect();
    assert_eq!(order[0], "touch hugetlb-2m");
    assert_eq!(order[4], "touch 64k ×2", "what was not measured comes last");
    assert_eq!(strategies[0]["lacks"][0]["need"], POOL);
    assert_eq!(strategies[4]["standing"], "skipped");
    // 262,144 pages at 94.07 ns.
    let all = strategies[0]["all"]["value"].as_f64().unwrap();
    assert!((all / 24.66e6 - 1.0).abs() < 0.01, "{all}");
}

#[test]
fn what_is_named_is_a_headline_and_has_code_to_paste() {
    let report = report(run(&ROWS));
    let text = report.terminal(PLAIN);
    assert!(text.contains("24.7 ms  fastest: touch hugetlb-2m"), "{text}");
    assert!(text.contains("fastest without changing a setting: touch 2m"), "{text}");
    assert!(text.contains("get(hugetlb-2m);") && text.contains("get(2m);"), "{text}");
    assert!(!text.contains("get(4k);"), "only what is named has its code shown");
    let (mut header, records) = run(&ROWS[..2]);
    if let Some(Asked::Advise(asked)) = &mut header.asked {
        // As a version before this one wrote it.
        asked.strategies.iter_mut().for_each(|strategy| strategy.code.clear());
    }
    let text = Report::of(&header, &records, None, &[], &crate::views()).terminal(PLAIN);
    assert_eq!(text.matches("fastest, no setting changed: touch 2m").count(), 2, "{text}");
    assert!(!text.contains("get("));
}

#[test]
fn of_two_that_no_round_tells_apart_the_simpler_one_is_named() {
    let (header, mut records) = run(&ROWS);
    scale(&mut records, "madvise-populate-each", 1, 1.02);
    let advice = json_of(&report((header, records)));
    let as_set = &advice["answer_as_set"];
    assert_eq!(as_set["named"], "touch 2m");
    assert_eq!(as_set["ties"], json!(["touch 2m"]), "or the other way round: {as_set}");
}

#[test]
fn a_disturbed_strategy_is_no_tie_of_one_that_never_was_as_quick() {
    let rows = [ROWS[0], ("2m", "touch", 1, 4, true, Some(140.0)), ROWS[2]];
    let named = |quickest: f64| {
        let (header, mut records) = run(&rows);
        for (process, factor) in [(0, quickest), (1, 1.45), (2, 1.35)] {
            scale(&mut records, "madvise-populate-each", process, factor);
        }
        json_of(&report((header, records)))["answer"]["named"].clone()
    };
    assert_eq!(named(1.0), "madvise-populate-each 2m ×2");
    assert_eq!(named(1.3), "touch 2m");
}

#[test]
fn one_good_round_is_not_enough_to_be_named() {
    let (header, mut records) = run(&ROWS);
    let before = json_of(&report((header.clone(), records.clone())));
    // One that has its first round alone, and was far the fastest in it.
    scale(&mut records, "madvise-populate-each", 0, 0.01);
    for record in &mut records {
        let is_it = record.case.get("populate") == Some("madvise-populate-each");
        if let (true, Outcome::Measured(measured)) = (is_it, &mut record.outcome) {
            measured.series.retain(|series| series.process == 0);
        }
    }
    let after = json_of(&report((header, records)));
    assert_eq!(after["answer"]["fastest"], before["answer"]["fastest"]);
    assert_eq!(after["answer"]["named"], before["answer"]["named"]);
}

#[test]
fn touches_of_present_pages_are_no_part_of_the_time() {
    let advice = json_of(&report(run(&ROWS)));
    let strategies = advice["strategies"].as_array().unwrap();
    let each = strategies.iter().find(|s| s["populate"] == "madvise-populate-each").unwrap();
    let per_page = each["per_4k_page"]["value"].as_f64().unwrap();
    assert!((per_page / 101.0 - 1.0).abs() < 0.02, "{per_page}");
    assert!(each["share_of_clear"].is_null(), "the limit is one thread's");
}

#[test]
fn a_strategy_whose_proof_fails_is_not_named() {
    let (header, mut records) = run(&ROWS);
    for record in &mut records {
        if let (Some("hugetlb-2m"), Outcome::Measured(measured)) =
            (record.case.get("page"), &mut record.outcome)
        {
            measured.witness[0] = made::claim(Check::Present, "pagelab", 1, 0, 0);
        }
    }
    let advice = json_of(&report((header, records)));
    assert_ne!(advice["answer"]["named"], "touch hugetlb-2m");
}

#[test]
fn a_run_that_was_asked_nothing_has_no_advice() {
    let contents = made::journal();
    let report = Report::of(&contents.header, &contents.records, None, &[], &crate::views());
    assert_eq!(report.only(&["advise", "intervals"], PLAIN), None);
    assert_eq!(advise::json(report.run()), None);
}

#[test]
fn every_form_of_a_report_begins_with_the_advice() {
    let report = report(run(&ROWS));
    for form in [report.terminal(PLAIN), report.markdown(), report.html()] {
        let at = |text: &str| form.find(text).unwrap_or_else(|| panic!("{text}"));
        assert!(at("1.00 GiB of fresh memory with 2 threads") < at("Fault throughput"));
    }
}
