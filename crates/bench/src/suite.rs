//! Suites: runs written down as TOML, the built-in ones and anybody's own.
//!
//! A suite names cases just as the command line does; every key but a few of its own is a parameter
//! of the workload, and an array of values is an axis.

use pagelab_record::{Record, journal};
use toml::{Table, Value};

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
    pub forks: u32,
    /// Seconds for each case, over all its processes.
    pub budget_s: f64,
    /// Seconds after which a process counts as hung.
    pub limit_s: f64,
    /// Fewest repetitions in a process.
    pub repetitions_min: u32,
    /// Width of the interval at which a case is done.
    pub precision: f64,
}

impl Entry {
    /// A grid with the measuring defaults of the command line.
    pub fn new(workload: &str, axes: Vec<(String, Vec<String>)>) -> Self {
        Self {
            workload: workload.to_owned(),
            axes,
            forks: 5,
            budget_s: 5.0,
            limit_s: 60.0,
            repetitions_min: 3,
            precision: 0.005,
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
    let found = PUBLISHED.iter().find(|(known, _)| *known == name);
    let Some((_, text)) = found else {
        let names: Vec<&str> = PUBLISHED.iter().map(|(name, _)| *name).collect();
        return Err(format!("no published results `{name}`; there are {}", names.join(", ")));
    };
    journal::read_records(text)
        .map_err(|damage| format!("published/{name}.jsonl:{}: {}", damage.line, damage.why))
}

/// The longest file that is read as a suite.
pub const BYTES_MAX: u64 = 1 << 20;

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
            let names: Vec<&str> = workload.params().iter().map(|param| param.name).collect();
            return Err(format!(
                "`{key}` is no parameter of {}; there are {}, and {METHOD_KEYS}",
                entry.workload,
                names.join(", ")
            ));
        };
        entry.axes.push((key.clone(), texts(&key, value, !param.kind.has_commas())?));
    }
    Ok(entry)
}

fn take_method(table: &mut Table, entry: &mut Entry) -> Result<(), String> {
    let whole = |number: f64| -> u32 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let whole = number as u32;
        whole.max(1)
    };
    if let Some(forks) = take_number(table, "forks")? {
        entry.forks = whole(forks);
    }
    if let Some(least) = take_number(table, "repetitions-min")? {
        entry.repetitions_min = whole(least);
    }
    entry.budget_s = take_number(table, "budget")?.unwrap_or(entry.budget_s);
    entry.limit_s = take_number(table, "limit")?.unwrap_or(entry.limit_s);
    entry.precision = take_number(table, "precision")?.unwrap_or(entry.precision);
    Ok(())
}

fn take_text(table: &mut Table, key: &str) -> Result<Option<String>, String> {
    match table.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{key}` is not text")),
    }
}

fn take_number(table: &mut Table, key: &str) -> Result<Option<f64>, String> {
    let number = match table.remove(key) {
        None => return Ok(None),
        Some(Value::Integer(number)) => number as f64,
        Some(Value::Float(number)) => number,
        Some(_) => return Err(format!("`{key}` is not a number")),
    };
    if number > 0.0 { Ok(Some(number)) } else { Err(format!("`{key}` is not above 0")) }
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
    use pagelab_sys::clock::ClockChoice;

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
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
