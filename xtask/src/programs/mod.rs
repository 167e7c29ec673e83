//! Real programs that `pagelab try` and what `pagelab explain` predicts are held against.
//!
//! The one idea: programs are data (`programs.toml`); one that is not here is skipped with its
//! cure, before any other runs. What came of a program is on the disk before the next one starts,
//! and one that fails is named at the end: the list can be gone through in pieces.

mod asked;

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

pub(crate) use self::asked::{Asked, arguments};
use crate::shell::{find, line};

/// Who goes through a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Score {
    /// `cargo xtask explain-score`.
    Explain,
    /// `cargo xtask try-score`.
    Try,
    /// `cargo xtask fit-score`.
    Fit,
    /// `cargo xtask segment-score`.
    Segment,
}

/// What is known of a program beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Planted {
    /// A rung is faster.
    Gain,
    /// None is, and one is slower.
    Loss,
}

/// A program, as a row of the table has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Program {
    pub name: String,
    /// What kind of program it stands for.
    pub kind: String,
    /// The only score that goes through it.
    #[serde(default)]
    pub only: Option<Score>,
    /// Whether segments are held against it, whatever else is.
    #[serde(default)]
    segment: bool,
    #[serde(default)]
    pub planted: Option<Planted>,
    /// A program that must be there, by its name or path.
    needs: String,
    /// What else must succeed: a line of a shell.
    #[serde(default)]
    check: Option<String>,
    pub cure: String,
    /// What is made for it beforehand: a line of a shell.
    #[serde(default)]
    prepare: Option<String>,
    /// What it reads.
    #[serde(default)]
    pub input: Option<String>,
    /// It serves: when its client begins, the client, and the number in what the client says.
    #[serde(default)]
    pub serves: Option<[String; 3]>,
    /// A rung by its own setting.
    #[serde(default)]
    own: Option<String>,
    words: Vec<String>,
}

#[derive(Deserialize)]
struct Table {
    program: Vec<Program>,
}

/// Rounds that no budget holds.
pub(crate) const MOST: &str = "1000";

/// Stands for the repository in the words of a program.
const ROOT: &str = "@root@";

/// The programs of a score.
///
/// # Errors
/// When the table cannot be read.
fn of(score: Score) -> Result<Vec<Program>> {
    let table: Table = toml::from_str(include_str!("programs.toml"))?;
    let is_mine = |program: &Program| match score {
        // A choice is between mappings of one program, whoever goes through it otherwise.
        Score::Fit => program.serves.is_none(),
        Score::Segment => program.segment,
        _ => program.only.is_none_or(|only| only == score),
    };
    Ok(table.program.into_iter().filter(is_mine).collect())
}

impl Program {
    /// Whether it can be run here.
    pub(crate) fn is_here(&self, work: &Path) -> bool {
        let is_there = Path::new(&self.needs).is_file() || find(&self.needs).is_some();
        is_there && self.check.as_ref().is_none_or(|check| shell(check, work).is_ok())
    }

    /// Its words.
    pub(crate) fn words(&self) -> Result<Vec<String>> {
        let root = std::env::current_dir()?;
        Ok(self.words.iter().map(|word| word.replace(ROOT, &root.to_string_lossy())).collect())
    }

    /// Says that it comes next, and makes what it needs.
    fn prepared(&self, work: &Path) -> Result<()> {
        eprintln!("{} ({})", self.name, self.kind);
        let Some(prepare) = &self.prepare else { return Ok(()) };
        shell(prepare, work).with_context(|| format!("preparing {}", self.name))
    }

    /// Makes what it needs, and tries it, with these flags, into a run of this name; the report, as
    /// JSON.
    pub(crate) fn tried(&self, asked: &Asked, run: &Path, flags: &[String]) -> Result<String> {
        let Asked { binary, work, .. } = asked;
        self.prepared(work)?;
        // What a program that was not finished left behind.
        let _ = fs::remove_dir_all(run);
        let mut command = Command::new(binary);
        command.args(["try", "-q", "--wait", "--format", "json", "-o"]).arg(run).args(flags);
        command.args(self.input.iter().flat_map(|input| ["--input", input.as_str()]));
        command.args(self.own.iter().flat_map(|own| ["--own", own.as_str()]));
        if let Some([ready, until, score]) = &self.serves {
            command.args(["--ready", ready, "--until", until, "--score", score]);
        }
        command.arg("--").args(self.words()?).current_dir(work);
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

/// The programs of a score, or the one of this name: those that are here, and those that are not,
/// which are said to be missing.
///
/// # Errors
/// When the table cannot be read.
fn here(score: Score, only: Option<&String>, work: &Path) -> Result<(Vec<Program>, Vec<Program>)> {
    let mut programs = of(score)?;
    programs.retain(|program| only.is_none_or(|only| *only == program.name));
    let (here, missing): (Vec<_>, _) =
        programs.into_iter().partition(|program| program.is_here(work));
    for program in &missing {
        println!("skipped: {} is not here: {}", program.name, program.cure);
    }
    Ok((here, missing))
}

/// What a file holds, or is made to hold: whole, or not at all.
///
/// # Errors
/// When it cannot be made, written or read.
pub(crate) fn kept(file: &Path, make: impl FnOnce() -> Result<String>) -> Result<Value> {
    let parsed = |text: &str| serde_json::from_str(text).context(file.display().to_string());
    if file.exists() {
        return parsed(&fs::read_to_string(file)?);
    }
    let text = make()?;
    let value = parsed(&text)?;
    let unfinished = file.with_extension("unfinished");
    let mut to = File::create(&unfinished)?;
    to.write_all(text.as_bytes())?;
    to.sync_all()?;
    fs::rename(&unfinished, file)?;
    Ok(value)
}

/// What came of each program, and which ones failed.
#[derive(Debug, Default)]
pub(crate) struct Failures(Vec<String>);

impl Failures {
    /// What came of a program; a failure is said now and named at the end.
    pub(crate) fn passed<T>(&mut self, program: &Program, came: Result<T>) -> Option<T> {
        came.inspect_err(|why| {
            eprintln!("failed: {}: {why:#}", program.name);
            self.0.push(program.name.clone());
        })
        .ok()
    }

    /// Whether all passed.
    ///
    /// # Errors
    /// With the names of those that did not.
    pub(crate) fn end(self) -> Result<()> {
        let names = self.0.join(", ");
        ensure!(self.0.is_empty(), "{names} failed; what came of the others is kept: call again");
        Ok(())
    }
}

/// The folder of a score and its folder for programs, both made, with whole paths.
///
/// # Errors
/// When they cannot be made.
fn folders(dir: &str) -> Result<(PathBuf, PathBuf)> {
    let work = Path::new(dir).join("work");
    fs::create_dir_all(&work)?;
    Ok((fs::canonicalize(dir)?, fs::canonicalize(work)?))
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
        for (score, many, interpreters) in [(Score::Explain, 12, 2), (Score::Try, 12, 0)] {
            let programs = of(score).unwrap();
            let of = |kind: &str| programs.iter().filter(|program| program.kind == kind).count();
            let found = (programs.len(), of("interpreter"), of("gains nothing"));
            assert_eq!(found, (many, interpreters, 2), "{score:?}");
            let mut names: Vec<&str> = programs.iter().map(|program| &*program.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), programs.len());
            assert!(programs.iter().all(|program| !program.cure.is_empty()));
        }
    }
}
