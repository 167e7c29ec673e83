//! What faults cost a program: the sum, what is in it and what is not, and what would help.

use pagelab_program::views::explain::folded;
use pagelab_record::{
    Clock, Data, Measured, Outcome, Record, Series, Table, Unit, vocabulary::Check,
};
use pagelab_report::{Forms, Report, Style};
use serde_json::{Value, json};

use crate::made::{case, claim, counters, histogram, journal, measured, values};

const PLAIN: Style = Style { color: false, width: 160 };

fn table(name: &str, cells: &[(&str, i64)]) -> Table {
    let columns = cells.iter().map(|(name, _)| (*name, "count"));
    Table::new(name, columns, [cells.iter().map(|(_, value)| *value)])
}

fn watched(clock: Clock, ns: u64) -> Series {
    Series::new("watched", "program", clock, Unit::Ns, vec![ns])
}

/// Two threads that store to 40 000 pages, half of them at once, and a file of which 500 pages were
/// in the page cache and one was not.
pub(crate) fn program() -> Record {
    let write = "write/4k/anonymous";
    let minor = "file-minor/4k/private-file";
    let fault = |name: &str, faults: i64, seen_ns: i64, more: &[(&str, i64)]| {
        let cells = [("faults", faults), ("timed", faults), ("seen_ns", seen_ns)];
        table(&format!("fault/{name}"), &[&cells, more].concat())
    };
    let crowd = [("crowded", 20_000), ("crowd", 40_000), ("shared", 20_000), ("tables", 80)];
    let tables = vec![
        fault(write, 40_000, 110_000_000, &crowd),
        fault(minor, 500, 1_400_000, &[("in_folio", 30), ("in_base", 90)]),
        fault("file-major/4k/private-file", 1, 2_000_000, &[("major", 1)]),
        fault("swap/4k/anonymous", 800, 4_000_000, &[]),
        table("site/fill (touch) < main", &[(write, 40_000), ("seen_ns", 110_000_000)]),
        table("site/parse<…> (touch)", &[(minor, 500), ("seen_ns", 1_400_000)]),
        table("mapping/anonymous 256 MiB", &[(write, 40_000), ("length", 256 << 20)]),
        table("stack/start;main;fill", &[(write, 40_000), ("seen_ns", 110_000_000)]),
        table("stack/start;main;parse", &[(minor, 500), ("seen_ns", 1_400_000)]),
        table("folios/file-minor", &[("block", 65_536), ("faults", 30)]),
        table("thread/touch", &[(write, 20_000), (minor, 500), ("threads", 1)]),
        table("thread/worker", &[(write, 20_000), ("threads", 1)]),
    ];
    let all = 41_301;
    let told = [
        ("minflt", all + 40),
        ("minflt_before_exec", 25),
        ("perf_minor", all - 1),
        ("perf_major", 1),
        ("sees_perf", 1),
        ("sees_exceptions", 1),
        ("processes", 1),
        ("faulting_threads", 2),
    ];
    let program = Measured {
        series: vec![watched(Clock::Wall, 300_000_000), watched(Clock::Cpu, 280_000_000)],
        tables,
        counters: counters(&told),
        witness: vec![claim(Check::ToldGrouped, "program", 1, 1, 0)],
        ..Measured::default()
    };
    measured("explain/program", case(&[("program", "./touch")]), program)
}

fn latency(kind: &str, ns: u64) -> Record {
    let mut series = Vec::new();
    for process in 0..3 {
        for (arm, name, ns) in [
            ("pagelab", "fault", ns),
            ("pagelab", "fault-pagetable", ns + 900),
            ("control", "fault", 20),
        ] {
            let shape = [ns, ns, ns, ns + 10, ns + 20, ns + 30];
            series.push(histogram(arm, name, process, shape, 1000));
        }
    }
    let witness =
        vec![claim((Check::FaultsOfLoop, "minor faults of the loop"), "pagelab", 1000, 1000, 0)];
    let case = case(&[("kind", kind), ("page", "4k"), ("size", "64m")]);
    measured("fault/latency", case, Measured { series, witness, ..Measured::default() })
}

