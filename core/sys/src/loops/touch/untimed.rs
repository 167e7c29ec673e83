#![expect(unsafe_code, reason = "measured loops store through raw pointers")]
//! Touches that only a span around all of them times, and single words for read-back.
//!
//! Rules: (1) functions of primitives, never inlined into their caller, so that every build
//! measures the same code; (2) the area is mapped, asserted before the first access; (3) every
//! access is volatile and lies in a window; (4) no reference into the area exists.

use super::{MARK, Stride, TouchList};
use crate::{
    Area, arch,
    memory::{Layout, word_at},
};

impl Area {
    /// Writes `stride.bytes` at every step of the bytes `from..to` of the windows, ascending.
    pub fn touch(&self, from: usize, to: usize, stride: Stride) {
        assert!(from <= to && to <= self.layout().bytes(), "touch outside the area");
        assert!(from.is_multiple_of(stride.step), "a slice starts at a step");
        // SAFETY: the range is mapped writable (asserted), and stays so while `self` is borrowed.
        unsafe { ascending(self.base_ptr(), self.layout(), from, to, stride) }
    }

    /// Loads 8 bytes at every step of all windows, ascending.
    pub fn read(&self, stride: Stride) {
        for base in self.windows() {
            for at in (0..self.layout().window).step_by(stride.step) {
                // SAFETY: the window is mapped, and a step leaves room for 8 bytes in it.
                let value = unsafe { word_at(base as *mut u8, at).read_volatile() };
                std::hint::black_box(value);
            }
        }
    }

    /// Writes 8 bytes at every listed offset, in the list's order.
    pub fn touch_listed(&self, list: &TouchList, stride: Stride) {
        list.assert_within(self.layout().extent(), stride.bytes);
        // SAFETY: every offset lies in a window (asserted), which is mapped writable.
        unsafe { listed(self.base_ptr(), list.offsets(), stride) }
    }

    /// The word at a byte of the windows laid end to end; a page that is absent faults.
    pub fn word(&self, at: usize) -> u64 {
        assert!(at < self.layout().bytes() && at.is_multiple_of(8), "no word there");
        let offset = self.layout().offset(at);
        // SAFETY: the word lies in a window (asserted), which is mapped.
        unsafe { word_at(self.base_ptr(), offset).read_volatile() }
    }

    /// Sets the word at a byte of the windows laid end to end.
    ///
    /// # Panics
    /// When there is no word.
    pub fn set_word(&self, at: usize, value: u64) {
        assert!(at < self.layout().bytes() && at.is_multiple_of(8), "no word there");
        let offset = self.layout().offset(at);
        // SAFETY: the word lies in a window (asserted), which is mapped writable.
        unsafe { word_at(self.base_ptr(), offset).write_volatile(value) };
    }

    /// Loads 8 bytes at every `step` of the bytes `from..to` of the windows, ascending.
    ///
    /// # Panics
    /// When the range is not the area's or starts between two steps.
    pub fn load(&self, from: usize, to: usize, step: usize) {
        assert!(from <= to && to <= self.layout().bytes(), "touch outside the area");
        assert!(from.is_multiple_of(step), "a slice starts at a step");
        // SAFETY: the range is mapped (asserted by `base_ptr`), and stays so while `self` is
        // borrowed.
        unsafe { ascending_loads(self.base_ptr(), self.layout(), from, to, step) }
    }

    /// Loads 8 bytes at every listed offset, in the list's order.
    ///
    /// # Panics
    /// When the list reaches outside the area.
    pub fn load_listed(&self, list: &TouchList) {
        list.assert_within(self.layout().windows * self.layout().stride, 8);
        // SAFETY: every offset lies in a window (asserted), which is mapped.
        unsafe { listed_loads(self.base_ptr(), list.offsets()) }
    }
}

/// Writes at every step of `from..to` of the windows laid end to end.
///
/// # Safety
/// Every window of `layout` at `base` is mapped writable.
#[inline(never)]
unsafe fn ascending(base: *mut u8, layout: Layout, from: usize, to: usize, stride: Stride) {
    let mut at = from;
    while at < to {
        let end = to.min((at / layout.window + 1) * layout.window);
        // SAFETY: `at` is below `to`, hence inside a window, which lies in the caller's range.
        let start = unsafe { base.add(layout.offset(at)) };
        // SAFETY: the bytes from `at` to `end` are one window's.
        unsafe { window(start, end - at, stride) };
        at = end;
    }
}

/// One window; the common case of 8 bytes has a loop of its own.
unsafe fn window(start: *mut u8, bytes: usize, stride: Stride) {
    if stride.bytes == 8 {
        // SAFETY: the window is mapped writable, and has a word at each step.
        unsafe { arch::store_words(start, bytes, stride.step) };
        return;
    }
    let mut at = 0;
    while at < bytes {
        let mut byte = 0;
        while byte < stride.bytes {
            // SAFETY: `stride.bytes` is at most `stride.step`, so this stays inside the window.
            unsafe { word_at(start, at + byte).write_volatile(0) };
            byte += 8;
        }
        at += stride.step;
    }
}

/// Loads a word at every `step` of `from..to` of the windows laid end to end.
///
/// # Safety
/// Every window of `layout` at `base` is mapped readable.
#[inline(never)]
unsafe fn ascending_loads(base: *mut u8, layout: Layout, from: usize, to: usize, step: usize) {
    let mut at = from;
    while at < to {
        let end = to.min((at / layout.window + 1) * layout.window);
        // SAFETY: `at` is below `to`, hence inside a window, which lies in the caller's range.
        let start = unsafe { base.add(layout.offset(at)) };
        // SAFETY: the bytes from `at` to `end` are one window's.
        unsafe { arch::load_words(start, end - at, step) };
        at = end;
    }
}

/// Loads a word at every listed offset.
///
/// # Safety
/// Every offset of the list, plus 8, lies in memory mapped readable at `base`.
#[inline(never)]
unsafe fn listed_loads(base: *mut u8, offsets: &[u64]) {
    for offset in offsets {
        #[expect(clippy::cast_possible_truncation, reason = "offsets were made from usize")]
        let start = (offset & !MARK) as usize;
        // SAFETY: the caller checked the offset, and the mapping is readable.
        let word = unsafe { word_at(base, start).read_volatile() };
        std::hint::black_box(word);
    }
}

/// Writes at every listed offset.
///
/// # Safety
/// Every offset of the list, plus `stride.bytes`, lies in memory mapped writable at `base`.
#[inline(never)]
unsafe fn listed(base: *mut u8, offsets: &[u64], stride: Stride) {
    for offset in offsets {
        #[expect(clippy::cast_possible_truncation, reason = "offsets were made from usize")]
        let start = (offset & !MARK) as usize;
        let mut byte = 0;
        while byte < stride.bytes {
            // SAFETY: the caller checked the offset, and the mapping is writable.
            unsafe { word_at(base, start + byte).write_volatile(0) };
            byte += 8;
        }
    }
}
