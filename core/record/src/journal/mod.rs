//! The file of a run: one JSON document a line, appended and synced, never rewritten.
//!
//! The first line is the [`RunHeader`], every further line a [`Record`]. A run that is killed at
//! any moment leaves a good prefix and at most one torn line; [`read`] returns the prefix and names
//! the line, and [`Journal::resume`] cuts the torn line off before it appends.
//!
//! A journal that is written comes as an open file: where it lies, and whether that place may be
//! trusted, is for whoever opens it.

use std::{
    fs::{File, TryLockError},
    io::{self, BufRead, BufReader, Read, Seek, Write},
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Value;

use crate::{
    input,
    schema::{Claim, Outcome, RUN_SCHEMA, Record, RunHeader, SCHEMA},
};

/// Name of the journal inside a run's directory.
pub const FILE: &str = "journal.jsonl";

/// A line longer than this is not one of ours: it bounds what a hostile file can make us hold.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// The longest lines of a journal, taken together, that are held in memory. A case leaves some KiB,
/// so that this is a hundred thousand cases and more.
const BYTES_MAX: u64 = 2 << 30;

/// What can go wrong with a journal; every text names the file.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be opened, read or written.
    #[error("{path}: {source}")]
    Io {
        /// The journal.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The copy of a damaged journal cannot be written.
    #[error("{path} is damaged, and cannot be copied before it is cut off: {source}")]
    Aside {
        /// The journal.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process is writing it.
    #[error("{path}: another pagelab is writing this run")]
    InUse {
        /// The journal.
        path: PathBuf,
    },
    /// Not even the first line is a run's header.
    #[error("{path}: line 1 is not a {RUN_SCHEMA} header: {why}")]
    NotAJournal {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// What a journal holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Contents {
    /// The first line.
    pub header: RunHeader,
    /// The records of the good prefix.
    pub records: Vec<Record>,
    /// The first line that could not be read, and why; everything after it was left out.
    pub damage: Option<Damage>,
    /// Length of the good prefix.
    good_bytes: u64,
}

/// Where a journal stops being readable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Line number, from 1.
    pub line: u64,
    /// Why it could not be read.
    pub why: String,
}

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    /// Length of what was written whole.
    good_bytes: u64,
}

impl Journal {
    /// Writes the header into a file that was just made for it, open for appending.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(file: File, path: &Path, header: &RunHeader) -> Result<Self, JournalError> {
        let mut journal = Self { file, path: path.to_owned(), good_bytes: 0 };
        journal.lock()?;
        journal.append_line(header)?;
        Ok(journal)
    }

    /// Goes on with the journal of a run that stopped, open for reading and appending. A damaged
    /// one is cut off behind its good prefix; the whole of it is kept in the file that `aside`
    /// makes.
    ///
    /// # Errors
    /// When it cannot be read, is no journal, or cannot be written.
    pub fn resume(
        file: File,
        path: &Path,
        aside: impl FnOnce() -> io::Result<File>,
    ) -> Result<(Self, Contents), JournalError> {
        let mut journal = Self { file, path: path.to_owned(), good_bytes: 0 };
        journal.lock()?;
        let failed = io_error(path);
        let contents = read_whole(&journal.file, path)?;
        journal.good_bytes = contents.good_bytes;
        if contents.damage.is_some() {
            // What stands behind the damage may still be of use to a person.
            journal.file.rewind().map_err(&failed)?;
            let copied = aside().and_then(|mut copy| io::copy(&mut journal.file, &mut copy));
            copied.map_err(|source| JournalError::Aside { path: path.to_owned(), source })?;
            journal.file.set_len(contents.good_bytes).map_err(&failed)?;
        }
        Ok((journal, contents))
    }

    /// Appends a record and waits until it is on the disk.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, record: &Record) -> Result<(), JournalError> {
        self.append_line(record)
    }

    /// Keeps a second writer away; the kernel lets go when this process ends, however it ends.
    fn lock(&self) -> Result<(), JournalError> {
        self.file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => JournalError::InUse { path: self.path.clone() },
            TryLockError::Error(source) => JournalError::Io { path: self.path.clone(), source },
        })
    }

    fn append_line(&mut self, document: &impl serde::Serialize) -> Result<(), JournalError> {
        let line = ended(document);
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        if written.is_ok() {
            self.good_bytes += line.len() as u64;
        } else {
            // A full disk takes a part of a line; whoever resumes finds whole ones.
            let _ = self.file.set_len(self.good_bytes);
        }
        written.map_err(io_error(&self.path))
    }
}

/// Reads a journal, given its path or that of its directory: the good prefix, and where it ends.
///
/// # Errors
/// When it cannot be opened, or its first line is no header.
pub fn read(path: &Path) -> Result<Contents, JournalError> {
    let (file, path) = opened(path)?;
    read_whole(&file, &path)
}

/// The same, of the records that are wanted: of a journal of many machines no more is held at once
/// than is asked for. Whoever is asked may state what a record left unsaid.
///
/// # Errors
/// When it cannot be opened, or its first line is no header.
pub fn select(
    path: &Path,
    wanted: impl FnMut(&mut Record) -> bool,
) -> Result<Contents, JournalError> {
    let (file, path) = opened(path)?;
    read_open(&file, &path, wanted)
}

