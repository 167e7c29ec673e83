//! What is counted, on a page that the command reads which started the program.

use std::sync::atomic::{AtomicUsize, Ordering};

use pagelab_interpose::segment::{
    ALL_WORDS, Counted, Counter, NAME_BYTES, Reason, SHEET, SHEET_BYTES, WORDS, count_name,
};
use pagelab_interpose::{CounterPage, Errno};

use crate::own::OWN;

static PAGE: CounterPage<ALL_WORDS> = CounterPage::new();

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

/// Opens the page that the environment names.
pub(crate) fn open() {
    PAGE.open(SHEET, SHEET_BYTES);
}

/// Whether anybody reads it.
pub(crate) fn is_open() -> bool {
    PAGE.get().is_some()
}

/// Counts something instead of what was counted before.
pub(crate) fn replace(counted: impl Counter, before: u64, now: u64) {
    PAGE.add(counted.place(), now.wrapping_sub(before));
}

/// Counts something.
pub(crate) fn add(counted: impl Counter, more: usize) {
    PAGE.add(counted.place(), more as u64);
}

/// Counts what this process has now, instead of what it told before.
pub(crate) fn tell(counted: impl Counter, now: usize) {
    let place = counted.place();
    let before = OWN.told[place].swap(now as u64, Ordering::Relaxed);
    PAGE.add(place, (now as u64).wrapping_sub(before));
}

/// In a child of fork, which has told nothing.
pub(crate) fn after_fork_in_child() {
    for told in &OWN.told {
        told.store(0, Ordering::Relaxed);
    }
}

/// Counts a program that began with segments, by its name.
pub(crate) fn program(name: [u8; NAME_BYTES]) {
    add(Counted::Programs, 1);
    if let Some(words) = PAGE.get() {
        count_name(&words[WORDS..], name);
    }
}

/// Notes a number, over what was noted before.
pub(crate) fn set(counted: Counted, value: u64) {
    PAGE.set(counted.place(), value);
}

/// Notes an error number.
pub(crate) fn refused(counted: Counted, errno: Errno) {
    set(counted, errno.unsigned_abs().into());
}

/// A call went to the kernel.
pub(crate) fn fell_back(reason: Reason, bytes: usize) {
    PAGE.add(reason.place(), 1);
    PAGE.add(reason.place() + 1, bytes as u64);
}
