//! How often what `pagelab explain` predicts comes, by `pagelab try` over twelve real programs.
//!
//! The one idea: a prediction is right by a rule that was there before it: what came lies in its
//! interval, or no farther from it than 15 % of the time in faults. The rule is that of the report,
//! which says so for each rung; here it is counted. What is open counts as not right.
//!
//! Programs are data (`explain_score/programs.toml`); one that is not here is skipped with its
//! cure. What came of a program is kept, so that the list can be gone through in pieces.

mod score;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, value_parser};
use serde::Deserialize;

use self::score::{Score, table};
use crate::shell::{enter_root, find, line};

/// Adds what the task takes.
pub(crate) fn arguments(command: clap::Command) -> clap::Command {
    command
        .arg(
            Arg::new("dir")
                .long("dir")
                .default_value("target/explain-score")
                .help("Where runs are kept; what is there is not done again"),
        )
        .arg(Arg::new("binary").long("binary").default_value("target/release/pagelab"))
        .arg(
            Arg::new("budget")
                .long("budget")
                .value_parser(value_parser!(f64))
                .default_value("120")
                .help("Seconds for each program"),
        )
        .arg(
            Arg::new("rung")
                .long("rung")
                .help("These rungs of try only; some change the machine's settings for a run"),
        )
        .arg(Arg::new("only").long("only").help("This program only, by its name"))
        .arg(
            Arg::new("keep")
                .long("keep")
                .action(clap::ArgAction::SetTrue)
                .help("Write what came of it into records/, for docs/explain.md"),
        )
}

/// A program, as a row of the table has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    name: String,
    /// What kind of program it stands for.
    kind: String,
    /// A program that must be there, by its name or path.
    needs: String,
    /// What else must succeed: a line of a shell.
    #[serde(default)]
    check: Option<String>,
    cure: String,
    /// What is made for it beforehand: a line of a shell.
    #[serde(default)]
    prepare: Option<String>,
    /// What it reads.
    #[serde(default)]
    input: Option<String>,
    words: Vec<String>,
}

#[derive(Deserialize)]
struct File {
    program: Vec<Program>,
}

/// Stands for the repository in the words of a program.
const ROOT: &str = "@root@";
/// The page's name for what came of it.
const RECORD: &str = "records/explain-score.txt";

fn programs() -> Result<Vec<Program>> {
    let file: File = toml::from_str(include_str!("explain_score/programs.toml"))?;
    Ok(file.program)
}

/// Goes through the programs, prints what came of each, and sums up.
///
/// # Errors
/// When a run cannot be made or read.
pub(crate) fn explain_score(matches: &ArgMatches) -> Result<()> {
    enter_root()?;
    let text = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let binary = fs::canonicalize(text("binary"))
        .with_context(|| format!("{}: cargo build --release", text("binary")))?;
    let (dir, work) = (PathBuf::from(text("dir")), Path::new(text("dir")).join("work"));
    fs::create_dir_all(&work)?;
    let budget = matches.get_one("budget").copied().unwrap_or(120.0_f64);
    let rung = matches.get_one::<String>("rung").map(String::as_str);
    let only = matches.get_one::<String>("only");
    let mut scores = Vec::new();
    for program in programs()?.iter().filter(|one| only.is_none_or(|only| *only == one.name)) {
        let file = dir.join(format!("{}.json", program.name));
        if !file.exists() {
            if !program.is_here(&work) {
                scores.push(Score::skipped(&program.name, &program.cure));
                continue;
            }
            println!("{} ({})", program.name, program.kind);
            let report = program.tried(&binary, &dir, &work, (budget, rung))?;
            fs::write(&file, report)?;
        }
        let report = fs::read_to_string(&file)?;
        let report = serde_json::from_str(&report).with_context(|| file.display().to_string())?;
        scores.push(Score::of(&program.name, &report));
    }
    let told = table(&scores);
    print!("\n{told}");
    if matches.get_flag("keep") {
        fs::write(RECORD, told).context(RECORD)?;
        println!("\n{RECORD}: cargo xtask splice puts it into docs/explain.md");
    }
    Ok(())
}

impl Program {
    /// Whether it can be run here.
    fn is_here(&self, work: &Path) -> bool {
        let is_there = Path::new(&self.needs).is_file() || find(&self.needs).is_some();
        is_there && self.check.as_ref().is_none_or(|check| shell(check, work).is_ok())
    }

    /// Tries it; the report, as JSON.
    fn tried(
        &self,
        binary: &Path,
        dir: &Path,
        work: &Path,
        (budget, rung): (f64, Option<&str>),
    ) -> Result<String> {
        if let Some(prepare) = &self.prepare {
            shell(prepare, work).with_context(|| format!("preparing {}", self.name))?;
        }
        let run = fs::canonicalize(dir)?.join(&self.name);
        // What a program that was not finished left behind.
        let _ = fs::remove_dir_all(&run);
        let mut command = Command::new(binary);
        command.args(["try", "-q", "--format", "json", "--budget", &budget.to_string(), "-o"]);
        command.arg(&run);
        command.args(rung.into_iter().flat_map(|rung| ["--rung", rung]));
        command.args(self.input.iter().flat_map(|input| ["--input", input.as_str()]));
        let root = std::env::current_dir()?;
        let words = self.words.iter().map(|word| word.replace(ROOT, &root.to_string_lossy()));
        command.arg("--").args(words).current_dir(work);
        let output = command.output().with_context(|| line(&command))?;
        match output.status.code() {
            // A rung may fail or not prove itself: that is no failure of the score.
            Some(0 | 1 | 6) => Ok(String::from_utf8(output.stdout)?),
            _ => bail!(
                "{} ended with {}: {}",
                line(&command),
                output.status,
                String::from_utf8_lossy(&output.stderr)
            ),
        }
    }
}

/// Runs a line of a shell in a folder.
fn shell(text: &str, folder: &Path) -> Result<()> {
    let mut command = Command::new("sh");
    command.args(["-e", "-c", text]).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status()?;
    if !status.success() {
        bail!("`{text}` failed ({status})");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_are_of_all_kinds_and_two_gain_nothing() {
        let programs = programs().unwrap();
        let of = |kind: &str| programs.iter().filter(|program| program.kind == kind).count();
        assert_eq!((programs.len(), of("interpreter"), of("gains nothing")), (12, 2, 2));
        let mut names: Vec<&str> = programs.iter().map(|program| program.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), programs.len());
        assert!(programs.iter().all(|program| !program.cure.is_empty()));
    }
}
