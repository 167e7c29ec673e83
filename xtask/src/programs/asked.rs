//! What every score that goes through programs takes of the command line.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command, value_parser};

use super::{Program, Score, folders, here};
use crate::shell::enter_root;

/// Adds where runs are kept, which `pagelab` tries, the seconds that each program has, and one
/// program by its name.
pub(crate) fn arguments(command: Command, dir: &'static str, seconds: &'static str) -> Command {
    let dir = Arg::new("dir").long("dir").default_value(dir);
    let binary = Arg::new("binary").long("binary").default_value("target/release/pagelab");
    let budget = Arg::new("budget").long("budget").value_parser(value_parser!(f64));
    command
        .arg(dir.help("Where runs are kept; what is there is not done again"))
        .arg(binary.help("The pagelab that tries them"))
        .arg(budget.default_value(seconds).help("Seconds for each run of try"))
        .arg(Arg::new("only").long("only").help("This program only, by its name"))
}

/// What was asked of a score.
#[derive(Debug)]
pub(crate) struct Asked {
    pub binary: PathBuf,
    /// Where runs are kept.
    pub dir: PathBuf,
    /// Where programs run.
    pub work: PathBuf,
    /// Seconds for each run.
    pub budget: String,
    only: Option<String>,
}

impl Asked {
    /// Reads it, and makes the folders; from then on the work goes on in the repository.
    ///
    /// # Errors
    /// When there is no such `pagelab`, or a folder cannot be made.
    pub(crate) fn of(matches: &ArgMatches) -> Result<Self> {
        enter_root()?;
        let text = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
        let binary = fs::canonicalize(text("binary"))
            .with_context(|| format!("{}: cargo build --release", text("binary")))?;
        let (dir, work) = folders(text("dir"))?;
        let budget = matches.get_one::<f64>("budget").copied().unwrap_or_default().to_string();
        let only = matches.get_one::<String>("only").cloned();
        Ok(Self { binary, dir, work, budget, only })
    }

    /// The programs of a score that were asked for, as [`here`] has them.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub(crate) fn programs(&self, score: Score) -> Result<(Vec<Program>, Vec<Program>)> {
        here(score, self.only.as_ref(), &self.work)
    }
}
