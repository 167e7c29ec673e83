//! From samples to the path that most of them took, and to what the others did beside it.
//!
//! The one idea: the number of a boot is a mode, of the samples that nobody else's business took
//! part in. It is the same in every boot, while a mean would be moved by each batch that is due.

use std::collections::{BTreeMap, HashMap};

use pagelab_bench::Error;
use pagelab_record::{Record, vocabulary::arm::OURS};

use super::{
    classes::{self, Class},
    follow::{Folded, follow},
    guest::ROUTINE,
    log::{Counts, Kernel, Log, PLACES},
};

/// What a boot found.
#[derive(Debug)]
pub(super) struct Boot {
    pub(super) kernel: Kernel,
    pub(super) has_names: bool,
    /// What was counted of the routine whose length is known.
    pub(super) routine: Counts,
    /// What the case came to in the machine.
    pub(super) record: Box<Record>,
    /// Windows of the arm that faults.
    pub(super) windows: u64,
    /// Of the samples that nothing disturbed, the instructions of each, in order.
    pub(super) samples: Vec<u64>,
    /// How many were disturbed, by what.
    pub(super) disturbed: BTreeMap<&'static str, u64>,
    /// How many samples took as many instructions as the path that most took.
    pub(super) in_mode: u64,
    /// That path.
    pub(super) mode: Folded,
    /// Lines and pages of each sort of memory that it reached: the middle of its samples.
    pub(super) places: [[u64; 2]; PLACES.len()],
    /// What the others did.
    pub(super) classes: Vec<Class>,
}

/// Folds a log.
///
/// # Errors
/// When nothing in it took a fault.
pub(super) fn fold(log: &Log) -> Result<Boot, Error> {
    let record = log.record.clone().ok_or_else(|| nothing(log, &BTreeMap::new()))?;
    let all: Vec<_> = log.samples(OURS).collect();
    let mut paths: HashMap<usize, Folded> = HashMap::new();
    for sample in &all {
        paths.entry(sample.path).or_insert_with(|| follow(&log.paths[sample.path], &log.symbols));
    }
    let mut disturbed = BTreeMap::new();
    let mut quiet = Vec::new();
    for sample in &all {
        match paths[&sample.path].disturbed() {
            Some(what) => *disturbed.entry(what).or_default() += 1,
            None => quiet.push(*sample),
        }
    }
    let total = |path: usize| paths[&path].total.instructions;
    let most = most_often(quiet.iter().map(|sample| total(sample.path)));
    let most = most.filter(|instructions| *instructions > 0);
    let most = most.ok_or_else(|| nothing(log, &disturbed))?;
    let in_mode: Vec<_> = quiet.iter().filter(|sample| total(sample.path) == most).collect();
    let path = most_often(in_mode.iter().map(|sample| sample.path));
    let path = path.ok_or_else(|| nothing(log, &disturbed))?;
    let mode = paths[&path].clone();
    let mut places = [[0; 2]; PLACES.len()];
    for (place, found) in places.iter_mut().enumerate() {
        for (index, found) in found.iter_mut().enumerate() {
            let mut values: Vec<u64> = in_mode.iter().map(|s| s.places[place][index]).collect();
            values.sort_unstable();
            *found = values[values.len() / 2];
        }
    }
    let apart = quiet.iter().enumerate().filter(|(_, sample)| total(sample.path) != most);
    let apart = apart.map(|(at, sample)| (at as u64, &paths[&sample.path]));
    Ok(Boot {
        kernel: log.kernel.clone(),
        has_names: !log.symbols.is_empty(),
        routine: routine(log),
        record,
        windows: all.len() as u64,
        samples: quiet.iter().map(|sample| total(sample.path)).collect(),
        disturbed,
        in_mode: in_mode.len() as u64,
        classes: classes::sort(&mode, apart),
        mode,
        places,
    })
}

/// What was counted of the routine whose length is known; nothing, where it was not seen.
fn routine(log: &Log) -> Counts {
    let mut windows = log.samples(ROUTINE);
    windows
        .next()
        .map_or_else(Counts::default, |window| follow(&log.paths[window.path], &log.symbols).user)
}

fn nothing(log: &Log, disturbed: &BTreeMap<&'static str, u64>) -> Error {
    let windows = log.samples(OURS).count();
    if disturbed.values().sum::<u64>() > 0 {
        let by: Vec<&str> = disturbed.keys().copied().collect();
        return Error::Case(format!(
            "none of {windows} windows is the fault's alone: others take part in each ({}), so \
             there is no path to tell; choose a smaller --page",
            by.join(", ")
        ));
    }
    Error::Case(format!(
        "none of {windows} windows holds an instruction of the kernel: this kind takes no fault \
         there; choose another --kind"
    ))
}

/// The value that comes most often, of several the smallest.
fn most_often<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: BTreeMap<T, u64> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let most = *counts.values().max()?;
    counts.into_iter().find(|(_, count)| *count == most).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_value_is_the_mode() {
        assert_eq!(most_often([5, 7, 7, 5, 9].into_iter()), Some(5));
        assert_eq!(most_often(std::iter::empty::<u64>()), None);
    }
}
