//! One record for each case.
//!
//! A case that was measured again, or a journal whose lines were written twice, is still one case:
//! its last record counts, and stands where its first one stood.

use std::{collections::HashMap, path::Path};

use pagelab_record::{
    Record,
    journal::{Contents, Damage},
    vocabulary::workload::TRIED,
};

use crate::output;

/// The records that count.
pub(crate) fn latest(records: Vec<Record>) -> Vec<Record> {
    let mut last: HashMap<_, (usize, usize)> = HashMap::new();
    for (at, record) in records.iter().enumerate() {
        let places = last
            .entry((record.key(), record.ab.as_ref().map(|turns| turns.cell)))
            .or_insert((at, at));
        places.1 = at;
    }
    let mut kept: Vec<(usize, usize)> = last.into_values().collect();
    kept.sort_unstable();
    let mut records: Vec<Option<Record>> = records.into_iter().map(Some).collect();
    kept.into_iter().filter_map(|(_, last)| records[last].take()).collect()
}

/// Keeps one record of each case; a person is told of that, and of damage.
pub(crate) fn tidy_up(path: &Path, contents: &mut Contents) {
    if let Some(Damage { line, why }) = &contents.damage {
        output::warn(&format!(
            "warning: {}: line {line} cannot be read ({why}); the {} records before it are used",
            path.display(),
            contents.records.len()
        ));
    }
    // A cell of two arms that got more blocks, or a rung that got more rounds, goes on in a record
    // that holds those before it too.
    let goes_on = |record: &&Record| record.ab.is_some() || record.workload == TRIED;
    let whole = |records: &[Record]| records.iter().filter(|record| !goes_on(record)).count();
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
