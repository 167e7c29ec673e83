//! Numbers that are no results: a fixed cost that no line gives, and more than all of a limit.

use pagelab_record::{Data, Outcome, Record, RunHeader};
use pagelab_report::{Forms, Report, Style};
use serde_json::Value;

use crate::made;

const PLAIN: Style = Style { color: false, width: 160 };

/// The golden run, with some of its records changed.
fn report(change: impl Fn(&mut Vec<Record>)) -> Report {
    let mut contents = made::journal();
    change(&mut contents.records);
    let header: &RunHeader = &contents.header;
    Report::of(header, &contents.records, None, &[], &crate::views())
}

/// Makes all that was timed of a record take so many times as long.
fn slow_down(record: &mut Record, factor: f64) {
    let Outcome::Measured(measured) = &mut record.outcome else { panic!("not measured") };
    for series in &mut measured.series {
        let Data::Values(values) = &mut series.data else { continue };
        for value in values {
            *value = made::whole(*value as f64 * factor);
        }
    }
}

/// The touches of anonymous memory with a page size, in bulk.
fn is_bulk(record: &Record, page: &str) -> bool {
    let has = |name, value| record.case.get(name) == Some(value);
    record.workload == "fault/throughput"
        && has("page", page)
        && has("backing", "anon")
        && has("populate", "touch")
}

fn bulk<'r>(records: &'r mut [Record], page: &str) -> &'r mut Record {
    records.iter_mut().find(|record| is_bulk(record, page)).unwrap()
}

#[test]
fn sizes_that_lie_on_no_line_have_no_fixed_cost() {
    let straight = report(|_| ());
    assert!(straight.terminal(PLAIN).contains("extrapolated to page size 0, in bulk"));
    let bent = report(|records| slow_down(bulk(records, "64k"), 6.0));
    let told = bent.terminal(PLAIN);
    assert!(told.contains("the sizes do not lie on a line: anon (in bulk)"), "{told}");
    assert!(!told.contains("extrapolated to page size 0, in bulk"), "{told}");
    let json: Value = serde_json::from_str(&bent.json()).unwrap();
    let fits = json["derived"]["fits"].as_array().unwrap().iter();
    let bulk = fits.clone().find(|fit| fit["workload"] == "fault/throughput").unwrap();
    assert!(bulk["line"].is_null(), "{bulk:#}");
    let why = bulk["why"].as_str().unwrap();
    assert!(why.starts_with("the sizes do not lie on a line (R² 0."), "{why}");
}

#[test]
fn a_bandwidth_above_the_limit_is_a_warning() {
    let told = report(|records| slow_down(bulk(records, "2m"), 0.5)).terminal(PLAIN);
    assert!(told.contains("> 105 %"), "{told}");
    assert!(told.contains("above 105 % is no result:"), "{told}");
    assert!(told.contains("the limit was measured too low"), "{told}");
}

#[test]
fn threads_that_scale_beyond_their_number_are_a_warning() {
    let with_threads = |factor: f64| {
        report(|records| {
            let mut four = bulk(records, "4k").clone();
            four.case = four.case.with("threads", "4");
            slow_down(&mut four, factor);
            records.push(four);
        })
        .terminal(PLAIN)
    };
    // Four times the rate of one is all that four can have.
    let told = with_threads(0.3);
    assert!(told.contains("efficiency") && !told.contains("its rate is no measure"), "{told}");
    let told = with_threads(0.2);
    let why = "above 105 % is no result: anon 4k, 4 threads has 125 %; one worker alone was slower";
    assert!(told.replace('\n', " ").contains("one worker alone was slower"), "{why}: {told}");
}