/// CPU time of 16 384 faults, each of `ns`.
fn throughput(threads: &str, ns: f64) -> Record {
    let touches = 16_384;
    let mut series = Vec::new();
    for clock in [Clock::Tsc, Clock::Cpu] {
        series.extend(values("touch", "pagelab", clock, touches, 64 << 20, ns * touches as f64));
    }
    let case = case(&[
        ("kind", "write"),
        ("page", "4k"),
        ("populate", "touch"),
        ("threads", threads),
        ("size", "64m"),
    ]);
    let witness = vec![claim(Check::FaultsOfTouch, "pagelab", 16_384, 16_384, 0)];
    let counters = counters(&[("faults_per_repetition", touches)]);
    measured(
        "fault/throughput",
        case,
        Measured { series, witness, counters, ..Measured::default() },
    )
}

fn prices() -> Vec<Record> {
    vec![
        program(),
        latency("write", 1_000),
        latency("file-minor", 4_000),
        throughput("1", 1_000.0),
        throughput("2", 1_400.0),
    ]
}

fn report(records: &[Record]) -> Report {
    Report::of(&journal().header, records, None, &[], &crate::views())
}

fn section(report: &Report) -> String {
    let text = report.terminal(PLAIN);
    let from = text.find("What faults cost this program\n").unwrap();
    let end = text[from..].find("\nFault latency\n").unwrap_or(text.len() - from);
    text[from..from + end].to_owned()
}

pub(crate) fn number(report: &Report, series: &str, statistic: &str) -> [f64; 3] {
    let json: Value = serde_json::from_str(&report.json()).unwrap();
    let is = |number: &&Value| number["series"] == series && number["statistic"] == statistic;
    let numbers = json["cases"][0]["numbers"].as_array().unwrap();
    let number = numbers.iter().find(is).unwrap();
    ["value", "low", "high"].map(|name| number[name].as_f64().unwrap())
}

fn near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 0.03, "{value} for {expected}");
}

#[test]
fn what_faults_cost_a_program() {
    insta::assert_snapshot!("explain", section(&report(&prices())));
}

#[test]
fn faults_of_threads_at_once_cost_what_as_many_threads_pay() {
    let report = report(&prices());
    // 20 000 times 400 ns, about, and nothing where watching alone made them meet.
    let [added, low, _] = number(&report, "write/4k/anonymous", "crowding");
    near(added, 8e6);
    assert!(low == 0.0);
    // 40 000 lone faults, 80 pages of page table, and that.
    let [stall, low, _] = number(&report, "write/4k/anonymous", "stall");
    near(stall, 40_000.0 * 980.0 + 80.0 * 900.0 + added);
    assert!(low < stall - added * 0.9, "{low}");
}

#[test]
fn a_price_over_base_pages_is_no_price_over_large_folios() {
    let [value, low, _] = number(&report(&prices()), "file-minor/4k/private-file", "stall");
    near(value, 500.0 * 3_980.0);
    near(low, value * 0.75);
    let mut records = prices();
    let Outcome::Measured(seen) = &mut records[0].outcome else { unreachable!("it is measured") };
    for table in &mut seen.tables {
        table.columns.iter_mut().for_each(|c| c.name = c.name.replace("in_", "nobody_saw_"));
    }
    let report = report(&records);
    assert!(number(&report, "file-minor/4k/private-file", "stall")[1] == 0.0);
    assert!(section(&report).contains("the interval reaches down to nothing"));
}

#[test]
fn what_has_no_price_is_named_with_what_would_price_it() {
    let text = section(&report(&prices()));
    assert!(text.contains("800 faults (1.9 %) have no price"), "{text}");
    assert!(text.contains("pagelab run fault/latency --kind swap"), "{text}");
    let [value, low, high] = number(&report(&prices()), "file-major/4k/private-file", "stall");
    // As it was seen.
    near(value, 2e6);
    near(low, value);
    near(high, value);
    let mut records = prices();
    let why = Outcome::Skipped { need: "a zram device".to_owned(), cure: "modprobe".to_owned() };
    let mut skipped = latency("swap", 5_000);
    skipped.outcome = why;
    records.push(skipped);
    let text = section(&report(&records));
    assert!(text.contains("swap (its measurement needs a zram device)"), "{text}");
    assert!(text.contains("cure: modprobe"), "{text}");
}

