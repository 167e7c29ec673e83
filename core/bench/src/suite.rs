//! Suites: runs written down as TOML, the built-in ones and anybody's own.
//!
//! A suite names cases just as the command line does; every key but a few of its own is a parameter
//! of the workload, and an array of values is an axis.

use std::str::FromStr;

use toml::{Table, Value};

use crate::{
    asked::{Forks, Repetitions, Seconds, Share},
    workload::{self, Row},
};

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
    pub workload: Row,
    /// Parameters with their values.
    pub axes: Vec<(String, Vec<String>)>,
    /// Fresh processes for each case.
    pub forks: Forks,
    /// In how many turns over all cases they are taken.
    pub turns: Repetitions,
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
    pub fn new(workload: Row, axes: Vec<(String, Vec<String>)>) -> Self {
        Self {
            workload,
            axes,
            forks: Forks::of(5),
            turns: Repetitions::of(1),
            budget: Seconds::of_ms(5_000),
            limit: Seconds::of_ms(60_000),
            repetitions_min: Repetitions::of(3),
            precision: Share::of_thousandths(5),
        }
    }
}

/// The longest file that is read as a suite.
pub const BYTES_MAX: u64 = 1 << 20;

/// What a suite can name.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Workloads.
    pub workloads: workload::Table,
    /// Published results.
    pub published: &'static [&'static str],
}

/// Reads a suite.
///
/// # Errors
/// A sentence that names the line or the key.
pub fn parse(text: &str, known: Known) -> Result<Suite, String> {
    let mut table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let any = known.workloads.first().ok_or("there is no workload")?;
    let mut defaults = Entry::new(*any, Vec::new());
    let name = take_text(&mut table, "name")?.ok_or("the suite has no `name`")?;
    let summary = take_text(&mut table, "summary")?.unwrap_or_default();
    let published = match table.remove("published") {
        None => Vec::new(),
        Some(value) => texts("published", value, true)?,
    };
    // Known before anything is measured, not when the report is drawn.
    if let Some(name) = published.iter().find(|name| !known.published.contains(&name.as_str())) {
        let names = known.published.join(", ");
        return Err(format!("no published results are called `{name}`; there are {names}"));
    }
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
        let entry = entry(&mut case, &defaults, known.workloads)
            .map_err(|why| format!("case {index}: {why}"))?;
        entries.push(entry);
    }
    Ok(Suite { name, summary, published, entries })
}

const METHOD_KEYS: &str = "forks, turns, budget, limit, repetitions-min, precision";

fn entry(case: &mut Table, defaults: &Entry, workloads: workload::Table) -> Result<Entry, String> {
    let mut entry = defaults.clone();
    let name = take_text(case, "workload")?.ok_or("there is no `workload`")?;
    let workload = workload::find(workloads, &name)?;
    entry.workload = workload;
    take_method(case, &mut entry)?;
    for (key, value) in std::mem::take(case) {
        let Some(param) = workload.params().iter().find(|param| param.name == key) else {
            let mut names: Vec<&str> = workload.params().iter().map(|param| param.name).collect();
            names.push(METHOD_KEYS);
            let (workload, names) = (workload.name(), names.join(", "));
            return Err(format!("`{key}` is no parameter of {workload}; there are {names}"));
        };
        entry.axes.push((key.clone(), texts(&key, value, !param.kind.has_commas())?));
    }
    Ok(entry)
}

fn take_method(table: &mut Table, entry: &mut Entry) -> Result<(), String> {
    take_number(table, "forks", &mut entry.forks)?;
    take_number(table, "turns", &mut entry.turns)?;
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
        // As on the command line: `precision = "1%"`.
        Some(Value::String(text)) => text,
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
