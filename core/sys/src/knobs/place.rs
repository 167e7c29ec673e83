//! Where lock and journal live, and which files may be touched on their word.
//!
//! One idea: the journal is a file, and whoever can write it could have root write any file on
//! the next restore. So the directory must be ours alone, and a path is admitted only when, with
//! every link followed, it lies below `/sys` or `/proc`.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

use super::KnobError;
use crate::machine::Tree;

/// What begins the names of the folders of DAMON (`/sys/kernel/mm/damon`, its modules): whoever
/// runs it there must find it as it was left, and putting a value back would not do that. A monitor
/// of one's own is a [belonging](super::monitor).
const DAMON: &[u8] = b"damon";

/// The directory of the lock and the journal, and the roots below which knobs lie.
#[derive(Debug, Clone)]
pub struct Place {
    directory: PathBuf,
    roots: Vec<PathBuf>,
    tree: Tree,
}

impl Place {
    /// The machine's own: every run uses this one, so that the lock means something.
    pub const MACHINE: &str = "/run/pagelab";

    /// The machine's place.
    pub fn machine() -> Self {
        Self::at(Self::MACHINE)
    }

    /// A place in another directory; for the watchdog's argument, and for tests.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        let roots = vec!["/sys".into(), "/proc".into()];
        Self { directory: directory.into(), roots, tree: Tree::machine() }
    }

    /// The same place on a machine whose `sys` and `proc` lie elsewhere: for tests.
    #[must_use]
    pub fn with_tree(mut self, tree: Tree) -> Self {
        self.tree = tree;
        self
    }

    /// The same place with one more root: how tests admit knobs that are ordinary files.
    #[must_use]
    pub fn with_root(mut self, root: impl Into<PathBuf>) -> Self {
        self.roots.push(root.into());
        self
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where the kernel's files are.
    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.directory.join("knobs.lock")
    }

    pub(super) fn door(&self) -> PathBuf {
        self.directory.join("knobs.door")
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.directory.join("knobs.jsonl")
    }

    /// Makes the directory (0700), or checks that the one that is there is ours alone.
    pub(super) fn prepare(&self) -> Result<(), KnobError> {
        let path = &self.directory;
        if let Some(parent) = path.parent() {
            // `/run` itself is missing where our own binary is init.
            fs::create_dir_all(parent).map_err(KnobError::of("mkdir", path))?;
        }
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(KnobError::of("mkdir", path)(error));
            }
            _ => {}
        }
        let found = fs::symlink_metadata(path).map_err(KnobError::of("stat", path))?;
        let bad = |why| Err(KnobError::Directory { path: path.clone(), why });
        if !found.is_dir() {
            return bad("is not a directory");
        }
        if found.uid() != rustix::process::geteuid().as_raw() {
            // A root-owned directory seen by a user is the ordinary case: they need root.
            return match found.uid() {
                0 => Err(KnobError::Denied { path: path.clone() }),
                _ => bad("belongs to another user"),
            };
        }
        if found.mode() & 0o022 != 0 {
            return bad("can be written by others");
        }
        Ok(())
    }

    /// The path of a setting with every link followed: a file that can be written and read back.
    ///
    /// # Errors
    /// When it is none, or belongs to somebody else.
    pub fn setting(&self, path: &Path) -> Result<PathBuf, KnobError> {
        let real = self.admit(path)?;
        let mode = fs::metadata(&real).map_err(KnobError::of("stat", path))?.mode();
        let unsuitable =
            |why: &str| Err(KnobError::Unsuitable { path: real.clone(), why: why.into() });
        match (mode & 0o444 != 0, mode & 0o222 != 0) {
            (true, true) => Ok(real),
            (_, false) => unsuitable("can be read only: no setting"),
            (false, true) => {
                unsuitable("cannot be read back: it acts when written, and is no setting")
            }
        }
    }

    /// The path with every link followed, if it is a file below one of the roots that we may touch.
    pub(super) fn admit(&self, path: &Path) -> Result<PathBuf, KnobError> {
        let real = fs::canonicalize(path).map_err(KnobError::of("realpath", path))?;
        if real.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(DAMON)) {
            return Err(KnobError::Forbidden { path: real });
        }
        if real.is_file() && self.is_below_a_root(&real) {
            return Ok(real);
        }
        let roots: Vec<String> = self.roots.iter().map(|root| root.display().to_string()).collect();
        Err(KnobError::OutOfBounds { path: path.to_owned(), roots: roots.join(" or ") })
    }

    /// Whether the path is, with every link followed, a directory below one of the roots.
    pub(super) fn admits_directory(&self, path: &Path) -> bool {
        fs::canonicalize(path).is_ok_and(|real| real.is_dir() && self.is_below_a_root(&real))
    }

    fn is_below_a_root(&self, real: &Path) -> bool {
        let below = |root: &PathBuf| fs::canonicalize(root).is_ok_and(|r| real.starts_with(r));
        self.roots.iter().any(below)
    }
}
