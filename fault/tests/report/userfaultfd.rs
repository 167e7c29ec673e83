//! Resolvers in a report: every row beside the plain write fault of its run.

use pagelab_record::{Clock, Measured, Outcome, Record, RunHeader, vocabulary::Check};
use pagelab_report::{Forms, Report, Style};

use crate::made;

const WIDE: Style = Style { color: false, width: 10_000 };

fn case(handler: &str, op: &str, batch: &str, fifo: &str) -> pagelab_record::Case {
    made::case(&[
        ("handler", handler),
        ("op", op),
        ("page", "4k"),
        ("batch", batch),
        ("fifo", fifo),
        ("size", "32m"),
    ])
}

fn record(case: pagelab_record::Case, quantiles: [u64; 6], page_ns: f64, holds: bool) -> Record {
    let mut series = made::values("batch", "pagelab", Clock::Tsc, 8192, 32 << 20, page_ns * 8192.0);
    for process in 0..3 {
        series.push(made::histogram("pagelab", "fault", process, quantiles, 8192));
        series.push(made::histogram(
            "control",
            "fault",
            process,
            [21, 42, 129, 257, 341, 9_000],
            8192,
        ));
    }
    let observed = if holds { 8192 } else { 0 };
    let witness =
        vec![made::claim((Check::Messages, "messages read"), "pagelab", 8192, observed, 0)];
    made::measured("fault/userfaultfd", case, Measured { series, witness, ..Measured::default() })
}

fn run() -> (RunHeader, Vec<Record>) {
    let contents = made::journal();
    let kept = |record: &Record| {
        record.workload == "fault/latency" && matches!(record.outcome, Outcome::Measured(_))
    };
    let mut records: Vec<Record> = contents.records.into_iter().filter(kept).collect();
    let copy = [4_623, 5_177, 5_384, 7_122, 37_905, 79_566];
    let signal = [2_637, 3_098, 3_319, 5_003, 30_019, 55_405];
    records.extend([
        record(case("same-cpu", "copy", "1", "on"), copy, 5_190.0, true),
        record(case("sigbus", "copy", "1", "on"), signal, 3_110.0, true),
        record(case("sigbus", "copy", "64", "on"), signal.map(|ns| ns * 14), 730.0, true),
        record(
            case("none", "wp-async", "1", "on"),
            [557, 615, 757, 889, 1_005, 53_566],
            620.0,
            true,
        ),
        record(case("other-cpu", "copy", "1", "on"), copy.map(|ns| ns * 8), 43_000.0, false),
        record(case("same-cpu", "copy", "1", "off"), copy, 5_190.0, true),
    ]);
    (contents.header, records)
}

fn report() -> Report {
    let (header, records) = run();
    Report::of(&header, &records, None, &[], &crate::views())
}

/// The section's own lines.
fn section() -> String {
    let text = report().terminal(WIDE);
    let from = text.find("Faults that user space resolves").expect("there is a section");
    let end = text[from..].find("\n\nFixed cost").map_or(text.len(), |end| from + end);
    text[from..end].to_owned()
}

#[test]
fn the_table_of_resolvers() {
    insta::assert_snapshot!(section());
}

#[test]
fn a_resolver_is_set_against_a_write_fault_that_was_scheduled_alike() {
    let text = section();
    let line = |words: [&str; 2]| {
        let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines.find(|line| line.starts_with(&words)).expect("a row").join(" ")
    };
    // 3.098 µs over 1.28 µs.
    assert!(line(["sigbus", "copy"]).contains(" 2.42 "), "{text}");
    assert!(!text.lines().any(|line| line.contains(" off ") && line.contains(" 4.04 ")), "{text}");
}

#[test]
fn a_resolver_whose_messages_did_not_come_is_not_quoted() {
    let text = section();
    assert!(text.lines().any(|line| line.starts_with("other-cpu") && line.contains("INVALID")));
    assert!(!text.contains("41.4 µs"), "{text}");
}

#[test]
fn every_form_shows_the_section() {
    for form in [report().markdown(), report().html()] {
        assert!(form.contains("Faults that user space resolves") && form.contains("wp-async"));
    }
}
