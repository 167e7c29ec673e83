//! A report of any records: no panic in any of its forms, and what is JSON reads back.
//!
//! The one idea: bytes that are a journal are rare, so the fuzzer edits one that is: it takes
//! records of the golden journal and of what was published, and puts other values at any place of
//! theirs. What the schema refuses then is left out, as a reader would.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::{
    arbitrary::{self, Arbitrary, Unstructured},
    fuzz_target,
};
use pagelab_fuzz::{folder, short, sow, text};
use pagelab_program::views::advise;
use pagelab_record::{
    Record, RunHeader,
    journal::{self, Damage},
};
use pagelab_report::{Forms, LATER, Publication, Report, Style, VIEWS, Views};
use serde_json::{Number, Value};

/// What is edited.
struct Golden {
    header: Value,
    records: Vec<Value>,
    published: Vec<(&'static str, Vec<Publication>)>,
}

static GOLDEN: LazyLock<Golden> = LazyLock::new(|| {
    let values = |text: &'static str| -> Vec<Value> {
        let read = |line| short(serde_json::from_str(line).expect("our own journal"));
        text.lines().map(read).collect()
    };
    let texts = [
        folder!("micro-pagefault", "report.j2"),
        folder!("page-fault-latency"),
        folder!("fast-memory"),
        folder!("memory-types", "report.j2"),
        folder!("pghot", "report.j2"),
    ];
    let mut records = values(include_str!("../../tests/data/golden.jsonl"));
    let header = records.remove(0);
    // One record in so many is enough of each table.
    for (_, published, ..) in texts {
        records.extend(values(published).into_iter().step_by(9));
    }
    let read = |(name, records, claims, template): (_, _, _, &str)| {
        let read = Publication::parse(name, records, claims);
        let read = read.and_then(|publication| publication.with_template(template));
        (name, vec![read.expect("a publication of ours")])
    };
    Golden { header, records, published: texts.map(read).into() }
});

/// Puts something else at a place of a document; places are counted as a walk meets them.
fn edit(at: &mut usize, value: &mut Value, with: &Value) {
    if *at == 0 {
        value.clone_from(with);
    }
    *at = at.wrapping_sub(1);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| edit(at, item, with)),
        Value::Object(fields) => fields.values_mut().for_each(|item| edit(at, item, with)),
        _ => {}
    }
}

fn places(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(places).sum(),
        Value::Object(fields) => fields.values().map(places).sum(),
        _ => 0,
    }
}

fn instead(input: &mut Unstructured<'_>) -> arbitrary::Result<Value> {
    Ok(match input.int_in_range(0..=11)? {
        0 => Value::Null,
        1 => Value::from(0),
        2 => Value::from(u64::MAX),
        3 => Value::from(i64::MIN),
        4 => Value::from(u64::arbitrary(input)? >> input.int_in_range(0..=63)?),
        5 => Value::from(-i64::from(u32::arbitrary(input)?)),
        6 => Number::from_f64(f64::arbitrary(input)?).map_or(Value::Null, Value::Number),
        7 => Value::Bool(bool::arbitrary(input)?),
        8 => Value::Array(Vec::new()),
        9 => Value::from(vec![u64::arbitrary(input)?, 0, u64::MAX]),
        10 => Value::from("4k,64k"),
        _ => Value::from(text(input)?),
    })
}

/// What is there once more, with some of it replaced.
fn edited(input: &mut Unstructured<'_>, value: &Value) -> arbitrary::Result<Value> {
    let mut value = value.clone();
    for _ in 0..input.int_in_range(0..=4)? {
        let mut at = input.choose_index(places(&value))?;
        edit(&mut at, &mut value, &instead(input)?);
    }
    Ok(value)
}

struct Asked {
    header: RunHeader,
    records: Vec<Record>,
    published: &'static [Publication],
    width: usize,
    color: bool,
}

fn asked(input: &mut Unstructured<'_>) -> arbitrary::Result<Option<Asked>> {
    let golden = &*GOLDEN;
    let (width, color) = (usize::from(u8::arbitrary(input)?), bool::arbitrary(input)?);
    // Seldom: to read them takes longer than all the rest.
    let (suite, published) = match golden.published.get(input.int_in_range(0..=31)?) {
        Some((name, publication)) => (*name, &publication[..]),
        None => ("", &[][..]),
    };
    let mut header = edited(input, &golden.header)?;
    if let Some(name) = header.get_mut("suite") {
        *name = Value::from(suite);
    }
    let Ok(header) = serde_json::from_value(header) else { return Ok(None) };
    let mut records = Vec::new();
    for _ in 0..input.int_in_range(0..=2)? {
        let golden = &golden.records[input.choose_index(golden.records.len())?];
        let record = edited(input, golden)?.to_string();
        records.extend(journal::read_records(&record).unwrap_or_default());
    }
    Ok(Some(Asked { header, records, published, width, color }))
}

fuzz_target!(init: sow(seeds()), |input: &[u8]| {
    let Ok(Some(asked)) = asked(&mut Unstructured::new(input)) else { return };
    let Asked { header, records, published, width, color } = asked;
    let damage = color.then(|| Damage { line: 7, why: "the line is cut short".to_owned() });
    let [program, emulation, memtype] =
        [pagelab_program::PART, pagelab_emulation::PART, pagelab_memtype::PART];
    let parts = [program.views, VIEWS, emulation.views, memtype.views, LATER];
    let views = Views::new(parts.into_iter().flatten(), |_, _| None);
    let report = Report::of(&header, &records, damage.as_ref(), published, &views);
    let style = Style { color, width };
    // One form each time: all are views of what was derived above, which takes the longest.
    match width % 7 {
        0 => assert!(!report.html().is_empty()),
        1 | 2 => assert!(!report.terminal(style).is_empty()),
        3 => assert!(!report.markdown().is_empty()),
        4 => assert!(!report.csv().is_empty()),
        5 => assert!(serde_json::from_str::<Value>(&report.json()).is_ok()),
        _ => {
            let advice = advise::json(report.run());
            assert_eq!(report.only(&["advise"], style).is_some(), advice.is_some());
            assert!(advice.is_none_or(|json| serde_json::from_str::<Value>(&json).is_ok()));
        }
    }
});

/// Choices and edits, which a mutation changes.
fn seeds() -> Vec<Vec<u8>> {
    (0..100).map(|step| (0..90_u8).map(|byte| byte.wrapping_mul(step) ^ step).collect()).collect()
}
