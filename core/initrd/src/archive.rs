//! The initramfs: a `newc` archive of cpio.
//!
//! The one idea: the archive is not compressed. QEMU copies it into the guest's memory at once,
//! while an emulated processor would take seconds to inflate it.

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use cpio::newc::{Builder, trailer};

/// `S_IFDIR | 0755`, `S_IFREG | 0755`, `S_IFCHR | 0600` of the UAPI's `stat.h`.
const DIRECTORY: u32 = 0o040_755;
const FILE: u32 = 0o100_755;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// An archive that grows.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    count: u32,
    known: BTreeSet<PathBuf>,
}

impl Archive {
    /// An archive with `/dev/console`, which the kernel opens for its first process.
    pub fn new() -> Self {
        let mut archive = Self::default();
        archive.directory(Path::new("dev"));
        let console = Builder::new("dev/console").mode(CHARACTER_DEVICE);
        archive.add(console.rdev_major(5).rdev_minor(1), &[]);
        archive
    }

    /// Adds a file that can be executed, with the folders that it lies in; of two of one path the
    /// first stays.
    ///
    /// # Panics
    /// When it is of 4 GiB or more.
    pub fn file(&mut self, path: &str, contents: &[u8]) {
        let path = path.trim_start_matches('/');
        if let Some(parent) = Path::new(path).parent() {
            self.directory(parent);
        }
        if self.known.insert(path.into()) {
            self.add(Builder::new(path).mode(FILE), contents);
        }
    }

    /// Adds a file of this machine.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn copy(&mut self, path: &str, from: &Path) -> Result<()> {
        let contents = fs::read(from).with_context(|| from.display().to_string())?;
        self.file(path, &contents);
        Ok(())
    }

    /// The whole archive.
    pub fn finish(self) -> Vec<u8> {
        trailer(self.bytes).expect("a vector grows")
    }

    fn directory(&mut self, path: &Path) {
        if path.as_os_str().is_empty() || !self.known.insert(path.to_owned()) {
            return;
        }
        if let Some(parent) = path.parent() {
            self.directory(parent);
        }
        self.add(Builder::new(&path.to_string_lossy()).mode(DIRECTORY).nlink(2), &[]);
    }

    fn add(&mut self, entry: Builder, contents: &[u8]) {
        self.count += 1;
        let size = u32::try_from(contents.len()).expect("a file of the initramfs is below 4 GiB");
        let mut writer = entry.ino(self.count).write(&mut self.bytes, size);
        let written = writer.write_all(contents).and_then(|()| writer.finish());
        written.expect("a vector grows");
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn every_entry_begins_at_a_multiple_of_four() {
        let mut archive = Archive::new();
        archive.file("a/b/c", b"12345");
        archive.file("a/b/d", b"");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        let starts: Vec<_> = text.match_indices("070701").map(|(at, _)| at).collect();
        assert!(starts.iter().all(|at| at % 4 == 0));
        // dev, dev/console, a, a/b, the two files, the trailer.
        assert_eq!(starts.len(), 7);
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a skip says so")]
    fn cpio_reads_what_was_written() {
        let mut archive = Archive::new();
        archive.file("bin/pagelab", b"#!/bin/true\n");
        archive.file("/bin/pagelab", b"another");
        let mut cpio = Command::new("cpio");
        cpio.args(["--list", "--verbose", "--quiet"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut list) = cpio.spawn() else {
            eprintln!("skipped: no cpio; to run it: sudo apt-get install cpio");
            return;
        };
        list.stdin.take().unwrap().write_all(&archive.finish()).unwrap();
        let text = String::from_utf8(list.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.lines().any(|line| line.starts_with("crw") && line.contains("dev/console")));
        let file = text.lines().find(|line| line.ends_with("bin/pagelab")).unwrap();
        assert!(file.starts_with("-rwxr-xr-x") && file.contains(" 12 "), "{file}");
    }
}
