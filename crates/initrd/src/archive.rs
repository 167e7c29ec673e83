//! The initramfs: a `newc` archive of cpio, written here because it is thirty lines.
//!
//! The one idea: the archive is not compressed. QEMU copies it into the guest's memory at once,
//! while an emulated processor would take seconds to inflate it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

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
        archive.entry("dev/console", CHARACTER_DEVICE, (5, 1), &[]);
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
            self.entry(path, FILE, (0, 0), contents);
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
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn directory(&mut self, path: &Path) {
        if path.as_os_str().is_empty() || !self.known.insert(path.to_owned()) {
            return;
        }
        if let Some(parent) = path.parent() {
            self.directory(parent);
        }
        self.entry(&path.to_string_lossy(), DIRECTORY, (0, 0), &[]);
    }

    /// The header is a magic number and 13 hexadecimal fields of eight digits.
    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), contents: &[u8]) {
        self.count += 1;
        let links = if mode == DIRECTORY { 2 } else { 1 };
        let size = u32::try_from(contents.len()).expect("a file of the initramfs is below 4 GiB");
        let name_size = u32::try_from(name.len() + 1).expect("a path is short");
        let (major, minor) = device;
        let fields = [self.count, mode, 0, 0, links, 0, size, 0, 0, major, minor, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        process::{Command, Stdio},
    };

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
