//! The machines that published numbers are of, as far as their sources say.
//!
//! The one idea: a reader who sets two numbers beside each other must know of what machines they
//! are; what a source leaves out is said to be left out.

use std::collections::BTreeMap;

use pagelab_record::Record;
use serde_json::Value;

/// Facts that say where a record comes from, not of what machine it is.
const SOURCES: [&str; 2] = ["source", "log"];
/// Facts that say by themselves what they are.
const NAMELESS: [&str; 2] = ["cpu", "machine"];
const NOT_STATED: &str = "not stated";

/// A sentence with each machine; nothing where nobody published anything.
pub(super) fn sentence(records: &[Record]) -> Option<String> {
    let mut told: Vec<String> = Vec::new();
    for record in records {
        let identity = &record.host.identity;
        let source = identity.get("source").and_then(Value::as_str).unwrap_or("a source");
        // Of several parts of one source the first word says which it is.
        let source = source.split(',').next().unwrap_or(source);
        let one = format!("{source} – {}", machine(identity));
        if !told.contains(&one) {
            told.push(one);
        }
    }
    (!told.is_empty()).then(|| format!("Machines, as published: {}.", told.join("; ")))
}

/// What a source says of its machine.
fn machine(identity: &BTreeMap<String, Value>) -> String {
    let facts = identity.iter().filter(|(name, _)| !SOURCES.contains(&name.as_str()));
    let (first, others): (Vec<_>, Vec<_>) =
        facts.partition(|(name, _)| NAMELESS.contains(&name.as_str()));
    let facts: Vec<String> =
        first.into_iter().chain(others).map(|(name, value)| fact(name, value)).collect();
    if facts.is_empty() { NOT_STATED.to_owned() } else { facts.join(", ") }
}

fn fact(name: &str, value: &Value) -> String {
    let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let words = |name: &str| name.replace('_', " ");
    if NAMELESS.contains(&name) {
        return shown;
    }
    match (name.strip_suffix("_hz"), name.strip_suffix("_mb"), value.as_f64()) {
        (Some(name), _, Some(hz)) => format!("{} {:.1} GHz", words(name), hz / 1e9),
        (_, Some(name), Some(mb)) => format!("{} {mb} MB", words(name)),
        _ if shown.is_empty() => format!("{} none", words(name)),
        _ => format!("{} {shown}", words(name)),
    }
}

#[cfg(test)]
mod tests {
    use pagelab_record::journal;

    use super::*;

    #[test]
    fn a_machine_is_said_as_far_as_its_source_says_it() {
        let of = |text: &str| sentence(&journal::read_records(text).unwrap()).unwrap();
        let note = of(include_str!("../../../../published/page-fault-latency/records.jsonl"));
        assert_eq!(
            note,
            "Machines, as published: the latency note – Intel Core i7, 11th generation, base clock \
             3.2 GHz, kernel 6.6."
        );
        let pghot = of(include_str!("../../../../published/pghot/records.jsonl"));
        for part in ["distance 0 1 50", "node0 515563 MB", "node1 cpus none", "RFC v3 – not stated"]
        {
            assert!(pghot.contains(part), "{pghot}");
        }
        let silent = of(include_str!("../../../../published/micro-pagefault/records.jsonl"));
        assert_eq!(silent, "Machines, as published: micro_pagefault – not stated.");
        assert_eq!(sentence(&[]), None);
    }
}
