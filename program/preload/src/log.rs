//! The log: which memory was asked for, by whom, and when it was given back.
//!
//! The one idea: whoever writes takes the next place first, so that writers need no lock; the first
//! word of an entry is written last. Where there is no log nothing is noted.

use std::sync::atomic::Ordering;

use pagelab_interpose::preload::log::{ENTRIES, ENTRY_WORDS, Entry, LOG, LOG_BYTES};
use pagelab_interpose::{CounterPage, kernel};

/// The entries; the first word of the first counts them.
static WORDS: CounterPage<{ (ENTRIES + 1) * ENTRY_WORDS }> = CounterPage::new();

/// Opens the log that the environment names, and notes this program.
pub(crate) fn open() {
    if WORDS.open(LOG, LOG_BYTES) {
        add(&Entry::Program { time_ns: now_ns(), pid: kernel::process().into() });
    }
}

/// Now, as entries have it.
pub(crate) fn now_ns() -> u64 {
    kernel::clock_ns(libc::CLOCK_MONOTONIC_RAW)
}

/// Adds an entry, as long as there is room.
pub(crate) fn add(entry: &Entry) {
    let Some(words) = WORDS.get() else { return };
    let nth = words[0].fetch_add(1, Ordering::Relaxed);
    let at = usize::try_from(nth).ok().and_then(|nth| nth.checked_add(1)?.checked_mul(ENTRY_WORDS));
    let place = at.and_then(|at| words.get(at..at.checked_add(ENTRY_WORDS)?));
    let Some([what, rest @ ..]) = place else { return };
    let [first, others @ ..] = entry.words();
    for (place, word) in rest.iter().zip(others) {
        place.store(word, Ordering::Relaxed);
    }
    what.store(first, Ordering::Release);
}
