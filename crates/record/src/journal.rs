//! The file of a run: one JSON document a line, appended and synced, never rewritten.
//!
//! The first line is the [`RunHeader`], every further line a [`Record`]. A run that is killed at
//! any moment leaves a good prefix and at most one torn line; [`read`] returns the prefix and names
//! the line, and [`Journal::resume`] cuts the torn line off before it appends.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::schema::{RUN_SCHEMA, Record, RunHeader, SCHEMA};

/// Name of the journal inside a run's directory.
pub const FILE: &str = "journal.jsonl";

/// A line longer than this is not one of ours: it bounds what a hostile file can make us hold.
const LINE_BYTES_MAX: u64 = 256 << 20;

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
    /// Another process is writing it.
    #[error("{path}: another pagelab is writing this run; wait for it to end")]
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
}

impl Journal {
    /// Creates `directory/journal.jsonl` with its header. An existing journal is never overwritten.
    ///
    /// # Errors
    /// When the file exists or cannot be written.
    pub fn create(directory: &Path, header: &RunHeader) -> Result<Self, JournalError> {
        let path = directory.join(FILE);
        let file = OpenOptions::new().append(true).create_new(true).open(&path);
        let file = file.map_err(io_error(&path))?;
        let mut journal = Self { file, path };
        journal.lock()?;
        journal.append_line(header)?;
        // The name must survive a crash as well as the bytes do.
        File::open(directory).and_then(|d| d.sync_all()).map_err(io_error(&journal.path))?;
        Ok(journal)
    }

