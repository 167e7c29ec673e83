//! What records of a suite stand beside: a limit of the machine, and what was published.

use std::path::{Path, PathBuf};

use pagelab_record::{Case, Clock, Measured, Record, journal};
use pagelab_report::Publication;

use crate::made::{measured, values};

/// The folder of a publication.
fn folder(name: &str) -> PathBuf {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let folders = above.map(|folder| folder.join("published").join(name));
    folders.into_iter().find(|folder| folder.is_dir()).unwrap()
}

/// Published results, by the name of their suite.
pub(crate) fn published(name: &str) -> Vec<Record> {
    let text = std::fs::read_to_string(folder(name).join("records.jsonl")).unwrap();
    journal::read_records(&text).unwrap()
}

/// The publication of that name, alone.
pub(crate) fn publication(name: &str) -> Vec<Publication> {
    let folder = folder(name);
    let read = |file| std::fs::read_to_string(folder.join(file)).unwrap();
    let publication = Publication::parse(name, &read("records.jsonl"), &read("claims.toml"));
    let template = std::fs::read_to_string(folder.join("report.j2")).unwrap_or_default();
    vec![publication.unwrap().with_template(&template).unwrap()]
}

/// What a system call takes.
pub(crate) fn syscall() -> Record {
    let series = values("getppid", "pagelab", Clock::Tsc, 100_000, 0, 9_500_000.0);
    measured("limit/syscall", Case::default(), Measured { series, ..Measured::default() })
}
