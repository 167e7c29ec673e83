//! The template of a publication: what its figures and claims cannot say.
//!
//! `report.j2` sees the cases of this run as `here` and those of the publication as `published`,
//! each as in the JSON form of a report, with its `series` (of whose values it has `total` and
//! `count`) and its `tables`. It prints JSON: a number of a case, which figures find then, or a
//! block of the section.

use minijinja::{Environment, Error, ErrorKind, context, value::Serde};
use pagelab_record::{Data, Series};
use serde::Deserialize;
use serde_json::{Deserializer, Value, json};

use crate::{
    At, Block, Entry, Quantity, Table, Time, Unit, entry::display_claim, json::case_value,
    numbers::total,
};

/// Steps that a template may take.
const FUEL: u64 = 100_000_000;

/// What a template prints.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Printed {
    /// Case, arm, series, time, statistic, value, unit.
    Number(usize, String, String, Time, String, f64, String),
    Heading(String),
    Text(String),
    Frame(String),
    Table(Table),
}

/// Renders a template: adds its numbers to the entries and returns its blocks.
pub(super) fn render(
    template: &str,
    here: &mut [Entry],
    published: &mut [Entry],
) -> Result<Vec<Block>, Error> {
    if template.is_empty() {
        return Ok(Vec::new());
    }
    let mut environment = Environment::new();
    environment.set_fuel(Some(FUEL));
    let cases = |first: usize, entries: &[Entry]| -> Vec<Value> {
        entries.iter().zip(first..).map(|(entry, at)| case(at, entry)).collect()
    };
    let [ours, theirs] = [cases(0, here), cases(here.len(), published)].map(Serde);
    let text = environment.render_str(template, context! { here => ours, published => theirs })?;
    let mut blocks = Vec::new();
    for printed in Deserializer::from_str(&text).into_iter() {
        let unknown = |error: serde_json::Error| {
            Error::new(ErrorKind::InvalidOperation, format!("what it prints: {error}"))
        };
        blocks.push(match printed.map_err(unknown)? {
            Printed::Number(case, arm, series, time, statistic, value, unit) => {
                let entry = here.iter_mut().chain(published.iter_mut()).nth(case);
                let unit = Unit::ALL.into_iter().find(|known| known.name() == unit);
                if let Some((entry, unit)) = entry.zip(unit) {
                    let at = At { arm: &arm, series: &series, time };
                    entry.numbers.add(at, statistic, Some(Quantity::exact(value, unit)));
                }
                continue;
            }
            Printed::Heading(text) => Block::Heading(text),
            Printed::Text(text) => Block::Text(text),
            Printed::Frame(text) => Block::Frame(text),
            Printed::Table(table) => Block::Table(table),
        });
    }
    Ok(blocks)
}

fn case(at: usize, entry: &Entry) -> Value {
    let mut case = case_value(entry);
    case["at"] = at.into();
    if let Some(measured) = entry.measured() {
        let series = |series: &Series| {
            let Series { name, arm, process, repetition, clock, ops, bytes, data, .. } = series;
            let values = if let Data::Values(values) = data { &values[..] } else { &[] };
            json!({
                "name": name, "arm": arm, "process": process, "repetition": repetition,
                "clock": clock, "ops": ops, "bytes": bytes, "count": values.len(),
                "total": total(values.iter().copied()),
            })
        };
        case["series"] = measured.series.iter().map(series).collect();
        case["tables"] = json!(measured.tables);
        case["broken"] = entry.failed_claims().map(display_claim).collect();
    }
    case
}
