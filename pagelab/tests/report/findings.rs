//! What a run found: sentences, what each rests on, and when there is none.

use std::slice::from_ref;

use pagelab_record::{
    Case, Clock, Data, Host, Measured, Nature, Outcome, Record, RunHeader, Series, Unit,
    verdict::Ratio, vocabulary::Check,
};
use pagelab_report::{Forms, Report, Style};
use proptest::prelude::*;
use serde_json::{Value, json};

/// By how much processes differ, in parts of a thousand.
const PROCESSES: [f64; 8] = [0.0, 3.1, -1.2, 5.4, -4.0, 2.2, -2.7, 0.9];

/// A case with one series of a number of nanoseconds in each process.
fn record(
    (workload, series): (&str, &str),
    case: &[(&str, &str)],
    (ops, bytes): (u64, u64),
    processes: &[f64],
) -> Record {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "nanoseconds")]
    let one = |(process, ns): (usize, &f64)| Series {
        name: series.into(),
        arm: "pagelab".into(),
        process: u32::try_from(process).unwrap(),
        repetition: 0,
        clock: Clock::Tsc,
        unit: Unit::Ns,
        ops,
        bytes,
        data: Data::Values(vec![ns.round() as u64]),
    };
    let series = processes.iter().enumerate().map(one).collect();
    Record {
        schema: pagelab_record::schema::SCHEMA.into(),
        run: "run".into(),
        boot: "one".into(),
        workload: workload.into(),
        nature: Nature::Measured,
        case: case.iter().fold(Case::default(), |case, (name, value)| case.with(name, value)),
        ab: None,
        host: Host::default(),
        outcome: Outcome::Measured(Measured { series, ..Measured::default() }),
    }
}

/// So many nanoseconds, a little more or less in each process.
fn around(ns: f64) -> Vec<f64> {
    PROCESSES.iter().map(|part| ns * (1.0 + part / 1000.0)).collect()
}

fn fault(kind: &str, page: &str, processes: &[f64]) -> Record {
    record(("fault/latency", "fault"), &[("kind", kind), ("page", page)], (1, 4096), processes)
}

fn memory(page: &str, populate: &str, gb: f64) -> Record {
    const BYTES: u64 = 1 << 26;
    let case = [("kind", "write"), ("page", page), ("populate", populate)];
    record(("fault/throughput", "touch"), &case, (64, BYTES), &around(BYTES as f64 / gb))
}

fn limit(gb: f64) -> Record {
    const BYTES: u64 = 1 << 26;
    let times = around(BYTES as f64 / gb);
    record(("limit/clear", "clear"), &[("level", "dram")], (1, BYTES), &times)
}

/// A run that every rule about pages, kinds and ways to populate can speak of.
fn run() -> Vec<Record> {
    let mut records = vec![limit(10.0)];
    let pages = [("4k", 600.0, 2.0), ("64k", 3_000.0, 8.3), ("1m", 40_000.0, 8.8)];
    for (page, ns, gb) in pages.into_iter().chain([("2m", 78_000.0, 9.0)]) {
        records.push(fault("write", page, &around(ns)));
        records.push(memory(page, "touch", gb));
    }
    records.push(fault("write", "hugetlb-2m", &around(60_000.0)));
    records.push(memory("hugetlb-2m", "touch", 9.1));
    for (kind, ns) in [("read", 250.0), ("fork-cow", 1100.0), ("ksm", 2400.0), ("mprotect", 590.0)]
    {
        records.push(fault(kind, "4k", &around(ns)));
    }
    records.push(memory("4k", "map-populate", 4.0));
    records.push(memory("4k", "madvise-populate", 2.02));
    records
}

fn report(records: &[Record]) -> Report {
    Report::of(&RunHeader::default(), records, None, &[], &crate::views())
}

fn findings(records: &[Record]) -> Vec<Value> {
    let json: Value = serde_json::from_str(&report(records).json()).unwrap();
    json["findings"].as_array().unwrap().clone()
}

