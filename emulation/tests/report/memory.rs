//! Emulated memory in a report: numbers, answers that follow the records, and records of any shape.

use pagelab_record::{Case, Clock, Data, Measured, Outcome, Record, Series, Table, Unit};
use pagelab_report::{Forms, Report, Style};
use proptest::prelude::*;
use serde_json::Value;

use crate::{golden_memory, made, made_suites};

const WIDE: Style = Style { color: false, width: 10_000 };

/// The report of fast-mem's suite, after something was done to its records.
fn suite(change: impl Fn(&mut Vec<Record>)) -> Report {
    let (header, mut records) = golden_memory::fast_memory();
    change(&mut records);
    Report::of(&header, &records, None, &made_suites::publication("fast-memory"), &crate::views())
}

/// The line that says what became of a claim, its verdict first.
fn answer(report: &Report, claim: &str) -> String {
    let text = report.terminal(WIDE);
    let is = |line: &&str| line.split_once(": ").is_some_and(|(_, said)| said.starts_with(claim));
    text.lines().find(is).unwrap_or_default().to_owned()
}

fn is_replay(record: &Record, trace: &str, reader: &str) -> bool {
    let is = |name: &str, value: &str| record.case.get(name) == Some(value);
    record.workload == "emu/replay" && is("trace", trace) && is("reader", reader)
}

/// Makes an arm of some replays slower or faster.
fn scale(records: &mut [Record], trace: &str, reader: &str, arm: &str, factor: f64) {
    for record in records.iter_mut().filter(|record| is_replay(record, trace, reader)) {
        let Outcome::Measured(measured) = &mut record.outcome else { continue };
        for series in &mut measured.series {
            let timed = series.arm == arm && series.unit == Unit::Ns;
            if let (true, Data::Values(values)) = (timed, &mut series.data) {
                for value in values {
                    *value = made::whole(*value as f64 * factor);
                }
            }
        }
    }
}

fn number<'a>(case: &'a Value, arm: &str, time: &str, statistic: &str) -> &'a Value {
    let is = |number: &&Value| {
        let same = |key: &str, value: &str| number[key] == *value;
        same("arm", arm) && same("time", time) && same("statistic", statistic)
    };
    case["numbers"].as_array().unwrap().iter().find(is).unwrap()
}

#[test]
fn every_arm_of_a_replay_has_its_time_and_its_ratios_in_json_and_csv() {
    let report = suite(|_| ());
    let json: Value = serde_json::from_str(&report.json()).unwrap();
    let cases = json["cases"].as_array().unwrap();
    let replay = cases.iter().find(|case| case["workload"] == "emu/replay").unwrap();
    for (arm, ns) in [("noop", 2.29), ("base", 4.41), ("tlb", 2.77)] {
        let of = |statistic| number(replay, arm, "cpu", statistic)["value"].as_f64().unwrap();
        assert!((of("ns_per_op") / ns - 1.0).abs() < 0.01, "{arm}");
        assert!((of("ratio_to_noop") - ns / 2.29).abs() < 1e-3, "{arm}");
        assert!((of("ratio_to_base") - ns / 4.41).abs() < 1e-3, "{arm}");
    }
    let csv = report.csv();
    for statistic in ["ns_per_op", "ratio_to_noop", "ratio_to_base", "hit_rate", "per_mib"] {
        assert!(csv.contains(&format!(",{statistic},")), "{statistic}");
    }
    // What was published has its time of an operation, too.
    let published = json["published"].as_array().unwrap();
    let hashers = published.iter().find(|case| {
        case["case"]["generation"] == "hashers" && case["case"]["trace"] == "exec-block"
    });
    let time = number(hashers.unwrap(), "paged-fx:any-width/safe", "elapsed", "ns_per_op");
    assert!((time["value"].as_f64().unwrap() - 35.639_297_503 / 4.160_787_522).abs() < 1e-6);
}

