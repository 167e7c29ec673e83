//! Fleets whose answer is known.

use pagelab_record::{
    Claim, Clock, Host, Measured, Record, Series,
    vocabulary::{Check, arm::OURS},
};
use serde_json::json;

use super::*;
use crate::Views;
use crate::terminal::Style;

const PLAIN: Style = Style { color: false, width: 200 };

/// A record of a host whose processes took so many nanoseconds.
fn record(host: &str, ns: &[u64]) -> Record {
    let series = |(process, ns): (usize, &u64)| Series {
        process: u32::try_from(process).unwrap(),
        ..Series::new("getppid", OURS, Clock::Tsc, pagelab_record::Unit::Ns, vec![*ns; 3])
    };
    let measured =
        Measured { series: ns.iter().enumerate().map(series).collect(), ..Measured::default() };
    let facts = |facts: serde_json::Value| facts.as_object().unwrap().clone().into_iter().collect();
    Record {
        schema: String::new(),
        run: "r".to_owned(),
        boot: "b".to_owned(),
        workload: "limit/syscall".to_owned(),
        nature: Nature::Measured,
        case: Case::default(),
        ab: None,
        host: Host {
            identity: facts(json!({ "cpu_model": "one", "kernel_release": "6.12" })),
            settings: facts(json!({ "thp_enabled": "madvise", "mitigations": { "mds": "off" } })),
            volatile: facts(json!({ "host_name": host, "load_1m": 0.1 })),
        },
        outcome: Came::Measured(measured),
    }
}

/// `a0` … with small differences between them.
fn alike(count: usize) -> Vec<Record> {
    (0..count).map(|nth| record(&format!("a{nth}"), &[1000 + 3 * nth as u64])).collect()
}

fn fleet_of(records: &[Record], asked: &Asked) -> Fleet {
    let mut hosts = Hosts::new(asked);
    for record in records {
        hosts.add("1", record).unwrap();
    }
    hosts.fleet("run").unwrap()
}

fn fleet(records: &[Record]) -> Fleet {
    fleet_of(records, &Asked::of(&Views::default()))
}

fn set(record: &mut Record, class: &str, key: &str, value: serde_json::Value) {
    let facts = match class {
        "identity" => &mut record.host.identity,
        "settings" => &mut record.host.settings,
        _ => &mut record.host.volatile,
    };
    facts.insert(key.to_owned(), value);
}

#[test]
fn a_host_that_lies_apart_is_named_with_what_is_different_about_it() {
    let mut records = alike(20);
    records.push(record("slow", &[1500, 1400, 1600]));
    let slow = records.last_mut().unwrap();
    set(slow, "settings", "thp_enabled", json!("always"));
    set(slow, "settings", "governor", json!("powersave"));
    set(slow, "volatile", "load_1m", json!(7.5));
    let fleet = fleet(&records);
    assert_eq!((fleet.groups.len(), fleet.cells.len(), fleet.outlying.len()), (1, 1, 1));
    let one = &fleet.outlying[0];
    assert_eq!(fleet.names[one.host], "slow");
    // A host is the median of its processes.
    assert!((one.cells[0].1.number - 1500.0).abs() < 1e-9);
    let told: Vec<(&str, &str, &str)> =
        one.apart.iter().map(|fact| (&*fact.key, &*fact.here, &*fact.usual)).collect();
    let expected = [
        ("governor", "powersave", ""),
        ("thp_enabled", "always", "madvise"),
        ("load_1m", "7.5", "0.1"),
    ];
    assert_eq!(told, expected);
    assert_eq!(one.apart[1].others, Some([20, 0]));
    assert_eq!(fleet.outcome(&[]), Outcome::Good);
    let worse = |share| fleet.outcome(&[Threshold::Share(Statistic::MEDIAN, share)]);
    assert_eq!((worse(0.1), worse(0.9)), (Outcome::Worse, Outcome::Good));
    let text = fleet.terminal(PLAIN);
    assert!(text.contains("madvise (20 hosts)"), "{text}");
}

