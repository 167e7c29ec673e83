//! The presets that there are, and mistakes in made ones.

use pagelab_record::{Data, Outcome as Record, Series, journal};

use super::*;

fn presets() -> impl Iterator<Item = Preset> {
    PRESETS.iter().map(|(name, _)| load(name).unwrap())
}

#[test]
fn every_preset_is_called_what_its_file_is_and_says_what_it_is() {
    for ((name, _), preset) in PRESETS.iter().zip(presets()) {
        assert_eq!(preset.name, *name);
        assert!(!preset.summary.is_empty() && preset.runs.len() > 1, "{name}");
    }
}

#[test]
fn every_number_of_a_published_preset_says_where_it_comes_from() {
    for preset in presets().filter(|preset| preset.name != "plain") {
        for run in &preset.runs {
            for (name, constant) in run.constants() {
                assert_ne!(constant.origin.word(), "given", "{}: {name}", preset.name);
            }
        }
        for (name, published) in &preset.published {
            assert!(published.source.len() > 10, "{}: {name}", preset.name);
        }
    }
}

/// The experiment that a preset is about, and the kernel that its source ran on.
fn of_source<'s>(preset: &str, source: &'s str) -> (String, &'static str, &'s str) {
    let experiment = match preset {
        "pghot-v7/scan-1s" | "pghot-v7/scan-100ms" => "pghot-v7/scenario-1",
        other => other,
    };
    let (kernel, policy) = match (experiment, source) {
        (_, "pghot-precise") => ("pghot-precise", source),
        (_, "NUMAB0-pghot") => ("pghot-default", "NUMAB0"),
        (_, "HWHINTS" | "pghot-default") => ("pghot-default", source),
        (_, "NUMAB0-patched") => ("patched", "NUMAB0"),
        (_, "NUMAB2-patched") => ("patched", "NUMAB2"),
        (_, "pgtscan" | "hwhints") => ("patched", source),
        _ => ("base", source),
    };
    (experiment.to_owned(), kernel, policy)
}

#[test]
fn published_numbers_are_those_of_the_published_records() {
    let records = include_str!("../../../published/pghot/records.jsonl");
    let records = journal::read_records(records).unwrap();
    let mut compared = 0;
    for preset in presets() {
        for (name, published) in &preset.published {
            let (source, metric) = name.rsplit_once('/').unwrap();
            let (experiment, kernel, policy) = of_source(&preset.name, source);
            let mine = records.iter().find(|record| {
                let is = |name: &str, value: &str| record.case.get(name) == Some(value);
                is("experiment", &experiment) && is("kernel", kernel) && is("policy", policy)
            });
            let record = mine.unwrap_or_else(|| panic!("{experiment} {kernel} {policy}"));
            let Record::Measured(measured) = &record.outcome else { panic!("{name}") };
            let counter = |name: &str| measured.counters.get(name).map(|count| *count as f64);
            let seconds = |series: &Series| match &series.data {
                Data::Values(values) => values[0] as f64 / 1e9,
                _ => panic!("{name}"),
            };
            let value = match metric {
                "time_s" => seconds(&measured.series[0]),
                "recorded_not_promoted" => {
                    counter("pghot_recorded_accesses").unwrap()
                        - counter("pgpromote_success").unwrap()
                }
                metric => counter(metric).unwrap_or_else(|| panic!("{name}")),
            };
            assert!((value - published.value).abs() < 1e-6, "{}: {name}", preset.name);
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared}");
}

const SMALL: &str = "name = 'a'\nsummary = 'b'\n[[run]]\nsource = 'X'\npolicy = 'none'\n";

#[test]
fn mistakes_are_named() {
    parse(SMALL).unwrap();
    let more = |text: &str| format!("{SMALL}{text}");
    for (text, named) in [
        (more("[memory]\nsise = 3\n"), "line 7"),
        (more("[[run]]\nsource = 'X'\npolicy = 'none'\n"), "two runs"),
        (more("[published]\n'X/speed' = { value = 1, source = '' }\n"), "speed"),
        (more("[published]\n'Y/time_s' = { value = 1, source = '' }\n"), "Y/time_s"),
        (more("[curve]\nfast = { value = 1, fitted = 'X/time_s' }\n"), "not in [published]"),
        ("name = 'a'\nsummary = 'b'\nrun = []".to_owned(), "[[run]]"),
    ] {
        let error = parse(&text).unwrap_err();
        assert!(error.contains(named), "{text}: {error}");
    }
}

#[test]
fn a_run_has_its_own_numbers_over_those_of_its_file() {
    let text = format!("{SMALL}[run.curve]\nfast = 2\n[curve]\nfast = 1\nslow = 9\n");
    let preset = parse(&text).unwrap();
    let constants = preset.runs[0].constants();
    let value = |name: &str| constants.iter().find(|(known, _)| known == name).unwrap().1.value;
    assert!((value("curve.fast") - 2.0).abs() < 1e-9);
    assert!((value("curve.slow") - 9.0).abs() < 1e-9);
}
