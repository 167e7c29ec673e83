//! The forms of a report over golden records, pinned.

use std::fs;

use pagelab_record::{Nature, Record, journal::Damage};
use pagelab_report::{Report, Style};
use serde_json::Value;

use crate::{golden, golden_memory};

const PLAIN: Style = Style { color: false, width: 160 };

fn report() -> Report {
    let contents = golden::journal();
    Report::of(&contents.header, &contents.records, contents.damage.as_ref(), &[])
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
        let report = Report::of(&golden.header, &records, None, &golden::publication("pghot"));
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
    let report = Report::of(&journal.header, &journal.records, None, &[]);
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
    let report = Report::of(&journal.header, &journal.records[..8], Some(&damage), &[]);
    let text = report.terminal(PLAIN);
    assert!(text.contains("line 9 of the journal"), "{text}");
    let planned = journal.header.plan.len();
    let missing = format!("{} of {planned} planned cases have no record", planned - 8);
    assert!(text.contains(&missing), "{text}");
}

#[test]
fn a_run_without_records_is_a_report_too() {
    let header = golden::journal().header;
    let report = Report::of(&header, &[], None, &[]);
    assert!(report.terminal(PLAIN).contains("0 of 0"));
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

#[test]
fn csv() {
    insta::assert_snapshot!(report().csv());
}

#[test]
fn json() {
    insta::assert_snapshot!(report().json());
}

#[test]
fn micro_pagefault_in_its_own_frame() {
    let (header, records) = golden::micro_pagefault();
    let published = golden::publication("micro-pagefault");
    let report = Report::of(&header, &records, None, &published);
    insta::assert_snapshot!(report.terminal(PLAIN));
}

#[test]
fn page_fault_latency_and_its_remarks() {
    let (header, records) = golden::page_fault_latency();
    let published = golden::publication("page-fault-latency");
    let report = Report::of(&header, &records, None, &published);
    insta::assert_snapshot!(report.terminal(PLAIN));
}

#[test]
fn fast_memory_and_its_open_questions() {
    let (header, records) = golden_memory::fast_memory();
    let published = golden::publication("fast-memory");
    let report = Report::of(&header, &records, None, &published);
    insta::assert_snapshot!(report.terminal(PLAIN));
}
