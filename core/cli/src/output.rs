//! Where text goes: results to stdout, everything else to stderr. A closed pipe is no error.

use std::{
    io::{self, ErrorKind, IsTerminal, Write},
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use pagelab_report::{Style, visible};
use pagelab_sys::files::folder::{self, Existing, FolderError, Target};
use serde_json::Value;

use crate::exit::{Exit, Failure};

/// Prints a result, which may quote names of others. `| head` closes the pipe early; that ends the
/// output and nothing else.
///
/// # Errors
/// When stdout cannot be written for any other reason.
pub fn result(text: &(impl ToString + ?Sized)) -> Result<(), Failure> {
    drawn(&visible(&text.to_string()))
}

/// Prints what a report drew: it is harmless already, and its colours are its own.
///
/// # Errors
/// When stdout cannot be written, but for a closed pipe.
pub fn drawn(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(host!("cannot write to stdout: {error}"))
        }
        _ => Ok(()),
    }
}

/// Prints a document for a program.
///
/// # Errors
/// When stdout cannot be written, but for a closed pipe.
pub fn json(value: &Value) -> Result<Exit, Failure> {
    result(&format!("{value:#}\n"))?;
    Ok(Exit::Good)
}

/// The cases of a run for a program: one object for one, an array where a flag made several.
pub fn cases(mut cases: Vec<Value>) -> String {
    let value = if cases.len() == 1 { cases.remove(0) } else { cases.into() };
    visible(&format!("{value:#}\n"))
}

/// A file that the user named for a result.
#[derive(Debug)]
pub struct Named {
    /// The file, open.
    pub target: Target,
    path: PathBuf,
}

impl Named {
    /// Opens it, before any work is done for it. An existing file is never overwritten, and one
    /// that is not written in the end is removed; `/dev/stdout` and pipes are written to.
    ///
    /// # Errors
    /// When it is there already, or cannot be made.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let target = folder::target(path, Existing::Keep).map_err(|error| match error {
            FolderError::Exists { .. } => usage!(
                "cannot create {}: it exists; choose another name, or remove it",
                path.display()
            ),
            error => Failure::usage(anyhow::Error::from(error).context("cannot create the output")),
        })?;
        Ok(Self { target, path: path.to_owned() })
    }

    /// The same of a flag.
    ///
    /// # Errors
    /// As [`Named::create`].
    pub fn of(path: Option<&PathBuf>) -> Result<Option<Self>, Failure> {
        path.map(|path| Self::create(path)).transpose()
    }

    /// Writes all of a result into it. A reader of a pipe may have enough.
    ///
    /// # Errors
    /// When the disk is full or fails.
    pub fn write(self, text: &str) -> Result<(), Failure> {
        let Self { mut target, path } = self;
        match target.file.write_all(text.as_bytes()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(host!("cannot write {}: {error}", path.display()))
            }
            _ => {
                target.made.keep();
                Ok(())
            }
        }
    }
}

/// Writes what a report drew into the file that was named for it, or to stdout.
///
/// # Errors
/// As [`Named::write`] and [`drawn`].
pub fn put(to: Option<Named>, text: &str) -> Result<(), Failure> {
    to.map_or_else(|| drawn(text), |to| to.write(text))
}

/// Says something to the person, beside the result; it may quote names of others.
pub fn warn(text: &str) {
    warn_drawn(&visible(text));
}

/// The same with what a report drew.
pub fn warn_drawn(text: &str) {
    // Nobody is left to tell when stderr is gone.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// How to draw for whoever reads stdout.
pub fn style() -> Style {
    style_of(&io::stdout())
}

/// How to draw for whoever reads this stream.
pub fn style_of(stream: &(impl AsFd + IsTerminal)) -> Style {
    let is_terminal = stream.is_terminal();
    let color = is_terminal
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    // Whoever sets COLUMNS means it, for a file or a pipe too.
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let drawn = || pagelab_sys::machine::rights::terminal_columns(stream).filter(|_| is_terminal);
    Style { color, width: asked.or_else(drawn).unwrap_or(120) }
}
