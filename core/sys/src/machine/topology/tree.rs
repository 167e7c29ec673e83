//! The file tree in which the kernel tells about itself: `/`, or a copy of the parts a test needs.
//!
//! One idea: whatever cannot be read is `None`. A kernel lacks most of the files that some other
//! kernel has, so absence is an answer here and never an error.

use std::{
    fs,
    path::{Path, PathBuf},
    str::FromStr,
};

use super::parse_list;
use crate::machine::{proc, selected};

/// A root directory below which `sys` and `proc` are found.
#[derive(Debug, Clone)]
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// The tree of the running kernel.
    pub fn machine() -> Self {
        Self::at("/")
    }

    /// A tree with `sys` and `proc` below `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The same tree with these files, and their folders: a machine made of files, for tests.
    ///
    /// # Panics
    /// When one cannot be written, or the tree is the running kernel's.
    #[must_use]
    pub fn with<P: AsRef<Path>, T: AsRef<[u8]>>(
        self,
        files: impl IntoIterator<Item = (P, T)>,
    ) -> Self {
        assert_ne!(self.root, Path::new("/"), "the running kernel has its files");
        for (path, contents) in files {
            let path = self.path(path);
            let folder = path.parent().expect("it lies below the root");
            fs::create_dir_all(folder).expect("a folder can be made");
            fs::write(path, contents).expect("a file can be written");
        }
        self
    }

    /// Where `path` (with or without a leading slash) lies in this tree.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The bytes of a file.
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        fs::read(self.path(path)).ok()
    }

    /// The text of a file without the white space around it.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = self.bytes(path)?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The number that a file consists of.
    pub fn number<T: FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// The word in brackets, as in `always [madvise] never`; without brackets the whole text.
    pub fn choice(&self, path: impl AsRef<Path>) -> Option<String> {
        self.text(path).map(|text| selected(&text).to_owned())
    }

    /// The numbers of a list like `0-3,8`; empty when there is no such file.
    pub fn list(&self, path: impl AsRef<Path>) -> Vec<usize> {
        self.text(path).and_then(|text| parse_list(&text)).unwrap_or_default()
    }

    /// The first value of `key` in a file of `key: value` or `key value` lines.
    pub fn field(&self, path: impl AsRef<Path>, key: &str) -> Option<String> {
        proc::field(&self.text(path)?, key).map(str::to_owned)
    }

    /// The first number of `key` in such a file, its unit left off.
    pub fn field_number(&self, path: impl AsRef<Path>, key: &str) -> Option<u64> {
        self.field(path, key)?.split_whitespace().next()?.parse().ok()
    }

    /// The names in a directory, sorted; empty when there is none.
    pub fn names(&self, directory: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(directory)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The numbers `N` for which the directory holds `prefixN`, ascending.
    pub fn numbered(&self, directory: impl AsRef<Path>, prefix: &str) -> Vec<usize> {
        let names = self.names(directory);
        let mut numbers: Vec<usize> = names
            .iter()
            .filter_map(|name| name.strip_prefix(prefix))
            .filter_map(|digits| digits.parse().ok())
            .collect();
        numbers.sort_unstable();
        numbers
    }
}