fn rules(records: &[Record]) -> Vec<String> {
    let found = findings(records);
    found.iter().map(|found| found["rule"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_sentences_of_a_run() {
    let text = report(&run()).terminal(Style { color: false, width: 100 });
    let section = text.split("\nFindings\n").nth(1).unwrap().split("\n\n").next().unwrap();
    insta::assert_snapshot!(section);
}

#[test]
fn a_finding_is_data_that_names_its_cells() {
    let found = findings(&run()).remove(0);
    assert_eq!(found["rule"], "page-near-clear-limit");
    assert_eq!(found["nature"], "measured");
    let ratios = found["ratios"].as_array().unwrap();
    let [share, latency] = &ratios[..] else { panic!("{ratios:?}") };
    assert_eq!(share["statistic"], "bandwidth");
    assert_eq!(share["of"]["case"]["page"], "64k");
    assert_eq!(share["to"]["workload"], "limit/clear");
    assert_eq!(latency["to"]["case"], json!({"kind": "write", "page": "2m"}));
    assert_eq!(latency["processes"], json!([8, 8]));
}

#[test]
fn markdown_and_the_page_say_the_same() {
    let (report, found) = (report(&run()), findings(&run()));
    let (markdown, page) = (report.markdown(), report.html());
    for found in found {
        let sentence = found["finding"].as_str().unwrap();
        assert!(markdown.contains(sentence), "{sentence}");
        assert!(page.contains(sentence), "{sentence}");
    }
}

#[test]
fn too_few_processes_another_boot_and_a_claim_that_fails_say_nothing() {
    let write = fault("write", "4k", &around(600.0));
    let read = fault("read", "4k", &around(250.0));
    assert_eq!(rules(&[write.clone(), read.clone()]), ["kind-of-fault"]);
    let three = [("write", 600.0), ("read", 250.0)];
    let three = three.map(|(kind, ns)| fault(kind, "4k", &around(ns)[..3]));
    assert_eq!(rules(&three), [""; 0]);
    let other = Record { boot: "two".into(), ..read.clone() };
    assert_eq!(rules(&[write.clone(), other]), [""; 0]);
    let emulated = Record { nature: Nature::Emulated, ..read.clone() };
    assert_eq!(rules(&[write.clone(), emulated]), [""; 0]);
    let mut invalid = read;
    let Outcome::Measured(measured) = &mut invalid.outcome else { panic!() };
    measured.witness = vec![pagelab_record::Claim::check(Check::MajorFaults, "", 0, 1, 0)];
    assert_eq!(rules(&[write, invalid]), [""; 0]);
}

#[test]
fn a_kind_whose_touches_take_no_fault_is_no_fault() {
    let write = fault("write", "4k", &around(600.0));
    let mut none = fault("mprotect", "4k", &around(10.0));
    let Outcome::Measured(measured) = &mut none.outcome else { panic!() };
    let control = measured.series.iter().map(|s| Series { arm: "control".into(), ..s.clone() });
    let control: Vec<Series> = control.collect();
    measured.series.iter_mut().for_each(|series| series.name = "touch".into());
    measured.series.extend(control);
    assert_eq!(rules(&[write, none]), [""; 0]);
}

#[test]
fn a_time_that_was_spent_waiting_for_the_cpu_says_nothing() {
    let (touch, mut call) = (memory("4k", "touch", 2.0), memory("4k", "map-populate", 1.0));
    assert_eq!(rules(&[touch.clone(), call.clone()]), ["populate"]);
    let Outcome::Measured(measured) = &mut call.outcome else { panic!() };
    let on_cpu: Vec<Series> = measured
        .series
        .iter()
        .map(|elapsed| {
            let Data::Values(values) = &elapsed.data else { panic!() };
            let data = Data::Values(values.iter().map(|ns| ns / 3).collect());
            Series { clock: Clock::Cpu, data, ..elapsed.clone() }
        })
        .collect();
    measured.series.extend(on_cpu);
    assert_eq!(rules(&[touch, call]), [""; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_sentence_is_said_where_the_whole_interval_lies_beyond_and_never_of_both_sides(
        factor in 0.5_f64..2.0,
        one in prop::collection::vec(900.0_f64..1100.0, 4..10),
        other in prop::collection::vec(900.0_f64..1100.0, 4..10),
    ) {
        let one: Vec<f64> = one.into_iter().map(|ns| (ns * factor * 1e3).round()).collect();
        let other: Vec<f64> = other.into_iter().map(|ns| (ns * 1e3).round()).collect();
        let [low, high] = Ratio::of(from_ref(&other), from_ref(&one)).unwrap().interval().unwrap();
        let expected = low > 1.25 || high < 0.8;
        let said = |[kind, write]: [&[f64]; 2]| {
            findings(&[fault("read", "4k", kind), fault("write", "4k", write)])
        };
        let (there, back) = (said([&one, &other]), said([&other, &one]));
        prop_assert_eq!(there.len(), usize::from(expected), "{} {}", low, high);
        prop_assert_eq!(back.len(), there.len());
        let is_longer = |found: &[Value]| found.iter().any(|found| {
            found["finding"].as_str().unwrap().contains("times as long as")
        });
        prop_assert!(!expected || is_longer(&there) != is_longer(&back));
    }
}
