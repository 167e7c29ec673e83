//! `pagelab report`: runs into something to read.

use std::{fs::OpenOptions, io::Write, path::Path};

use anyhow::Context;
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
    let file = text(matches, "file");
    let mut out = file.map(create).transpose()?;
    let runs: Vec<&String> = matches.get_many("run").into_iter().flatten().collect();
    if format == "html" && runs.len() > 1 {
        return Err(Failure::usage_text("one HTML page shows one run: name one"));
    }
    let mut whole = String::new();
    for run in runs {
        let contents = session::read(Path::new(run))?;
        let report =
            session::report(&contents.header, &contents.records, contents.damage.as_ref())?;
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
    match &mut out {
        Some(out) => out.write_all(whole.as_bytes()).map_err(Failure::internal)?,
        None => output::result(&whole)?,
    }
    Ok(Exit::Good)
}

/// Opens the output before any work; an existing file is never overwritten.
pub(crate) fn create(path: &str) -> Result<std::fs::File, Failure> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .with_context(|| format!("cannot create {path}"))
        .map_err(Failure::usage)
}
