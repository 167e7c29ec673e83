//! `docs/record.schema.json` is generated from the types, and this test is the generator.
//!
//! `cargo xtask schema` rewrites the file (it runs these tests with `UPDATE_SCHEMA=1`); without the
//! variable the test compares, so that the document cannot drift from the types.
//! Readers of records in other languages start from that file.

use std::{env, fs, path::Path};

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

use crate::schema::{RUN_SCHEMA, Record, RunHeader, SCHEMA};

const CHECKED_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/record.schema.json");

/// The document describes one line of a journal: a header, or a record.
fn generated() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let line = [reference::<RunHeader>(&mut generator), reference::<Record>(&mut generator)];
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One line of a pagelab journal",
        "description":
            format!("The first line of a journal is a {RUN_SCHEMA}, every other one a {SCHEMA}."),
        "anyOf": line,
        "$defs": generator.take_definitions(true),
    })
}

fn reference<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

#[test]
fn the_checked_in_schema_is_the_generated_one() {
    let (path, generated) = (Path::new(CHECKED_IN), generated());
    if env::var_os("UPDATE_SCHEMA").is_some() {
        let text = serde_json::to_string_pretty(&generated).unwrap() + "\n";
        fs::write(path, text).unwrap();
        return;
    }
    // As values: the order of keys depends on what other crates ask of serde_json.
    let checked_in = fs::read_to_string(path).unwrap_or_default();
    assert!(
        serde_json::from_str::<Value>(&checked_in).unwrap_or_default() == generated,
        "docs/record.schema.json is not what the types say.\n\
         If the change is meant, run `cargo xtask schema` and review the difference."
    );
}

#[test]
fn every_definition_that_is_named_is_defined() {
    let document = generated();
    let mut named = Vec::new();
    references(&document, &mut named);
    assert!(named.contains(&"#/$defs/Record"), "{named:?}");
    for name in named {
        let pointer = name.strip_prefix('#').expect("only references inside the document");
        assert!(document.pointer(pointer).is_some(), "{name} is named but not defined");
    }
}

fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("$ref").and_then(Value::as_str));
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}
