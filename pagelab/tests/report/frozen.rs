//! Journals that an older version really left behind: they are read for ever.
//!
//! `tests/data/b375dbb` holds what the release build of that commit wrote: `measured` has each
//! workload once (a simulation among them, UC and WC memory as skips), `emulated` the memory types
//! on Linux 6.12 with the module, in an emulated machine, and `explain` and `advise` what those
//! commands asked. Only paths were shortened. The files are never edited.

use std::path::PathBuf;

use pagelab_record::{Outcome, journal};
use pagelab_report::{Forms, Report};
use serde_json::Value;

const ALL: [&str; 4] = ["measured", "emulated", "explain", "advise"];

fn read(name: &str) -> journal::Contents {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/data/b375dbb");
    journal::read(&folder.join(format!("{name}.jsonl"))).unwrap()
}

fn report(journal: &journal::Contents) -> Report {
    Report::of(&journal.header, &journal.records, journal.damage.as_ref(), &[], &crate::views())
}

/// What a reader is told first, and of each case what it is worth and how much was made of it.
fn digest(report: &Report) -> String {
    let mut text = String::new();
    let markdown = report.markdown();
    let head = markdown.split("\n## ").next().unwrap_or_default();
    for line in head.lines().filter(|line| line.starts_with("- **")) {
        text += &format!("{line}\n");
    }
    let document: Value = serde_json::from_str(&report.json()).unwrap();
    for case in document["cases"].as_array().unwrap() {
        let word = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
        let count = |key: &str| case[key].as_array().map_or(0, Vec::len);
        text += &format!(
            "{} {}: {} numbers, {} claims\n",
            word("standing"),
            word("workload"),
            count("numbers"),
            count("witness")
        );
    }
    text
}

#[test]
fn the_journals_of_an_older_version_are_read_whole() {
    let counts = ALL.map(|name| {
        let journal = read(name);
        assert!(journal.damage.is_none(), "{name}: {:?}", journal.damage);
        journal.records.len()
    });
    assert_eq!(counts, [24, 9, 9, 15]);
}

#[test]
fn what_an_older_version_measured_is_reported_as_it_was() {
    let told: Vec<String> =
        ALL.iter().map(|name| format!("{name}\n{}", digest(&report(&read(name))))).collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn every_claim_of_an_older_version_gets_its_id() {
    for name in ALL {
        let records = read(name).records;
        let measured = records.iter().filter_map(|record| match &record.outcome {
            Outcome::Measured(measured) => Some(measured),
            _ => None,
        });
        for claim in measured.flat_map(|measured| &measured.witness) {
            assert!(!claim.id.is_empty(), "{name}: {}", claim.claim);
        }
    }
}