#[test]
fn without_perf_there_are_totals_and_no_price() {
    let mut record = program();
    let Outcome::Measured(seen) = &mut record.outcome else { unreachable!("it is measured") };
    seen.tables.clear();
    seen.counters = counters(&[("minflt", 600), ("majflt", 2), ("sees_perf", 0)]);
    let text = section(&report(&[record]));
    assert!(text.contains("600 minor and 2 major faults; nothing more is known"), "{text}");
    assert!(!text.contains(" of its time"));
}

#[test]
fn a_program_without_faults_took_none_and_may_still_gain_by_larger_pages() {
    let mut record = program();
    let Outcome::Measured(seen) = &mut record.outcome else { unreachable!("it is measured") };
    seen.tables.clear();
    seen.counters = counters(&[("sees_perf", 1), ("perf_minor", 0)]);
    let report = report(&[record]);
    let text = section(&report);
    assert!(text.contains(" 0 faults.") && text.contains("Faults are not translation"), "{text}");
    assert!(!report.terminal(PLAIN).contains("-0") && !report.json().contains("-0.0"), "{text}");
}

/// 40 000 first touches of which 30 720 would have come in 60 pages of 2 MiB.
pub(crate) fn with_density(unknown: i64, room: Option<u64>) -> Vec<Record> {
    let mut records = prices();
    let Outcome::Measured(seen) = &mut records[0].outcome else { unreachable!("it is measured") };
    let names = ["block", "blocks", "faults", "pages", "waves", "unknown", "denied", "late"];
    let rows = [
        [4096, 40_000, 40_000, 40_000, 40_000, 0, 1_000, 0],
        [2 << 20, 60, 30_720, 30_464, 60, unknown, 0, 512],
    ];
    seen.tables.push(Table::new("density/anonymous", names.map(|name| (name, "count")), rows));
    if let Some(room) = room {
        seen.counters.insert("cgroup_room_bytes".to_owned(), room);
    }
    let mut huge = latency("write", 100_000);
    huge.case = case(&[("kind", "write"), ("page", "2m"), ("size", "64m")]);
    records.push(huge);
    records
}

#[test]
fn what_nobody_knows_bounds_a_saving_and_promises_none() {
    let known = number(&report(&with_density(0, None)), "page-2m", "saved");
    near(known[0], 30_720.0 * 980.0 - 60.0 * 99_980.0);
    let [value, low, high] = number(&report(&with_density(5_000, None)), "page-2m", "saved");
    near(value, known[0]);
    near(low, known[1]);
    near(high, known[2] + 5_000.0 * 980.0);
    let text = section(&report(&with_density(0, None)));
    assert!(text.contains("No larger pages: 1 000 first touches"), "{text}");
    assert!(text.contains("khugepaged: 2.00 MiB came page by page"), "{text}");
}

/// What JSON advises, by its id.
fn advised(report: &Report, id: &str) -> Value {
    let report: Value = serde_json::from_str(&report.json()).unwrap();
    let all = report["advice"].as_array().unwrap().clone();
    all.into_iter().find(|advice| advice["id"] == id).unwrap_or_default()
}

#[test]
fn khugepaged_spares_no_fault_and_its_pass_is_as_long_as_it_is_set() {
    let mut records = with_density(0, None);
    let settings = [
        ("thp_enabled", json!("madvise")),
        ("khugepaged_pages_to_scan", json!(64)),
        ("khugepaged_scan_sleep_ms", json!(10_000)),
        ("khugepaged_max_ptes_none", json!(511)),
    ];
    records[0].host.settings =
        settings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let told = report(&records);
    let text = section(&told);
    // 512 pages, 64 at a time: 8 rests of 10 s.
    assert!(text.contains("a pass over them takes 80.0 s or more, which is longer"), "{text}");
    assert!(text.contains("512 pages become 1 of 2m later; no fault is spared"), "{text}");
    let advice = advised(&told, "khugepaged");
    assert_eq!((&advice["outcome"], &advice["saved"]["value"]), (&"unclear".into(), &json!(0.0)));
    let file = "/sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan";
    let of = |which: &str| {
        let all = advice[which].as_array().unwrap().clone();
        all.into_iter().find(|setting| setting["file"] == file).unwrap()["value"].clone()
    };
    assert_eq!((of("setting"), of("undo")), ("32768".into(), "64".into()));
    // What is set last is undone first.
    let last = |which: &str, at: usize| advice[which][at]["file"].clone();
    assert_eq!(last("setting", 4), last("undo", 0));
    assert!(told.terminal(PLAIN).contains("less by THP: MADV_HUGEPAGE"), "no headline of it");
    records[0].host.settings.insert("thp_enabled".to_owned(), "never".into());
    assert!(section(&report(&records)).contains("does not run (enabled=never)"));
}

