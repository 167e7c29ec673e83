//! Suites: runs written down as TOML, the built-in ones and anybody's own.
//!
//! A suite names cases just as the command line does; every key but a few of its own is a parameter
//! of the workload, and an array of values is an axis.

use std::str::FromStr;

use pagelab_record::{Record, journal};
use toml::{Table, Value};

use crate::asked::{Forks, Repetitions, Seconds, Share};

/// The built-in suites: name and text.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("quick", include_str!("../../../suites/quick.toml")),
    ("full", include_str!("../../../suites/full.toml")),
    ("limits", include_str!("../../../suites/limits.toml")),
    ("micro-pagefault", include_str!("../../../suites/micro-pagefault.toml")),
    ("page-fault-latency", include_str!("../../../suites/page-fault-latency.toml")),
    ("fast-memory", include_str!("../../../suites/fast-memory.toml")),
    ("memory-types", include_str!("../../../suites/memory-types.toml")),
    ("pghot", include_str!("../../../suites/pghot.toml")),
];

/// The published results that suites can name: name and text.
const PUBLISHED: &[(&str, &str)] = &[
    ("micro-pagefault", include_str!("../../../published/micro-pagefault.jsonl")),
    ("page-fault-latency", include_str!("../../../published/page-fault-latency.jsonl")),
    ("fast-memory", include_str!("../../../published/fast-memory.jsonl")),
    ("memory-types", include_str!("../../../published/memory-types.jsonl")),
    ("pghot", include_str!("../../../published/pghot.jsonl")),
];

/// A run written down.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// One line: what it answers.
    pub summary: String,
    /// Published results that belong beside it.
    pub published: Vec<String>,
    /// Its cases, each possibly a grid.
    pub entries: Vec<Entry>,
}

/// One `[[case]]` of a suite, or a grid from the command line.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The workload.
    pub workload: String,
    /// Parameters with their values.
    pub axes: Vec<(String, Vec<String>)>,
    /// Fresh processes for each case.
    pub forks: Forks,
    /// Time for each case, over all its processes.
    pub budget: Seconds,
    /// Time after which a process counts as hung.
    pub limit: Seconds,
    /// Fewest repetitions in a process.
    pub repetitions_min: Repetitions,
    /// Width of the interval at which a case is done.
    pub precision: Share,
}

impl Entry {
    /// A grid with the measuring defaults of the command line.
    pub fn new(workload: &str, axes: Vec<(String, Vec<String>)>) -> Self {
        Self {
            workload: workload.to_owned(),
            axes,
            forks: Forks::of(5),
            budget: Seconds::of_ms(5_000),
            limit: Seconds::of_ms(60_000),
            repetitions_min: Repetitions::of(3),
            precision: Share::of_thousandths(5),
        }
    }
}

/// A built-in suite.
///
/// # Errors
/// A sentence that lists the names there are.
pub fn built_in(name: &str) -> Result<Suite, String> {
    let found = BUILT_IN.iter().find(|(known, _)| *known == name);
    let (_, text) = found.ok_or_else(|| {
        let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        format!(
            "no suite is called `{name}`; there are {} (or give the path of a .toml file)",
            names.join(", ")
        )
    })?;
    parse(text)
}

/// Published results by name.
///
/// # Errors
/// A sentence that lists the names there are.
pub fn published(name: &str) -> Result<Vec<Record>, String> {
    journal::read_records(text_of_published(name)?)
        .map_err(|damage| format!("published/{name}.jsonl:{}: {}", damage.line, damage.why))
}

/// The longest file that is read as a suite.
pub const BYTES_MAX: u64 = 1 << 20;

fn text_of_published(name: &str) -> Result<&'static str, String> {
    let found = PUBLISHED.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let names: Vec<&str> = PUBLISHED.iter().map(|(name, _)| *name).collect();
        format!("no published results are called `{name}`; there are {}", names.join(", "))
    })
}

/// Reads a suite.
///
/// # Errors
/// A sentence that names the line or the key.
pub fn parse(text: &str) -> Result<Suite, String> {
    let mut table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let mut defaults = Entry::new("", Vec::new());
    let name = take_text(&mut table, "name")?.ok_or("the suite has no `name`")?;
    let summary = take_text(&mut table, "summary")?.unwrap_or_default();
    let published = match table.remove("published") {
        None => Vec::new(),
        Some(value) => texts("published", value, true)?,
    };
    // Known before anything is measured, not when the report is drawn.
    published.iter().try_for_each(|name| text_of_published(name).map(|_| ()))?;
    take_method(&mut table, &mut defaults)?;
    let Some(Value::Array(cases)) = table.remove("case") else {
        return Err("the suite has no `[[case]]`".to_owned());
    };
    if let Some(key) = table.keys().next() {
        return Err(format!(
            "`{key}` is no key of a suite; there are name, summary, published, case, {METHOD_KEYS}"
        ));
    }
    let mut entries = Vec::new();
    for (index, case) in (1..).zip(cases) {
        let Value::Table(mut case) = case else {
            return Err(format!("case {index} is no table: write [[case]]"));
        };
        let entry = entry(&mut case, &defaults).map_err(|why| format!("case {index}: {why}"))?;
        entries.push(entry);
    }
    Ok(Suite { name, summary, published, entries })
}

