//! The trials of a self-test that have come to their end: a line for each in its directory.

use std::{
    fs::{self, File},
    io::{ErrorKind, Read, Write},
    path::Path,
};

use anyhow::Context;
use pagelab_report::{Twice, TwicePair};
use pagelab_sys::files::folder::Folder;

use crate::{exit::Failure, output};

/// The file that they are kept in.
const TRIALS: &str = "trials.jsonl";

/// Them, and the file that takes more.
#[derive(Debug)]
pub struct Kept {
    file: File,
    /// What they come to.
    pub twice: Twice,
    /// How many were there before.
    pub done: u32,
}

impl Kept {
    /// Those of a directory, in which more may follow.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn open(directory: &Path, trials: u32) -> Result<Self, Failure> {
        let failed = |error: anyhow::Error| {
            Failure::usage(error.context(directory.join(TRIALS).display().to_string()))
        };
        let folder = Folder::make(directory).map_err(|error| failed(error.into()))?;
        let file = match folder.append_to(TRIALS) {
            Err(error) if error.kind() == ErrorKind::NotFound => folder.create(TRIALS),
            file => file,
        };
        let file = file.map_err(|error| failed(error.into()))?;
        folder.sync().map_err(|error| failed(error.into()))?;
        let mut text = String::new();
        (&file).read_to_string(&mut text).map_err(|error| failed(error.into()))?;
        let twice = of_lines(&text);
        if !(text.is_empty() || text.ends_with('\n')) {
            (&file).write_all(b"\n").map_err(|error| failed(error.into()))?;
        }
        let done = twice.trials();
        if done > 0 {
            output::warn(&format!("{done} of {trials} trials are done"));
        }
        Ok(Self { file, twice, done })
    }

    /// Writes down one more; it is on the disk when this returns.
    ///
    /// # Errors
    /// When the disk is full or fails.
    pub fn keep(&mut self, pair: TwicePair) -> Result<(), anyhow::Error> {
        let line = serde_json::to_string(&pair)?;
        writeln!(self.file, "{line}")?;
        self.file.sync_data()?;
        self.twice.add(pair);
        Ok(())
    }
}

/// The trials that a self-test left in a directory.
///
/// # Errors
/// When there are none.
pub fn read(directory: &Path) -> Result<Twice, Failure> {
    let path = directory.join(TRIALS);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string());
    let hint = "what pagelab selftest --aa left is a directory with a line for each trial";
    Ok(of_lines(&text.context(hint).map_err(Failure::usage)?))
}

fn of_lines(text: &str) -> Twice {
    let mut twice = Twice::default();
    // What a kill tore is told again from its run.
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .for_each(|pair| twice.add(pair));
    twice
}
