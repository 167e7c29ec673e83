//! A program that was tried: what is named, what did not take, and when nothing is to be done.

use pagelab_program::{fit, ladder};
use pagelab_record::{
    Asked, Case, Clock, Data, Measured, Nature, Outcome, Record, RunHeader, Series, Table, Unit,
    advice::Setting,
    asked::{Around, Reach, Rung, Try},
    vocabulary::{knob, tried},
};
use pagelab_report::{Forms, Report, Style};
use serde_json::Value;

use crate::explain::with_density;

const PLAIN: Style = Style { color: false, width: 120 };
const MIB: u64 = 1 << 20;
/// A rung in a memory cgroup that is full.
const FULL: &str = "full";
/// A rung whose pages come in two of three rounds.
const FICKLE: &str = "fickle";
/// One whose pages come in every sixth round.
const RARE: &str = "rare";

/// A rung as it came out: nanoseconds of a typical round, its peak and its large pages in MiB.
#[derive(Clone, Copy)]
pub(crate) struct Came {
    pub(crate) name: &'static str,
    pub(crate) reach: Reach,
    pub(crate) ns: u64,
    pub(crate) rounds: u32,
    pub(crate) peak: u64,
    pub(crate) large: Option<u64>,
}

pub(crate) const fn came(name: &'static str, reach: Reach, ns: u64, peak: u64, large: u64) -> Came {
    Came { name, reach, ns, rounds: 12, peak, large: Some(large) }
}

fn series(name: &str, round: u32, clock: Clock, unit: Unit, value: u64) -> Series {
    Series { process: round, ..Series::new(name, tried::ARM, clock, unit, vec![value]) }
}

fn record(came: &Came) -> Record {
    let mut all = Vec::new();
    let without = Came { ns: 1_000_000_000, large: Some(0), ..*came };
    for round in 0..came.rounds {
        let is_without = match came.name {
            FICKLE => round % 3 == 0,
            RARE => round % 6 > 0,
            _ => false,
        };
        let came = if is_without { &without } else { came };
        // A round that is slow is slow for everybody, and each has a little of its own.
        let own = (u64::from(round) * 7 + came.ns / 1_000_000) % 5;
        let ns = came.ns / 100 * (100 + u64::from(round % 3)) / 1000 * (1000 + own);
        all.push(series(tried::ELAPSED, round, Clock::Wall, Unit::Ns, ns));
        all.push(series(tried::CPU, round, Clock::Cpu, Unit::Ns, ns / 10 * 9));
        let faults = (came.peak - came.large.unwrap_or(0)) * 256;
        all.push(series(tried::MINOR_FAULTS, round, Clock::Wall, Unit::Count, faults));
        all.push(series(tried::PEAK, round, Clock::Wall, Unit::Bytes, came.peak * MIB));
        let large = came.large.map(|large| large * MIB);
        all.extend(large.map(|l| series(tried::LARGE, round, Clock::Wall, Unit::Bytes, l)));
    }
    let counters = [
        (tried::LOOKS, 1),
        (tried::SAMPLES, 40),
        (tried::OUTPUT_STEADY, 1),
        (tried::OUTPUT_DIGEST, if came.name == "mthp-64k" { 8 } else { 7 }),
    ];
    let full = [(tried::FALLBACKS, 10), (tried::UNCHARGED, 9)].into_iter();
    let counters = counters.into_iter().chain(full.filter(|_| came.name == FULL));
    let counters = counters.map(|(name, count)| (name.to_owned(), count));
    let mapping = |name: &str, mib: [u64; 4]| Table {
        name: format!("{}{name}", tried::MAPPING),
        columns: Vec::new(),
        rows: vec![mib.map(|mib| (mib * MIB).cast_signed()).to_vec()],
    };
    let measured = Measured {
        series: all,
        tables: vec![
            mapping("anonymous", [600, came.peak - 2, came.large.unwrap_or(0), 0]),
            mapping("/usr/bin/sort (code)", [1, 1, 0, 0]),
        ],
        counters: counters.collect(),
        ..Measured::default()
    };
    Record {
        schema: pagelab_record::schema::SCHEMA.into(),
        run: "run".into(),
        boot: "one".into(),
        workload: ladder::WORKLOAD.into(),
        nature: Nature::Measured,
        case: Case::default().with("program", "sort -n big").with("rung", came.name),
        ab: None,
        host: pagelab_record::Host::default(),
        outcome: if came.rounds == 0 {
            Outcome::Skipped { need: "root".into(), cure: "sudo".into() }
        } else {
            Outcome::Measured(measured)
        },
    }
}

