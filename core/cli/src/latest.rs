//! One record for each case.
//!
//! A case that was measured again, or a journal whose lines were written twice, is still one case:
//! its last record counts, and stands where its first one stood. Two arms of a cell are written one
//! after the other, and count together: where a run was killed between the two, the pair before
//! does. In a run of a fleet each machine has its own. A journal of an older version has the same
//! cases, though it says less of each.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use pagelab_bench::plan;
use pagelab_record::{
    Nature, Record,
    journal::{Contents, Damage},
    vocabulary::counter::PROCESSES,
};

use crate::{output, part};

/// The records that count.
pub fn latest(records: Vec<Record>) -> Vec<Record> {
    let mut last: HashMap<_, (usize, usize)> = HashMap::new();
    let paired = paired(&records);
    let cells: HashSet<u32> = paired.iter().filter_map(|at| cell(&records[*at])).collect();
    let is_half = |at: usize, record: &Record| {
        cell(record).is_some_and(|cell| cells.contains(&cell)) && !paired.contains(&at)
    };
    for (at, record) in records.iter().enumerate().filter(|(at, record)| !is_half(*at, record)) {
        let places =
            last.entry((record.key(), cell(record), record.host.name())).or_insert((at, at));
        places.1 = at;
    }
    let mut kept: Vec<(usize, usize)> = last.into_values().collect();
    kept.sort_unstable();
    let mut records: Vec<Option<Record>> = records.into_iter().map(Some).collect();
    kept.into_iter().filter_map(|(_, last)| records[last].take()).collect()
}

/// A record with what an older version leaves unsaid of its case. What was published states what
/// its source does, and no more.
pub fn stated(record: &mut Record) -> &Record {
    if record.nature != Nature::Published
        && let Ok(workload) = part::workload(&record.workload)
    {
        plan::state(workload, &mut record.case);
    }
    record
}

/// The cell of an arm's record.
fn cell(record: &Record) -> Option<u32> {
    record.ab.as_ref().map(|turns| turns.cell)
}

/// Where there are both arms of a cell with the same blocks, one after the other.
fn paired(records: &[Record]) -> HashSet<usize> {
    let turns = |at: usize| records.get(at).and_then(|record| record.ab.as_ref());
    let is_pair = |at: &usize| {
        let (Some(one), Some(other)) = (turns(*at), turns(*at + 1)) else { return false };
        (one.cell, one.blocks) == (other.cell, other.blocks) && one.arm != other.arm
    };
    (0..records.len()).filter(is_pair).flat_map(|at| [at, at + 1]).collect()
}

/// Keeps one record of each case; a person is told of that, and of damage.
pub fn tidy_up(path: &Path, contents: &mut Contents) {
    if let Some(Damage { line, why }) = &contents.damage {
        output::warn(&format!(
            "warning: {}: line {line} cannot be read ({why}); the {} records before it are used",
            path.display(),
            contents.records.len()
        ));
    }
    // A cell of two arms that got more blocks, or a rung that got more rounds, goes on in a record
    // that holds those before it too.
    let in_rounds = |record: &Record| part::views().of(&record.workload).in_rounds;
    let goes_on = |record: &&Record| record.ab.is_some() || in_rounds(record);
    // A case that is measured in turns goes on in a record with more processes.
    let whole = |records: &[Record]| {
        let mut seen: HashMap<_, u64> = HashMap::new();
        let mut count = 0;
        for record in records.iter().filter(|record| !goes_on(record)) {
            let processes = processes(record).unwrap_or(u64::MAX);
            let before = seen.insert((record.key(), record.host.name()), processes);
            count += usize::from(before.is_none_or(|before| processes <= before));
        }
        count
    };
    let all = whole(&contents.records);
    contents.records = latest(std::mem::take(&mut contents.records));
    let cases = whole(&contents.records);
    if all > cases {
        let path = path.display();
        output::warn(&format!(
            "warning: {path}: {all} records are of {cases} cases: the last record of each counts"
        ));
    }
}

/// How many processes a record holds, where it was measured.
pub fn processes(record: &Record) -> Option<u64> {
    record.measured()?.counter(PROCESSES)
}

#[cfg(test)]
mod tests {
    use pagelab_record::{Arm, Case, Host, Outcome, Turns, ab::Change, schema::SCHEMA};

    use super::*;

    /// The record of an arm, or of a case without arms.
    fn record(case: &str, turns: Option<(&str, u32, u32)>) -> Record {
        let turns = turns.map(|(name, cell, blocks)| Turns {
            arm: Arm { name: name.to_owned(), change: Change::Nothing },
            cell,
            blocks,
            looks: None,
            first: Vec::new(),
        });
        Record {
            schema: SCHEMA.to_owned(),
            run: "run".to_owned(),
            boot: String::new(),
            workload: "fault/latency".to_owned(),
            nature: Nature::Measured,
            case: Case::default().with("size", case),
            ab: turns,
            host: Host::default(),
            outcome: Outcome::Failed { reason: "a test".to_owned() },
        }
    }

    /// What is left, as arm, cell and blocks.
    fn left(records: &[(&str, u32, u32)]) -> Vec<(String, u32, u32)> {
        let records = records.iter().map(|turns| record(turns.0, Some(*turns))).collect();
        let turns = latest(records).into_iter().filter_map(|record| record.ab);
        turns.map(|turns| (turns.arm.name, turns.cell, turns.blocks)).collect()
    }

    fn of(expected: &[(&str, u32, u32)]) -> Vec<(String, u32, u32)> {
        expected.iter().map(|(arm, cell, blocks)| ((*arm).to_owned(), *cell, *blocks)).collect()
    }

    #[test]
    fn the_last_record_of_a_case_counts_where_its_first_stood() {
        let records = ["1m", "2m", "1m"].map(|case| record(case, None));
        let cases: Vec<_> = latest(records.into()).into_iter().map(|r| r.case).collect();
        let sizes: Vec<_> = cases.iter().map(|case| case.get("size")).collect();
        assert_eq!(sizes, [Some("1m"), Some("2m")]);
    }

    #[test]
    fn an_arm_without_the_other_counts_only_where_there_is_no_pair() {
        let pair = [("a", 0, 4), ("b", 0, 4)];
        assert_eq!(left(&pair), of(&pair));
        let killed = [("a", 0, 4), ("b", 0, 4), ("a", 1, 4), ("b", 1, 4), ("a", 0, 5)];
        assert_eq!(left(&killed), of(&killed[..4]));
        let went_on = [&killed[..], &[("a", 0, 8), ("b", 0, 8)]].concat();
        assert_eq!(left(&went_on), of(&[("a", 0, 8), ("b", 0, 8), ("a", 1, 4), ("b", 1, 4)]));
        assert_eq!(left(&killed[4..]), of(&killed[4..]), "it is all there is");
    }
}
