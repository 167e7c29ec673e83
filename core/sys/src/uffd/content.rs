#![expect(unsafe_code, reason = "words are stored and loaded through raw pointers")]
//! What is in the pages afterwards: a pattern that tells each line from every other, and the marks
//! of write protection.
//!
//! Rules: (1) words are reached by volatile access while the area is mapped; (2) nothing here runs
//! while a clock does.
//!
//! The pattern lies in the second word of each line of 64 bytes: touches store to the first.

use crate::{
    Area, SysError,
    memory::{
        pagemap::{PROTECTED, Pagemap},
        word_at,
    },
};

const LINE: usize = 64;

/// The word of the line at `offset`, where lines repeat after `period` bytes.
fn word(offset: usize, period: usize) -> u64 {
    0x7061_6765_6c61_6200 ^ (offset % period) as u64
}

/// Stores the pattern in every line of an area of one window.
///
/// # Panics
/// When the area is not mapped.
pub fn fill(area: &Area, period: usize) {
    let base = area.base_ptr();
    for offset in (0..area.layout().window).step_by(LINE) {
        // SAFETY: the line lies in the one window, which is mapped writable.
        unsafe { word_at(base, offset + 8).write_volatile(word(offset, period)) };
    }
}

/// Lines of an area of one window that hold something else than the pattern; with `None`, something
/// else than zero.
///
/// # Panics
/// When the area is not mapped.
pub fn differing(area: &Area, period: Option<usize>) -> u64 {
    let base = area.base_ptr();
    let differs = |offset: &usize| {
        // SAFETY: the line lies in the one window, which is mapped.
        let found = unsafe { word_at(base, offset + 8).read_volatile() };
        found != period.map_or(0, |period| word(*offset, period))
    };
    (0..area.layout().window).step_by(LINE).filter(differs).count() as u64
}

/// Base pages of an area that are write-protected by a userfaultfd, by `/proc/self/pagemap`.
///
/// # Errors
/// When `/proc` is not mounted.
pub fn write_protected(area: &Area) -> Result<u64, SysError> {
    let (pagemap, mut found) = (Pagemap::open()?, 0);
    for start in area.windows() {
        pagemap.each(start, start + area.layout().window, |entry| {
            found += u64::from(entry & PROTECTED != 0);
        })?;
    }
    Ok(found)
}
