//! Memory types in a report: memcachetest's tables and sentences over records of known numbers.

use pagelab_record::{Data, Outcome, Record, RunHeader, Unit, schema};
use pagelab_report::{Forms, Report, Style};
use proptest::prelude::*;
use serde_json::Value;

use crate::{golden, golden_memtype};

const PLAIN: Style = Style { color: false, width: 160 };
const WIDE: Style = Style { color: false, width: 10_000 };

fn report((header, records): (RunHeader, Vec<Record>)) -> Report {
    Report::of(&header, &records, None, &golden::publication("memory-types"), &crate::views())
}

/// The report of the suite with the module, after something was done to its records.
fn suite(change: impl Fn(&mut Vec<Record>)) -> Report {
    let (header, mut records) = golden_memtype::memory_types();
    change(&mut records);
    report((header, records))
}

/// The line that says what became of a claim, its verdict first, with its cure.
fn answer(report: &Report, claim: &str) -> String {
    let text = report.terminal(WIDE);
    let is = |line: &&str| line.split_once(": ").is_some_and(|(_, said)| said.starts_with(claim));
    let mut lines = text.lines().skip_while(|line| !is(line));
    let said = lines.next().unwrap_or_default();
    let cure = lines.next().filter(|line| line.trim_start().starts_with("cure: "));
    format!("{said}\n{}", cure.unwrap_or_default())
}

fn is(record: &Record, memory_type: &str, test: &str) -> bool {
    let has = |name: &str, value: &str| record.case.get(name) == Some(value);
    has("type", memory_type) && has("test", test)
}

/// Makes every time of some tests longer or shorter.
fn scale(records: &mut [Record], memory_type: &str, test: &str, series: &[&str], factor: f64) {
    for record in records.iter_mut().filter(|record| is(record, memory_type, test)) {
        let Outcome::Measured(measured) = &mut record.outcome else { continue };
        let mine = measured.series.iter_mut().filter(|s| series.contains(&s.name.as_str()));
        for values in mine.filter(|s| s.unit == Unit::Ns) {
            if let Data::Values(values) = &mut values.data {
                for value in values {
                    *value = golden::whole(*value as f64 * factor);
                }
            }
        }
    }
}

const ALL: [&str; 3] = ["issue", "test", "completion"];

#[test]
fn the_suite_with_the_module() {
    insta::assert_snapshot!(report(golden_memtype::memory_types()).terminal(PLAIN));
}

#[test]
fn what_lies_behind_the_nodes_of_their_driver_is_in_their_programs_lines_and_by_its_ioctl() {
    let behind = |bytes: u64| {
        suite(|records| {
            let mine = records.iter_mut().filter(|record| is(record, "uc", "ntwrite_readback"));
            for record in mine {
                record.case = record.case.clone().with("frames", "nodes");
                let Outcome::Measured(measured) = &mut record.outcome else { continue };
                measured.counters.insert("node_bytes".to_owned(), bytes);
            }
        })
    };
    let line = |report: &Report, start: &str| {
        let frames = report.frames();
        frames.lines().find(|line| line.starts_with(start)).map(str::to_owned)
    };
    let size = "/dev/memcache_uc size: 16777216 bytes (16.00 MiB) source=";
    let report = behind(16 << 20);
    assert_eq!(line(&report, size), Some(format!("{size}ioctl")));
    assert!(line(&report, "/dev/memcache_uc ntwrite_readback verify: ok").is_some());
    assert_eq!(line(&report, "/dev/memcache_uc write:"), None, "it lies elsewhere");
    assert!(line(&report, "/dev/memcache_wb write:").is_some());
    assert_eq!(line(&behind(32 << 20), size), Some(format!("{size}--size")));
}

#[test]
fn the_suite_without_the_module_says_what_wb_says_and_how_to_get_the_rest() {
    insta::assert_snapshot!(report(golden_memtype::without_the_module()).terminal(PLAIN));
}

#[test]
fn the_suite_where_a_hypervisor_ignores_memory_types() {
    insta::assert_snapshot!(report(golden_memtype::ignored_types()).terminal(PLAIN));
}

#[test]
fn the_suite_on_an_emulated_machine() {
    insta::assert_snapshot!(report(golden_memtype::emulated()).terminal(PLAIN));
}

