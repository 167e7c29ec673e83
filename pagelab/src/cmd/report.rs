//! `pagelab report`: runs into something to read.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use clap::{ArgAction, Args, ValueHint};
use pagelab_record::journal::Contents;
use pagelab_report::{Forms, Publication, Report};

use crate::{
    args::Run,
    exit::{Exit, Failure},
    output, part, published, session,
};

/// Turn runs into something to read.
#[derive(Debug, Args)]
pub(super) struct Reported {
    /// Runs: directories, journals, tags, or LAST; as html several are one comparison.
    #[arg(required = true, num_args = 1.., action = ArgAction::Append)]
    run: Vec<PathBuf>,
    /// How to print it.
    #[arg(long, value_parser = FORMATS, default_value = FORMATS[0])]
    format: String,
    /// Set a publication beside the run: a folder with records.jsonl and claims.toml.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    published: Vec<PathBuf>,
    /// Of a run of several hosts (fleet merge), the one to report.
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Print what the program of a publication would have printed, and nothing else.
    #[arg(long, conflicts_with = "format")]
    frame: bool,
    /// Write to a file that does not exist yet, instead of stdout.
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    file: Option<PathBuf>,
}

/// The form of `--frame`.
const FRAME: &str = "frame";
const FORMATS: [&str; 5] = ["terminal", "html", "json", "csv", "markdown"];

impl Run for Reported {
    /// Prints the report of each run, one after the other.
    fn run(self) -> Result<Exit, Failure> {
        let out = output::Named::of(self.file.as_ref())?;
        let more: Result<Vec<Publication>, String> =
            self.published.iter().map(|folder| published::folder(folder)).collect();
        let more = more?;
        // One page shows one run, or several compared.
        let whole = if self.format == "html" && self.run.len() > 1 {
            if !more.is_empty() {
                return Err(usage!(
                    "--published stands beside one run: name one, or compare published/NAME RUN"
                ));
            }
            super::compare::page(&self.run)?
        } else {
            let form = if self.frame { FRAME } else { self.format.as_str() };
            whole(&self.run, form, &more, self.host.as_deref())?
        };
        output::put(out, &whole)?;
        Ok(Exit::Good)
    }
}

/// The reports of all runs.
fn whole(
    runs: &[PathBuf],
    format: &str,
    more: &[Publication],
    host: Option<&str>,
) -> Result<String, Failure> {
    let mut whole = String::new();
    for run in runs {
        let contents = of_one_host(run, host)?;
        let damage = contents.damage.as_ref();
        let mut beside = published::beside(&contents.header, more);
        if format == FRAME {
            // Whoever asks for a frame need not have run the suite that names its publication.
            beside = published::all(more)?;
        }
        let report =
            Report::of(&contents.header, &contents.records, damage, &beside, part::views());
        whole.push_str(&match format {
            FRAME => framed(run, &report)?,
            form => report.form(form, output::style()),
        });
        if !whole.ends_with('\n') {
            whole.push('\n');
        }
    }
    Ok(whole)
}

/// What the programs of publications would have printed of a run.
fn framed(run: &Path, report: &Report) -> Result<String, Failure> {
    Some(report.frames()).filter(|frames| !frames.is_empty()).ok_or_else(|| {
        usage!(
            "--frame: {} has no case that the program of a publication would have printed; run: \
             pagelab run fault/throughput, or memtype/bandwidth",
            run.display()
        )
    })
}

/// The records of a host. A page is about one machine: of several, somebody says which.
fn of_one_host(run: &Path, asked: Option<&str>) -> Result<Contents, Failure> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    let contents = session::select(run, |record| {
        let name = record.host.name();
        if let Some(name) = name.filter(|name| !names.contains(*name)) {
            names.insert(name.to_owned());
        }
        // Of several hosts nothing is shown together, so nothing is held.
        asked.map_or(names.len() < 2, |asked| name == Some(asked))
    })?;
    let known = || names.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ");
    match asked {
        None if names.len() > 1 => Err(usage!(
            "{run} is of {} hosts: name one (--host {}), or set them beside each other: pagelab \
             compare {run} --by host",
            names.len(),
            names.first().map_or("", String::as_str),
            run = run.display(),
        )),
        Some(asked) if !names.contains(asked) => Err(usage!(
            "{} has no record of the host {asked}; it has those of: {}",
            run.display(),
            known()
        )),
        _ => Ok(contents),
    }
}