fn report(all: &[Came]) -> String {
    let text = reported(all, false, &[]).terminal(PLAIN);
    text.split("\nWitness\n").next().unwrap_or_default().to_owned()
}

/// The report of what came, with what was seen of one more run that was watched.
fn reported(all: &[Came], predicts: bool, watched: &[Record]) -> Report {
    asked(all, watched, |asked| asked.predicts = predicts)
}

/// The same of another question.
pub(crate) fn asked(all: &[Came], watched: &[Record], change: impl FnOnce(&mut Try)) -> Report {
    let mut records = watched.to_vec();
    records.extend(all.iter().map(record));
    of_records(all, &records, change)
}

/// The report of what came, each record changed.
fn asked_with(all: &[Came], change: impl FnMut(&mut Record)) -> Report {
    let mut records: Vec<Record> = all.iter().map(record).collect();
    records.iter_mut().for_each(change);
    of_records(all, &records, |_| ())
}

fn of_records(all: &[Came], records: &[Record], change: impl FnOnce(&mut Try)) -> Report {
    let rung = |came: &Came| Rung {
        name: came.name.into(),
        how: format!("what {} does", came.name),
        reach: came.reach,
        page: if [tried::PLAIN, tried::AS_SET_UP, tried::FIT_NONE].contains(&came.name) {
            0
        } else {
            2 * MIB
        },
        keep: vec![format!("environment: RUNG={}", came.name)],
        setting: vec![Setting::environment("RUNG", came.name)],
        undo: vec![Setting::environment("RUNG", came.name).undo(None)],
        cost: "the others wait".into(),
        lacks: Vec::new(),
        fickle: if came.name == FICKLE { "a coin decides".into() } else { String::new() },
        knob: match came.name {
            "thp-always" | "malloc-thp" => Some(knob::page(2 * MIB)),
            "mthp-64k" => Some(knob::page(64 << 10)),
            _ => None,
        },
    };
    let mut asked = Try {
        rungs: all.iter().map(rung).collect(),
        seed: 1,
        rounds: 48,
        min_rounds: 0,
        budget_ns: None,
        delta_ppm: 30_000,
        program: Vec::new(),
        named: Vec::new(),
        own: Vec::new(),
        around: Around::default(),
        predicts: false,
        fits: false,
        pid: None,
    };
    change(&mut asked);
    let header =
        RunHeader { run: "run".into(), asked: Some(Asked::Try(asked)), ..RunHeader::default() };
    Report::of(&header, records, None, &[], &crate::views())
}

#[test]
fn the_best_rungs_are_named_with_their_price_and_what_did_not_take_is_not_compared() {
    let unseen = Came { large: None, ..came("mthp-64k", Reach::Machine, 700_000_000, 480, 0) };
    let screened = Came { rounds: 2, ..came("jemalloc", Reach::Program, 990_000_000, 500, 90) };
    let text = report(&[
        came(tried::PLAIN, Reach::Program, 1_000_000_000, 480, 0),
        came(tried::AS_SET_UP, Reach::Program, 1_001_000_000, 480, 0),
        came("malloc-thp", Reach::Program, 900_000_000, 500, 400),
        came("thp-always", Reach::Machine, 840_000_000, 700, 660),
        came("collapse", Reach::Privileged, 1_100_000_000, 490, 300),
        came("code", Reach::Privileged, 800_000_000, 480, 0),
        unseen,
        screened,
    ]);
    insta::assert_snapshot!("tried", text);
}