#[test]
fn no_form_quotes_a_time_of_an_emulated_machine_and_each_says_why() {
    let report = report(golden_memtype::emulated());
    let said = "its times mean nothing and are withheld";
    for form in [report.terminal(PLAIN), report.markdown(), report.html()] {
        assert!(form.contains(said) && form.contains("EMULATED"));
    }
    let json: Value = serde_json::from_str(&report.json()).unwrap();
    for case in json["cases"].as_array().unwrap() {
        assert_eq!(case["standing"], "emulated");
        assert_eq!(case["nature"], "emulated");
        assert_eq!(case["numbers"], Value::Array(Vec::new()));
    }
    assert_eq!(json["derived"]["levels"], Value::Array(Vec::new()));
    let csv = report.csv();
    let ours = csv.lines().filter(|line| line.contains(",emulated,emulated"));
    assert!(ours.clone().count() > 40);
    assert!(ours.clone().all(|line| line.ends_with(",,,,,,,,")));
    // What is drawn is drawn from numbers; what was published alone is no chart of this run.
    assert!(!report.html().contains("Rates by test and memory type"));
    // The only headline is how many cases may be believed.
    let head = report.terminal(PLAIN);
    assert!(head.contains("0  valid, 49 emulated"), "{head}");
    assert!(!head.contains("MiB/s  stores"));
}

#[test]
fn no_number_of_an_ignored_memory_type_is_quoted() {
    let report = report(golden_memtype::ignored_types());
    let json: Value = serde_json::from_str(&report.json()).unwrap();
    for case in json["cases"].as_array().unwrap() {
        let typed = case["case"]["type"] == "uc" || case["case"]["type"] == "wc";
        let numbers = case["numbers"].as_array().unwrap();
        if typed {
            assert_eq!(case["standing"], "invalid");
            assert!(numbers.is_empty());
        }
    }
    let text = report.terminal(WIDE);
    let mut notes = text.lines().filter(|line| line.starts_with("INVALID: "));
    let first = notes.next().unwrap();
    let claim = "UC- memory that is as fast as WB: PAT ignored";
    assert!(first.contains(claim), "{first}");
    assert!(first.contains("expected 0, observed 1"), "{first}");
    assert!(first.contains("run on the host"), "{first}");
    for claim in ["1 UC is the steadiest", "2 WC is written", "3.1 loading the fence word back"] {
        let said = answer(&report, claim);
        assert!(said.contains("(INVALID)"), "{said}");
    }
    // WB still speaks for itself.
    let said = answer(&report, "4 movnt is faster: wb");
    assert!(said.contains("ntwrite is 1.40"), "{said}");
}

#[test]
fn without_the_module_each_answer_names_the_need_and_its_cure() {
    let report = report(golden_memtype::without_the_module());
    for claim in ["1 UC", "2 WC is written faster", "3 the UC fence", "4 movnt is faster: uc"] {
        let said = answer(&report, claim);
        assert!(said.starts_with("cannot be tested here"), "{said}");
        assert!(said.contains("the kernel module pagelab"), "{said}");
        assert!(said.contains("cure: sudo modprobe pagelab"), "{said}");
    }
    let said = answer(&report, "3 an sfence costs time");
    assert!(said.contains("In WB a round of write with its sfence takes -187 µs"), "{said}");
}

#[test]
fn the_sentences_follow_the_records_and_not_the_expectation() {
    let slowest = "1 UC is the slowest";
    let said = answer(&suite(|_| ()), slowest);
    assert!(said.contains("UC is the slowest in all 8 tests"), "{said}");
    let report = suite(|records| scale(records, "wc", "read", &["test"], 2.0));
    let said = answer(&report, slowest);
    assert!(said.starts_with("refuted: ") && said.contains("read (1.8"), "{said}");

    let little = "1 the ways to store into UC differ little";
    let said = answer(&suite(|_| ()), little);
    assert!(said.contains("does not hold, here as in its own table"), "{said}");
    let report = suite(|records| scale(records, "uc", "ntwrite", &ALL, 2.0));
    let said = answer(&report, little);
    assert!(said.contains("here the ways to store do differ little"), "{said}");

    let faster = "2 WC is written faster than WB: write";
    let said = answer(&suite(|_| ()), faster);
    assert!(said.contains("1.75 (1.73–1.78) times what WB does (published 1.75)"), "{said}");
    let report = suite(|records| scale(records, "wc", "write", &ALL, 3.0));
    let said = answer(&report, faster);
    assert!(said.contains("WC is the slower one"), "{said}");

    let movnt = "4 movnt is faster: wb";
    let said = answer(&suite(|_| ()), movnt);
    assert!(said.contains("as its table says (1.40)"), "{said}");
    let report = suite(|records| scale(records, "wb", "ntwrite", &ALL, 1.4));
    let said = answer(&report, movnt);
    assert!(said.contains("ntwrite is 1.00") && said.contains("a tie"), "{said}");
}