/// Operations of the published exec-block.
const OPS: u64 = 4_160_787_522;
/// Ten bytes for each of them, and what the stores hold, by the published mix of widths.
const BYTES: u64 = 43_933_138_505;

#[test]
fn the_published_replays_follow_from_each_other() {
    let published = made_suites::published("fast-memory");
    let of = |generation: &str, counter: &str| {
        let mine = published.iter().filter(|r| r.case.get("generation") == Some(generation));
        let measured = mine.filter_map(|record| match &record.outcome {
            Outcome::Measured(measured) => Some(measured),
            _ => None,
        });
        measured.filter_map(|m| m.counters.get(counter).copied()).collect::<Vec<u64>>()
    };
    for step in ["cache-last", "cache-last-created"] {
        let sum = of(step, "page_cache_hits")[0] + of(step, "page_cache_misses")[0];
        assert_eq!(sum, OPS, "{step}");
    }
    let calls = [8 << 10, 4 << 20].map(|buffer: u64| BYTES.div_ceil(buffer) + 6);
    assert_eq!(of("buffering", "read_calls"), calls);
    // Created on the first read, a page misses as often as the trace moves, and once at first.
    assert_eq!(of("cache-last-created", "page_cache_misses"), [1_443_055_930]);
}

#[test]
fn an_answer_follows_the_records_and_not_the_expectation() {
    let said = answer(&suite(|_| ()), "a larger read buffer");
    assert!(said.contains("fewer calls do not help here either"), "{said}");
    let report = suite(|records| scale(records, "exec-block", "buffered-4m", "noop", 0.5));
    let said = answer(&report, "a larger read buffer");
    assert!(said.contains("does help, other than published"), "{said}");

    let said = answer(&suite(|_| ()), "not hashing is slower than hashing: exec-block");
    assert!(said.starts_with("agrees: ") && said.contains("What would explain it"), "{said}");
    let report = suite(|records| scale(records, "exec-block", "memory", "paged-nohash", 0.5));
    let said = answer(&report, "not hashing is slower than hashing: exec-block");
    assert!(said.starts_with("refuted: "), "{said}");
    assert!(said.contains("not hashing is a gain here"), "{said}");

    let report = suite(|records| scale(records, "exec-block", "memory", "paged-last", 0.5));
    let said = answer(&report, "keeping the last page");
    assert!(said.contains("other than published, it is a gain here"), "{said}");
}

#[test]
fn an_answer_without_its_case_says_which_one_it_needs() {
    let report = suite(|records| {
        records.retain(|record| !is_replay(record, "exec-block", "buffered-4m"));
        let arms = |record: &Record| is_replay(record, "exec-block", "memory");
        for record in records.iter_mut().filter(|record| arms(record)) {
            let Outcome::Measured(measured) = &mut record.outcome else { continue };
            measured.series.retain(|series| series.arm != "paged-nohash");
        }
    });
    let said = answer(&report, "a larger read buffer");
    assert!(said.starts_with("cannot be tested here: "), "{said}");
    assert!(said.contains("reader=buffered-4m trace=exec-block (no such case ran)"), "{said}");
    let said = answer(&report, "not hashing is slower than hashing: exec-block");
    assert!(said.contains("with paged-nohash (its case has no such number)"), "{said}");
    assert!(!answer(&report, "keeping the last page").contains("cannot be tested here"));
}

#[test]
fn a_suite_whose_replays_are_invalid_answers_nothing() {
    let report = suite(|records| {
        for record in records.iter_mut().filter(|record| record.workload == "emu/replay") {
            let Outcome::Measured(measured) = &mut record.outcome else { continue };
            measured.witness[0].holds = false;
        }
    });
    for claim in ["a larger read", "mapping the", "not hashing", "keeping the", "hashing is"] {
        let said = answer(&report, claim);
        assert!(said.starts_with("cannot be tested here: "), "{said}");
    }
}

