//! The stages of a fault, the other tools' loops and the stalls in a report.

use pagelab_record::{Clock, Data, Measured, Outcome, Record, vocabulary::Check};
use pagelab_report::{Forms, Report, Style};
use serde_json::Value;

use crate::made::{case, claim, counters, histogram, journal, measured, values};

const PLAIN: Style = Style { color: false, width: 160 };
const SHORT: [(&str, u64); 5] =
    [("entry", 280), ("allocation", 1_000), ("mapping", 600), ("completion", 120), ("return", 170)];
/// What an event costs.
const EVENT: u64 = 800;

/// A fault of 2.17 µs whose events cost what the constant says.
fn stages(kind: &str) -> Record {
    let is_mine = |stage: &str| kind == "write" || !matches!(stage, "allocation" | "mapping");
    let mine: Vec<(&str, u64)> = SHORT.into_iter().filter(|(stage, _)| is_mine(stage)).collect();
    let events = mine.len() as u64 - 1;
    let whole: u64 = mine.iter().map(|(_, ns)| ns).sum();
    let mut series = Vec::new();
    let shape = |ns: u64| [ns * 9 / 10, ns, ns * 11 / 10, ns * 2, ns * 8, ns * 40];
    for process in 0..3 {
        for (index, (stage, ns)) in mine.iter().enumerate() {
            let is_end = index == 0 || index + 1 == mine.len();
            let cost = if is_end { EVENT / 2 } else { EVENT };
            series.push(histogram("traced", stage, process, shape(ns + cost), 2044));
        }
        for (arm, ns) in [
            ("traced", whole + events * EVENT),
            ("one-event", whole + EVENT),
            ("untraced", whole),
            ("control", 45),
        ] {
            series.push(histogram(arm, "end-to-end", process, shape(ns), 2044));
        }
    }
    for series in &mut series {
        series.clock = Clock::Wall;
    }
    let measured_ = Measured {
        series,
        counters: counters(&[("events_per_fault", events)]),
        witness: vec![
            claim((Check::FaultsOfLoop, "minor faults of the loop"), "traced", 2048, 2048, 0),
            claim(Check::EventsLost, "traced", 0, 0, 0),
        ],
        ..Measured::default()
    };
    let case = case(&[("kind", kind), ("cpu", "0"), ("fifo", "on"), ("size", "8m")]);
    measured("fault/stages", case, measured_)
}

fn report(records: &[Record]) -> Report {
    Report::of(&journal().header, records, None, &[], &crate::views())
}

/// The section of that title.
fn section(report: &Report, title: &str) -> String {
    let text = report.terminal(PLAIN);
    let from = text.find(title).unwrap();
    text[from..].split("\n\n").next().unwrap().to_owned()
}

fn number(report: &Report, arm: &str, series: &str, time: &str, statistic: &str) -> f64 {
    let json: Value = serde_json::from_str(&report.json()).unwrap();
    let is = |number: &&Value| {
        [("arm", arm), ("series", series), ("time", time), ("statistic", statistic)]
            .iter()
            .all(|(key, value)| number[*key] == **value)
    };
    let numbers = json["cases"][0]["numbers"].as_array().unwrap();
    numbers.iter().find(is).unwrap()["value"].as_f64().unwrap()
}

#[test]
fn the_stages_of_two_kinds() {
    insta::assert_snapshot!(section(&report(&[stages("write"), stages("read")]), "Stages of"));
}

#[test]
fn what_the_events_cost_is_taken_off_again() {
    let report = report(&[stages("write")]);
    for (stage, ns) in SHORT {
        let estimate = number(&report, "traced", stage, "elapsed", "estimate_untraced");
        assert!((estimate - ns as f64).abs() < 40.0, "{stage}: {estimate}");
    }
    let share = number(&report, "traced", "end-to-end", "elapsed", "sum_over_whole");
    assert!((share - 1.0).abs() < 0.02, "{share}");
}

#[test]
fn a_claim_that_does_not_hold_leaves_no_stage() {
    let mut record = stages("write");
    let Outcome::Measured(measured) = &mut record.outcome else { panic!() };
    measured.witness.push(claim(Check::EventsLost, "one-event", 0, 3, 0));
    let text = section(&report(&[record]), "Stages of");
    assert!(text.contains("INVALID") && text.contains("events lost") && !text.contains("µs"));
}

/// Throughput with the other tools' loops, which are slower by these factors.
fn beside(threads: &str, cycle: f64, touch: f64) -> Record {
    let case = case(&[("page", "4k"), ("populate", "touch"), ("threads", threads)]);
    let bytes = 128 << 20;
    let pages = bytes / 4096;
    let of = |name, arm, clock, ops, ns| values(name, arm, clock, ops, bytes, ns);
    let mut series = Vec::new();
    for clock in [Clock::Tsc, Clock::Cpu] {
        series.extend(of("map", "pagelab", clock, 1, 10e3));
        series.extend(of("touch", "pagelab", clock, pages, 40e6));
        series.extend(of("release", "pagelab", clock, 1, 5.99e6));
        series.extend(of("cycle", "page-fault1", clock, pages, 46e6 * cycle));
        series.extend(of("touch", "pft", clock, pages, 40e6 * touch));
    }
    series.extend(of("touch", "page-fault1", Clock::Tsc, pages, 40e6 * touch));
    let measured_ = Measured {
        series,
        counters: counters(&[("faults_per_repetition", pages)]),
        witness: vec![claim(Check::FaultsOfTouch, "pagelab", 32_768, 32_768, 0)],
        ..Measured::default()
    };
    measured("fault/throughput", case, measured_)
}

#[test]
fn ours_is_held_against_all_that_a_tool_times() {
    let one = report(&[beside("1", 1.03, 0.98)]);
    for time in ["elapsed", "cpu"] {
        let cycle = number(&one, "pagelab", "cycle", time, "ratio_to_page_fault1");
        let touch = number(&one, "pagelab", "touch", time, "ratio_to_pft");
        assert!((cycle - 1.0 / 1.03).abs() < 1e-3 && (touch - 1.0 / 0.98).abs() < 1e-3);
    }
    let text = section(&one, "Fault throughput");
    assert!(text.contains("vs page_fault1") && text.contains("0.971"), "{text}");
    // Threads of page_fault1 map memory of their own: only the touches are the same.
    let text = section(&report(&[beside("2", 1.03, 0.98)]), "Fault throughput");
    assert!(!text.contains("0.971") && text.contains("1.020"), "{text}");
}

#[test]
fn stalls_are_told_with_what_could_explain_them() {
    let mut records = journal().records;
    records.retain(|record| record.workload == "fault/latency");
    let Outcome::Measured(first) = &mut records[0].outcome else { panic!() };
    first.counters.extend(counters(&[
        ("stalls", 12),
        ("stalls_us", 900),
        ("stalls_preempted", 5),
        ("stalls_interrupted", 6),
        ("stalls_unexplained", 1),
        ("loop_us", 90_000),
        ("steal_ms", 0),
    ]));
    assert!(first.series.iter().any(|series| matches!(series.data, Data::Histogram(_))));
    let text = report(&records).terminal(Style { color: false, width: 10_000 });
    let line = text.lines().find(|line| line.starts_with("Stalls")).unwrap();
    assert!(line.contains("12, 1.0 % of the time of all loops"), "{line}");
    let explained = "at most 5 were preemptions, 0 steal and 6 interrupts; unexplained: 1.";
    assert!(line.contains(explained), "{line}");
}
