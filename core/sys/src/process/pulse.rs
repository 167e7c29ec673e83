//! How far a process has come, for its parent to look at: a page that both have mapped.
//!
//! The one idea: the worker stores numbers and never calls anybody, so that being watched costs a
//! store; the parent looks when it has time. Nothing here tells a clock, and torn pictures (a new
//! count with an old position) are harmless: they are drawn, not measured.

use std::{
    fs::File,
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::fs::{SealFlags, fcntl_add_seals};

use crate::{
    Called, SysError,
    memory::{map::Words, memfd},
};

/// Bytes of the page that is shared.
const BYTES: usize = 4096;

/// How far somebody has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Beat {
    /// Operations done, over all repetitions.
    pub ops: u64,
    /// Where in the work it is, in any unit.
    pub position: u64,
    /// Where the work ends, in the same unit; 0 where nobody knows.
    pub end: u64,
}

/// A page that two processes share.
#[derive(Debug)]
pub struct Pulse {
    words: Words,
    file: File,
}

impl Pulse {
    /// A new page, all zero.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn new() -> Result<Self, SysError> {
        let file = memfd::create("pagelab-pulse")?;
        file.set_len(BYTES as u64).called("ftruncate", "the page of a pulse")?;
        // Mapped memory that cannot vanish: nobody may shrink the file.
        let size = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        fcntl_add_seals(&file, size).called("fcntl", "F_ADD_SEALS")?;
        Self::of(file)
    }

    /// The page that another process made, by the file that was inherited from it.
    ///
    /// # Errors
    /// When the file is not one that [`Pulse::new`] made.
    pub fn of(file: File) -> Result<Self, SysError> {
        let seals = rustix::fs::fcntl_get_seals(&file).called("fcntl", "F_GET_SEALS")?;
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        if !seals.contains(SealFlags::SHRINK) || length != BYTES as u64 {
            let why = std::io::Error::other("no page that cannot shrink");
            return Err(SysError::new("mmap", "the page of a pulse", why));
        }
        Ok(Self { words: Words::of(&file, BYTES)?, file })
    }

    /// What a child must inherit to share it.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Starts a piece of work that ends at `end`; the count of operations goes on.
    pub fn begin(&self, end: u64) {
        let [_, position, last] = self.words();
        position.store(0, Ordering::Relaxed);
        last.store(end, Ordering::Relaxed);
    }

    /// Adds operations that were done, and says where in the work that is.
    pub fn advance(&self, ops: u64, at: u64) {
        let [done, position, _] = self.words();
        position.store(at, Ordering::Relaxed);
        done.fetch_add(ops, Ordering::Relaxed);
    }

    /// Adds operations that were done.
    pub fn add(&self, ops: u64) {
        self.words()[0].fetch_add(ops, Ordering::Relaxed);
    }

    /// How far the one who works has come.
    pub fn beat(&self) -> Beat {
        let [ops, position, end] = self.words().each_ref().map(|word| word.load(Ordering::Relaxed));
        Beat { ops, position, end }
    }

    fn words(&self) -> &[AtomicU64; 3] {
        self.words.get().first_chunk().expect("a page holds more than three words")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_side_counts_the_other_sees() {
        let parent = Pulse::new().unwrap();
        let child = Pulse::of(parent.file().try_clone().unwrap()).unwrap();
        child.begin(100);
        child.advance(7, 30);
        child.add(3);
        assert_eq!(parent.beat(), Beat { ops: 10, position: 30, end: 100 });
        child.begin(50);
        assert_eq!(parent.beat(), Beat { ops: 10, position: 0, end: 50 });
    }

    #[test]
    fn a_file_that_could_shrink_is_refused() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        assert!(Pulse::of(file).is_err());
        assert!(Pulse::of(memfd::create("short").unwrap()).is_err());
    }
}
