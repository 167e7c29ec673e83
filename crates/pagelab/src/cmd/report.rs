//! `pagelab report`: runs into something to read.

use std::path::Path;

use clap::ArgMatches;

use super::text;
use crate::{
    exit::{Exit, Failure},
    output, session,
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
    let whole = whole(&runs, format)?;
    match out.zip(file) {
        Some((out, path)) => output::write(out, path, &whole)?,
        None => output::drawn(&whole)?,
    }
    Ok(Exit::Good)
}

/// The reports of all runs.
fn whole(runs: &[&String], format: &str) -> Result<String, Failure> {
    let mut whole = String::new();
    for run in runs {
        let contents = session::read(Path::new(run))?;
        let report = session::report(&contents.header, &contents.records, contents.damage.as_ref());
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