#[test]
fn a_cgroup_without_room_is_why_no_large_page_came() {
    let all = [
        came(tried::PLAIN, Reach::Program, 2_000_000_000, 600, 0),
        came(tried::AS_SET_UP, Reach::Program, 2_000_000_000, 600, 0),
        came(FULL, Reach::Program, 1_500_000_000, 600, 0),
    ];
    let text = report(&all);
    let why = "full: a memory cgroup had no room for 2.00 MiB: 10 faults of the machine fell back";
    assert!(text.contains("did not take") && text.contains(why), "{text}");
}

#[test]
fn where_pages_come_at_times_those_rounds_are_compared_and_the_others_are_told() {
    let all = |name| {
        [
            came(tried::PLAIN, Reach::Program, 1_000_000_000, 480, 0),
            came(tried::AS_SET_UP, Reach::Program, 1_000_000_000, 480, 0),
            came(name, Reach::Program, 800_000_000, 480, 400),
        ]
        .map(|came| Came { rounds: 18, ..came })
    };
    let always = report(&all("malloc-thp"));
    assert!(always.contains("0.800") && !always.contains("at times"), "{always}");
    let text = report(&all(FICKLE));
    let told = "its pages came in 12 of 18 rounds, and no other is compared: a coin decides";
    assert!(text.contains("0.800") && text.contains("FASTER") && text.contains(told), "{text}");
    let text = report(&all(RARE));
    let told = "its pages came in 3 of 18 rounds only";
    assert!(text.replace('\n', " ").contains(told), "{text}");
    assert!(!text.contains("FASTER"), "{text}");
}

#[test]
fn pages_that_no_look_saw_came_where_their_faults_are_missing() {
    // All faults of 480 MiB are spared but those of 40 MiB.
    let spared = came("malloc-thp", Reach::Program, 700_000_000, 480, 440);
    let all = [
        came(tried::PLAIN, Reach::Program, 1_000_000_000, 480, 0),
        came(tried::AS_SET_UP, Reach::Program, 1_000_000_000, 480, 0),
        spared,
    ];
    let unseen = |record: &mut Record| {
        let Outcome::Measured(measured) = &mut record.outcome else { panic!() };
        for series in measured.series.iter_mut().filter(|series| series.name == tried::LARGE) {
            series.data = Data::Values(vec![0]);
        }
    };
    let report = asked_with(&all, unseen);
    let flat = flat(&report);
    assert!(flat.contains("not seen") && !flat.contains("did not take"), "{flat}");
    let rung = &verdict(&report)["rungs"][2];
    assert_eq!((&rung["took"], &rung["large_bytes"]), (&"yes".into(), &0.0.into()));
    assert!(rung["beside_what_is_set_up"]["verdict"] == "FASTER", "{rung}");
}

#[test]
fn what_is_in_large_pages_is_one_figure_in_the_table_by_rung_and_by_mapping() {
    let all = [
        came(tried::PLAIN, Reach::Program, 1_000_000_000, 480, 0),
        came(tried::AS_SET_UP, Reach::Program, 1_000_000_000, 480, 0),
        came("thp-always", Reach::Machine, 700_000_000, 480, 440),
    ];
    // Most looks come too early to see all of it.
    let early = |record: &mut Record| {
        let Outcome::Measured(measured) = &mut record.outcome else { panic!() };
        for series in measured.series.iter_mut().filter(|series| series.name == tried::LARGE) {
            if let (Data::Values(values), true) = (&mut series.data, series.process > 0) {
                values[0] /= 8;
            }
        }
    };
    let report = asked_with(&all, early);
    assert_eq!(verdict(&report)["rungs"][2]["large_bytes"], (440 * MIB) as f64);
    let text = report.terminal(PLAIN);
    let rows = text.lines().filter(|line| line.ends_with("440 MiB"));
    let rows: Vec<&str> = rows.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(rows, ["thp-always", "anonymous"], "{text}");
}

