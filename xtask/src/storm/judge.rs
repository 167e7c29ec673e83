//! What became of the records: lost, doubled, or each there once.
//!
//! The one idea: a function of what the journals of one run held at some moments, in their order.
//! A line that was whole at one moment is there, unchanged and at its place, at every later one;
//! what the run said was finished is among them; and when the run has been resumed to its end, each
//! planned case has one record. A cell of two arms may have several, each with more blocks than the
//! one before and with all of its processes. They come in pairs: one that was alone when the run
//! was killed counts as if it had not been. A rung may have several as well, each with the rounds
//! of the one before. Journals are read as JSON, so that a mistake in the program's own reader does
//! not hide one in its writer.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The journals of a run, by their paths, as they were at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Moment {
    /// Their bytes.
    pub(super) journals: BTreeMap<String, Vec<u8>>,
    /// How many records, over all journals, the program had said were finished.
    pub(super) told: usize,
}

impl Moment {
    /// Records that can be read.
    pub(super) fn records(&self) -> usize {
        self.journals.values().map(|bytes| records(bytes).count()).sum()
    }
}

/// What is wrong, in sentences, and how many records there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Judged {
    /// Records that can be read in the end.
    pub(super) records: usize,
    /// What was there, or was said to be, and is not.
    pub(super) lost: Vec<String>,
    /// What is there more than once.
    pub(super) doubled: Vec<String>,
}

/// Judges the moments of one run, the last of them after it was resumed to its end where
/// `complete`.
pub(super) fn judge(moments: &[Moment], complete: bool) -> Judged {
    let mut judged = Judged::default();
    for pair in moments.windows(2) {
        for (name, before) in &pair[0].journals {
            let after = pair[1].journals.get(name).map_or(&[][..], Vec::as_slice);
            let after: Vec<_> = whole_lines(after).collect();
            for (index, line) in whole_lines(before).enumerate() {
                if after.get(index) != Some(&line) {
                    judged.lost.push(format!("{name}: line {} was there whole", index + 1));
                }
            }
        }
    }
    for moment in moments {
        let there = moment.records();
        if there < moment.told {
            let told = moment.told;
            judged.lost.push(format!("{told} records were said to be finished, {there} are there"));
        }
    }
    let Some(last) = moments.last() else { return judged };
    for (name, bytes) in &last.journals {
        journal(name, bytes, complete, &mut judged);
    }
    judged
}

/// One journal, as it was last.
fn journal(name: &str, bytes: &[u8], complete: bool, judged: &mut Judged) {
    let mut planned: BTreeMap<String, usize> = BTreeMap::new();
    let mut lines = whole_lines(bytes);
    let Some(header) = lines.next() else { return };
    match serde_json::from_slice::<Value>(header) {
        Ok(header) => {
            for case in header["plan"].as_array().into_iter().flatten() {
                *planned.entry(case.to_string()).or_default() += 1;
            }
        }
        Err(error) => judged.lost.push(format!("{name}: the header cannot be read: {error}")),
    }
    for (index, line) in lines.enumerate() {
        if let Err(error) = serde_json::from_slice::<Value>(line) {
            judged.lost.push(format!("{name}: line {} cannot be read: {error}", index + 2));
        }
    }
    let (of_arms, rest): (Vec<Value>, Vec<Value>) =
        records(bytes).partition(|record| record["ab"].is_object());
    judged.records += of_arms.len() + rest.len();
    let (of_rungs, whole): (Vec<Value>, Vec<Value>) =
        rest.into_iter().partition(|record| record["workload"] == TRIED);
    rungs(name, &of_rungs, judged);
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for record in whole {
        *found.entry(case(&record)).or_default() += 1;
    }
    for (case, times) in &found {
        // What no plan names (the prices of `explain`) is there once, too.
        let wanted = planned.get(case).copied().unwrap_or(1);
        if *times > wanted {
            judged.doubled.push(format!("{name}: {times} records, not {wanted}, of {case}"));
        }
    }
    for (case, times) in arms(name, &of_arms, judged) {
        *found.entry(case).or_default() += times;
    }
    for (case, wanted) in planned.iter().filter(|_| complete) {
        let times = found.get(case).copied().unwrap_or(0);
        if times < *wanted {
            judged.lost.push(format!("{name}: {times} records, not {wanted}, of {case}"));
        }
    }
}

/// What a record is of.
fn case(record: &Value) -> String {
    Value::Array(vec![record["workload"].clone(), record["case"].clone()]).to_string()
}

/// The workload whose records are rungs: each has all the rounds of the one before it.
const TRIED: &str = "try/program";

