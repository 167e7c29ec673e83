#![expect(unsafe_code, reason = "memory that others read; the rules are in lib.rs")]
//! The sheet: what was done, counted where whoever ordered it can read it.
//!
//! The one idea: words of a file that is mapped by all processes that are to be counted. Where
//! there is none nothing is counted, and all else is the same.

use std::{
    ptr,
    sync::atomic::{AtomicPtr, AtomicU64, Ordering},
};

use pagelab_sys::process::preload::{Counted, SHEET, SHEET_BYTES};

use crate::calls::{self, Errno};

/// As [`pagelab_sys::process::preload::Counts`] reads it.
#[repr(C)]
struct Sheet([AtomicU64; Counted::ALL.len()]);

static OPEN: AtomicPtr<Sheet> = AtomicPtr::new(ptr::null_mut());

/// Opens the sheet that the environment names, and counts this program.
pub(crate) fn open() {
    let Some(file) = calls::variable(SHEET).and_then(|path| calls::open(path).ok()) else {
        return;
    };
    // A shorter one would be a SIGBUS, a longer one is somebody else's.
    let is_whole = calls::size(file)
        .is_ok_and(|size| usize::try_from(size).is_ok_and(|size| size == SHEET_BYTES));
    if is_whole && let Ok(at) = calls::shared(file, SHEET_BYTES) {
        OPEN.store(at.cast(), Ordering::Release);
        add(Counted::Programs, 1);
    }
    calls::close(file);
}

fn sheet() -> Option<&'static Sheet> {
    // SAFETY: rule 3: null, or mapped for good, aligned, and longer than this.
    unsafe { OPEN.load(Ordering::Acquire).as_ref() }
}

/// Counts something.
pub(crate) fn add(counted: Counted, more: usize) {
    if let Some(sheet) = sheet() {
        sheet.0[counted as usize].fetch_add(more as u64, Ordering::Relaxed);
    }
}

/// Counts what came of an order: so many bytes, or a refusal.
pub(crate) fn note(came: Result<usize, Errno>) {
    match (came, sheet()) {
        (Ok(bytes), _) => add(Counted::Bytes, bytes),
        (Err(errno), Some(sheet)) => {
            add(Counted::Refused, 1);
            let errno = u64::from(errno.unsigned_abs());
            sheet.0[Counted::Errno as usize].store(errno, Ordering::Relaxed);
        }
        (Err(_), None) => (),
    }
}
