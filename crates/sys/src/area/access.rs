#![expect(unsafe_code, reason = "memory under test is reached through raw pointers")]
//! Touching an area: the loops that a span is taken around, and single words for read-back.
//!
//! Rules: (1) the area is mapped, asserted before the first access; (2) every access is volatile
//! and lies in a window; (3) no reference into the area exists.

use super::Area;
use crate::touch::{Stride, TouchList};

impl Area {
    /// Writes `stride.bytes` at every step of the bytes `from..to` of the windows, ascending.
    pub fn touch(&self, from: usize, to: usize, stride: Stride) {
        assert!(self.mapped && from <= to && to <= self.layout.bytes(), "touch outside the area");
        assert!(from.is_multiple_of(stride.step), "a slice starts at a step");
        // SAFETY: the range is mapped writable (asserted), and stays so while `self` is borrowed.
        unsafe { crate::touch::ascending(self.base as *mut u8, self.layout, from, to, stride) }
    }

    /// Loads 8 bytes at every step of all windows, ascending.
    pub fn read(&self, stride: Stride) {
        assert!(self.mapped, "touch outside the area");
        for base in self.windows() {
            for at in (0..self.layout.window).step_by(stride.step) {
                // SAFETY: the window is mapped, and a step leaves room for 8 bytes in it.
                let value = unsafe { crate::touch::word_at(base as *mut u8, at).read_volatile() };
                std::hint::black_box(value);
            }
        }
    }

    /// Writes 8 bytes at every listed offset, in the list's order.
    pub fn touch_listed(&self, list: &TouchList, stride: Stride) {
        assert!(self.mapped, "touch outside the area");
        list.assert_within(self.layout.extent(), stride.bytes);
        // SAFETY: every offset lies in a window (asserted), which is mapped writable.
        unsafe { crate::touch::listed(self.base as *mut u8, list.offsets(), stride) }
    }

    /// The word at a byte of the windows laid end to end; a page that is absent faults.
    pub fn word(&self, at: usize) -> u64 {
        assert!(self.mapped && at < self.layout.bytes() && at.is_multiple_of(8), "no word there");
        let offset = self.layout.offset(at);
        // SAFETY: the word lies in a window (asserted), which is mapped.
        unsafe { crate::touch::word_at(self.base as *mut u8, offset).read_volatile() }
    }
}
