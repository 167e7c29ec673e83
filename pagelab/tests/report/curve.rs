//! The curve of a share of slow memory in a report.

use pagelab_record::{Clock, Measured, Nature, Outcome, Record, vocabulary::Check};
use pagelab_report::{Forms, Report, Style};
use serde_json::Value;

use crate::golden::{case, claim, journal, measured, values};

/// C(u) = 1 + 3 u², in ms, at some shares in percent.
fn curve(shares: &[u32]) -> Record {
    let mut series = Vec::new();
    for share in shares {
        let u = f64::from(*share) / 100.0;
        let ns = 1e6 * (1.0 + 3.0 * u * u);
        series.extend(values("score", &share.to_string(), Clock::Tsc, 1, 0, ns));
    }
    let measured_ = Measured {
        series,
        witness: vec![claim((Check::PlacedOnSlow, "base pages on the slow node"), "0", 0, 0, 0)],
        ..Measured::default()
    };
    measured("tier/curve", case(&[("size", "64m"), ("threads", "2")]), measured_)
}

fn report(records: &[Record]) -> Report {
    Report::of(&journal().header, records, None, &[], &crate::views())
}

fn section(report: &Report) -> String {
    let text = report.terminal(Style { color: false, width: 10_000 });
    let from = text.find("A share of the accesses in slow memory").unwrap();
    text[from..].split("\n\n").next().unwrap().to_owned()
}

fn number(report: &Report, arm: &str, statistic: &str) -> Option<f64> {
    let json: Value = serde_json::from_str(&report.json()).unwrap();
    let is = |number: &&Value| number["arm"] == arm && number["statistic"] == statistic;
    json["cases"][0]["numbers"].as_array()?.iter().find(is)?["value"].as_f64()
}

#[test]
fn each_share_stands_against_both_ends_and_the_line_between() {
    let report = report(&[curve(&[0, 10, 50, 100])]);
    for (arm, over_fast, over_line) in
        [("0", 1.0, 1.0), ("10", 1.03, 1.03 / 1.3), ("50", 1.75, 0.7), ("100", 4.0, 1.0)]
    {
        let fast = number(&report, arm, "ratio_to_fast").unwrap();
        let line = number(&report, arm, "ratio_to_line").unwrap();
        assert!((fast - over_fast).abs() < 1e-3 && (line - over_line).abs() < 1e-3, "{arm}");
    }
    let text = section(&report);
    let rows: Vec<&str> = text.lines().filter(|line| line.contains(" % ")).collect();
    assert_eq!(rows.len(), 4, "{text}");
    assert!(rows[2].contains("50 %") && rows[2].contains("0.700"), "{text}");
    assert!(!text.contains("Not yet seen on hardware"), "it was measured here: {text}");
}

#[test]
fn one_node_has_one_point_and_an_emulated_curve_is_none_of_hardware() {
    let one = report(&[curve(&[0])]);
    assert!(section(&one).contains("Not yet seen on hardware"), "{}", section(&one));
    assert_eq!(number(&one, "0", "ratio_to_line"), None);
    let mut emulated = curve(&[0, 100]);
    emulated.nature = Nature::Emulated;
    assert!(section(&report(&[emulated])).contains("Not yet seen on hardware"));
}

#[test]
fn a_curve_that_does_not_hold_has_no_numbers() {
    let mut record = curve(&[0, 100]);
    let Outcome::Measured(measured) = &mut record.outcome else { panic!() };
    measured.witness.push(claim(
        (Check::PlacedOnSlow, "base pages on the slow node"),
        "100",
        7,
        3,
        0,
    ));
    let text = section(&report(&[record]));
    assert!(text.contains("INVALID") && !text.contains(" ms"), "{text}");
}
