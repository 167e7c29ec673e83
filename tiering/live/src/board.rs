//! What a running engine has found, for whoever asks: `tier status`.
//!
//! The one idea: a file in memory that has a name and no place. Whoever may look at a process finds
//! it among the process's open files, as the kernel allows it; it goes with the process, also with
//! one that is killed, and nothing is left on any disk. What stands in it was written by somebody's
//! process: it is bounded, and nothing is believed but that it was said.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::FileExt,
};

use pagelab_sys::{
    files::regular::{self, Links},
    machine::Tree,
    memory::memfd,
};
use serde::{Deserialize, Serialize};

use crate::{heat::HotRange, reason::Reason};

/// The name, as the kernel shows it behind `memfd:`.
const NAME: &str = "pagelab-promote";
/// Bytes that are read of one, and engines that one may show.
const BYTES_MAX: u64 = 1 << 20;
const ENGINES_MAX: usize = 256;

/// What an engine has to say of its process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// The process.
    pub pid: u32,
    /// The policy, complete.
    pub policy: String,
    /// The source.
    pub source: String,
    /// Looks so far.
    pub looks: u64,
    /// Pages that are there, and that the last look saw.
    pub present: u64,
    /// See `present`.
    pub used: u64,
    /// Pages that were promoted and demoted so far.
    pub promoted: u64,
    /// See `promoted`.
    pub demoted: u64,
    /// Pages that are hot.
    pub hot: u64,
    /// The ranges that have most of them.
    pub ranges: Vec<HotRange>,
    /// Why nothing moves, or less than could.
    pub reasons: Vec<Reason>,
}

/// An engine that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Promoting {
    /// The pagelab that it runs in.
    pub by: u32,
    /// What it shows.
    #[serde(flatten)]
    pub shown: Shown,
}

/// Where the engines of this process show what they found.
#[derive(Debug)]
pub struct Board(File);

impl Board {
    /// An empty one.
    ///
    /// # Errors
    /// When the kernel has no memory for it.
    pub fn new() -> io::Result<Self> {
        memfd::create(NAME).map(Self).map_err(io::Error::other)
    }

    /// Shows this instead of what stood there.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn show(&self, engines: &[Shown]) -> io::Result<()> {
        let engines = &engines[..engines.len().min(ENGINES_MAX)];
        let mut text = serde_json::to_vec(engines).map_err(io::Error::other)?;
        text.push(b'\n');
        // The end of the line is the end: what an earlier one had more of is cut off behind it.
        self.0.write_all_at(&text, 0)?;
        self.0.set_len(text.len() as u64)
    }
}

/// What all engines that may be looked at show now.
pub fn promoting(tree: &Tree) -> Vec<Promoting> {
    let pids = tree.numbered("proc", "").into_iter();
    let mut found: Vec<Promoting> = pids
        .filter_map(|pid| u32::try_from(pid).ok())
        .flat_map(|by| of(tree, by).into_iter().map(move |shown| Promoting { by, shown }))
        .collect();
    found.sort_by_key(|one| (one.shown.pid, one.by));
    found
}

/// What the engines in a process show.
fn of(tree: &Tree, pid: u32) -> Vec<Shown> {
    let folder = tree.path(format!("proc/{pid}/fd"));
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let is_board = |path: &std::path::PathBuf| {
        let target = fs::read_link(path).unwrap_or_default();
        let name = target.file_name().and_then(std::ffi::OsStr::to_str).unwrap_or_default();
        name.strip_prefix("memfd:").is_some_and(|name| name.starts_with(NAME))
    };
    let board = entries.filter_map(|entry| Some(entry.ok()?.path())).find(is_board);
    // A look may meet a board that is being written: then it is there at the next.
    board.and_then(|path| read(&path).ok()).unwrap_or_default()
}

fn read(path: &std::path::Path) -> io::Result<Vec<Shown>> {
    let file = regular::open(path, Links::Followed)?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut engines: Vec<Shown> = serde_json::from_slice(line)?;
    engines.truncate(ENGINES_MAX);
    Ok(engines)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn shown(pid: u32, ranges: usize) -> Shown {
        let range = HotRange { start: 4096, end: 12288, hot: 2, pages: 2 };
        Shown {
            pid,
            policy: "history:hot=2".into(),
            source: "soft-dirty".into(),
            looks: 3,
            present: 100,
            used: 2,
            promoted: 1,
            demoted: 0,
            hot: 2,
            ranges: vec![range; ranges],
            reasons: vec![Reason::RateLimit { waited_ns: 7 }],
        }
    }

    #[test]
    fn a_board_of_this_process_is_found_by_whoever_looks() {
        let board = Board::new().unwrap();
        let ours = std::process::id();
        let found = || {
            let all = promoting(&Tree::machine()).into_iter();
            all.filter(|one| one.by == ours).map(|one| one.shown).collect::<Vec<_>>()
        };
        board.show(&[shown(7, 8), shown(9, 0)]).unwrap();
        assert_eq!(found(), [shown(7, 8), shown(9, 0)]);
        // A shorter one leaves nothing of the longer.
        board.show(&[shown(9, 1)]).unwrap();
        assert_eq!(found(), [shown(9, 1)]);
        drop(board);
        assert_eq!(found(), []);
    }

    #[test]
    fn what_is_no_board_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::at(folder.path());
        for (pid, text) in [(1, "nonsense\n"), (2, ""), (3, "[{\"pid\":7}]\n"), (4, "[]\n")] {
            let fd = folder.path().join(format!("proc/{pid}/fd"));
            fs::create_dir_all(&fd).unwrap();
            fs::write(fd.join("memfd:pagelab-promote (deleted)"), text).unwrap();
            symlink("memfd:pagelab-promote (deleted)", fd.join("3")).unwrap();
        }
        assert_eq!(promoting(&tree), []);
        assert_eq!(promoting(&Tree::at("/nowhere")), []);
    }
}
