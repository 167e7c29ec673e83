//! Chains of loads in a report: knees of translation, knees of data, and what is not said.

use pagelab_record::{
    Clock, Data, Measured, Outcome, Record, RunHeader, Table,
    vocabulary::Check,
    walks::{Look, Looks, Walked},
};
use pagelab_report::{Forms, Report, Style};
use serde_json::json;

use crate::{explain, golden};

const WIDE: Style = Style { color: false, width: 10_000 };
const LOADS: u64 = 100_000;

/// A load over so many lines on a machine with 32 KiB of L1d and 512 KiB of L2.
fn load(lines: u64) -> f64 {
    if lines <= 512 {
        2.0
    } else if lines <= 8192 {
        5.0
    } else {
        30.0
    }
}

/// What base pages add with TLBs of 64 and of 2048 entries.
fn more(pages: u64) -> f64 {
    if pages <= 64 {
        0.0
    } else if pages <= 2048 {
        3.0
    } else {
        14.0
    }
}

fn record(page: &str, size: (&str, u64), noise: f64) -> Record {
    let lines = size.1 / 4096;
    let case = golden::case(&[
        ("page", page),
        ("against", "2m"),
        ("size", size.0),
        ("loads", "100k"),
        ("lie", "none"),
    ]);
    let mut series = Vec::new();
    let arms: &[&str] = if page == "4k" { &["pagelab", "against"] } else { &["pagelab"] };
    for arm in arms {
        let extra = if page == "4k" && *arm == "pagelab" { more(lines) } else { 0.0 };
        let ns = (load(lines) + extra) * LOADS as f64;
        let mut all = golden::values("load", arm, Clock::Tsc, LOADS, 0, ns);
        for (nth, series) in all.iter_mut().enumerate() {
            if let Data::Values(values) = &mut series.data {
                let off = noise * LOADS as f64 * if nth % 10 < 5 { 1.0 } else { -0.5 };
                let is_ours = *arm == "pagelab";
                values[0] = golden::whole(values[0] as f64 + if is_ours { off } else { 0.0 });
            }
        }
        series.extend(all);
    }
    let columns = [("page", "bytes"), ("level", ""), ("entries", "count")];
    let rows = [[4096_i64, 1, 64], [4096, 2, 2048], [2 << 20, 1, 64]];
    let tables = vec![Table::new("tlbs", columns, rows)];
    let witness = vec![golden::claim(Check::FaultsOfLoop, "pagelab", 0, 0, 0)];
    let measured = Measured { series, tables, witness, ..Measured::default() };
    let mut record = golden::measured("tlb/chase", case, measured);
    for (name, bytes) in [("cache_l1d_bytes", 32 << 10), ("cache_l2_bytes", 512 << 10)] {
        record.host.identity.insert(name.into(), json!(bytes));
    }
    record.host.identity.insert("hypervisor".into(), json!("kvm"));
    record
}

const SIZES: [(&str, u64); 10] = [
    ("128k", 128 << 10),
    ("256k", 256 << 10),
    ("384k", 384 << 10),
    ("1m", 1 << 20),
    ("2m", 2 << 20),
    ("3m", 3 << 20),
    ("8m", 8 << 20),
    ("12m", 12 << 20),
    ("32m", 32 << 20),
    ("1g", 1 << 30),
];

fn report(noise: f64) -> String {
    let header: RunHeader = golden::journal().header;
    let base = SIZES.map(|size| record("4k", size, noise));
    let huge = [SIZES[0], SIZES[9]].map(|size| record("2m", size, noise));
    let records = [&base[..], &huge].concat();
    Report::of(&header, &records, None, &[], &crate::views()).terminal(WIDE)
}

/// The section's own lines.
fn section(text: &str) -> &str {
    let from = text.find("Translation: loads").expect("there is a section");
    let end = text[from..].find("\n\nWitness").map_or(text.len(), |end| from + end);
    &text[from..end]
}

#[test]
fn knees_of_the_difference_are_tlbs_and_those_of_both_are_caches() {
    let text = report(0.0);
    insta::assert_snapshot!(section(&text));
    assert!(text.contains("more for a load over 4 KiB pages than over 2 MiB pages, 1 GiB"));
}

#[test]
fn what_the_interval_does_not_carry_is_no_knee_and_no_headline() {
    let text = report(40.0);
    assert!(!text.contains("more for a load over"), "{text}");
    assert!(!section(&text).contains("dTLB"), "{text}");
}

#[test]
fn what_a_tlb_answered_between_two_walks_lay_between_as_well() {
    let saved = |resident: u64| {
        let mut records = explain::with_density(0, None);
        // The same pages again and again, so that about 150 were walked to in between.
        let looks = [(1, 100), (3, 150), (10, 160), (30, 160)].into_iter().zip(0..);
        let looks = looks.map(|((ms, pages), level)| Look {
            stands_ns: 70_000_000,
            level,
            window_ns: ms * 1_000_000,
            cpu_ns: ms * 1_000_000,
            resident,
            walked: vec![Walked { least: pages, most: pages, whole: pages }],
        });
        let looks = Looks { places: vec!["anonymous".to_owned()], looks: looks.collect() };
        let Outcome::Measured(seen) = &mut records[0].outcome else { unreachable!("measured") };
        seen.tables.push(looks.table());
        records.extend(SIZES.map(|size| record("4k", size, 0.0)));
        let header: RunHeader = golden::journal().header;
        let report = Report::of(&header, &records, None, &[], &crate::views());
        explain::number(&report, "page-2m", "saved_translation")
    };
    let [all, few] = [saved(100_000), saved(160)];
    assert!(all[0] > few[0] * 2.0 && all[2] > few[2] * 2.0, "{all:?} {few:?}");
    assert_eq!(all[1].to_bits(), few[1].to_bits(), "at least they lay near");
}
