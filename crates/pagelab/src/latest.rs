//! One record for each case.
//!
//! A case that was measured again, or a journal whose lines were written twice, is still one case:
//! its last record counts, and stands where its first one stood.

use std::{
    collections::{HashMap, hash_map::Entry},
    path::Path,
};

use pagelab_record::{
    Case, Record,
    journal::{Contents, Damage},
};

use crate::output;

/// The records that count.
pub(crate) fn latest(records: Vec<Record>) -> Vec<Record> {
    let mut latest: Vec<Record> = Vec::new();
    let mut places: HashMap<(String, Case), usize> = HashMap::new();
    for record in records {
        match places.entry((record.workload.clone(), record.case.clone())) {
            Entry::Occupied(place) => latest[*place.get()] = record,
            Entry::Vacant(place) => {
                place.insert(latest.len());
                latest.push(record);
            }
        }
    }
    latest
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
    let all = contents.records.len();
    contents.records = latest(std::mem::take(&mut contents.records));
    let cases = contents.records.len();
    if all > cases {
        let path = path.display();
        output::warn(&format!(
            "warning: {path}: {all} records are of {cases} cases: the last record of each counts"
        ));
    }
}