#[test]
fn the_cost_of_the_uc_fence_is_held_against_the_access() {
    let fence = "3 the UC fence is slow";
    let said = answer(&suite(|_| ()), fence);
    assert!(said.contains("write_ucfence +272 µs") && said.contains("WB +270 µs"), "{said}");
    assert!(said.contains("the access itself is slow does not explain it"), "{said}");
    assert!(said.contains("a UC store takes 33.4 ns and a UC load 79.7 ns"), "{said}");
    let waits = "3 what the UC fence waits for";
    let said = answer(&suite(|_| ()), waits);
    assert!(said.contains("some are complete later, too"), "{said}");

    // Where sfence leaves as much under way, both kinds of round are complete at one time.
    let report = suite(|records| {
        for (memory_type, test, factor) in [
            ("wb", "write", 1.246),
            ("wb", "ntwrite", 1.474),
            ("wc", "write", 1.736),
            ("wc", "ntwrite", 1.323),
        ] {
            scale(records, memory_type, test, &["completion"], factor);
        }
    });
    let said = answer(&report, waits);
    assert!(said.starts_with("agrees: "), "{said}");

    // A fence that costs next to nothing is not spoken of as a cost.
    let report = suite(|records| {
        scale(records, "wb", "write_ucfence", &ALL, 0.8023);
        scale(records, "wb", "ntwrite_ucfence", &ALL, 0.678);
    });
    let said = answer(&report, fence);
    assert!(said.contains("no cost of a round can be told from that here"), "{said}");
}

#[test]
fn a_forbidden_reordering_that_was_seen_is_shown_by_its_count() {
    let report = suite(|records| {
        let mut order = records.iter_mut().filter(|record| record.workload == "memtype/order");
        let first = order.next().unwrap();
        let Outcome::Measured(measured) = &mut first.outcome else { unreachable!() };
        measured.witness[0].observed = 7;
        measured.witness[0].holds = false;
        for series in measured.series.iter_mut().filter(|s| s.name == "reorderings") {
            series.data = Data::Values(vec![7]);
        }
    });
    let text = report.terminal(WIDE);
    let row = text.lines().find(|line| line.contains("forbidden and seen 105")).unwrap();
    assert!(row.ends_with("INVALID"), "{row}");
    assert!(!answer(&report, "verification shows").contains("105"));
}

#[test]
fn every_rate_is_in_json_and_csv() {
    let report = suite(|_| ());
    let json: Value = serde_json::from_str(&report.json()).unwrap();
    let cases = json["cases"].as_array().unwrap();
    let write = cases.iter().find(|case| case["case"]["type"] == "wc").unwrap();
    let number = |series: &str, statistic: &str| {
        let numbers = write["numbers"].as_array().unwrap().iter();
        let mut mine = numbers.filter(|n| n["series"] == series && n["statistic"] == statistic);
        mine.next().unwrap()["value"].as_f64().unwrap()
    };
    let rate = number("test", "bandwidth") / 1_048_576.0;
    assert!((rate / 25_622.50 - 1.0).abs() < 0.01, "{rate}");
    assert!(number("issue", "bandwidth") > number("test", "bandwidth"));
    assert!(number("completion", "round") > number("test", "round"));
    let csv = report.csv();
    for statistic in ["bandwidth", "round", "share_of_c"] {
        assert!(csv.contains(&format!(",{statistic},")), "{statistic}");
    }
}