/// The records of a program that was tried: no round of a rung is lost, and none is there twice.
fn rungs(name: &str, records: &[Value], judged: &mut Judged) {
    let mut last: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for record in records {
        let series = record["outcome"]["measured"]["series"].as_array();
        let times = series.into_iter().flatten().filter(|series| series["name"] == "elapsed");
        let rounds: Vec<u64> = times.filter_map(|series| series["process"].as_u64()).collect();
        let set: BTreeSet<u64> = rounds.iter().copied().collect();
        let case = case(record);
        if set.len() < rounds.len() {
            judged.doubled.push(format!("{name}: rounds {rounds:?} of {case}"));
        }
        let before = last.get(&case).cloned().unwrap_or_default();
        // A rung that failed or is skipped has no rounds any more, and says why.
        if !set.is_superset(&before) && record["outcome"]["measured"].is_object() {
            judged
                .lost
                .push(format!("{name}: rounds {before:?} were there of {case}, not {set:?}"));
        }
        last.insert(case, set);
    }
}

/// The records of two arms: how many arms each case has, each counted once.
fn arms(name: &str, records: &[Value], judged: &mut Judged) -> BTreeMap<String, usize> {
    let arm = |record: &Value| (record["ab"]["cell"].to_string(), record["ab"]["arm"].to_string());
    let blocks = |record: &Value| record["ab"]["blocks"].as_u64();
    let mut last: BTreeMap<_, &Value> = BTreeMap::new();
    let mut cases: BTreeMap<_, String> = BTreeMap::new();
    let mut at = 0;
    while let Some(one) = records.get(at) {
        let (cell, of) = arm(one);
        let at_blocks = format!("{name}: cell {cell} at {:?} blocks", blocks(one));
        let is_pair = |other: &&Value| {
            arm(other).0 == cell && arm(other).1 != of && blocks(other) == blocks(one)
        };
        let Some(other) = records.get(at + 1).filter(is_pair) else {
            // Killed between the two: as if it had not been, for whoever goes on.
            at += 1;
            continue;
        };
        for record in [one, other] {
            if let Some(before) = last.insert(arm(record), record) {
                if blocks(record) <= blocks(before) {
                    judged.doubled.push(format!("{at_blocks}, after one of {:?}", blocks(before)));
                }
                if !processes(record).is_superset(&processes(before)) {
                    judged.lost.push(format!("{at_blocks}: not all that {:?} had", blocks(before)));
                }
            }
            cases.insert(arm(record), case(record));
        }
        at += 2;
    }
    let mut counts = BTreeMap::new();
    for case in cases.into_values() {
        *counts.entry(case).or_default() += 1;
    }
    counts
}

/// The processes that measured something, by number.
fn processes(record: &Value) -> BTreeSet<u64> {
    let series = record["outcome"]["measured"]["series"].as_array();
    series.into_iter().flatten().filter_map(|series| series["process"].as_u64()).collect()
}

/// The lines that end.
fn whole_lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"))
}