#[test]
fn advice_is_data_with_what_undoes_it() {
    let mut records = with_density(0, None);
    let enabled = "/sys/kernel/mm/transparent_hugepage/enabled";
    let Outcome::Measured(seen) = &mut records[0].outcome else { unreachable!("it is measured") };
    seen.counters.insert("settings_held_by".to_owned(), 77);
    records[0].host.settings.insert("thp_enabled".to_owned(), "madvise".into());
    let told = report(&records);
    let thp = advised(&told, "thp-always");
    assert_eq!(thp["how"], "THP: MADV_HUGEPAGE, or enabled=always");
    assert_eq!(thp["setting"], json!([{"file": enabled, "value": "always"}]));
    assert_eq!(thp["undo"], json!([{"file": enabled, "value": "madvise"}]));
    let call = json!([{"call": "madvise", "value": "MADV_HUGEPAGE"}]);
    assert_eq!(thp["or"][0]["setting"], call);
    assert_eq!(thp["or"][0]["undo"], json!([{"call": "madvise", "value": null}]));
    assert_eq!((&thp["outcome"], &thp["series"]), (&"saves".into(), &"page-2m".into()));
    near(thp["saved_in_all"]["value"].as_f64().unwrap(), number(&told, "page-2m", "saved")[0]);
    assert_eq!(thp["held_by"], 77);
    assert_eq!(advised(&told, "read-ahead")["held_by"], Value::Null, "it changes no setting");
    let text = section(&told);
    assert!(text.contains("process 77") && text.contains("--wait"), "{text}");
}

#[test]
fn a_price_reaches_up_to_that_of_a_fault_with_cold_caches_and_is_that_of_the_loop() {
    let warm = number(&report(&with_density(0, None)), "page-2m", "saved");
    let mut records = with_density(0, None);
    let mut cold = latency("write", 1_800);
    cold.case = cold.case.with("size", "4m").with("caches", "cold");
    // Wherever it stands among the records.
    records.insert(1, cold);
    let saved = number(&report(&records), "page-2m", "saved");
    assert_eq!(saved[..2], warm[..2]);
    near(saved[2], 30_720.0 * 1_800.0 - 60.0 * 99_980.0);
}

#[test]
fn what_a_fault_pushes_out_of_the_caches_is_in_the_upper_end_of_its_price() {
    let high = |[after_fault, after_touch]: [u64; 2]| {
        let mut records = with_density(0, None);
        let mut cold = latency("write", 1_800);
        cold.case = cold.case.with("size", "4m").with("caches", "cold");
        let Outcome::Measured(measured) = &mut cold.outcome else { unreachable!("it is measured") };
        for (arm, ns) in [("pagelab", after_fault), ("control", after_touch)] {
            for process in 0..3 {
                measured.series.push(histogram(arm, "walk", process, [ns; 6], 1000));
            }
        }
        records.insert(1, cold);
        number(&report(&records), "page-2m", "saved")
    };
    let saved = [high([9_000, 7_000]), high([7_000, 7_000]), high([6_900, 7_000])];
    near(saved[0][2] - saved[1][2], 30_720.0 * 2_000.0);
    assert_eq!(saved[0][..2], saved[1][..2], "only that");
    assert_eq!(saved[2].map(f64::to_bits), saved[1].map(f64::to_bits), "no walk is shorter");
}