#[test]
fn a_published_result_stands_beside_its_like_only() {
    let text = suite(|_| ()).terminal(WIDE);
    let table = text.split("fast-mem: the worklog, repeated").nth(1).unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.contains(" paged-fx")).collect();
    // Three implementations were published, and one of them is ours.
    let pairs = rows.iter().filter(|row| row.contains("exec-block") && row.contains("6.12 ns"));
    assert_eq!(pairs.count(), 1, "{rows:?}");
    let other = rows.iter().find(|row| row.contains("paged-fx:any-width/safe")).unwrap();
    assert!(other.ends_with('–'), "{other}");
}

#[test]
fn the_ratio_of_our_memory_is_named_by_what_is_in_it() {
    let text = suite(|_| ()).terminal(WIDE);
    let line = text.lines().find(|line| line.starts_with("tlb takes, of the time: ")).unwrap();
    for said in [
        "0.70 of fast-mem's best memory behind the same decoder",
        "0.63 of fast-mem's best memory behind its own (base)",
        "1.05 of no look-up at all (flat)",
    ] {
        assert!(line.contains(said), "{line}");
    }
}

#[test]
fn readers_with_several_arms_keep_the_ratios_inside_their_case() {
    let report = suite(|records| {
        let mut mapped = records[1].clone();
        mapped.case = mapped.case.with("reader", "mmap");
        records.push(mapped);
    });
    let text = report.terminal(WIDE);
    let table = text.split("exec-block, by reader").nth(1).unwrap();
    let line = |start: &str| table.lines().find(|line| line.starts_with(start)).unwrap();
    let heads: Vec<&str> = line("reader ").split("  ").filter(|head| !head.is_empty()).collect();
    assert!(heads.iter().any(|head| head.trim() == "× base"), "{heads:?}");
    let of_tlb = |reader: &str| {
        let is = |line: &&str| line.starts_with(reader) && line.contains(" tlb ");
        table.lines().find(is).unwrap().to_owned()
    };
    for reader in ["memory", "mmap"] {
        let row = of_tlb(reader);
        assert!(row.contains("1.210") && row.contains("0.628"), "{row}");
    }
}

#[test]
fn the_golden_journal_holds_what_is_made_here() {
    let all = made::journal().records;
    for record in golden_memory::records() {
        let is_it =
            |other: &&Record| (&other.workload, &other.case) == (&record.workload, &record.case);
        assert!(all.iter().find(is_it).is_some_and(|other| other.outcome == record.outcome));
    }
}

#[test]
fn a_verdict_that_fails_says_by_how_many_loads() {
    let contents = made::journal();
    let report = Report::of(&contents.header, &contents.records, None, &[], &crate::views());
    let text = report.terminal(WIDE);
    let line = text.lines().find(|line| line.starts_with("zipf ")).unwrap();
    assert!(line.contains("17") && line.ends_with("INVALID"), "{line}");
}

/// Series of any shape: what a later version, or another program, may leave.
fn any_series() -> impl Strategy<Value = Series> {
    let names = prop::sample::select(vec!["replay", "user-time", "minor-faults", "read-calls"]);
    let arms = prop::sample::select(vec!["noop", "base", "tlb", "paged-fx", ""]);
    let clocks = prop::sample::select(vec![Clock::Cpu, Clock::Tsc, Clock::Scripted]);
    let values = prop::collection::vec(prop_oneof![Just(0), Just(u64::MAX), any::<u64>()], 0..3);
    let shape = (0..3_u32, 0..3_u32, prop_oneof![Just(0), Just(1), any::<u64>()]);
    (names, arms, clocks, values, shape).prop_map(|(name, arm, clock, values, shape)| Series {
        process: shape.0,
        repetition: shape.1,
        ops: shape.2,
        bytes: shape.2,
        ..Series::new(name, arm, clock, Unit::Ns, values)
    })
}

