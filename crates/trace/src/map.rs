//! Trace files as memory: for whoever asks for a mapping, to measure one.
//!
//! A mapped file that somebody shortens ends the process that reads it (`SIGBUS`), and one that
//! somebody writes changes under the decoder; so [`crate::file`] reads, and this is on request.
//!
//! # Rules
//! 1. The mapping is read-only and private to this type; it lives as long as the bytes are lent.
//! 2. That nobody changes the file meanwhile cannot be checked. The caller who asks for a mapping
//!    answers for it; what decodes the bytes makes no assumption about them but their number.
#![expect(unsafe_code, reason = "a mapping of a file is only as good as its file; rules above")]

use std::{fs::File, io, path::Path};

use memmap2::{Mmap, MmapOptions};

use crate::file::{Compression, FileError, judge_start};

/// When the pages of a mapping are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Populate {
    /// Each when it is touched.
    #[default]
    Touched,
    /// All at once, before [`Mapping::open`] returns, where the OS has it (Linux: `MAP_POPULATE`).
    Whole,
}

/// A raw trace, mapped.
#[derive(Debug)]
pub struct Mapping {
    map: Mmap,
}

impl Mapping {
    /// Maps a raw trace.
    ///
    /// # Errors
    /// When it cannot be opened or mapped, is empty or compressed, or does not start with a record.
    pub fn open(path: &Path, populate: Populate) -> Result<Self, FileError> {
        let failed = |source| FileError::Open { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            let why = "only regular files can be mapped";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        if metadata.len() == 0 {
            judge_start(path, Compression::None, &[])?;
        }
        let mut options = MmapOptions::new();
        if populate == Populate::Whole {
            options.populate();
        }
        // SAFETY: rules 1 and 2; whoever calls this asked for a mapping.
        let map = unsafe { options.map(&file) }.map_err(failed)?;
        let compression = Compression::of_magic(&map);
        if compression != Compression::None {
            return Err(FileError::Compressed { path: path.to_owned(), compression });
        }
        judge_start(path, compression, &map)?;
        Ok(Self { map })
    }

    /// The records.
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }
}