/// The line of a record, with its end.
pub fn line(record: &Record) -> Vec<u8> {
    ended(record)
}

fn ended(document: &impl serde::Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(document).expect("our documents have text keys");
    line.push(b'\n');
    line
}

/// Reads the first line of a journal, given its path or that of its directory.
///
/// # Errors
/// When it cannot be opened, or its first line is no header.
pub fn header(path: &Path) -> Result<RunHeader, JournalError> {
    let (file, path) = opened(path)?;
    Lines::of(&file, u64::MAX).header(&path)
}

fn opened(path: &Path) -> Result<(File, PathBuf), JournalError> {
    let path = if path.is_dir() { path.join(FILE) } else { path.to_owned() };
    let file = input::open(&path).map_err(io_error(&path))?;
    Ok((file, path))
}

fn read_whole(file: &File, path: &Path) -> Result<Contents, JournalError> {
    let length = file.metadata().map_err(io_error(path))?.len();
    if length > BYTES_MAX {
        return Err(io_error(path)(input::too_long(BYTES_MAX)));
    }
    read_open(file, path, |_| true)
}

fn read_open(
    file: &File,
    path: &Path,
    mut wanted: impl FnMut(&mut Record) -> bool,
) -> Result<Contents, JournalError> {
    let length = file.metadata().map_err(io_error(path))?.len();
    // It may grow meanwhile: what was there when it was opened is read.
    let mut lines = Lines::of(file, length);
    let header = lines.header(path)?;
    let mut records = Vec::new();
    let mut damage = None;
    let mut held = lines.good_bytes;
    let mut good_bytes = lines.good_bytes;
    while let Some(line) = lines.next_line().map_err(io_error(path))? {
        match line.and_then(|line| record(&line)) {
            Ok(mut record) => {
                if wanted(&mut record) {
                    records.push(record);
                    held += lines.good_bytes - good_bytes;
                }
            }
            Err(why) => {
                damage = Some(Damage { line: lines.number, why });
                break;
            }
        }
        if held > BYTES_MAX {
            return Err(io_error(path)(input::too_long(BYTES_MAX)));
        }
        good_bytes = lines.good_bytes;
    }
    Ok(Contents { header, records, damage, good_bytes })
}

/// Reads a file of records without a header, such as published results, from its text.
///
/// # Errors
/// The number of the first line that is not a record, and why.
pub fn read_records(text: &str) -> Result<Vec<Record>, Damage> {
    let numbered = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    numbered
        .map(|(line, text)| record(text.as_bytes()).map_err(|why| Damage { line, why }))
        .collect()
}

struct Lines<'f> {
    reader: BufReader<io::Take<&'f File>>,
    number: u64,
    good_bytes: u64,
}

impl<'f> Lines<'f> {
    fn of(file: &'f File, most: u64) -> Self {
        Self { reader: BufReader::new(file.take(most)), number: 0, good_bytes: 0 }
    }

    /// The first line.
    fn header(&mut self, path: &Path) -> Result<RunHeader, JournalError> {
        let not_a_journal = |why: String| JournalError::NotAJournal { path: path.to_owned(), why };
        match self.next_line().map_err(io_error(path))? {
            Some(Ok(line)) => document(&line, RUN_SCHEMA).map_err(not_a_journal),
            Some(Err(why)) => Err(not_a_journal(why)),
            None => Err(not_a_journal("the file is empty".to_owned())),
        }
    }

    /// The next line; `Err` inside for a torn one, `None` at the end.
    fn next_line(&mut self) -> io::Result<Option<Result<Vec<u8>, String>>> {
        let mut line = Vec::new();
        self.reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        self.good_bytes += line.len() as u64;
        if line.last() != Some(&b'\n') {
            let why = if line.len() as u64 == LINE_BYTES_MAX {
                input::too_long(LINE_BYTES_MAX).to_string()
            } else {
                "the line is cut short".to_owned()
            };
            return Ok(Some(Err(why)));
        }
        Ok(Some(Ok(line)))
    }
}

/// A record of any version, as this one would have written it.
fn record(line: &[u8]) -> Result<Record, String> {
    let mut record: Record = document(line, SCHEMA)?;
    if let Outcome::Measured(measured) = &mut record.outcome {
        measured.witness.iter_mut().for_each(Claim::upgrade);
    }
    Ok(record)
}

/// What every document begins with; the rest is looked at when it is known to be ours.
#[derive(Deserialize)]
struct Named {
    schema: Option<Value>,
}

fn document<T: serde::de::DeserializeOwned>(line: &[u8], schema: &str) -> Result<T, String> {
    let failed = |error: serde_json::Error| error.to_string();
    let named: Named = serde_json::from_slice(line).map_err(failed)?;
    match named.schema.as_ref().and_then(Value::as_str) {
        Some(found) if found == schema => serde_json::from_slice(line).map_err(failed),
        Some(found) => Err(format!("schema is `{found}`, this version reads `{schema}`")),
        None => Err(format!("no `schema` field, expected `{schema}`")),
    }
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> JournalError + '_ {
    move |source| JournalError::Io { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