#[test]
fn loads_before_stores_and_what_replaces_their_zero_pages_are_in_what_larger_pages_save() {
    let saved = |read_first: bool| {
        let mut records = with_density(0, None);
        let Outcome::Measured(seen) = &mut records[0].outcome else { unreachable!("measured") };
        let density = seen.tables.iter_mut().find(|table| table.name == "density/anonymous");
        let density = density.unwrap();
        for (name, of_block) in [("reads", 500), ("rewrites", 300)] {
            density.columns.push((name, "count").into());
            density.rows[0].push(0);
            density.rows[1].push(if read_first { of_block } else { 0 });
        }
        records.extend([latency("read", 600), latency("zero-write", 1_500)]);
        let report = report(&records);
        let change = format!("{} faults become 60", if read_first { 31_520 } else { 30_720 });
        let text = section(&report);
        assert!(text.contains(&change), "{text}");
        number(&report, "page-2m", "saved")[0]
    };
    near(saved(true) - saved(false), 500.0 * 580.0 + 300.0 * 1_480.0);
}

/// 64 MiB of pages of a size are given back in so many nanoseconds.
fn released(page: &str, ns: f64) -> Record {
    let mut record = throughput("1", 1_000.0);
    record.case = record.case.with("page", page);
    let Outcome::Measured(measured) = &mut record.outcome else { unreachable!("it is measured") };
    measured.series.extend(values("release", "pagelab", Clock::Tsc, 1, 0, ns));
    record
}

#[test]
fn what_giving_pages_back_saves_stands_beside_the_faults() {
    let mut records = with_density(0, None);
    // 100 ns for each base page, 4 µs for each of 2 MiB.
    records.insert(1, released("4k", 16_384.0 * 100.0));
    let alone = number(&report(&records), "page-2m", "saved");
    assert!(!report(&records).csv().contains("saved_given_back"), "one size has no price");
    records.push(released("2m", 32.0 * 4_000.0));
    let report = report(&records);
    let given_back = number(&report, "page-2m", "saved_given_back");
    near(given_back[0], 30_720.0 * 100.0 - 60.0 * 4_000.0);
    let saved = number(&report, "page-2m", "saved");
    near(saved[0], alone[0]);
    near(number(&report, "page-2m", "saved_in_all")[0], saved[0] + given_back[0]);
    let text = section(&report);
    assert!(text.contains("of giving back") && text.contains("in all"), "{text}");
}

/// The same, with the pages of malloc's mappings and of others apart.
fn with_owners(owners: &[(&str, i64)]) -> Vec<Record> {
    let mut records = with_density(0, None);
    let Outcome::Measured(seen) = &mut records[0].outcome else { unreachable!("it is measured") };
    let mut whole = seen.tables.pop().unwrap();
    whole.columns.push(("late_blocks", "count").into());
    whole.rows.iter_mut().for_each(|row| row.push(0));
    for (owner, pages) in owners {
        let mut part = whole.clone();
        part.name = format!("density/anonymous/{owner}");
        part.rows[0][1..5].fill(pages * 512);
        part.rows[1] = vec![2 << 20, *pages, pages * 512, pages * 512, *pages, 0, 0, 0, 0];
        seen.tables.push(part);
    }
    seen.tables.push(whole);
    records
}

#[test]
fn malloc_saves_surely_what_is_its_own_and_nothing_of_what_is_anothers() {
    let saved = |owners| number(&report(&with_owners(owners)), "malloc-thp", "saved");
    let of = |pages: f64| pages * (512.0 * 980.0 - 99_980.0);
    let [value, low, high] = saved(&[]);
    near(value, of(60.0));
    assert!(low == 0.0 && high > value, "{low} {high}");
    let [value, low, _] = saved(&[("malloc", 40)]);
    near(value, of(60.0));
    assert!((low - of(40.0)).abs() < of(1.0), "{low}");
    let [value, low, _] = saved(&[("malloc", 40), ("other", 20)]);
    near(value, of(40.0));
    assert!(low > of(39.0), "{low}");
    let all_of_another = report(&with_owners(&[("other", 60)]));
    assert!(!all_of_another.markdown().contains("glibc.malloc.hugetlb"));
}

#[test]
fn where_the_cgroup_had_no_room_a_saving_is_an_upper_bound() {
    // 1 MiB of the 60 pages was never touched.
    let [_, low, _] = number(&report(&with_density(0, Some(2 << 20))), "page-2m", "saved");
    assert!(low > 0.0);
    let tight = report(&with_density(0, Some(64 << 10)));
    assert!(number(&tight, "page-2m", "saved")[1] == 0.0);
    assert!(tight.markdown().contains("the memory cgroup had room for 64.0 KiB more"));
}

