//! The machine and its state, in the three classes that comparison treats apart.
//!
//! The one idea: every record carries the facts of its own moment; what is the same in all of them
//! is said once, and what moved is shown as the range in which it moved.

use std::collections::BTreeMap;

use pagelab_record::{Record, RunHeader, units};
use serde_json::Value;

use crate::{Cell, Column, Run, Section, Table, Tone, compare::Class};

/// What a class of facts says, in the order of [`Class::ALL`].
const MEANINGS: [&str; 3] = [
    "A difference means another machine.",
    "A difference may explain a result.",
    "What it happened to be doing; differences are normal.",
];

/// What a reader must know first: host, kernel, date, command.
pub(crate) fn facts(header: &RunHeader, records: &[Record]) -> Vec<(String, String)> {
    let host = records.first().map(|record| &record.host);
    let identity = |name: &str| {
        let value = host?.identity.get(name).filter(|value| !value.is_null())?;
        Some(display(name, value))
    };
    let suite = (!header.suite.is_empty()).then(|| header.suite.clone());
    let command = (!header.command.is_empty()).then(|| header.command.join(" "));
    let facts = [
        ("date", date_of(&header.started)),
        ("CPU", identity("cpu_model")),
        ("memory", identity("memory_bytes")),
        ("kernel", identity("kernel_release")),
        ("hypervisor", identity("hypervisor")),
        ("suite", suite),
        ("command", command),
        ("pagelab", Some(header.pagelab.clone())),
    ];
    facts.into_iter().filter_map(|(name, fact)| Some((name.to_owned(), fact?))).collect()
}

/// The three classes as tables, for the page.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mut section = Section::new("environment", "Environment");
    section.page_only = true;
    for (class, meaning) in Class::ALL.into_iter().zip(MEANINGS) {
        let name = class.name();
        let mut facts: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for entry in &run.entries {
            for (name, value) in class.of(&entry.record.host) {
                let values = facts.entry(name).or_default();
                if !values.contains(&value) {
                    values.push(value);
                }
            }
        }
        if facts.is_empty() {
            continue;
        }
        let rows = facts.into_iter();
        let rows = rows.map(|(name, values)| vec![name.into(), merged(name, &values)]).collect();
        let columns = vec![Column::words(name), Column::words("value")];
        section.add(format!("{name}: {meaning}"));
        section.add(Table { columns, rows });
    }
    (!section.blocks.is_empty()).then_some(section)
}

fn merged(name: &str, values: &[&Value]) -> Cell {
    if let [value] = values {
        return display(name, value).into();
    }
    let numbers: Option<Vec<f64>> = values.iter().map(|value| value.as_f64()).collect();
    if let Some(mut numbers) = numbers {
        numbers.sort_by(f64::total_cmp);
        if let (Some(low), Some(high)) = (numbers.first(), numbers.last()) {
            let [low, high] = [low, high].map(|value| display(name, &Value::from(*value)));
            return format!("{low} … {high}").into();
        }
    }
    let shown: Vec<String> = values.iter().take(3).map(|value| display(name, value)).collect();
    let more = if values.len() > 3 { " | …" } else { "" };
    Cell::toned(format!("{}{more}", shown.join(" | ")), Tone::Warn)
}

/// A fact as words: text without its quotes, bytes by their unit, everything else as JSON.
pub(crate) fn display(name: &str, value: &Value) -> String {
    match value {
        Value::Number(number) if name.ends_with("_bytes") => {
            number.as_f64().map_or_else(|| number.to_string(), units::display_bytes)
        }
        // Shares and rates: four digits say all that a reader can use.
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().unwrap_or_default();
            format!("{}", (number * 1e4).round() / 1e4)
        }
        Value::String(text) => text.clone(),
        Value::Null => "–".to_owned(),
        other => other.to_string(),
    }
}

/// The time a run started, to the minute; nothing where the header does not say.
fn date_of(started: &str) -> Option<String> {
    let minute = started.get(..16)?;
    Some(minute.replace('T', " ") + " UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_read_from_the_name_of_the_run() {
        assert_eq!(date_of("2026-11-21T01:13:03Z").as_deref(), Some("2026-11-21 01:13 UTC"));
        assert_eq!(date_of(""), None);
    }

    #[test]
    fn a_fact_that_moved_is_shown_as_its_range() {
        let values = [Value::from(3), Value::from(1), Value::from(2)];
        let values: Vec<&Value> = values.iter().collect();
        assert_eq!(merged("load", &values).text, "1 … 3");
        assert_eq!(merged("free_bytes", &values[..1]).text, "3.00 B");
    }
}
