//! From samples to the path that most of them took, and to what the others did beside it.
//!
//! The one idea: the number of a boot is a mode, of the samples that are the fault's alone once
//! interrupts are cut out. It is the same in every boot, while a mean would be moved by each batch
//! that is due.

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
    /// How many of the samples an interrupt came into, and what was cut out of them.
    pub(super) interrupted: [u64; 2],
    /// In how many of them the task gave the processor away, and what was cut out until it had it
    /// again.
    pub(super) away: [u64; 2],
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
    let cut_out = |of: fn(&Folded) -> Counts| {
        let all = quiet.iter().map(|sample| of(&paths[&sample.path]).instructions);
        all.filter(|instructions| *instructions > 0)
            .fold([0, 0], |[samples, sum], instructions| [samples + 1, sum + instructions])
    };
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
        interrupted: cut_out(|path| path.interrupted),
        away: cut_out(|path| path.away),
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
pub(super) fn most_often<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
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

    const RECORD: &str = r#"{"say":{"record":{"schema":"pagelab.record/1","run":"r","boot":"",
        "workload":"fault/latency","nature":"simulated","case":{},"host":{"identity":{"cpu":"x"}},
        "outcome":{"failed":{"reason":"x"}}}}}"#;

    /// Windows of some paths, one each: (offset of the start, instructions, how it ends).
    fn log(symbols: &str, paths: &[&[(u64, u64, u64)]]) -> Log {
        let begin = r#"{"say":{"repetition":{"arm":"pagelab","number":0}}}"#;
        let mut lines =
            vec![format!("{{\"say\":{{\"symbols\":\"{symbols}\"}}}}"), begin.to_owned()];
        for (number, runs) in paths.iter().enumerate() {
            let runs = runs.iter().map(|(offset, count, end)| {
                format!("[{},4,{count},1,1,0,0,{end},1]", (1_u64 << 63) + offset)
            });
            let runs = runs.collect::<Vec<_>>().join(",");
            lines.push(format!("{{\"path\":{{\"number\":{number},\"runs\":[{runs}]}}}}"));
            let places = "[[1,1],[0,0],[2,1],[1,1],[0,0],[3,2]]";
            lines.push(format!("{{\"sample\":{{\"path\":{number},\"places\":{places}}}}}"));
        }
        lines.push(RECORD.replace('\n', " "));
        lines.push("{\"end\":{\"is_open\":false}}".to_owned());
        Log::read(&lines.join("\n")).unwrap()
    }

    const NAMES: &str =
        "8000000000000000 T entry;8000000000000100 t a;8000000000000200 T asm_sysvec_x;";
    const PLAIN: &[(u64, u64, u64)] = &[(0, 3, 1), (0x100, 2, 0), (4, 1, 2)];

    #[test]
    fn a_sample_that_an_interrupt_came_into_is_as_long_as_one_without() {
        let interrupted: &[_] =
            &[(0, 3, 1), (0x200, 50, 0), (0x210, 1, 2), (0x100, 2, 0), (4, 1, 2)];
        let log = log(NAMES, &[PLAIN, interrupted]);
        let [boot, again] = [fold(&log).unwrap(), fold(&log).unwrap()];
        assert_eq!((boot.samples.as_slice(), boot.in_mode), ([6, 6].as_slice(), 2));
        assert_eq!((boot.interrupted, boot.windows), ([1, 51], 2));
        assert!(boot.disturbed.is_empty() && boot.classes.is_empty());
        assert_eq!(boot.mode, again.mode, "a log folded twice is the same");
        let own: u64 = boot.mode.own.values().map(|counts| counts.instructions).sum();
        assert_eq!(own, boot.mode.total.instructions);
    }

    #[test]
    fn without_names_functions_are_addresses_and_without_faults_there_is_no_path() {
        let boot = fold(&log("", &[PLAIN])).unwrap();
        assert!(!boot.has_names && boot.mode.own.keys().all(|name| name.starts_with("0x")));
        let error = fold(&log(NAMES, &[&[]])).unwrap_err().to_string();
        assert!(error.contains("takes no fault"), "{error}");
        let open = fold(&log(NAMES, &[&[(0x200, 5, 0)]])).unwrap_err().to_string();
        assert!(open.contains("(interrupt)"), "{open}");
    }

    #[test]
    fn the_most_frequent_value_is_the_mode() {
        assert_eq!(most_often([5, 7, 7, 5, 9].into_iter()), Some(5));
        assert_eq!(most_often(std::iter::empty::<u64>()), None);
    }
}
