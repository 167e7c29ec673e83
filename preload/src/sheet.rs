//! The sheet: what was done, counted where whoever ordered it can read it.
//!
//! The one idea: words of a file that is mapped by all processes that are to be counted. Where
//! there is none nothing is counted, and all else is the same.

use std::sync::atomic::Ordering;

use pagelab_sys::process::preload::{Counted, SHEET, SHEET_BYTES, edge::Words};

use crate::calls::Errno;

/// As [`pagelab_sys::process::preload::Counts`] reads it.
static SHEET_OPEN: Words<{ Counted::ALL.len() }> = Words::new();

/// Opens the sheet that the environment names, and counts this program.
pub(crate) fn open() {
    if SHEET_OPEN.open(SHEET, SHEET_BYTES) {
        add(Counted::Programs, 1);
    }
}

/// Counts something.
pub(crate) fn add(counted: Counted, more: usize) {
    SHEET_OPEN.add(counted as usize, more as u64);
}

/// Counts what came of an order: so many bytes, or a refusal.
pub(crate) fn note(came: Result<usize, Errno>) {
    match came {
        Ok(bytes) => add(Counted::Bytes, bytes),
        Err(errno) => {
            add(Counted::Refused, 1);
            if let Some(words) = SHEET_OPEN.get() {
                let errno = u64::from(errno.unsigned_abs());
                words[Counted::Errno as usize].store(errno, Ordering::Relaxed);
            }
        }
    }
}
