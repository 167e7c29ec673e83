//! Two runs set beside each other: verdicts, what is refused, and every form.

use std::collections::BTreeMap;

use pagelab_record::{
    Case, Claim, Clock, Data, Host, Measured, Nature, Outcome, Record, RunHeader, Series, Unit,
    latency, vocabulary::Check,
};
use pagelab_report::{
    Asked, Comparison, Forms, Outcome as Came, Side, Statistic, Style, Threshold,
};
use serde_json::{Value, json};

const PLAIN: Style = Style { color: false, width: 120 };

/// How much slower or faster each process is than the first, in parts of ten thousand.
const PROCESSES: [i64; 8] = [0, 31, -12, 54, -40, 22, -27, 9];

fn host() -> Host {
    let identity = json!({
        "cpu_count": 2, "cpu_model": "AMD EPYC", "hypervisor": "kvm",
        "kernel_release": "6.18.44", "memory_bytes": 25_276_514_304_u64,
    });
    let settings = json!({"thp_enabled": "madvise", "mitigations": {"retbleed": "Not affected"}});
    let map = |value: Value| -> BTreeMap<String, Value> {
        value.as_object().unwrap().clone().into_iter().collect()
    };
    let volatile = map(json!({"load_1m": 0.4}));
    Host { identity: map(identity), settings: map(settings), volatile }
}

fn record(page: &str, series: Vec<Series>) -> Record {
    Record {
        schema: pagelab_record::schema::SCHEMA.into(),
        run: "run".into(),
        boot: "one".into(),
        workload: "fault/latency".into(),
        nature: Nature::Measured,
        case: Case::default().with("kind", "write").with("page", page).with("size", "128m"),
        ab: None,
        host: host(),
        outcome: Outcome::Measured(Measured { series, ..Measured::default() }),
    }
}

fn series(process: usize, clock: Clock, unit: Unit, data: Data) -> Series {
    Series {
        process: u32::try_from(process).unwrap(),
        bytes: 4096,
        ..Series::new("fault", "pagelab", clock, unit, data)
    }
}

/// Latencies around so many nanoseconds, in so many processes.
fn latencies(page: &str, ns: i64, processes: usize) -> Record {
    let one = |(process, part): (usize, &i64)| {
        let middle = ns * (10_000 + part) / 10_000;
        // A tail of one in a hundred, ten times as long.
        let values = (0..400).map(|n| if n % 100 == 99 { middle * 10 } else { middle + n % 7 });
        let values = values.map(i64::unsigned_abs).collect();
        series(process, Clock::Tsc, Unit::Ns, Data::Values(values))
    };
    record(page, PROCESSES.iter().take(processes).enumerate().map(one).collect())
}

/// Ten thousand nanoseconds, and so many parts of a hundred more.
fn slower(page: &str, percent: i64) -> Record {
    latencies(page, 100_000 + 1000 * percent, 8)
}

fn header() -> RunHeader {
    RunHeader { pagelab: "0.1.0".into(), ..RunHeader::default() }
}

