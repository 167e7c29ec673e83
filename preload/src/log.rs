#![expect(unsafe_code, reason = "memory that others read; the rules are in lib.rs")]
//! The log: which memory was asked for, by whom, and when it was given back.
//!
//! The one idea: whoever writes takes the next place first, so that writers need no lock; the first
//! word of an entry is written last. Where there is no log nothing is noted.

use std::{
    ptr,
    sync::atomic::{AtomicPtr, AtomicU64, Ordering},
};

use pagelab_sys::process::preload::log::{ENTRIES, ENTRY_WORDS, Entry, LOG, LOG_BYTES};

use crate::calls;

/// The entries; the first word of the first counts them.
#[repr(C)]
struct Log([[AtomicU64; ENTRY_WORDS]; ENTRIES + 1]);

static OPEN: AtomicPtr<Log> = AtomicPtr::new(ptr::null_mut());

/// Opens the log that the environment names, and notes this program.
pub(crate) fn open() {
    let Some(file) = calls::variable(LOG) else { return };
    let Ok(file) = calls::open(file, libc::O_RDWR) else { return };
    let is_whole =
        calls::size(file).is_ok_and(|size| usize::try_from(size).is_ok_and(|n| n == LOG_BYTES));
    if is_whole && let Ok(at) = calls::shared(file, LOG_BYTES) {
        OPEN.store(at.cast(), Ordering::Release);
        add(&Entry::Program { time_ns: calls::now_ns(), pid: calls::process() });
    }
    calls::close(file);
}

/// Adds an entry, as long as there is room.
pub(crate) fn add(entry: &Entry) {
    // SAFETY: null, or mapped for good, aligned, and as long as this.
    let Some(log) = (unsafe { OPEN.load(Ordering::Acquire).as_ref() }) else { return };
    let nth = log.0[0][0].fetch_add(1, Ordering::Relaxed);
    let place = usize::try_from(nth).ok().and_then(|nth| log.0.get(nth.checked_add(1)?));
    let Some([what, rest @ ..]) = place else { return };
    let [first, others @ ..] = entry.words();
    for (place, word) in rest.iter().zip(others) {
        place.store(word, Ordering::Relaxed);
    }
    what.store(first, Ordering::Release);
}