const METHOD_KEYS: &str = "forks, budget, limit, repetitions-min, precision";

fn entry(case: &mut Table, defaults: &Entry) -> Result<Entry, String> {
    let mut entry = defaults.clone();
    entry.workload = take_text(case, "workload")?.ok_or("there is no `workload`")?;
    let workload = crate::workload(&entry.workload)?;
    take_method(case, &mut entry)?;
    for (key, value) in std::mem::take(case) {
        let Some(param) = workload.params().iter().find(|param| param.name == key) else {
            let mut names: Vec<&str> = workload.params().iter().map(|param| param.name).collect();
            names.push(METHOD_KEYS);
            let (workload, names) = (&entry.workload, names.join(", "));
            return Err(format!("`{key}` is no parameter of {workload}; there are {names}"));
        };
        entry.axes.push((key.clone(), texts(&key, value, !param.kind.has_commas())?));
    }
    Ok(entry)
}

fn take_method(table: &mut Table, entry: &mut Entry) -> Result<(), String> {
    take_number(table, "forks", &mut entry.forks)?;
    take_number(table, "repetitions-min", &mut entry.repetitions_min)?;
    take_number(table, "budget", &mut entry.budget)?;
    take_number(table, "limit", &mut entry.limit)?;
    take_number(table, "precision", &mut entry.precision)
}

fn take_text(table: &mut Table, key: &str) -> Result<Option<String>, String> {
    match table.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{key}` is not text")),
    }
}

/// Reads a number as its flag is read, into a place that keeps its value where there is none.
fn take_number<T>(table: &mut Table, key: &str, into: &mut T) -> Result<(), String>
where
    T: FromStr<Err = String>,
{
    let text = match table.remove(key) {
        None => return Ok(()),
        Some(Value::Integer(number)) => number.to_string(),
        Some(Value::Float(number)) => number.to_string(),
        Some(_) => return Err(format!("`{key}` is not a number")),
    };
    *into = text.parse().map_err(|why| format!("`{key}` = {text}: {why}"))?;
    Ok(())
}

/// A value or an array of them as texts; whether a comma in a text stands between two of them.
fn texts(key: &str, value: Value, splits: bool) -> Result<Vec<String>, String> {
    match value {
        Value::String(text) if !splits => Ok(vec![text]),
        Value::String(text) => Ok(text.split(',').map(|part| part.trim().to_owned()).collect()),
        Value::Integer(number) => Ok(vec![number.to_string()]),
        Value::Array(values) => {
            let parts: Result<Vec<_>, _> =
                values.into_iter().map(|value| texts(key, value, splits)).collect();
            Ok(parts?.into_iter().flatten().collect())
        }
        _ => Err(format!("`{key}` is neither text, nor a whole number, nor an array of them")),
    }
}

#[cfg(test)]
mod tests {
    use pagelab_sys::time::clock::ClockChoice;

    use super::*;
    use crate::plan::{Overrides, of_suite};

    #[test]
    fn every_built_in_suite_can_be_planned_and_runs_the_limits() {
        for (name, _) in BUILT_IN {
            let suite = built_in(name).unwrap();
            assert_eq!(suite.name, *name);
            let plan = of_suite(&suite, ClockChoice::Raw, Overrides::default()).unwrap();
            let limits = plan.cases.iter().filter(|c| c.workload.starts_with("limit/")).count();
            // What is simulated is no share of this machine.
            let is_simulated = plan.cases.iter().all(crate::plan::Planned::is_simulated);
            assert_eq!(limits, if is_simulated { 0 } else { 14 }, "{name}");
            for published_name in &suite.published {
                assert!(!published(published_name).unwrap().is_empty());
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, named) in [
            ("summary = 'x'", "`name`"),
            ("name = 'x'", "[[case]]"),
            ("name = 'x'\nspeed = 3\n[[case]]\nworkload = 'limit/timer'", "`speed`"),
            ("name = 'x'\n[[case]]\nworkload = 'limit/time'", "`limit/time`"),
            ("name = 'x'\n[[case]]\nworkload = 'limit/clear'\nlevels = 'l1'", "`levels`"),
            ("name = 'x'\nforks = 0\n[[case]]\nworkload = 'limit/timer'", "`forks`"),
            ("name = 'x\n", "line"),
            ("name = 'x'\npublished = 'nosuch'\n[[case]]\nworkload = 'limit/timer'", "`nosuch`"),
            ("name = 'x'\nlimit = inf\n[[case]]\nworkload = 'limit/timer'", "`limit` = inf"),
            ("name = 'x'\nlimit = 1e12\n[[case]]\nworkload = 'limit/timer'", "`limit`"),
            ("name = 'x'\nbudget = inf\n[[case]]\nworkload = 'limit/timer'", "`budget` = inf"),
            (
                "name = 'x'\nforks = 1_000_000_000\n[[case]]\nworkload = 'limit/timer'",
                "`forks` = 1000000000: expected a whole number from 1 to 1000",
            ),
            ("name = 'x'\nforks = 2.5\n[[case]]\nworkload = 'limit/timer'", "`forks` = 2.5"),
            ("name = 'x'\nprecision = nan\n[[case]]\nworkload = 'limit/timer'", "`precision`"),
            ("name = 'x'\n[[case]]\nworkload = 'limit/timer'\nsped = 1", "there are forks, budget"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