fn with<T>(a: &[Record], b: &[Record], asked: &Asked, of: impl Fn(&Comparison<'_>) -> T) -> T {
    let header = header();
    let side = |name, records| Side { name, header: &header, records, damage: None };
    of(&Comparison::of(&[side("before", a), side("after", b)], asked).unwrap())
}

fn html(comparison: &Comparison<'_>) -> String {
    comparison.html()
}

fn json_of(comparison: &Comparison<'_>) -> String {
    comparison.json()
}

fn csv(comparison: &Comparison<'_>) -> String {
    comparison.csv()
}

/// The verdict of every cell.
fn verdicts(a: &[Record], b: &[Record], asked: &Asked) -> Vec<String> {
    let json: Value =
        with(a, b, asked, |comparison| serde_json::from_str(&comparison.json()).unwrap());
    let cells = json["cells"].as_array().unwrap();
    cells.iter().map(|cell| cell["verdict"].as_str().unwrap().to_owned()).collect()
}

fn came(a: &[Record], b: &[Record], asked: &Asked) -> Came {
    with(a, b, asked, |comparison| comparison.outcome(&[]))
}

#[test]
fn what_differs_where_others_used_the_cpus_of_one_side_is_not_decided() {
    let beside = |records: &[Record], percent: f64| -> Vec<Record> {
        let busy = |mut record: Record| {
            record.host.volatile.insert("pressure_cpu_some_avg10".into(), percent.into());
            record
        };
        records.iter().cloned().map(busy).collect()
    };
    let a = [slower("4k", 0), slower("16k", 0)];
    let b = [slower("4k", 0), slower("16k", 8)];
    for (quiet, busy, second) in
        [(1.6, 47.2, "INCONCLUSIVE"), (40.0, 47.2, "SLOWER"), (47.2, 1.6, "INCONCLUSIVE")]
    {
        let found = verdicts(&beside(&a, quiet), &beside(&b, busy), &Asked::of(&crate::views()));
        assert_eq!(found, ["SAME", second], "{quiet} and {busy}");
    }
}

/// Two runs with something of everything.
fn runs() -> [Vec<Record>; 2] {
    let mut invalid = slower("256k", 0);
    let Outcome::Measured(measured) = &mut invalid.outcome else { panic!() };
    measured.witness = vec![Claim::check(Check::MajorFaults, "", 0, 1, 0)];
    let skipped = Record {
        outcome: Outcome::Skipped { need: "a pool".into(), cure: "make one".into() },
        ..slower("2m", 0)
    };
    let mut other = slower("1m", 0);
    other.host.settings.insert("thp_enabled".into(), "always".into());
    let a = ["4k", "16k", "32k", "64k", "256k", "1m", "2m"].map(|page| slower(page, 0));
    let b = [slower("4k", 0), slower("16k", 8), slower("32k", -8), latencies("64k", 100_000, 1)];
    let b = b.into_iter().chain([invalid, other, skipped, slower("512k", 0)]);
    [a.to_vec(), b.collect()]
}

#[test]
fn every_cell_has_its_verdict() {
    let [a, b] = runs();
    let expected = ["SAME", "SLOWER", "FASTER", "INCONCLUSIVE", "INVALID", "NOT COMPARABLE"];
    assert_eq!(verdicts(&a, &b, &Asked::of(&crate::views())), expected);
}

#[test]
fn terminal() {
    let [a, b] = runs();
    insta::assert_snapshot!(with(&a, &b, &Asked::of(&crate::views()), |c| c.terminal(PLAIN)));
}

#[test]
fn a_mail_is_72_columns_wide() {
    let [a, b] = runs();
    let mail = with(&a, &b, &Asked::of(&crate::views()), |comparison| comparison.lkml(72));
    assert!(mail.lines().all(|line| line.chars().count() <= 72), "{mail}");
    assert!(mail.is_ascii());
    insta::assert_snapshot!(mail);
}

#[test]
fn json_is_a_list_of_cells_and_nothing_else() {
    let [a, b] = runs();
    let json: Value =
        with(&a, &b, &Asked::of(&crate::views()), |c| serde_json::from_str(&c.json()).unwrap());
    assert_eq!(json.as_object().unwrap().keys().collect::<Vec<_>>(), ["cells"]);
    let cells = json["cells"].as_array().unwrap();
    for cell in cells {
        let keys: Vec<&String> = cell.as_object().unwrap().keys().collect();
        let expected = ["case", "high", "low", "metric", "p", "ratio", "verdict", "workload"];
        assert_eq!(keys, expected);
    }
    assert_eq!(
        (&cells[1]["metric"], &cells[1]["case"]["page"]),
        (&json!("fault p50"), &json!("16k"))
    );
    let number = |name: &str| cells[1][name].as_f64().unwrap();
    assert!(number("low") < 1.08 && number("ratio") > 1.07 && number("high") > 1.08);
    // One process has a ratio and no interval; what is not to be quoted has neither.
    assert!(cells[3]["ratio"].is_number() && cells[3]["low"].is_null());
    assert!(cells[4]["ratio"].is_null() && cells[4]["p"].is_null());
}

#[test]
fn csv_has_a_line_for_each_cell() {
    let [a, b] = runs();
    let csv = with(&a, &b, &Asked::of(&crate::views()), csv);
    assert_eq!(csv.lines().count(), 7);
    let columns = |line: &str| line.matches(',').count();
    let heading = columns(csv.lines().next().unwrap());
    assert!(csv.lines().all(|line| columns(line) == heading), "{csv}");
}

#[test]
fn the_page_holds_drawings_and_every_cell_and_asks_no_network() {
    let [a, b] = runs();
    let page = with(&a, &b, &Asked::of(&crate::views()), html);
    for said in ["after over before", "NOT COMPARABLE", "thp_enabled", "share done"] {
        assert!(page.contains(said), "{said}");
    }
    assert!(page.len() < 2 << 20);
    assert!(!page.contains("src=\"http") && !page.contains("@import"));
}

#[test]
fn what_differs_forbids_until_it_is_allowed_by_name() {
    let a = [slower("4k", 0)];
    let mut b = [slower("4k", 0)];
    b[0].host.identity.insert("kernel_release".into(), "6.12.1".into());
    let settings = &mut b[0].host.settings;
    settings.insert("mitigations".into(), json!({"retbleed": "Vulnerable"}));
    // What one side alone recorded is no difference, and what always moves forbids nothing.
    settings.insert("new_in_this_version".into(), json!(1));
    b[0].host.volatile.insert("load_1m".into(), json!(9.0));
    let allow = |keys: &[&str]| Asked {
        allow: keys.iter().map(ToString::to_string).collect(),
        ..Asked::of(&crate::views())
    };
    assert_eq!(came(&a, &b, &Asked::of(&crate::views())), Came::NotComparable);
    assert_eq!(came(&a, &b, &allow(&["kernel_release"])), Came::NotComparable);
    assert_eq!(came(&a, &b, &allow(&["kernel", "mitigation"])), Came::NotComparable);
    for keys in [
        &["kernel_release", "mitigations"][..],
        &["kernel_release", "mitigations.retbleed"],
        &["identity", "settings"],
    ] {
        assert_eq!(verdicts(&a, &b, &allow(keys)), ["SAME"], "{keys:?}");
    }
    let text = with(&a, &b, &Asked::of(&crate::views()), |c| c.terminal(PLAIN));
    assert!(text.contains("--allow kernel_release,mitigations.retbleed"), "{text}");
}

#[test]
fn another_version_of_pagelab_is_a_difference() {
    let records = [slower("4k", 0)];
    let (here, there) = (header(), RunHeader { pagelab: "0.2.0".into(), ..header() });
    let side = |name, header| Side { name, header, records: &records, damage: None };
    let of = |asked: &Asked| {
        Comparison::of(&[side("a", &here), side("b", &there)], asked).unwrap().outcome(&[])
    };
    assert_eq!(of(&Asked::of(&crate::views())), Came::NotComparable);
    assert_eq!(
        of(&Asked { allow: vec!["pagelab".into()], ..Asked::of(&crate::views()) }),
        Came::Good
    );
}

#[test]
fn units_that_differ_are_not_compared() {
    let ticks = |unit| {
        let one = |process| series(process, Clock::Tsc, unit, Data::Values(vec![1000; 10]));
        [record("4k", (0..8).map(one).collect())]
    };
    let (a, b) = (ticks(Unit::Ns), ticks(Unit::Ticks));
    assert_eq!(verdicts(&a, &b, &Asked::of(&crate::views())), ["NOT COMPARABLE"]);
    let text = with(&a, &b, &Asked::of(&crate::views()), |comparison| comparison.terminal(PLAIN));
    assert!(text.contains("ns and ticks"), "{text}");
}

#[test]
fn times_of_an_emulated_machine_are_not_compared() {
    let a = [slower("4k", 0)];
    let b = [Record { nature: Nature::Emulated, ..slower("4k", 0) }];
    assert_eq!(verdicts(&a, &b, &Asked::of(&crate::views())), ["NOT COMPARABLE"]);
}

#[test]
fn one_process_a_cell_decides_nothing_and_says_how_many_would() {
    let (a, b) = ([latencies("4k", 100_000, 1)], [latencies("4k", 200_000, 1)]);
    let (verdicts, text) = with(&a, &b, &Asked::of(&crate::views()), |comparison| {
        (verdicts(&a, &b, &Asked::of(&crate::views())), comparison.terminal(PLAIN))
    });
    assert_eq!(verdicts, ["INCONCLUSIVE"]);
    assert!(text.contains("--forks 8") && text.contains("to decide"), "{text}");
}

#[test]
fn nothing_in_common_is_not_comparable_and_all_skipped_is_its_own() {
    let skipped = |page: &str| Record {
        outcome: Outcome::Skipped { need: "a pool".into(), cure: "make one".into() },
        ..slower(page, 0)
    };
    assert_eq!(
        came(&[slower("4k", 0)], &[slower("2m", 0)], &Asked::of(&crate::views())),
        Came::NotComparable
    );
    assert_eq!(came(&[], &[slower("2m", 0)], &Asked::of(&crate::views())), Came::NotComparable);
    let (a, b) = ([skipped("4k"), skipped("2m")], [skipped("4k"), skipped("2m")]);
    assert_eq!(came(&a, &b, &Asked::of(&crate::views())), Came::AllSkipped);
    let text = with(&a, &b, &Asked::of(&crate::views()), |comparison| comparison.terminal(PLAIN));
    assert!(text.contains("every case that both have was skipped") && text.contains("a pool"));
}

#[test]
fn a_threshold_on_what_nobody_counted_is_not_passed() {
    let (a, b) = ([slower("4k", 0)], [slower("4k", 0)]);
    let views = crate::views();
    let (name, _) = views.threshold("instructions").unwrap();
    let threshold = Threshold::Counts(name, 0.0);
    let came = with(&a, &b, &Asked::of(&views), |found| found.outcome(&[threshold]));
    assert_eq!(came, Came::NotComparable);
}

#[test]
fn a_threshold_is_met_by_what_is_surely_worse_by_more() {
    let of = |percent: i64, share: f64, statistic: &str| {
        let statistic: Statistic = statistic.parse().unwrap();
        let asked = Asked { statistics: vec![statistic], ..Asked::of(&crate::views()) };
        let threshold = Threshold::Share(statistic, share);
        let (a, b) = ([slower("4k", 0)], [slower("4k", percent)]);
        with(&a, &b, &asked, |comparison| comparison.outcome(&[threshold]))
    };
    assert_eq!(of(8, 0.03, "p50"), Came::Worse);
    assert_eq!(of(8, 0.10, "p50"), Came::Good);
    assert_eq!(of(-8, 0.03, "p50"), Came::Good);
    // Less than a tie, but more than was asked.
    assert_eq!(of(2, 0.01, "p50"), Came::Worse);
    assert_eq!(of(8, 0.03, "p99.5"), Came::Worse);
    assert_eq!(of(8, 0.03, "bandwidth"), Came::Worse);
    assert_eq!(of(-8, 0.03, "rate"), Came::Good);
}

#[test]
fn more_of_a_rate_is_faster() {
    let asked = Asked { statistics: vec!["rate".parse().unwrap()], ..Asked::of(&crate::views()) };
    assert_eq!(verdicts(&[slower("4k", 0)], &[slower("4k", 8)], &asked), ["SLOWER"]);
    assert_eq!(verdicts(&[slower("4k", 8)], &[slower("4k", 0)], &asked), ["FASTER"]);
}

#[test]
fn cases_of_one_run_are_compared_along_a_parameter() {
    let records = [slower("2m", 50), slower("4k", 0), slower("64k", 0)];
    let header = header();
    let side = Side { name: "run", header: &header, records: &records, damage: None };
    let along = |axis, base| Comparison::along(&[side], axis, base, &Asked::of(&crate::views()));
    let json: Value = serde_json::from_str(&along("page", None).unwrap().json()).unwrap();
    let of = |cell: &Value| format!("{} {}", cell["run"], cell["verdict"]);
    let cells: Vec<String> = json["cells"].as_array().unwrap().iter().map(of).collect();
    assert_eq!(cells, [r#""page=64k" "SAME""#, r#""page=2m" "SLOWER""#]);
    let text = along("page", Some("2m")).unwrap().terminal(PLAIN);
    assert!(text.starts_with("page=2m → page=4k, page=64k") && text.contains("FASTER"), "{text}");
    assert!(along("page", Some("1g")).unwrap_err().contains("there are 4k, 64k, 2m"));
    assert!(along("kind", None).unwrap_err().contains("all records agree in it"));
    assert!(along("nothing", None).unwrap_err().contains("no record has it"));
}

#[test]
fn kernels_are_compared_along_a_fact() {
    let mut newer = slower("4k", 8);
    newer.host.identity.insert("kernel_release".into(), "6.19.1".into());
    let (a, b) = ([slower("4k", 0)], [newer]);
    let header = header();
    let side = |name, records| Side { name, header: &header, records, damage: None };
    let sides = [side("one", &a[..]), side("two", &b[..])];
    let comparison =
        Comparison::along(&sides, "kernel", None, &Asked::of(&crate::views())).unwrap();
    let text = comparison.terminal(PLAIN);
    assert!(text.contains("kernel=6.18.44 → kernel=6.19.1") && text.contains("SLOWER"), "{text}");
}

#[test]
fn the_boots_of_a_kernel_are_its_units_and_the_page_says_how_many_a_verdict_takes() {
    let boots = |kernel: &str, percent: i64, count: i64| -> Vec<Record> {
        let one = |boot: i64| {
            // What a boot brings is in all of its processes.
            let mut record = latencies("4k", 100_000 + 1000 * percent + 37 * boot, 8);
            record.boot = format!("{kernel} {boot}");
            record.host.identity.insert("kernel_release".into(), kernel.into());
            record
        };
        (0..count).map(one).collect()
    };
    let said = |count: i64, percent: i64| {
        let records = [boots("6.18.44", 0, count), boots("6.19.1", percent, count)].concat();
        let header = header();
        let side = Side { name: "runs", header: &header, records: &records, damage: None };
        let comparison =
            Comparison::along(&[side], "kernel", None, &Asked::of(&crate::views())).unwrap();
        let json: Value = serde_json::from_str(&comparison.json()).unwrap();
        let cells: Vec<String> = json["cells"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cell| cell["verdict"].as_str().unwrap().to_owned())
            .collect();
        (cells, comparison.terminal(Style { width: 400, ..PLAIN }))
    };
    let (one, text) = said(1, 8);
    assert_eq!(one, ["SLOWER"]);
    assert!(text.contains("a verdict over boots takes 5 of each or more"), "{text}");
    let (three, text) = said(3, 8);
    assert_eq!(three, ["INCONCLUSIVE"]);
    assert!(text.contains("sides of 3 and 3 boots") && text.contains("24+24"), "{text}");
    assert!(text.contains("cure: 5 boots of each"), "{text}");
    assert!(text.contains("5 of each would decide all that is open"), "{text}");
    let (six, text) = said(6, 8);
    assert_eq!(six, ["SLOWER"]);
    assert!(text.contains("nothing is left open"), "{text}");
    assert_eq!(said(6, 0).0, ["SAME"]);
}

#[test]
fn what_was_published_meets_the_case_that_it_states() {
    let summary = pagelab_record::Summary { n: 100, p50: Some(50_000), ..Default::default() };
    let stated = Series {
        arm: "published".into(),
        ..series(0, Clock::Tsc, Unit::Ns, Data::Summary(summary))
    };
    let case = Case::default().with("page", "4k").with("size", "4m");
    let published = Record {
        nature: Nature::Published,
        case,
        host: Host::default(),
        ..record("4k", vec![stated])
    };
    let (a, b) = ([published], [slower("4k", 0), slower("2m", 0)]);
    let allowed = Asked { allow: vec!["nature".into()], ..Asked::of(&crate::views()) };
    assert_eq!(came(&a, &b, &Asked::of(&crate::views())), Came::NotComparable);
    assert_eq!(verdicts(&a, &b, &allowed), ["INCONCLUSIVE"]);
}

#[test]
fn a_thousand_cells_of_a_million_samples_fit_on_a_page() {
    let mut histogram = latency::empty();
    for n in 0..1_000_000_u64 {
        histogram.record(1000 + n % 997 + if n % 1000 == 0 { 100_000 } else { 0 }).unwrap();
    }
    let data = Data::Histogram(latency::encode(&histogram));
    let cell = |n: usize| {
        let all = (0..4).map(|process| series(process, Clock::Tsc, Unit::Ns, data.clone()));
        record(&format!("{}k", n + 1), all.collect())
    };
    let records: Vec<Record> = (0..1000).map(cell).collect();
    let page = with(&records, &records, &Asked::of(&crate::views()), html);
    assert!(page.len() < 2 << 20, "{}", page.len());
}

#[test]
fn the_cells_that_were_asked_for_stand_before_those_of_the_machine_s_limits() {
    let mut limit = slower("4k", 0);
    limit.workload = "limit/clear".into();
    limit.case = Case::default().with("level", "dram");
    let Outcome::Measured(measured) = &mut limit.outcome else { panic!() };
    measured.series.iter_mut().for_each(|series| series.name = "clear".into());
    let run = [limit, slower("2m", 0), slower("4k", 0)];
    let told = with(&run, &run, &Asked::of(&crate::views()), json_of);
    let told: Value = serde_json::from_str(&told).unwrap();
    let cells = told["cells"].as_array().unwrap().iter();
    let workloads: Vec<&str> = cells.map(|cell| cell["workload"].as_str().unwrap()).collect();
    assert_eq!(workloads, ["fault/latency", "fault/latency", "limit/clear"]);
}
