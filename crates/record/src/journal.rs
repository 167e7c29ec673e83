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
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        Host,
        schema::{Case, Nature},
    };

    fn header() -> RunHeader {
        RunHeader {
            schema: RUN_SCHEMA.into(),
            run: "r".into(),
            started: String::new(),
            pagelab: "0".into(),
            asked: None,
            suite: String::new(),
            published: Vec::new(),
            command: Vec::new(),
            method: Value::Null,
            plan: vec![("limit/timer".into(), Case::default())],
        }
    }

    fn failed(reason: &str) -> Record {
        Record {
            schema: SCHEMA.into(),
            run: "r".into(),
            boot: "b".into(),
            workload: "limit/timer".into(),
            nature: Nature::Measured,
            case: Case::default().with("page", "4k"),
            ab: None,
            host: Host::default(),
            outcome: Outcome::Failed { reason: reason.into() },
        }
    }

    fn open(directory: &Path, is_new: bool) -> io::Result<File> {
        let mut options = File::options();
        options.read(true).append(true).create_new(is_new).open(directory.join(FILE))
    }

    fn create(directory: &Path) -> Journal {
        let file = open(directory, true).unwrap();
        Journal::create(file, &directory.join(FILE), &header()).unwrap()
    }

    fn resume(directory: &Path) -> Result<(Journal, Contents), JournalError> {
        let aside = || File::create_new(directory.join("aside"));
        Journal::resume(open(directory, false).unwrap(), &directory.join(FILE), aside)
    }

    fn written(records: usize) -> (tempfile::TempDir, Vec<u8>) {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = create(directory.path());
        for index in 0..records {
            journal.append(&failed(&index.to_string())).unwrap();
        }
        let bytes = fs::read(directory.path().join(FILE)).unwrap();
        (directory, bytes)
    }

    #[test]
    fn what_is_whole_is_counted_so_that_a_torn_line_can_be_cut_off() {
        let directory = tempfile::tempdir().unwrap();
        let length = || fs::metadata(directory.path().join(FILE)).unwrap().len();
        let mut journal = create(directory.path());
        assert_eq!(journal.good_bytes, length());
        journal.append(&failed("one")).unwrap();
        assert_eq!(journal.good_bytes, length());
        drop(journal);
        let (mut journal, _) = resume(directory.path()).unwrap();
        journal.append(&failed("two")).unwrap();
        assert_eq!(journal.good_bytes, length());
    }

    #[test]
    fn of_what_is_read_only_what_is_wanted_is_held() {
        let (directory, _) = written(3);
        let mut seen = 0;
        let contents = select(directory.path(), |record| {
            seen += 1;
            *record == failed("1")
        });
        let contents = contents.unwrap();
        assert_eq!((seen, contents.records, contents.damage), (3, vec![failed("1")], None));
    }

    #[test]
    fn a_file_that_is_too_long_to_be_a_journal_is_refused_before_it_is_read() {
        let (directory, _) = written(1);
        open(directory.path(), false).unwrap().set_len(BYTES_MAX + 1).unwrap();
        let error = read(directory.path()).unwrap_err();
        let expected = input::too_long(BYTES_MAX).to_string();
        assert!(error.to_string().contains(&expected), "{error}");
    }

    #[test]
    fn what_is_appended_reads_back() {
        let (directory, _) = written(3);
        let contents = read(directory.path()).unwrap();
        assert_eq!((contents.records.len(), contents.damage), (3, None));
        assert_eq!(contents.header, header());
    }

    #[test]
    fn resuming_cuts_the_torn_line_and_appends_behind_the_good_prefix() {
        let (directory, bytes) = written(2);
        fs::write(directory.path().join(FILE), &bytes[..bytes.len() - 7]).unwrap();
        let (mut journal, contents) = resume(directory.path()).unwrap();
        assert_eq!(contents.records.len(), 1);
        assert_eq!(contents.damage.unwrap().line, 3);
        let copy = fs::read(directory.path().join("aside")).unwrap();
        assert_eq!(copy, &bytes[..bytes.len() - 7], "nothing is lost");
        journal.append(&failed("after")).unwrap();
        let contents = read(directory.path()).unwrap();
        assert_eq!((contents.records.len(), contents.damage), (2, None));
    }

    #[test]
    fn a_journal_has_one_writer() {
        let directory = tempfile::tempdir().unwrap();
        let journal = create(directory.path());
        let second = resume(directory.path());
        assert!(matches!(second, Err(JournalError::InUse { .. })), "{second:?}");
        drop(journal);
        assert!(resume(directory.path()).is_ok());
    }

    #[test]
    fn a_foreign_file_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes.txt");
        fs::write(&path, "hello\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("notes.txt"));
    }

    #[test]
    fn records_without_a_header_may_have_blank_lines_and_a_bad_one_is_numbered() {
        let line = serde_json::to_string(&failed("why")).unwrap();
        let text = format!("\n{line}\n \n{line}\n");
        assert_eq!(read_records(&text).unwrap(), [failed("why"), failed("why")]);
        let damage = read_records(&format!("{text}{{}}\n")).unwrap_err();
        assert_eq!(damage.line, 5);
        assert!(damage.why.contains("schema"), "{}", damage.why);
    }

    #[test]
    fn a_newer_schema_is_named() {
        let (directory, bytes) = written(1);
        let text = String::from_utf8(bytes).unwrap().replace("record/1", "record/9");
        fs::write(directory.path().join(FILE), text).unwrap();
        let damage = read(directory.path()).unwrap().damage.unwrap();
        assert!(damage.why.contains("record/9"), "{}", damage.why);
    }

    #[test]
    fn a_claim_of_a_journal_that_is_older_than_ids_gets_its_id() {
        let measured = serde_json::json!({"measured": {"witness": [
            {"claim": "reorderings that were seen", "expected": 0, "observed": 0, "holds": true},
        ]}});
        let mut value = serde_json::to_value(failed("")).unwrap();
        value["outcome"] = measured;
        let records = read_records(&value.to_string()).unwrap();
        let Outcome::Measured(measured) = &records[0].outcome else { panic!("it was measured") };
        assert_eq!(measured.witness[0].id, crate::vocabulary::claim::REORDERINGS);
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
