//! Two builds of a program by their page faults: counts, a threshold, and what forbids it.

use std::slice::from_ref;

use pagelab_record::{Case, Claim, Measured, Outcome, Record, RunHeader, vocabulary::Check};
use pagelab_report::{Asked, Comparison, Forms, Outcome as Came, Side, Threshold};
use serde_json::Value;

use crate::explain::program;

/// Another build of the program, with this many faults more in `fill`.
fn build(name: &str, more: i64) -> Record {
    let mut record = program();
    record.case = Case::default().with("program", &format!("{name} its arguments"));
    for table in &mut of(&mut record).tables {
        if table.name == "fault/write/4k/anonymous" {
            table.rows[0][0] += more;
        }
        if table.name.starts_with("site/fill") {
            table.name = table.name.replace("touch", name);
            table.rows[0][0] += more;
        }
    }
    record
}

fn of(record: &mut Record) -> &mut Measured {
    let Outcome::Measured(measured) = &mut record.outcome else { panic!() };
    measured
}

fn compared<T>(a: &[Record], b: &[Record], of: impl Fn(&Comparison<'_>) -> T) -> T {
    let header = RunHeader::default();
    let side = |name, records| Side { name, header: &header, records, damage: None };
    let sides = [side("before", a), side("after", b)];
    let Some(comparison) = Comparison::of(&sides, &Asked::of(&crate::views())) else { panic!() };
    of(&comparison)
}

fn markdown(comparison: &Comparison<'_>) -> String {
    comparison.markdown()
}

fn json_of(comparison: &Comparison<'_>) -> String {
    comparison.json()
}

fn outcome(a: &[Record], b: &[Record], share: f64) -> Came {
    compared(a, b, |found| found.outcome(&[Threshold::Counts("faults", share)]))
}

#[test]
fn builds_are_compared_by_their_faults_whatever_they_are_called() {
    let (a, b) = (build("old", 0), build("new", 1000));
    insta::assert_snapshot!(compared(from_ref(&a), from_ref(&b), markdown));
    let json: Value = serde_json::from_str(&compared(&[a], &[b], json_of)).unwrap();
    let faults = &json["faults"][0];
    assert_eq!((&faults["a"], &faults["difference"]), (&41_301.0.into(), &1000.0.into()));
    let sites = faults["sites"].as_array().unwrap();
    let fill = sites.iter().find(|site| site["name"] == "fill < main").unwrap();
    assert_eq!(fill["difference"], 1000.0, "a function of either build is one place");
}

#[test]
fn a_threshold_is_on_the_sum_and_less_is_never_worse() {
    let [a, b] = [build("old", 0), build("new", 1000)].map(|record| vec![record]);
    assert_eq!(outcome(&a, &b, 0.02), Came::Worse);
    assert_eq!(outcome(&a, &b, 0.03), Came::Good);
    assert_eq!(outcome(&b, &a, 0.0), Came::Good);
    // The median of three runs of a side.
    let three = [build("new", 0), build("new", 1000), build("new", 9000)];
    assert_eq!(outcome(&a, &three, 0.03), Came::Good);
}

#[test]
fn a_threshold_on_faults_that_were_not_counted_is_not_passed() {
    let [a, b] = [build("old", 0), build("new", 0)];
    let mut blind = b.clone();
    of(&mut blind).tables.clear();
    assert_eq!(outcome(from_ref(&a), &[blind], 1.0), Came::NotComparable);
    let mut invalid = b.clone();
    of(&mut invalid).witness.push(Claim::check(Check::MajorFaults, "", 0, 1, 0));
    assert_eq!(outcome(from_ref(&a), &[invalid], 1.0), Came::Invalid);
    let mut other = b.clone();
    other.host.settings.insert("thp_enabled".into(), "always".into());
    let mut set = a.clone();
    set.host.settings.insert("thp_enabled".into(), "never".into());
    assert_eq!(outcome(&[set], &[other], 1.0), Came::NotComparable);
    // Of two programs in one run, nothing says which is meant.
    assert_eq!(outcome(from_ref(&a), &[b, build("more", 0)], 1.0), Came::NotComparable);
}
