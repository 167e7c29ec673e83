//! Publications: what suites name, and what reports show beside one's own; anybody's by folder.

use std::path::Path;

use pagelab_record::{Record, RunHeader, input};
use pagelab_report::Publication;

use crate::{
    output,
    part::{self, Source},
};

/// What claims cannot say of a publication.
const TEMPLATE: &str = "report.j2";

/// The longest file of a publication that is read.
const BYTES_MAX: u64 = 16 << 20;

/// A publication by name.
///
/// # Errors
/// A sentence that lists the names there are.
fn publication(name: &str) -> Result<Publication, String> {
    let found = part::publications().find(|source| source.name == name);
    let Some(Source { name, records, claims, template }) = found else {
        let names = part::known().published.join(", ");
        return Err(format!("no published results are called `{name}`; there are {names}"));
    };
    Publication::parse(name, records, claims)?.with_template(template)
}

/// Published results by name.
///
/// # Errors
/// A sentence that lists the names there are.
pub fn published(name: &str) -> Result<Vec<Record>, String> {
    Ok(publication(name)?.records().to_vec())
}

/// What a run names, then some more; a person is told of those that this version does not have.
pub fn beside(header: &RunHeader, more: &[Publication]) -> Vec<Publication> {
    let mut all = Vec::new();
    for name in &header.published {
        // Somebody's own of that name stands in its place.
        if more.iter().any(|publication| publication.name() == name) {
            continue;
        }
        match publication(name) {
            Ok(publication) => all.push(publication),
            Err(why) => output::warn(&format!("warning: {why}; the report does without them")),
        }
    }
    all.extend(more.iter().cloned());
    all
}

/// Every publication there is, and some more.
///
/// # Errors
/// A sentence, where one cannot be read.
pub fn all(more: &[Publication]) -> Result<Vec<Publication>, String> {
    let known = part::known().published.iter();
    let known = known.filter(|name| more.iter().all(|other| other.name() != **name));
    let known = known.map(|name| publication(name)).collect::<Result<Vec<_>, _>>()?;
    Ok(known.into_iter().chain(more.iter().cloned()).collect())
}

/// Anybody's own publication: a folder with `records.jsonl`, `claims.toml` and perhaps `report.j2`.
///
/// # Errors
/// A sentence that names the file, the line, and what to do.
pub fn folder(folder: &Path) -> Result<Publication, String> {
    let read = |file: &str| {
        let path = folder.join(file);
        input::text(&path, BYTES_MAX).map_err(|why| {
            let path = path.display();
            format!("{path}: {why}; a publication is a folder with records.jsonl and claims.toml")
        })
    };
    let (records, claims) = (read("records.jsonl")?, read("claims.toml")?);
    // `.` has a name, too.
    let whole = folder.canonicalize().map_err(|why| format!("{}: {why}", folder.display()))?;
    let name = whole.file_name().unwrap_or_default().to_string_lossy();
    let template = if folder.join(TEMPLATE).exists() { read(TEMPLATE)? } else { String::new() };
    Publication::parse(&name, &records, &claims)?.with_template(&template)
}
