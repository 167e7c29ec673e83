//! What a record of `fault/path` says, by function.
//!
//! The one idea: a record holds exclusive counts by stack; what a function took itself, and what it
//! took with all that it called, are sums of them. Counts of an emulated machine hold, so they are
//! read here whatever becomes of its times.

use std::collections::{BTreeMap, BTreeSet};

use pagelab_record::{
    Measured,
    vocabulary::{
        path::{CLASS, KERNEL, PLACES_TABLE, counter},
        table::STACK,
    },
};

/// Instructions of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Function {
    /// Its own.
    pub(crate) own: i64,
    /// With those of what it called; once, where it calls itself.
    pub(crate) all: i64,
}

/// Samples that did something beside the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) name: String,
    pub(crate) samples: i64,
    /// Instructions more than the path, the middle.
    pub(crate) more: i64,
    /// Samples from one to the next, the middle; 0 where there is one alone.
    pub(crate) period: i64,
}

/// A path.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Profile {
    /// The kernel that ran.
    pub(crate) kernel: String,
    pub(crate) functions: BTreeMap<String, Function>,
    /// Instructions by stack.
    pub(crate) stacks: BTreeMap<String, i64>,
    pub(crate) classes: Vec<Class>,
    /// Distinct lines of each sort of memory.
    pub(crate) lines: Vec<(String, i64)>,
    counters: BTreeMap<String, u64>,
}

impl Profile {
    /// Reads it; `None` where the record has no path.
    pub(crate) fn of(measured: &Measured) -> Option<Self> {
        let mut profile = Self { counters: measured.counters.clone(), ..Self::default() };
        for table in &measured.tables {
            let first = table.rows.first().map(Vec::as_slice).unwrap_or_default();
            if let Some(stack) = table.name.strip_prefix(STACK) {
                let count = first.first().copied().unwrap_or(0);
                *profile.stacks.entry(stack.to_owned()).or_default() += count;
            } else if let Some(name) = table.name.strip_prefix(CLASS) {
                if let [samples, _, more, _, period] = *first {
                    let name = name.to_owned();
                    profile.classes.push(Class { name, samples, more, period });
                }
            } else if let Some(release) = table.name.strip_prefix(KERNEL) {
                release.clone_into(&mut profile.kernel);
            } else if table.name == PLACES_TABLE {
                let names = table.columns.iter().map(|column| column.name.clone());
                profile.lines = names.zip(first.iter().copied()).collect();
            }
        }
        for (stack, count) in &profile.stacks {
            let functions: BTreeSet<&str> = stack.split(';').collect();
            for function in functions {
                profile.functions.entry(function.to_owned()).or_default().all += count;
            }
            let last = stack.rsplit(';').next().unwrap_or_default();
            profile.functions.entry(last.to_owned()).or_default().own += count;
        }
        (!profile.stacks.is_empty()).then_some(profile)
    }

    /// A count of the path: `instructions`, `loads`, …
    pub(crate) fn count(&self, what: &str) -> Option<u64> {
        self.counters.get(&counter::of_mode(what)).copied()
    }

    /// Instructions of the path.
    pub(crate) fn instructions(&self) -> i64 {
        self.stacks.values().sum()
    }

    /// Samples that nothing disturbed, those that took this path, and those that a class with a
    /// name or the path tells.
    pub(crate) fn samples(&self) -> [u64; 3] {
        [counter::SAMPLES, counter::SAMPLES_IN_MODE, counter::SAMPLES_NAMED]
            .map(|name| self.counters.get(name).copied().unwrap_or(0))
    }

    /// Samples that an interrupt came into, which was cut out.
    pub(crate) fn interrupted(&self) -> u64 {
        self.counters.get(counter::SAMPLES_INTERRUPTED).copied().unwrap_or(0)
    }

    /// Windows that another task took part in.
    pub(crate) fn disturbed(&self) -> u64 {
        let disturbed = counter::disturbed("");
        let mine = self.counters.iter().filter(|(name, _)| name.starts_with(&disturbed));
        mine.map(|(_, count)| count).sum()
    }

    /// Functions by what they took themselves, the most first.
    pub(crate) fn largest(&self) -> Vec<(&str, Function)> {
        let mut all: Vec<_> =
            self.functions.iter().map(|(name, function)| (name.as_str(), *function)).collect();
        all.sort_by_key(|(name, function)| (std::cmp::Reverse(function.own), *name));
        all
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use pagelab_record::Table;

    use super::*;

    /// A record of some stacks.
    pub(crate) fn measured(stacks: &[(&str, i64)]) -> Measured {
        let table = |name: String, row: Vec<i64>| Table { name, columns: vec![], rows: vec![row] };
        let mut tables: Vec<Table> = stacks
            .iter()
            .map(|(stack, count)| table(format!("{STACK}{stack}"), vec![*count]))
            .collect();
        tables.push(table(format!("{CLASS}lru-batch"), vec![3, 90, 100, 110, 31]));
        tables.push(table(format!("{KERNEL}6.12.1"), vec![]));
        Measured { tables, ..Measured::default() }
    }

    #[test]
    fn what_a_function_called_is_its_too_and_once() {
        let profile = Profile::of(&measured(&[("a", 1), ("a;b", 2), ("a;b;a", 4)])).unwrap();
        let function = |own, all| Function { own, all };
        assert_eq!(profile.functions["a"], function(5, 7));
        assert_eq!(profile.functions["b"], function(2, 6));
        assert_eq!((profile.instructions(), profile.kernel.as_str()), (7, "6.12.1"));
        assert_eq!(profile.largest()[0].0, "a");
        assert_eq!((profile.classes[0].more, profile.classes[0].period), (100, 31));
        let own: i64 = profile.functions.values().map(|function| function.own).sum();
        assert_eq!(own, profile.instructions());
    }

    #[test]
    fn a_record_without_stacks_has_no_path() {
        assert_eq!(Profile::of(&Measured::default()), None);
    }
}
