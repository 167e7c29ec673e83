//! `pagelab report`: runs into something to read.

use std::path::Path;

use clap::ArgMatches;
use pagelab_report::{Publication, Report};

use super::text;
use crate::{
    exit::{Exit, Failure},
    output, published, session,
};

/// Prints the report of each run, one after the other.
///
/// # Errors
/// When a run cannot be read, or the file exists.
pub(crate) fn report(matches: &ArgMatches) -> Result<Exit, Failure> {
    let format = text(matches, "format").unwrap_or("terminal");
    let runs: Vec<&String> = matches.get_many("run").into_iter().flatten().collect();
    if format == "html" && runs.len() > 1 {
        return Err(Failure::usage_text("one HTML page shows one run: name one"));
    }
    let file = text(matches, "file").map(Path::new);
    let out = file.map(output::create).transpose()?;
    let folders = matches.get_many::<String>("published").into_iter().flatten();
    let more: Result<Vec<Publication>, String> =
        folders.map(|folder| published::folder(Path::new(folder))).collect();
    let more = more.map_err(Failure::usage_text)?;
    let whole = whole(&runs, format, &more)?;
    match out.zip(file) {
        Some((out, path)) => output::write(out, path, &whole)?,
        None => output::drawn(&whole)?,
    }
    Ok(Exit::Good)
}

/// The reports of all runs.
fn whole(runs: &[&String], format: &str, more: &[Publication]) -> Result<String, Failure> {
    let mut whole = String::new();
    for run in runs {
        let contents = session::read(Path::new(run))?;
        let damage = contents.damage.as_ref();
        let beside = published::beside(&contents.header, more);
        let report = Report::of(&contents.header, &contents.records, damage, &beside);
        whole.push_str(&match format {
            "html" => report.html(),
            "json" => report.json(),
            "csv" => report.csv(),
            "markdown" => report.markdown(),
            _ => report.terminal(output::style()),
        });
        if !whole.ends_with('\n') {
            whole.push('\n');
        }
    }
    Ok(whole)
}
