//! What a preloaded library did in a run of a program: its orders go in, its counts come out.
//!
//! The one idea: the sheet that it counts on is a file in our memory, which whoever runs under the
//! same user opens by our own descriptor; it has no name that could be left behind.

use std::{
    fs::File,
    io,
    os::{fd::AsRawFd, unix::fs::FileExt},
};

use pagelab_sys::{
    memory::memfd,
    process::preload::{Counts, SHEET, SHEET_BYTES},
};

/// A sheet for one run.
#[derive(Debug)]
pub(super) struct Sheet(File);

impl Sheet {
    pub(super) fn new() -> io::Result<Self> {
        let file = memfd::create("pagelab-sheet").map_err(io::Error::other)?;
        file.set_len(SHEET_BYTES as u64)?;
        Ok(Self(file))
    }

    /// The variable that leads to it.
    pub(super) fn variable(&self) -> (&'static str, String) {
        (SHEET, format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()))
    }

    /// What was counted.
    pub(super) fn counts(&self) -> Counts {
        let mut bytes = [0; SHEET_BYTES];
        // What cannot be read was not counted.
        let _ = self.0.read_exact_at(&mut bytes, 0);
        Counts::of(&bytes)
    }
}