#[test]
fn where_what_is_set_up_did_not_end_nobody_is_told_to_leave_it() {
    let rung = |name, rounds| Came { rounds, ..came(name, Reach::Program, 1_000_000_000, 480, 0) };
    let text = report(&[rung(tried::PLAIN, 12), rung(tried::AS_SET_UP, 0)]);
    assert!(text.contains("it does on these rungs: plain.") && !text.contains("Leave"), "{text}");
    let text = report(&[rung(tried::PLAIN, 0), rung(tried::AS_SET_UP, 0)]);
    let nothing = text.contains("nothing to compare") && !text.contains("Leave");
    assert!(nothing && !text.contains("differs from run to run"), "{text}");
}

/// As set up and two variants: one as fast, and one that takes this many milliseconds.
fn two_variants(ms: u64, rounds: u32) -> [Came; 4] {
    [
        came(tried::PLAIN, Reach::Program, 1_000_000_000, 480, 0),
        came(tried::AS_SET_UP, Reach::Program, 1_001_000_000, 480, 0),
        came("malloc-thp", Reach::Program, 1_004_000_000, 500, 400),
        came("thp-always", Reach::Machine, ms * 1_000_000, 500, 400),
    ]
    .map(|came| Came { rounds, ..came })
}

pub(crate) fn flat(report: &Report) -> String {
    report.terminal(PLAIN).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn verdict(report: &Report) -> Value {
    let json: Value = serde_json::from_str(&report.json()).expect("the report is JSON");
    json["tried"].clone()
}

#[test]
fn leave_it_as_it_is_means_that_intervals_exclude_a_gain() {
    let report = reported(&two_variants(1_002, 12), false, &[]);
    let text = flat(&report);
    assert!(
        text.contains("Leave it as it is: no variant is faster than what is set up."),
        "{text}"
    );
    let told = verdict(&report);
    assert_eq!(told["verdict"], "leave-it");
    let first = &told["rungs"][0];
    assert_eq!((&first["id"], &first["rung"]), (&tried::PLAIN.into(), &tried::PLAIN.into()));
    let variable = |value| serde_json::json!([{"environment": "RUNG", "value": value}]);
    assert_eq!(first["setting"], variable(Value::from(tried::PLAIN)));
    assert_eq!(first["undo"], variable(Value::Null));
    // What was screened only and looked better may be.
    let mut all = two_variants(1_002, 12);
    all[3] = Came { rounds: 2, ..came("thp-always", Reach::Machine, 700_000_000, 500, 400) };
    assert_eq!(verdict(&reported(&all, false, &[]))["verdict"], "undecided");
}

#[test]
fn a_variant_that_took_too_long_is_a_loser_and_no_failure() {
    let all = two_variants(1_002, 12);
    let report = asked_with(&all, |record| {
        if record.case.get("rung") != Some("thp-always") {
            return;
        }
        let Outcome::Measured(measured) = &mut record.outcome else { unreachable!("measured") };
        measured.series.clear();
        measured.counters = [(tried::LATE_NS.to_owned(), 7_500_000_000)].into();
    });
    let text = flat(&report);
    let said = "too slow: thp-always: took longer than 7.50 s, and was ended; as set up it takes";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("Leave it as it is"), "it is tried: {text}");
    assert!(text.contains("Its output was the same in every run."), "{text}");
    let told = verdict(&report);
    let mine = told["rungs"].as_array().unwrap().iter().find(|rung| rung["id"] == "thp-always");
    let mine = mine.unwrap();
    assert_eq!((&mine["took"], mine["longer_than_ns"].as_f64()), (&"too-slow".into(), Some(7.5e9)));
    assert!(told["untried"].as_array().unwrap().is_empty());
}

