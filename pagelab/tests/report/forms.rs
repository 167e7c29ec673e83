//! The forms of a report over golden records, pinned.

use std::{collections::BTreeSet, fs};

use pagelab_record::{Nature, Outcome, Record, journal::Damage, units};
use pagelab_report::{Forms, Report, Style};
use serde_json::{Value, json};

use crate::{golden, golden_memory};

const PLAIN: Style = Style { color: false, width: 160 };

fn report() -> Report {
    let contents = golden::journal();
    Report::of(&contents.header, &contents.records, contents.damage.as_ref(), &[], &crate::views())
}

#[test]
fn the_golden_journal_is_what_the_generator_makes() {
    let generated = golden::generated();
    if std::env::var_os("PAGELAB_WRITE_GOLDEN").is_some() {
        fs::write(golden::path(), &generated).unwrap();
    }
    let kept = fs::read_to_string(golden::path()).unwrap();
    assert!(kept == generated, "write it again with PAGELAB_WRITE_GOLDEN=1 if that was meant");
}

#[test]
fn no_number_of_an_invalid_record_is_shown_in_any_form() {
    let report = report();
    // The generator gives the invalid record this cost of a fault, and no other record.
    for form in [report.terminal(PLAIN), report.markdown(), report.html()] {
        assert!(form.contains("INVALID") && !form.contains("778 µs"));
        // The same for the arms of a replay: one digest that differs takes the times of all.
        assert!(!["777 ns", "778 ns", "779 ns"].iter().any(|ns| form.contains(ns)));
    }
    let json: Value = serde_json::from_str(&report.json()).unwrap();
    let cases = json["cases"].as_array().unwrap();
    let invalid: Vec<&Value> = cases.iter().filter(|c| c["standing"] == "invalid").collect();
    assert_eq!(invalid.len(), 3);
    assert!(invalid.iter().all(|case| case["numbers"] == Value::Array(Vec::new())));
    let csv = report.csv();
    let lines: Vec<&str> = csv.lines().filter(|line| line.contains(",invalid,")).collect();
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| line.ends_with(",,,,,,,,")));
}

/// The same document with another number in place of each.
fn with_numbers(value: &Value, number: &Value) -> Value {
    match value {
        Value::Number(_) => number.clone(),
        Value::Array(items) => items.iter().map(|item| with_numbers(item, number)).collect(),
        Value::Object(fields) => {
            // These have 32 bits, and the schema refuses more.
            let is_small = |name: &str| matches!(name, "process" | "repetition");
            let with = |(name, field): (&String, &Value)| {
                let with = if is_small(name) { field } else { &with_numbers(field, number) };
                (name.clone(), with.clone())
            };
            fields.iter().map(with).collect()
        }
        other => other.clone(),
    }
}

#[test]
fn a_journal_may_say_any_number() {
    let golden = golden::journal();
    let documents: Vec<Value> =
        golden.records.iter().map(|record| serde_json::to_value(record).unwrap()).collect();
    for number in [0.into(), 1.into(), u64::MAX.into(), i64::MAX.into(), i64::MIN.into()] {
        let read = |document| serde_json::from_value(with_numbers(document, &number)).ok();
        let records: Vec<Record> = documents.iter().filter_map(read).collect();
        let report = Report::of(
            &golden.header,
            &records,
            None,
            &golden::publication("pghot"),
            &crate::views(),
        );
        for form in [report.terminal(PLAIN), report.markdown(), report.csv(), report.html()] {
            assert!(!form.is_empty(), "{number}");
        }
        assert!(serde_json::from_str::<Value>(&report.json()).is_ok(), "{number}");
    }
}

#[test]
fn an_emulated_machine_gives_no_times() {
    let mut journal = golden::journal();
    for record in &mut journal.records {
        record.nature = Nature::Emulated;
    }
    let report = Report::of(&journal.header, &journal.records, None, &[], &crate::views());
    assert!(report.terminal(PLAIN).contains("EMULATED"));
    assert!(!report.csv().contains("p50"));
}

#[test]
fn no_line_ends_in_spaces_and_colour_comes_only_when_asked_for() {
    let plain = report().terminal(PLAIN);
    assert!(plain.lines().all(|line| line == line.trim_end()));
    assert!(!plain.contains('\x1b'));
    let colored = report().terminal(Style { color: true, ..PLAIN });
    assert!(colored.contains("\x1b[1;31mINVALID\x1b[0m"));
}

#[test]
fn a_damaged_journal_says_where_it_ends() {
    let journal = golden::journal();
    let damage = Damage { line: 9, why: "the line is cut short".into() };
    let report =
        Report::of(&journal.header, &journal.records[..8], Some(&damage), &[], &crate::views());
    let text = report.terminal(PLAIN);
    assert!(text.contains("line 9 of the journal"), "{text}");
    let planned = journal.header.plan.len();
    let missing = format!("{} of {planned} planned cases have no record", planned - 8);
    assert!(text.contains(&missing), "{text}");
}

#[test]
fn a_run_without_records_is_a_report_too() {
    let header = golden::journal().header;
    let report = Report::of(&header, &[], None, &[], &crate::views());
    assert!(report.terminal(PLAIN).contains("0  valid (0 claims"));
    assert!(report.html().contains("</html>"));
}

#[test]
fn terminal() {
    insta::assert_snapshot!(report().terminal(PLAIN));
}

#[test]
fn terminal_of_eighty_columns() {
    insta::assert_snapshot!(report().terminal(Style { width: 80, ..PLAIN }));
}

