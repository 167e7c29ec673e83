//! A file in memory that all programs map which a command starts: where a library in them counts.
//!
//! It has no name that could be left behind: processes of the same user open it by the descriptor
//! of the process that made it. Any of the programs may have written any word of it.

use std::{
    fs::File,
    io,
    os::{fd::AsRawFd, unix::fs::FileExt},
    path::Path,
};

use crate::memory::memfd;

/// Words of a file in memory, and the variable by which programs find it.
#[derive(Debug)]
pub struct CounterPage {
    file: File,
    variable: &'static str,
}

impl CounterPage {
    /// Creates a page of this size, filled with 0.
    ///
    /// # Errors
    /// When there can be no file in memory.
    pub fn new(name: &str, variable: &'static str, bytes: usize) -> io::Result<Self> {
        let file = memfd::create(name).map_err(io::Error::other)?;
        file.set_len(bytes as u64)?;
        Ok(Self { file, variable })
    }

    /// One that another process holds open, which is only read.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, variable: "" })
    }

    /// The variable that leads to it, for as long as it is there.
    pub fn variable(&self) -> (&'static str, String) {
        (self.variable, format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()))
    }

    /// Its words from one on.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn words(&self, at: usize, count: usize) -> io::Result<Vec<u64>> {
        let mut bytes = vec![0; count * 8];
        self.file.read_exact_at(&mut bytes, at as u64 * 8)?;
        Ok(bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect())
    }

    /// The first words; what cannot be read was not counted.
    pub fn first<const N: usize>(&self) -> [u64; N] {
        let words = self.words(0, N).unwrap_or_default();
        words.try_into().unwrap_or([0; N])
    }

    /// Sets words from one on.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn set(&self, at: usize, words: &[u64]) -> io::Result<()> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.file.write_all_at(&bytes, at as u64 * 8)
    }
}