fn any_table() -> impl Strategy<Value = Table> {
    let names = [
        "widths",
        "runs",
        "reuse",
        "absent-reuse",
        "caches",
        "absent-caches",
        "top-pages",
        "miss-ratio",
        "tlb",
        "width-shares",
        "cache-hit-rates",
    ];
    let cell = prop_oneof![Just(0), Just(1), Just(i64::MAX), Just(i64::MIN), any::<i64>()];
    let rows = prop::collection::vec(prop::collection::vec(cell, 0..6), 0..6);
    (prop::sample::select(names.to_vec()), rows).prop_map(|(name, rows)| Table {
        name: name.into(),
        columns: vec![("a", "b").into()],
        rows,
    })
}

fn any_counters() -> impl Strategy<Value = std::collections::BTreeMap<String, u64>> {
    let names = ["ops", "reads", "writes", "transitions", "absent_reads", "trace_ops", "pages"];
    let name = prop::sample::select(names.to_vec()).prop_map(str::to_owned);
    prop::collection::btree_map(name, prop_oneof![Just(0), any::<u64>()], 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn records_of_any_shape_become_a_report_in_every_form(
        series in prop::collection::vec(any_series(), 0..8),
        tables in prop::collection::vec(any_table(), 0..6),
        counters in any_counters(),
        backends in prop::sample::select(vec!["", "noop", "noop,base,tlb", ",,", "tlb,tlb"]),
        trace in prop::sample::select(vec!["", "exec-block", "fib:x", "/a/b.bin", "a|<b"]),
    ) {
        let case = |reader: &str| {
            let case = Case::default().with("trace", trace).with("page-shift", "12");
            case.with("backend", backends).with("reader", reader)
        };
        let measured = || Measured {
            series: series.clone(),
            tables: tables.clone(),
            counters: counters.clone(),
            ..Measured::default()
        };
        let mut records = Vec::new();
        for workload in ["emu/replay", "emu/verify", "trace/stats"] {
            records.push(made::measured(workload, case("memory"), measured()));
            records.push(made::measured(workload, case("mmap"), measured()));
        }
        let (header, _) = golden_memory::fast_memory();
        let published = made_suites::publication("fast-memory");
        let report = Report::of(&header, &records, None, &published, &crate::views());
        for width in [20, 160] {
            report.terminal(Style { color: true, width });
        }
        prop_assert!(report.html().contains("</html>"));
        prop_assert!(report.markdown().contains("## Trace replay"));
        prop_assert!(report.csv().lines().count() > 1);
        let json: Value = serde_json::from_str(&report.json()).unwrap();
        prop_assert_eq!(json["cases"].as_array().unwrap().len(), records.len());
    }

    #[test]
    fn a_ratio_is_what_the_times_are_whatever_a_process_does_to_both(
        floor in 1_000_u64..1_000_000, factor in 1_u64..50, slower in 1_u64..20,
    ) {
        let series = |process: u32, arm: &str, ns: u64| Series {
            process,
            ops: 1_000,
            bytes: 10_000,
            ..Series::new("replay", arm, Clock::Cpu, Unit::Ns, vec![ns])
        };
        let both = |process, times: u64| {
            [series(process, "noop", floor * times), series(process, "tlb", floor * times * factor)]
        };
        let measured = Measured {
            series: both(0, 1).into_iter().chain(both(1, slower)).collect(),
            ..Measured::default()
        };
        let case = Case::default().with("trace", "fib").with("backend", "noop,tlb");
        let record = made::measured("emu/replay", case, measured);
        let (header, _) = golden_memory::fast_memory();
        let report = Report::of(&header, &[record], None, &[], &crate::views());
        let json: Value = serde_json::from_str(&report.json()).unwrap();
        let ratio = number(&json["cases"][0], "tlb", "cpu", "ratio_to_noop");
        for end in ["low", "value", "high"] {
            prop_assert!((ratio[end].as_f64().unwrap() / factor as f64 - 1.0).abs() < 1e-6);
        }
    }
}
