//! The runs of this place, newest last, and the names by which a person calls them.
//!
//! The one idea: directories are the truth. There is no index that could differ from them: a run is
//! a directory with a journal, its tags are a file in it, and both move with it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use pagelab_record::{
    Ab, Arm, Asked, RunHeader, input,
    journal::{self, Contents},
};
use pagelab_sys::files::folder::Folder;

use crate::exit::Failure;

/// Where runs go that were not told where.
pub const RUNS: &str = "pagelab-runs";
/// The newest run, wherever a run is named.
pub const LAST: &str = "LAST";
/// The tags of a run, a line each.
const TAGS: &str = "tags";
/// A file of tags is not longer than this.
const TAGS_BYTES_MAX: u64 = 64 << 10;

/// A directory that holds a run.
#[derive(Debug)]
pub struct Known {
    /// The directory.
    pub path: PathBuf,
    /// The first line of its journal.
    pub header: RunHeader,
    /// Its tags, sorted.
    pub tags: Vec<String>,
}

impl Known {
    /// A run whose first line was read.
    pub fn of(path: PathBuf, header: RunHeader) -> Self {
        let tags = tags(&path);
        Self { path, header, tags }
    }

    /// The run in a directory, where there is one that can be read.
    fn at(path: PathBuf) -> Option<Self> {
        let header = journal::header(&path).ok()?;
        Some(Self::of(path, header))
    }

    /// Everything in its journal.
    pub fn contents(&self) -> Result<Contents, Failure> {
        journal::read(&self.path).map_err(Failure::usage)
    }
}

/// The runs in some directories, the oldest first; one that is no run is passed over.
pub fn runs(below: &[PathBuf]) -> Vec<Known> {
    let entries = |folder: &PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<Known> = below
        .iter()
        .flat_map(entries)
        .filter(|entry| entry.path().join(journal::FILE).is_file())
        .filter_map(|entry| Known::at(without_dot(&entry.path())))
        .collect();
    // Runs that started in one second are numbered: `-10` comes after `-9`.
    let order = |run: &Known| {
        let name = run.path.file_name().map(|name| name.to_string_lossy().into_owned());
        (run.header.started.clone(), name.as_ref().map(String::len), name)
    };
    found.sort_by_cached_key(order);
    found
}

/// Where runs are looked for when nobody says: where `run` puts them, and here, for `-o`.
pub fn places() -> Vec<PathBuf> {
    vec![PathBuf::from("."), PathBuf::from(RUNS)]
}

/// What a person called a run: a path, `LAST`, a tag, or the name of a directory in [`RUNS`].
///
/// What exists is taken as a path; what cannot be found is given back, so that whoever opens it
/// says that it is not there.
///
/// # Errors
/// When `LAST` names nothing.
pub fn find(called: &Path) -> Result<PathBuf, Failure> {
    let Some(name) = called.to_str().filter(|_| !called.exists()) else {
        return Ok(called.to_owned());
    };
    let mut known = runs(&places());
    if name == LAST {
        let last = known.pop().map(|run| run.path);
        let none = || format!("{LAST}: there is no run here or in {RUNS}: pagelab run");
        return last.ok_or_else(|| Failure::from(none()));
    }
    let is_called = |run: &&Known| {
        run.tags.iter().any(|tag| tag == name) || run.path == Path::new(RUNS).join(name)
    };
    Ok(known.iter().rfind(is_called).map_or_else(|| called.to_owned(), |run| run.path.clone()))
}

/// The tags of a run; what cannot be read has none.
fn tags(run: &Path) -> Vec<String> {
    let text = input::text(&run.join(TAGS), TAGS_BYTES_MAX).unwrap_or_default();
    let mut tags: Vec<String> =
        text.lines().filter(|tag| check_tag(tag).is_ok()).map(str::to_owned).collect();
    tags.sort_unstable();
    tags.dedup();
    tags
}

/// Gives a run its tags, and no others.
///
/// # Errors
/// When the directory is not to be trusted or cannot be written.
pub fn set_tags(run: &Path, tags: &[String]) -> Result<(), Failure> {
    let folder = Folder::open(run).map_err(Failure::usage)?;
    let written = if tags.is_empty() {
        match folder.remove(TAGS) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    } else {
        folder.replace(TAGS, (tags.join("\n") + "\n").as_bytes())
    };
    let path = run.join(TAGS);
    written.map_err(|error| host!("{}: {error}", path.display()))
}

/// Whether a word can be a tag.
///
/// # Errors
/// A sentence that says what a tag is.
pub fn check_tag(tag: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    if tag == LAST {
        return Err(format!("`{LAST}` is always the newest run: choose another tag"));
    }
    if tag.is_empty() || tag.len() > 64 || tag.starts_with(['.', '-']) || !tag.chars().all(fits) {
        return Err(format!(
            "`{tag}` is no tag: up to 64 letters, digits, `.`, `_`, `-` and `+`, and the first is \
             a letter or a digit"
        ));
    }
    Ok(())
}

/// The path as a person would type it.
fn without_dot(path: &Path) -> PathBuf {
    path.strip_prefix(".").unwrap_or(path).to_owned()
}

/// The flag that names two arms, to paste.
pub fn arms(ab: &Ab) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+./:=@%,".contains(c);
    let word = |arm: &Arm| {
        let quoted = format!("'{}'", arm.name.replace('\'', r"'\''"));
        if arm.name.chars().all(plain) { arm.name.clone() } else { quoted }
    };
    format!("--ab {} {}", word(&ab.arms[0]), word(&ab.arms[1]))
}

/// The command that goes on with a run, to paste.
pub fn go_on(directory: &Path, header: &RunHeader) -> String {
    let arms = match &header.asked {
        Some(Asked::Ab(ab)) if ab.arms[0].beyond_journal().is_some() => format!(" {}", arms(ab)),
        _ => String::new(),
    };
    format!("pagelab resume {}{arms}", directory.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_a_word_that_no_path_or_flag_is() {
        for tag in ["v6.12", "before", "a_b-c+d"] {
            assert_eq!(check_tag(tag), Ok(()));
        }
        for tag in ["", "LAST", "-x", ".x", "a/b", "a b", "é", &"x".repeat(65)] {
            assert!(check_tag(tag).is_err(), "{tag}");
        }
    }
}
