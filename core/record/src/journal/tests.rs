//! Journals that are whole, torn, foreign, too long, or taken.

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
    assert_eq!(measured.witness[0].id, crate::vocabulary::Check::Reorderings.id());
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
