//! What samples did beside the path that most took, and why.
//!
//! The one idea: a cause shows in functions. A sample that ran a function which the mode did not,
//! or more of one, is of the class that names it; a row of `classes.toml` is a name, the functions
//! that tell it, and the reason. What no row tells is `other`, and is counted as such.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use pagelab_record::Signed;
use serde::Deserialize;

use super::follow::Folded;

/// How the classes of samples are called that no row tells; functions in which they differ follow.
const OTHER: &str = "other";
/// So many functions tell such classes apart.
const TOLD: usize = 3;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    /// Functions that only such a sample runs.
    #[serde(default)]
    appears: Vec<String>,
    /// Functions of which such a sample runs more or less.
    #[serde(default)]
    changes: Vec<String>,
    /// Why there are such samples.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for who reads the file; the page of the workload has it too")
    )]
    cause: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    class: Vec<Row>,
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    toml::from_str::<File>(include_str!("classes.toml")).expect("a test reads it").class
});

/// Samples that did the same beside the mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Class {
    /// Its causes, with `+` between.
    pub(super) name: String,
    pub(super) samples: u64,
    /// Instructions more than the mode: the fewest, the middle, the most.
    pub(super) more: [i64; 3],
    /// Samples from one to the next: the middle; 0 where there is one alone.
    pub(super) period: u64,
    /// Functions that tell the first of them from the mode, with their difference.
    pub(super) differs: Vec<(String, i64)>,
}

impl Class {
    /// Whether a row tells it.
    pub(super) fn is_named(&self) -> bool {
        !self.name.starts_with(OTHER)
    }
}

/// Samples of a class: their places, how far each is beyond the mode, what differs in the first.
type Found = (Vec<u64>, Vec<i64>, Vec<(String, i64)>);

/// Sorts samples, each with its place among all, into classes; the most frequent first.
pub(super) fn sort<'p>(
    mode: &Folded,
    samples: impl Iterator<Item = (u64, &'p Folded)>,
) -> Vec<Class> {
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    for (at, sample) in samples {
        let (name, differs) = name_of(mode, sample);
        let beyond = sample.total.instructions.signed() - mode.total.instructions.signed();
        let (places, all, _) =
            found.entry(name).or_insert_with(|| (Vec::new(), Vec::new(), differs));
        places.push(at);
        all.push(beyond);
    }
    let class = |(name, (places, mut beyond, differs)): (_, (Vec<u64>, Vec<i64>, _))| {
        beyond.sort_unstable();
        let mut gaps: Vec<u64> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_unstable();
        Class {
            name,
            samples: places.len() as u64,
            more: [beyond[0], beyond[beyond.len() / 2], beyond[beyond.len() - 1]],
            period: gaps.get(gaps.len() / 2).copied().unwrap_or(0),
            differs,
        }
    };
    let mut classes: Vec<Class> = found.into_iter().map(class).collect();
    classes.sort_by_key(|class| std::cmp::Reverse(class.samples));
    classes
}

/// The class of a sample, and the functions in which it differs from the mode.
fn name_of(mode: &Folded, sample: &Folded) -> (String, Vec<(String, i64)>) {
    let of = |path: &Folded, name: &String| {
        path.own.get(name).map_or(0, |counts| counts.instructions.signed())
    };
    let functions: BTreeSet<&String> = mode.own.keys().chain(sample.own.keys()).collect();
    let differs: Vec<(String, i64)> = functions
        .into_iter()
        .map(|name| (name.clone(), of(sample, name) - of(mode, name)))
        .filter(|(_, difference)| *difference != 0)
        .collect();
    let appears = |name: &String| sample.own.contains_key(name) && !mode.own.contains_key(name);
    let changes = |name: &String| differs.iter().any(|(differs, _)| differs == name);
    let mine = ROWS
        .iter()
        .filter(|row| row.appears.iter().any(appears) || row.changes.iter().any(changes));
    let names: Vec<&str> = mine.map(|row| row.name.as_str()).collect();
    if names.is_empty() {
        let told = differs.iter().map(|(function, _)| function.as_str()).take(TOLD);
        let told = told.fold(OTHER.to_owned(), |name, function| format!("{name} {function}"));
        return (told, differs);
    }
    (names.join("+"), differs)
}

#[cfg(test)]
mod tests {
    use super::{super::log::Counts, *};

    fn path(functions: &[(&str, u64)]) -> Folded {
        let mut path = Folded::default();
        for (name, instructions) in functions {
            let counts = Counts { instructions: *instructions, ..Counts::default() };
            path.own.insert((*name).to_owned(), counts);
            path.total += counts;
        }
        path
    }

    #[test]
    fn every_row_has_a_name_of_its_own_functions_and_a_reason() {
        let names: BTreeSet<_> = ROWS.iter().map(|row| &row.name).collect();
        assert_eq!(names.len(), ROWS.len());
        for row in ROWS.iter() {
            assert!(!row.appears.is_empty() || !row.changes.is_empty(), "{}", row.name);
            assert!(row.cause.len() > 10 && !row.name.contains('+'), "{}", row.name);
        }
    }

    #[test]
    fn a_sample_is_of_the_class_of_the_function_that_appeared() {
        let mode = path(&[("a", 10), ("b", 5)]);
        let refill = path(&[("a", 10), ("b", 5), ("rmqueue_bulk", 100)]);
        let odd = path(&[("a", 11), ("b", 5)]);
        let all = [(3, &refill), (8, &odd), (13, &refill), (23, &refill)];
        let classes = sort(&mode, all.into_iter());
        assert_eq!(classes.len(), 2);
        assert_eq!((classes[0].samples, classes[0].more, classes[0].period), (3, [100; 3], 10));
        assert_eq!((&*classes[1].name, classes[1].samples, classes[1].period), ("other a", 1, 0));
        assert!(classes[0].is_named() && !classes[1].is_named());
        assert_eq!(classes[1].differs, [("a".to_owned(), 1)]);
    }
}
