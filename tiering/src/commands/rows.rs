//! What `tier simulate` prints: the rows of each case as JSON, and what a file says about them.

use crate::preset::{self, Preset};
use crate::views::published::{Compared, Kind, compared};
use pagelab_record::{Measured, Record};
use pagelab_report::Listing;
use serde_json::{Map, Value, json};

use pagelab_cli::output;

/// One object for one case, an array that says which for several.
pub(super) fn json(records: &[Record]) -> String {
    output::cases(records.iter().map(|record| of(record, records.len() > 1)).collect())
}

fn of(record: &Record, says_which: bool) -> Value {
    let mut object = json!({ "preset": record.case.get("scenario") });
    if says_which {
        let set = record.case.0.iter().filter(|(_, value)| *value != "auto");
        let set: Map<String, Value> =
            set.map(|(name, value)| (name.to_string(), json!(value))).collect();
        object["case"] = Value::Object(set);
    }
    // A record that is not valid has no numbers.
    let row = |row: Compared| {
        json!({
            "source": row.source,
            "metric": row.metric.name,
            "published": row.published,
            "simulated": row.simulated,
            "error": row.error(),
            "kind": row.kind.name(),
        })
    };
    let rows = record.valid().into_iter().flat_map(compared);
    object["rows"] = rows.map(row).collect();
    object
}

/// What the files of some records say about their results: what is assumed, and what may explain a
/// difference.
pub(super) fn remarks(records: &[Record]) -> Listing {
    let mut said: Vec<&str> = Vec::new();
    let mut listing = Listing::default();
    for record in records {
        let Some(name) = record.case.get("scenario").filter(|name| !said.contains(name)) else {
            continue;
        };
        said.push(name);
        if let (Some(measured), Ok(preset)) = (record.measured(), preset::load(name)) {
            let lines = sentences(&preset, measured);
            if !lines.is_empty() {
                listing = listing.item(format_args!("\n{name}: {}", preset.summary), lines);
            }
        }
    }
    listing
}

fn sentences(preset: &Preset, measured: &Measured) -> Vec<String> {
    let mut all = preset.remarks.clone();
    for row in compared(measured) {
        let published = preset.published.get(&format!("{}/{}", row.source, row.metric.name));
        let (Some(why), Some(error)) = (published.and_then(|p| p.why.as_ref()), row.error()) else {
            continue;
        };
        let chance = row.sigmas().map_or_else(String::new, |sigmas| {
            format!(" ({:.0} standard deviations of the published mean)", sigmas.abs())
        });
        let by = match row.kind {
            Kind::Predicted => format!("{:+.2} %{chance}: ", error * 100.0),
            Kind::Identity | Kind::Fitted => String::new(),
        };
        all.push(format!("{}, {}: {by}{why}.", row.source, row.metric.name));
    }
    all
}