#[test]
fn the_headline_is_a_saving_that_is_sure_or_that_none_is() {
    let sure = report(&with_density(0, None)).terminal(PLAIN);
    assert!(sure.contains("less by THP: MADV_HUGEPAGE"), "{sure}");
    // Less than one in a hundred of its CPU time is worth no headline.
    let mut busy = with_density(0, None);
    let Outcome::Measured(seen) = &mut busy[0].outcome else { unreachable!("it is measured") };
    seen.series[1].data = Data::Values(vec![10_000_000_000]);
    assert!(report(&busy).terminal(PLAIN).contains("no saving  is sure"));
    let bounds = report(&prices()).terminal(PLAIN);
    assert!(bounds.contains("no saving  is sure of any change to how memory comes"));
}

#[test]
fn a_loss_is_told_as_one_and_is_no_headline() {
    let mut records = with_density(0, None);
    let mut huge = latency("write", 1_000_000);
    huge.case = case(&[("kind", "write"), ("page", "2m"), ("size", "64m")]);
    *records.last_mut().unwrap() = huge;
    let report = report(&records);
    near(number(&report, "page-2m", "saved")[0], 30_720.0 * 980.0 - 60.0 * 999_980.0);
    let text = report.terminal(PLAIN);
    assert!(text.contains("no saving  is sure") && text.contains("costs"), "{text}");
}

#[test]
fn a_page_of_shared_memory_that_was_not_measured_bounds_what_it_saves() {
    let mut records = with_density(0, None);
    let Outcome::Measured(seen) = &mut records[0].outcome else { unreachable!("it is measured") };
    seen.tables.push(table("fault/shmem-write/4k/shmem", &[("faults", 5_120)]));
    let of_anonymous = seen.table("density/anonymous").unwrap();
    let mut density = of_anonymous.clone();
    density.name = "density/shmem".to_owned();
    density.rows[0][2] = 5_120;
    density.rows[1][1..5].copy_from_slice(&[10, 5_120, 5_120, 10]);
    seen.tables.push(density);
    records.push(latency("shmem-write", 2_000));
    let bound = number(&report(&records), "shmem-thp", "saved");
    near(bound[0], 5_120.0 * 1_980.0 - 10.0 * 99_980.0);
    assert_eq!((bound[1], bound[2]), (0.0, bound[0]), "value and upper end are the bound");
    let mut huge = latency("shmem-write", 100_000);
    huge.case = case(&[("kind", "shmem-write"), ("page", "2m"), ("size", "64m")]);
    records.push(huge);
    assert!(number(&report(&records), "shmem-thp", "saved")[1] > 0.0, "measured, it is a saving");
}

#[test]
fn only_mappings_that_are_nearly_full_are_worth_populating() {
    let mut populating = throughput("1", 400.0);
    populating.case = populating.case.with("populate", "madvise-populate");
    let with = |faults: i64| {
        let mut records = prices();
        records.push(populating.clone());
        let Outcome::Measured(seen) = &mut records[0].outcome else { unreachable!() };
        let cells = [("faults", faults), ("pages", faults), ("untouched", 0)];
        seen.tables.push(table("populate", &cells));
        report(&records).markdown()
    };
    assert!(with(30_000).contains("30000 faults become pages of a call"), "{}", with(30_000));
    assert!(!with(0).contains("populate before use"));
}

#[test]
fn folded_stacks_weigh_what_their_faults_cost() {
    let report = report(&prices());
    let stacks = folded(report.run());
    let lines: Vec<(&str, f64)> = stacks
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(stack, ns)| (stack, ns.parse().unwrap()))
        .collect();
    let [("start;main;fill", fill), ("start;main;parse", parse)] = lines[..] else {
        panic!("{stacks}")
    };
    near(fill, number(&report, "write/4k/anonymous", "stall")[0]);
    near(parse, 500.0 * 3_980.0);
    assert!(report.terminal(PLAIN).contains("of its CPU"));
    // Without a price it is what was seen.
    let alone = Report::of(&journal().header, &[program()], None, &[], &crate::views());
    assert!(
        folded(alone.run()).starts_with("start;main;fill 110000000\n"),
        "{}",
        folded(alone.run())
    );
}