    /// Opens the journal of a run that stopped. A damaged one is cut off behind its good prefix;
    /// the whole of it is kept beside, as `journal.jsonl.damaged`.
    ///
    /// # Errors
    /// When it cannot be read, is no journal, or cannot be written.
    pub fn resume(directory: &Path) -> Result<(Self, Contents), JournalError> {
        let path = directory.join(FILE);
        let file = OpenOptions::new().read(true).append(true).open(&path);
        let journal = Self { file: file.map_err(io_error(&path))?, path };
        journal.lock()?;
        let contents = read(&journal.path)?;
        if contents.damage.is_some() {
            // What stands behind the damage may still be of use to a person.
            let copy = unused_name(directory);
            fs::copy(&journal.path, &copy).map_err(io_error(&copy))?;
            journal.file.set_len(contents.good_bytes).map_err(io_error(&journal.path))?;
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
        let mut line = serde_json::to_vec(document).expect("our documents have text keys");
        line.push(b'\n');
        self.file
            .write_all(&line)
            .and_then(|()| self.file.sync_data())
            .map_err(io_error(&self.path))
    }
}

/// A name for the copy of a damaged journal that no earlier copy has.
fn unused_name(directory: &Path) -> PathBuf {
    let mut path = directory.join(format!("{FILE}.damaged"));
    let mut number = 2_u32;
    while path.exists() {
        path = directory.join(format!("{FILE}.damaged-{number}"));
        number += 1;
    }
    path
}

/// Reads a journal, given its path or that of its directory: the good prefix, and where it ends.
///
/// # Errors
/// When it cannot be opened, or its first line is no header.
pub fn read(path: &Path) -> Result<Contents, JournalError> {
    let path = if path.is_dir() { path.join(FILE) } else { path.to_owned() };
    let file = File::open(&path).map_err(io_error(&path))?;
    let mut lines = Lines { reader: BufReader::new(file), number: 0, good_bytes: 0 };
    let not_a_journal = |why: String| JournalError::NotAJournal { path: path.clone(), why };
    let header = match lines.next_document().map_err(io_error(&path))? {
        Some(Ok(value)) => document::<RunHeader>(value, RUN_SCHEMA).map_err(not_a_journal)?,
        Some(Err(why)) => return Err(not_a_journal(why)),
        None => return Err(not_a_journal("the file is empty".to_owned())),
    };
    let mut records = Vec::new();
    let mut damage = None;
    let mut good_bytes = lines.good_bytes;
    while let Some(line) = lines.next_document().map_err(io_error(&path))? {
        match line.and_then(|value| document::<Record>(value, SCHEMA)) {
            Ok(record) => records.push(record),
            Err(why) => {
                damage = Some(Damage { line: lines.number, why });
                break;
            }
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
        .map(|(line, text)| {
            serde_json::from_str(text)
                .map_err(|error| error.to_string())
                .and_then(|value| document(value, SCHEMA))
                .map_err(|why| Damage { line, why })
        })
        .collect()
}

struct Lines<R> {
    reader: R,
    number: u64,
    good_bytes: u64,
}

impl<R: BufRead> Lines<R> {
    /// The next line as JSON; `Err` inside for a torn or foreign line, `None` at the end.
    fn next_document(&mut self) -> io::Result<Option<Result<Value, String>>> {
        let mut line = Vec::new();
        self.reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        self.good_bytes += line.len() as u64;
        if line.last() != Some(&b'\n') {
            return Ok(Some(Err("the line is cut short".to_owned())));
        }
        Ok(Some(serde_json::from_slice(&line).map_err(|error| error.to_string())))
    }
}

fn document<T: serde::de::DeserializeOwned>(value: Value, schema: &str) -> Result<T, String> {
    match value.get("schema").and_then(Value::as_str) {
        Some(found) if found == schema => {
            serde_json::from_value(value).map_err(|error| error.to_string())
        }
        Some(found) => Err(format!("schema is `{found}`, this version reads `{schema}`")),
        None => Err(format!("no `schema` field, expected `{schema}`")),
    }
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> JournalError + '_ {
    move |source| JournalError::Io { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schema::{Case, Host, Nature, Outcome};

    fn header() -> RunHeader {
        RunHeader {
            schema: RUN_SCHEMA.into(),
            run: "r".into(),
            started: String::new(),
            pagelab: "0".into(),
            asked: Value::Null,
            suite: String::new(),
            published: Vec::new(),
            command: Vec::new(),
            method: Value::Null,
            plan: vec![("limit/timer".into(), Case::default())],
        }
    }

    fn record(reason: &str) -> Record {
        Record {
            schema: SCHEMA.into(),
            run: "r".into(),
            boot: "b".into(),
            workload: "limit/timer".into(),
            nature: Nature::Measured,
            case: Case::default().with("page", "4k"),
            host: Host::default(),
            outcome: Outcome::Failed { reason: reason.into() },
        }
    }

    fn written(records: usize) -> (tempfile::TempDir, Vec<u8>) {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(directory.path(), &header()).unwrap();
        for index in 0..records {
            journal.append(&record(&index.to_string())).unwrap();
        }
        let bytes = fs::read(directory.path().join(FILE)).unwrap();
        (directory, bytes)
    }

    #[test]
    fn what_is_appended_reads_back() {
        let (directory, _) = written(3);
        let contents = read(directory.path()).unwrap();
        assert_eq!((contents.records.len(), contents.damage), (3, None));
        assert_eq!(contents.header, header());
    }

    #[test]
    fn a_journal_is_never_overwritten() {
        let (directory, _) = written(1);
        assert!(Journal::create(directory.path(), &header()).is_err());
    }

    #[test]
    fn resuming_cuts_the_torn_line_and_appends_behind_the_good_prefix() {
        let (directory, bytes) = written(2);
        fs::write(directory.path().join(FILE), &bytes[..bytes.len() - 7]).unwrap();
        let (mut journal, contents) = Journal::resume(directory.path()).unwrap();
        assert_eq!(contents.records.len(), 1);
        assert_eq!(contents.damage.unwrap().line, 3);
        let copy = fs::read(directory.path().join("journal.jsonl.damaged")).unwrap();
        assert_eq!(copy, &bytes[..bytes.len() - 7], "nothing is lost");
        journal.append(&record("after")).unwrap();
        let contents = read(directory.path()).unwrap();
        assert_eq!((contents.records.len(), contents.damage), (2, None));
    }

    #[test]
    fn a_journal_has_one_writer() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::create(directory.path(), &header()).unwrap();
        let second = Journal::resume(directory.path());
        assert!(matches!(second, Err(JournalError::InUse { .. })), "{second:?}");
        drop(journal);
        assert!(Journal::resume(directory.path()).is_ok());
    }

    #[test]
    fn a_foreign_file_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes.txt");
        fs::write(&path, "hello\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("notes.txt"));
    }

    #[test]
    fn a_newer_schema_is_named() {
        let (directory, bytes) = written(1);
        let text = String::from_utf8(bytes).unwrap().replace("record/1", "record/9");
        fs::write(directory.path().join(FILE), text).unwrap();
        let damage = read(directory.path()).unwrap().damage.unwrap();
        assert!(damage.why.contains("record/9"), "{}", damage.why);
    }

    proptest! {
        #[test]
        fn any_cut_leaves_a_prefix_of_whole_records(share in 0.0..1.0_f64) {
            let (directory, bytes) = written(3);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
            let cut = (bytes.len() as f64 * share) as usize;
            fs::write(directory.path().join(FILE), &bytes[..cut]).unwrap();
            if let Ok(contents) = read(directory.path()) {
                let whole = bytes[..cut].split(|byte| *byte == b'\n').count() - 2;
                prop_assert_eq!(contents.records.len(), whole);
            }
        }
    }
}