/// The records that can be read: whole lines behind the header.
fn records(bytes: &[u8]) -> impl Iterator<Item = Value> {
    whole_lines(bytes).skip(1).filter_map(|line| serde_json::from_slice(line).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"schema":"run","plan":[["w",{"a":"1"}],["w",{"a":"2"}]]}"#;

    fn record(case: &str, outcome: &str) -> String {
        format!(r#"{{"workload":"w","case":{{"a":"{case}"}},"outcome":"{outcome}"}}"#)
    }

    fn moment(told: usize, lines: &[&str], torn: &str) -> Moment {
        let text = lines.iter().chain([&torn]).copied().collect::<Vec<_>>().join("\n");
        Moment { journals: [("j".to_owned(), text.into_bytes())].into(), told }
    }

    #[test]
    fn records_that_stay_and_are_completed_are_neither_lost_nor_doubled() {
        let (one, two) = (record("1", "ok"), record("2", "ok"));
        let moments = [
            moment(0, &[], ""),
            moment(1, &[HEADER, &one], &two[..9]),
            moment(2, &[HEADER, &one, &two], ""),
        ];
        let judged = judge(&moments, true);
        assert_eq!(judged, Judged { records: 2, ..Judged::default() });
    }

    #[test]
    fn a_record_that_disappears_or_is_changed_is_lost() {
        let (one, two) = (record("1", "ok"), record("2", "ok"));
        let before = moment(0, &[HEADER, &one, &two], "");
        let gone = judge(&[before.clone(), moment(0, &[HEADER, &one], "")], false);
        assert_eq!((gone.lost.len(), gone.records), (1, 1), "{gone:?}");
        let again = record("1", "measured again");
        let changed = judge(&[before.clone(), moment(0, &[HEADER, &again, &two], "")], true);
        assert_eq!(changed.lost, ["j: line 2 was there whole"]);
        let removed = judge(&[before, Moment::default()], false);
        assert_eq!(removed.lost.len(), 3);
    }

    #[test]
    fn a_record_that_was_told_and_is_not_there_is_lost() {
        let torn = judge(&[moment(1, &[HEADER], r#"{"workload":"#)], false);
        assert_eq!(torn.lost, ["1 records were said to be finished, 0 are there"]);
        let none = judge(&[Moment { told: 2, ..Moment::default() }], false);
        assert_eq!(none.lost.len(), 1);
    }

    #[test]
    fn a_case_without_its_record_is_lost_only_when_the_run_is_complete() {
        let one = record("1", "ok");
        let moments = [moment(1, &[HEADER, &one], "")];
        assert_eq!(judge(&moments, false).lost, [""; 0]);
        assert_eq!(judge(&moments, true).lost, [r#"j: 0 records, not 1, of ["w",{"a":"2"}]"#]);
    }

    #[test]
    fn a_case_measured_twice_is_doubled_unless_it_was_planned_twice() {
        let (one, again) = (record("1", "ok"), record("1", "failed"));
        let twice = [moment(0, &[HEADER, &one, &again], "")];
        assert_eq!(judge(&twice, false).doubled.len(), 1);
        let planned = r#"{"plan":[["w",{"a":"1"}],["w",{"a":"1"}]]}"#;
        let judged = judge(&[moment(2, &[planned, &one, &again], "")], true);
        assert_eq!(judged, Judged { records: 2, ..Judged::default() });
        // What no plan names is there once at most.
        let other = record("9", "ok");
        assert_eq!(judge(&[moment(0, &[HEADER, &other], "")], false).doubled, [""; 0]);
        assert_eq!(judge(&[moment(0, &[HEADER, &other, &other], "")], false).doubled.len(), 1);
    }

    fn of_rung(rung: &str, rounds: &[u64]) -> String {
        let series: Vec<Value> = rounds
            .iter()
            .map(|round| serde_json::json!({ "name": "elapsed", "process": round }))
            .collect();
        serde_json::json!({
            "workload": TRIED, "case": {"rung": rung}, "outcome": {"measured": {"series": series}},
        })
        .to_string()
    }

    #[test]
    fn a_rung_keeps_its_rounds_and_has_each_once() {
        let judged = |records: &[String]| {
            let lines: Vec<&str> = records.iter().map(String::as_str).collect();
            judge(&[moment(0, &[&["{}"], &lines[..]].concat(), "")], true)
        };
        let good = judged(&[of_rung("a", &[0, 1]), of_rung("b", &[0]), of_rung("a", &[0, 1, 2])]);
        assert_eq!(good, Judged { records: 3, ..Judged::default() });
        let lost = judged(&[of_rung("a", &[0, 1]), of_rung("a", &[0, 2])]);
        assert_eq!((lost.lost.len(), lost.doubled.len()), (1, 0), "{lost:?}");
        let doubled = judged(&[of_rung("a", &[0, 1, 1])]);
        assert_eq!((doubled.lost.len(), doubled.doubled.len()), (0, 1), "{doubled:?}");
        // One that failed has no rounds any more.
        let failed = of_rung("a", &[]).replace(r#"{"measured":"#, r#"{"failed":"#);
        assert_eq!(judged(&[of_rung("a", &[0, 1]), failed]).lost, [""; 0]);
    }

    fn of_arm(arm: &str, blocks: u64, processes: &[u64]) -> String {
        let series: Vec<Value> =
            processes.iter().map(|process| serde_json::json!({ "process": process })).collect();
        serde_json::json!({
            "workload": "w", "case": {"a": "1"}, "outcome": {"measured": {"series": series}},
            "ab": {"arm": {"name": arm}, "cell": 0, "blocks": blocks},
        })
        .to_string()
    }

    #[test]
    fn two_arms_have_a_pair_of_records_for_each_round_and_each_holds_the_one_before() {
        const TWO: &str = r#"{"plan":[["w",{"a":"1"}],["w",{"a":"1"}]]}"#;
        let [a, b] = ["a", "b"].map(|arm| of_arm(arm, 2, &[0, 1]));
        let [more_a, more_b] = ["a", "b"].map(|arm| of_arm(arm, 4, &[0, 1, 2]));
        let judged = |lines: &[&str], complete| {
            let judged = judge(&[moment(0, &[&[TWO], lines].concat(), "")], complete);
            (judged.lost.len(), judged.doubled.len())
        };
        assert_eq!(judged(&[&a, &b, &more_a, &more_b], true), (0, 0));
        // Killed between the two, and gone on with.
        assert_eq!(judged(&[&a], false), (0, 0));
        assert_eq!(judged(&[&a, &a, &b], true), (0, 0));
        assert_eq!(judged(&[&a, &b, &more_a], true), (0, 0));
        assert_eq!(judged(&[&a], true), (1, 0));
        assert_eq!(judged(&[&a, &b, &a, &b], true), (0, 2));
        let fewer = of_arm("b", 4, &[1, 2]);
        assert_eq!(judged(&[&a, &b, &more_a, &fewer], true), (1, 0));
    }

    #[test]
    fn a_whole_line_that_cannot_be_read_is_lost() {
        let judged = judge(&[moment(0, &[HEADER, "{torn and continued}"], "")], false);
        assert_eq!(judged.lost.len(), 1, "{judged:?}");
        assert_eq!(judge(&[moment(0, &["no header"], "")], false).lost.len(), 1);
    }
}
