//! Another pagelab, of which the processes of an arm are.
//!
//! The one idea: a file is what it holds, so its digest is what a journal names; and whether it can
//! do a part here it is asked, with a greeting in the words of this version, before anything is
//! measured. Between two looks at the file it is the same one where its number, length and times
//! are.

use std::{
    fs::{self, File},
    io,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
};

use pagelab_record::{
    Case,
    ab::{Arm, Change},
    schema,
};
use pagelab_sys::process::child::{self, Care, Ended};

use crate::{
    digest,
    request::{Greeting, Hello, PROTOCOL, Request},
};

/// So long may an answer take.
const LIMIT_NS: u64 = 30_000_000_000;

/// The program of an arm, as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    path: PathBuf,
    stamp: [u64; 6],
}

impl Program {
    /// Looks at the program of an arm, where it has one.
    pub(crate) fn of(arm: &Arm) -> Option<io::Result<Self>> {
        let Change::Program { path, .. } = &arm.change else { return None };
        Some(Self::at(Path::new(path)))
    }

    fn at(path: &Path) -> io::Result<Self> {
        let file = fs::metadata(path)?;
        let times = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
        let [modified, modified_ns, changed, changed_ns] = times.map(i64::cast_unsigned);
        // Whoever sets back the time of a change cannot set back when that was done.
        let changed = changed.wrapping_mul(1_000_000_000).wrapping_add(changed_ns);
        let stamp = [file.dev(), file.ino(), file.len(), modified, modified_ns, changed];
        Ok(Self { path: path.to_owned(), stamp })
    }

    /// What is wrong where the file is no longer the one that was looked at.
    pub(crate) fn changed(&self) -> Option<String> {
        let path = self.path.display();
        match Self::at(&self.path) {
            Ok(now) if now == *self => None,
            Ok(_) => Some(format!("{path} has changed since the run began: begin a new run")),
            Err(error) => Some(format!("{path} cannot be run any more: {error}")),
        }
    }
}

/// The digest of a file that may be a program.
///
/// # Errors
/// A sentence, when it cannot be read or run.
pub fn digest(path: &Path) -> Result<String, String> {
    let said = |error: io::Error| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(said)?;
    let found = file.metadata().map_err(said)?;
    if !found.is_file() || found.mode() & 0o111 == 0 {
        return Err(format!("{} is no program: chmod +x makes a file one", path.display()));
    }
    digest::of_file(&file).map_err(said)
}

/// Asks a program whether it can be an arm of these cases, and for its version; `words` are the
/// sub-command that measures a case.
///
/// # Errors
/// A sentence, when it cannot.
pub fn greet(path: &Path, words: &[String], cases: Vec<(String, Case)>) -> Result<String, String> {
    let said = |why: String| format!("{}: {why}", path.display());
    let greeting = Greeting { protocol: PROTOCOL, cases };
    let request = serde_json::to_vec(&Request::Greet(greeting)).expect("a request has text keys");
    let care = Care { limit_ns: LIMIT_NS, heirlooms: &[], group: None, watch: &mut || () };
    let mut command = command(path);
    command.args(words);
    let ended = child::run(command, &request, care);
    let answer = match ended.map_err(|error| said(error.to_string()))? {
        Ended::Answered(bytes) => bytes,
        Ended::Interrupted => return Err(said("interrupted".into())),
        Ended::TimedOut => return Err(said("does not say who it is within 30 s".into())),
        Ended::Died(why) => {
            let who = "is no pagelab, or one that cannot be an arm of this one";
            return Err(said(format!("{who} ({why})")));
        }
    };
    let hello: Hello = serde_json::from_slice(&answer)
        .map_err(|error| said(format!("is no pagelab: its answer is none ({error})")))?;
    let Hello { version, protocol, schema, refuses } = hello;
    let theirs = format!("is pagelab {version}, which");
    if protocol != PROTOCOL || schema != schema::SCHEMA {
        return Err(said(format!(
            "{theirs} speaks protocol {protocol} and {schema}, not {PROTOCOL} and {}: build both \
             arms from sources that are closer to each other",
            schema::SCHEMA
        )));
    }
    refuses.map_or(Ok(version), |why| Err(said(format!("{theirs} measures it otherwise: {why}"))))
}

/// A command that starts a program under our own name.
pub(crate) fn command(path: &Path) -> Command {
    let mut command = Command::new(path);
    command.arg0("pagelab");
    command
}
