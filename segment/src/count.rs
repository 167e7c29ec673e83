//! What is counted, on a sheet that whoever started the program reads.
//!
//! The one idea: as in the library of [`pagelab_sys::process::preload`], words of a page that all
//! processes of a run share.

use std::sync::atomic::{AtomicUsize, Ordering};

use pagelab_sys::process::{
    preload::edge::{Errno, Words},
    segment::{
        ALL_WORDS, Backed, Counted, NAME_BYTES, Reason, SHEET, SHEET_BYTES, WORDS, count_name,
    },
};

static WORDS_OPEN: Words<ALL_WORDS> = Words::new();

/// How often this process took memory of a segment.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// This process takes memory of a segment.
pub(crate) fn take() {
    TAKEN.fetch_add(1, Ordering::Relaxed);
}

/// How often it did.
pub(crate) fn taken() -> usize {
    TAKEN.load(Ordering::Relaxed)
}

/// Opens the sheet that the environment names.
pub(crate) fn open() {
    WORDS_OPEN.open(SHEET, SHEET_BYTES);
}

/// Whether anybody reads them.
pub(crate) fn is_open() -> bool {
    WORDS_OPEN.get().is_some()
}

/// Counts something instead of what was counted before.
pub(crate) fn replace(counted: Counted, before: u64, now: u64) {
    WORDS_OPEN.add(counted as usize, now.wrapping_sub(before));
}

/// Counts something.
pub(crate) fn add(counted: Counted, more: usize) {
    WORDS_OPEN.add(counted as usize, more as u64);
}

/// Counts a program that began with segments, by its name.
pub(crate) fn program(name: [u8; NAME_BYTES]) {
    add(Counted::Programs, 1);
    if let Some(words) = WORDS_OPEN.get() {
        count_name(&words[WORDS..], name);
    }
}

/// The same of the memory behind segments.
pub(crate) fn replace_backed(backed: Backed, before: u64, now: u64) {
    WORDS_OPEN.add(backed.place(), now.wrapping_sub(before));
}

/// Counts something of the memory behind segments.
pub(crate) fn backed(backed: Backed, more: usize) {
    WORDS_OPEN.add(backed.place(), more as u64);
}

/// Notes a number, over what was noted before.
pub(crate) fn set(counted: Counted, value: u64) {
    if let Some(words) = WORDS_OPEN.get() {
        words[counted as usize].store(value, Ordering::Relaxed);
    }
}

/// Notes an error number.
pub(crate) fn refused(counted: Counted, errno: Errno) {
    set(counted, u64::from(errno.unsigned_abs()));
}

/// A call went to the kernel.
pub(crate) fn fell_back(reason: Reason, bytes: usize) {
    WORDS_OPEN.add(reason.place(), 1);
    WORDS_OPEN.add(reason.place() + 1, bytes as u64);
}