#[test]
fn what_no_interval_excludes_is_undecided_and_names_the_best_and_what_would_decide_it() {
    let report = reported(&two_variants(300, 3), false, &[]);
    let text = flat(&report);
    for part in [
        "undecided best so far: thp-always \u{2212}70",
        "Undecided. Best so far: thp-always \u{2212}70",
        "in 3 rounds) beside what is set up, not yet sure; --rung thp-always --budget ",
        "would decide it: about ",
        "Not excluded either: ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("Leave it"), "{text}");
    let told = verdict(&report);
    assert_eq!(
        (&told["verdict"], &told["candidates"][0]["rung"]),
        (&"undecided".into(), &"thp-always".into())
    );
    let once = flat(&reported(&two_variants(300, 1), false, &[]));
    assert!(once.contains("(one round) beside what is set up, not yet sure"), "{once}");
}

#[test]
fn what_the_budget_had_no_time_for_is_listed_and_nothing_is_excluded_then() {
    let all = two_variants(1_002, 12);
    let report = asked_with(&all, |record| {
        if let (Some("thp-always"), Outcome::Measured(measured)) =
            (record.case.get("rung"), &mut record.outcome)
        {
            *measured = Measured::default();
            measured.counters.insert(Rung::UNTRIED_NS.into(), 1_300_000_000);
        }
    });
    let text = flat(&report);
    assert!(text.contains("Not tried: thp-always. A run of each takes up to 1.30 s"), "{text}");
    assert!(
        text.contains("nothing that was tried looks better") && !text.contains("Leave it"),
        "{text}"
    );
    assert_eq!(verdict(&report)["untried"][0]["run_ns"], 1_300_000_000);
}

#[test]
fn a_process_that_ran_already_is_set_beside_what_it_was_before() {
    let sides = [
        came(tried::AS_SET_UP, Reach::Program, 1_000_000_000, 480, 0),
        came("collapse", Reach::Privileged, 900_000_000, 490, 460),
    ];
    let text = asked(&sides, &[], |asked| asked.pid = Some(7)).terminal(PLAIN);
    insta::assert_snapshot!("attached", text.split("\nWitness\n").next().unwrap());
}

/// A program that spends 900 ms on the CPU, about 50 ms of it in faults.
fn foretold() -> [Came; 5] {
    let skipped = Came { rounds: 0, ..came("malloc-thp", Reach::Program, 900_000_000, 480, 0) };
    [
        came(tried::PLAIN, Reach::Program, 1_000_000_000, 480, 0),
        came(tried::AS_SET_UP, Reach::Program, 1_001_000_000, 480, 0),
        skipped,
        came("thp-always", Reach::Machine, 973_000_000, 700, 660),
        came("mthp-64k", Reach::Machine, 973_000_000, 500, 480),
    ]
}

#[test]
fn what_explain_had_predicted_stands_beside_what_came() {
    let report = reported(&foretold(), true, &with_density(0, None));
    let text = report.terminal(PLAIN);
    let from = text.find("What explain predicted").unwrap();
    let end = text[from..].find("\nWitness\n").unwrap();
    insta::assert_snapshot!("foretold", text[from..from + end]);
    for other in ["What faults cost this program", "Fault latency\n", "less in faults"] {
        assert!(!text.contains(other), "{other}");
    }
    let json: Value = serde_json::from_str(&report.json()).unwrap();
    let predictions = json["predictions"].as_array().unwrap();
    let of = |rung: &str| predictions.iter().find(|told| told["rung"] == rung).unwrap();
    let tried = of("thp-always");
    assert_eq!(tried["agreement"], "near");
    // One error, in time and as a share of what the legend names.
    let number = |of: &Value| of.as_f64().unwrap();
    let error = number(&tried["error_ns"]);
    let difference = number(&tried["came"]["value"]) - number(&tried["predicted"]["value"]);
    assert!((error - difference).abs() < 1.0, "{tried}");
    let share = number(&tried["off_by_share_of_stall"]);
    assert!((share - error / number(&tried["stall"]["value"])).abs() < 1e-9, "{tried}");
    // Nobody tried it: there is a prediction, and nothing that came.
    let untried = of("malloc-thp");
    assert!(untried["predicted"].is_object() && untried["came"].is_null());
    assert_eq!(
        (&untried["nothing_came"], &untried["agreement"]),
        (&"not tried".into(), &Value::Null)
    );
    assert!(of("mthp-64k")["predicted"].is_null(), "no price");
    let cases = json["cases"].as_array().unwrap();
    assert!(cases.iter().any(|case| case["workload"] == "fault/latency"));
    for text in [report.markdown(), report.html()] {
        assert!(text.contains("What explain predicted"));
    }
}

#[test]
fn where_nothing_is_predicted_the_reason_stands_in_its_place() {
    let text = reported(&foretold(), true, &[]).terminal(PLAIN);
    assert!(!text.contains("explain predicted"), "{text}");
    let mut watched = with_density(0, None).swap_remove(0);
    let (need, cure) = ("perf events".to_owned(), "sysctl kernel.perf".to_owned());
    watched.outcome = Outcome::Skipped { need, cure };
    let text = reported(&foretold(), true, &[watched]).terminal(PLAIN);
    assert!(text.contains("no prediction") && text.contains("sysctl kernel.perf"), "{text}");
}

/// A program with a dense mapping that was chosen, and a sparse one that gains but is dear.
fn units() -> Record {
    let unit = |nth: usize, name: &str, row: [i64; 11]| Table {
        name: format!("{}{nth}/{name}", tried::UNIT),
        columns: Vec::new(),
        rows: vec![row.to_vec()],
    };
    let mib = MIB.cast_signed();
    let tables = vec![
        unit(0, "fill+0x1c (prog) < main", [7, 1, 256 * mib, 1, 65536, 65536, 128, 0, 90, 1, 1]),
        unit(1, "", [0, 0, 40 * mib, 1, 9000, 9000, 20, 5 * mib, 7, 0, 1]),
        unit(2, "part+0x8 (prog)", [9, 2, 64 * mib, 6, 900, 900, 192, 380 * mib, -9, 0, 0]),
    ];
    let counters = [
        (tried::ELSEWHERE, 1200),
        (tried::UNKNOWN, 770),
        (tried::UNLOGGED, 3),
        (tried::EXTRA_BOUND, 0),
    ];
    let counters = counters.map(|(name, count)| (name.to_owned(), count)).into();
    let mut record = record(&came(tried::PLAIN, Reach::Program, 1_000_000_000, 480, 0));
    record.workload = fit::WORKLOAD.into();
    record.case = Case::default().with("program", "sort -n big");
    record.outcome = Outcome::Measured(Measured { tables, counters, ..Measured::default() });
    record
}

#[test]
fn which_mappings_are_worth_it_is_told_as_a_share_of_the_gain_and_of_the_memory() {
    let rungs = [
        came(tried::PLAIN, Reach::Program, 1_000_000_000, 480, 0),
        came(tried::AS_SET_UP, Reach::Program, 1_001_000_000, 480, 0),
        came("malloc-thp", Reach::Program, 960_000_000, 490, 100),
        came("thp-always", Reach::Machine, 800_000_000, 880, 700),
        came(tried::FIT_NONE, Reach::Program, 1_010_000_000, 481, 0),
        came(tried::FIT, Reach::Program, 820_000_000, 497, 256),
    ];
    let report = asked(&rungs, &[units()], |asked| asked.fits = true);
    let text = report.terminal(PLAIN);
    let from = text.find("Which mappings are worth it").unwrap();
    insta::assert_snapshot!("fitted", text[from..].split("\nIts output").next().unwrap());
    let told: Value = serde_json::from_str(&report.json()).unwrap();
    let fit = &told["fit"];
    assert_eq!((&fit["chosen"], &fit["mappings"]), (&1.into(), &3.into()));
    assert_eq!(fit["beside"]["rung"], "thp-always");
    let share = fit["beside"]["gain_share"].as_f64().unwrap();
    assert!((0.93..0.97).contains(&share), "{share}");
    let more = ["more_bytes", "more_bytes_of_rung"].map(|name| fit["beside"][name].as_f64());
    assert_eq!(more, [Some(16.0 * MIB as f64), Some(400.0 * MIB as f64)]);
}

#[test]
fn where_the_chosen_mappings_were_not_run_nothing_is_said_to_be_shown() {
    let skipped = Came { rounds: 0, ..came(tried::FIT, Reach::Program, 1, 480, 0) };
    let rungs = [came(tried::PLAIN, Reach::Program, 1_000_000_000, 480, 0), skipped];
    let text = asked(&rungs, &[units()], |asked| asked.fits = true).terminal(PLAIN);
    let said = "1 of 3 mappings was chosen, and nothing was shown: it needs root.";
    assert!(text.contains(said), "{text}");
}
