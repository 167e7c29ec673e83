//! The noise floor of two runs of the same thing.

use pagelab_record::{Data, Outcome, Record};
use pagelab_report::{Style, noise_floor};

use crate::golden;

const PLAIN: Style = Style { color: false, width: 120 };

/// The throughput records of the golden run, each observation made longer by a share.
fn throughput(longer: f64) -> Vec<Record> {
    let mut records = golden::journal().records;
    records.retain(|record| record.workload == "fault/throughput");
    for record in &mut records {
        let Outcome::Measured(measured) = &mut record.outcome else { continue };
        for series in &mut measured.series {
            if let Data::Values(values) = &mut series.data {
                for value in values {
                    *value = golden::whole(*value as f64 * (1.0 + longer));
                }
            }
        }
    }
    records
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let records = golden::journal().records;
    let floor = noise_floor(&records, &records);
    assert_eq!((floor.largest("p50"), floor.largest("p99")), (Some(0.0), Some(0.0)));
}

#[test]
fn the_floor_is_the_difference_over_the_mean() {
    let floor = noise_floor(&throughput(0.0), &throughput(0.10));
    let largest = floor.largest("p50").unwrap();
    assert!((largest - 0.10 / 1.05).abs() < 1e-3, "{largest}");
    assert!(floor.median("p50").unwrap() <= largest);
}

#[test]
fn an_invalid_record_takes_no_part() {
    let floor = noise_floor(&throughput(0.0), &throughput(0.0));
    assert!(!floor.cells.is_empty());
    assert!(floor.cells.iter().all(|cell| !cell.case.contains("backing=fixed")));
}

#[test]
fn nothing_in_common_is_no_floor() {
    let floor = noise_floor(&throughput(0.0), &[]);
    assert_eq!((floor.largest("p50"), floor.median("p99")), (None, None));
    assert!(floor.json().contains("pagelab.noise/1"));
}

#[test]
fn terminal() {
    insta::assert_snapshot!(noise_floor(&throughput(0.0), &throughput(0.02)).terminal(PLAIN));
}