/// The published numbers of a record: the time of all rounds, and a counter.
fn published(memory_type: &str, test: &str, counter: &str) -> (f64, u64) {
    let all = golden::published("memory-types");
    let is_log = |r: &&Record| is(r, memory_type, test) && r.case.get("part") == Some("log");
    let record = all.iter().find(is_log).unwrap();
    let Outcome::Measured(measured) = &record.outcome else { panic!("it is measured") };
    let Data::Values(values) = &measured.series[0].data else { panic!("it has values") };
    (values[0] as f64, measured.counters[counter])
}

#[test]
fn the_published_times_follow_from_the_published_rates() {
    // 50 rounds of 16 MiB; times are printed in milliseconds, rates with two decimals.
    for memory_type in ["wb", "uc", "wc"] {
        for test in ["write", "write_nofence", "write_ucfence", "ntwrite", "read"] {
            let (ns, rate) = published(memory_type, test, "printed_mib_per_second_x100");
            assert!((800.0 * 1e9 / ns - rate as f64 / 100.0).abs() < 0.005, "{memory_type} {test}");
            let (_, milliseconds) = published(memory_type, test, "printed_time_ms");
            // Half a unit of the last digit of either.
            let rounding = 0.5 + ns / 1e6 * 0.5 / rate as f64;
            let apart = (ns / 1e6 - milliseconds as f64).abs();
            assert!(apart <= rounding, "{memory_type} {test}");
        }
    }
}

#[test]
fn the_published_sums_follow_from_the_source() {
    // In words of 64 bits: round k stores i + k in word i, and the sum goes on over 51 passes.
    let (words, last, rounds) = (2_097_152_u64, 49_u64, 50_u64);
    let all = (0..words).fold(0_u64, |sum, word| sum.wrapping_add(word + last));
    let without_the_fence_word = all - (511 + last);
    let sums = [
        ("wb", all * (rounds + 1)),
        ("wc", all * (rounds + 1)),
        ("uc", without_the_fence_word + rounds * (without_the_fence_word + last)),
    ];
    for (memory_type, sum) in sums {
        let (_, low) = published(memory_type, "read", "sum_low");
        let (_, high) = published(memory_type, "read", "sum_high");
        assert_eq!(high << 32 | low, sum, "{memory_type}");
    }
    // The report derives them in closed form, and says so.
    let text = suite(|_| ()).terminal(WIDE);
    let rows = text.lines().filter(|line| line.contains("published") && line.contains("accum"));
    assert_eq!(rows.filter(|line| line.ends_with("yes")).count(), 3);
}

#[test]
fn every_figure_of_the_prose_that_contradicts_its_table_is_named() {
    let text = suite(|_| ()).terminal(WIDE);
    let table = text.split("Its prose beside its own table").nth(1).unwrap();
    for figure in ["14382", "9995", "25918", "14466", "105"] {
        let row = table.lines().find(|line| line.contains(&format!(" {figure} MiB/s"))).unwrap();
        assert!(row.contains("contradicts"), "{row}");
    }
    let ranges: Vec<&str> = table.lines().filter(|line| line.contains("220–233")).collect();
    assert!(ranges[0].contains("holds") && ranges[1].contains("contradicts"), "{ranges:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn records_of_any_shape_become_a_report_in_every_form(
        values in prop::collection::vec(prop_oneof![Just(0), Just(u64::MAX), any::<u64>()], 0..3),
        counter in prop_oneof![Just(0), any::<u64>()],
        ops in prop_oneof![Just(0), Just(1), any::<u64>()],
        word in prop::sample::select(vec!["", "0", "auto", "16m", "a|<b", "99999999999999999999"]),
    ) {
        let report = suite(|records| {
            *records = golden_memtype::records();
            for record in records.iter_mut() {
                for name in ["size", "width", "iterations"] {
                    record.case = record.case.clone().with(name, word);
                }
                let Outcome::Measured(measured) = &mut record.outcome else { continue };
                for kept in measured.counters.values_mut() {
                    *kept = counter;
                }
                for series in &mut measured.series {
                    series.ops = ops;
                    series.bytes = ops;
                    if series.clock != schema::Clock::Cpu {
                        series.data = Data::Values(values.clone());
                    }
                }
            }
        });
        for width in [20, 160] {
            report.terminal(Style { color: true, width });
        }
        prop_assert!(report.html().contains("</html>"));
        prop_assert!(report.markdown().contains("## Memory types: stores and loads"));
        prop_assert!(report.csv().lines().count() > 1);
    }
}