#[test]
fn markdown() {
    insta::assert_snapshot!(report().markdown());
}

/// The report of a few measured cases of the golden journal: the last of each workload and page.
fn report_of(cases: &[(&str, Option<&str>)]) -> Report {
    let contents = golden::journal();
    let last = |(workload, page): &(&str, Option<&str>)| {
        let mut records = contents.records.iter().rev();
        let is_it = |r: &&Record| {
            let measured = matches!(r.outcome, Outcome::Measured(_));
            measured && r.workload == *workload && r.case.get("page") == *page
        };
        records.find(is_it).unwrap_or_else(|| panic!("no {workload} of {page:?}")).clone()
    };
    let records: Vec<Record> = cases.iter().map(last).collect();
    let mut header = contents.header.clone();
    header.plan = records.iter().map(|r| (r.workload.clone(), r.case.clone())).collect();
    Report::of(&header, &records, None, &[], &crate::views())
}

const LATENCY: (&str, Option<&str>) = ("fault/latency", Some("64k"));
const THROUGHPUT: (&str, Option<&str>) = ("fault/throughput", Some("64k"));
const REPLAY: (&str, Option<&str>) = ("emu/replay", None);

#[test]
fn csv() {
    let other_page = (LATENCY.0, Some("1m"));
    insta::assert_snapshot!(report_of(&[LATENCY, other_page, REPLAY]).csv());
}

#[test]
fn json() {
    insta::assert_snapshot!(report_of(&[LATENCY, THROUGHPUT, REPLAY]).json());
}

#[test]
fn json_has_every_record_and_finite_numbers_of_valid_ones() {
    let json: Value = serde_json::from_str(&report().json()).unwrap();
    let cases = json["cases"].as_array().unwrap();
    let records = golden::journal().records;
    assert_eq!(cases.len(), records.len());
    for record in &records {
        let mut same = cases.iter().filter(|case| {
            let record = serde_json::to_value((&record.workload, &record.case, &record.host));
            json!([case["workload"], case["case"], case["host"]]) == record.unwrap()
        });
        let case = same.next().unwrap();
        let numbers = case["numbers"].as_array().unwrap();
        assert!(case["standing"] == "valid" || numbers.is_empty(), "{case:#}");
        for number in numbers {
            let end = |name: &str| number[name].as_f64().filter(|end| end.is_finite());
            let [low, value, high] = ["low", "value", "high"].map(end).map(Option::unwrap);
            assert!(low <= value && value <= high, "{number}");
            assert!(!number["unit"].as_str().unwrap().is_empty());
        }
    }
}

/// The fields of a line of CSV.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}

#[test]
fn csv_has_a_line_for_each_number_and_a_column_for_each_axis_that_varies() {
    let (csv, json) = (report().csv(), report().json());
    let json: Value = serde_json::from_str(&json).unwrap();
    let cases = json["cases"].as_array().unwrap();
    let mut lines = csv.lines().map(fields);
    let heading = lines.next().unwrap();
    let axes = &heading[2..heading.len() - 10];
    let mut varying = BTreeSet::new();
    for (one, other) in cases.iter().flat_map(|one| cases.iter().map(move |other| (one, other))) {
        let same = one["workload"] == other["workload"];
        let fields = one["case"].as_object().into_iter().flatten().filter(|_| same);
        varying.extend(fields.filter_map(|(name, value)| {
            other["case"].get(name).is_some_and(|other| other != value).then_some(name)
        }));
    }
    assert!(axes.iter().eq(varying) && axes.contains(&"page".to_owned()), "{axes:?}");
    for case in cases {
        let numbers = case["numbers"].as_array().unwrap();
        for number in numbers.iter().map(Some).chain(numbers.is_empty().then_some(None)) {
            let line = lines.next().unwrap();
            assert_eq!(line.len(), heading.len());
            let cell = |name| &line[heading.iter().position(|column| column == name).unwrap()];
            assert_eq!(
                json!([cell("run"), cell("workload")]),
                json!([json["run"], case["workload"]])
            );
            for axis in axes {
                let value = case["case"].get(axis).and_then(Value::as_str).unwrap_or_default();
                assert_eq!(*cell(axis), units::base_value(axis, value));
            }
            let Some(number) = number else {
                assert!(line[line.len() - 8..].iter().all(String::is_empty));
                continue;
            };
            for name in ["arm", "series", "statistic", "unit"] {
                assert_eq!(number[name], **cell(name), "{line:?}");
            }
            for name in ["value", "low", "high"] {
                assert_eq!(number[name].as_f64(), cell(name).parse().ok(), "{line:?}");
            }
        }
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn micro_pagefault_in_its_own_frame() {
    let (header, records) = golden::micro_pagefault();
    let published = golden::publication("micro-pagefault");
    let report = Report::of(&header, &records, None, &published, &crate::views());
    insta::assert_snapshot!(report.terminal(PLAIN));
}

#[test]
fn page_fault_latency_and_its_remarks() {
    let (header, records) = golden::page_fault_latency();
    let published = golden::publication("page-fault-latency");
    let report = Report::of(&header, &records, None, &published, &crate::views());
    insta::assert_snapshot!(report.terminal(PLAIN));
}

#[test]
fn fast_memory_and_its_open_questions() {
    let (header, records) = golden_memory::fast_memory();
    let published = golden::publication("fast-memory");
    let report = Report::of(&header, &records, None, &published, &crate::views());
    insta::assert_snapshot!(report.terminal(PLAIN));
}