#[test]
fn hosts_that_are_not_the_same_machine_are_no_distribution_unless_it_is_allowed() {
    let mut records = alike(6);
    for nth in 0..5 {
        records.push(record(&format!("b{nth}"), &[3000]));
        set(records.last_mut().unwrap(), "identity", "kernel_release", json!("6.1"));
    }
    let of = |fleet: &Fleet| fleet.cells.iter().map(|cell| cell.values.len()).collect::<Vec<_>>();
    let two = fleet(&records);
    assert_eq!((two.groups.len(), of(&two), two.outlying.len()), (2, vec![6, 5], 0));
    assert_eq!(two.outcome(&[]), Outcome::Good);
    // One alone is told, with what to allow.
    let alone = fleet(&records[..7]);
    assert_eq!(alone.outcome(&[]), Outcome::NotComparable);
    let text = alone.terminal(PLAIN);
    assert!(text.contains("b0 is like no other host"), "{text}");
    assert!(text.contains("--allow kernel_release"), "{text}");
    // Where it is allowed it may be what is different.
    let asked = Asked { allow: vec!["kernel_release".to_owned()], ..Asked::of(&Views::default()) };
    let one = fleet_of(&records[..7], &asked);
    assert_eq!((one.groups.len(), of(&one)), (1, vec![7]));
    assert_eq!(one.outlying[0].apart[0].key, "kernel_release");
    assert_eq!(one.outcome(&[]), Outcome::Good);
    // So is another version of pagelab.
    let mut hosts = Hosts::new(&Asked::of(&Views::default()));
    hosts.add("1", &records[0]).unwrap();
    hosts.add("2", &records[1]).unwrap();
    assert_eq!(hosts.fleet("run").unwrap().outcome(&[]), Outcome::NotComparable);
}

#[test]
fn a_record_that_is_not_valid_is_no_number_of_its_host() {
    let mut records = alike(5);
    let Came::Measured(measured) = &mut records[4].outcome else { panic!() };
    measured.witness.push(Claim::check((Check::Present, "it is so"), "", 1, 2, 0));
    let fleet = fleet(&records);
    assert_eq!((fleet.cells[0].values.len(), fleet.outcome(&[])), (4, Outcome::Invalid));
    let text = fleet.terminal(PLAIN);
    assert!(text.contains("on a4: a claim fails: it is so"), "{text}");
    assert!(text.contains("no group has 5 hosts"), "{text}");
}

#[test]
fn a_small_difference_is_no_outlier_and_few_hosts_have_none() {
    let mut equal: Vec<Record> = (0..9).map(|n| record(&format!("a{n}"), &[1000])).collect();
    equal.push(record("near", &[1020]));
    assert_eq!(fleet(&equal).outlying.len(), 0);
    equal[9] = record("far", &[1050]);
    let far = fleet(&equal);
    assert_eq!(far.outlying.len(), 1);
    assert!(far.outlying[0].cells[0].1.score.is_infinite());
    let json: serde_json::Value = serde_json::from_str(&far.json()).unwrap();
    assert!(json["outliers"][0]["cells"][0]["score"].is_null());
    assert_eq!(json["cells"][0]["p50"], 1000.0);
    assert_eq!(far.csv().lines().count(), 11);
    assert_eq!(fleet(&equal[6..]).outlying.len(), 0);
}

#[test]
fn one_host_is_no_fleet_and_a_record_without_a_name_has_no_place() {
    let mut hosts = Hosts::new(&Asked::of(&Views::default()));
    let mut one = record("a", &[1]);
    hosts.add("1", &one).unwrap();
    one.host.volatile.clear();
    assert!(hosts.add("1", &one).unwrap_err().contains("names no host"));
    assert!(hosts.fleet("run").unwrap_err().contains("all records are of a"));
}
