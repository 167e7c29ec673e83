#![expect(unsafe_code, reason = "measured loops store through raw pointers")]
//! The measured loops over memory: what stands between two clock readings.
//!
//! Rules: (1) functions of primitives, never inlined into their caller, so that every build
//! measures the same code; (2) nothing here allocates, calls the kernel, or branches on an option;
//! (3) every access is volatile; (4) callers have checked every offset before the clock starts.

use crate::{
    arch,
    area::{Area, Layout},
    clock::{Clock, monotonic_raw_ns},
};

/// What is written where: `bytes` (a multiple of 8) at every `step`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stride {
    /// Distance of the touches.
    pub step: usize,
    /// Bytes written at each.
    pub bytes: usize,
}

/// Offsets in the order in which they are touched, already present in memory.
#[derive(Debug, Clone)]
pub struct TouchList {
    offsets: Vec<u64>,
    highest: u64,
}

/// Bit 0 of an entry marks a touch whose latency is kept apart; offsets are multiples of 8.
pub(crate) const MARK: u64 = 1;

impl TouchList {
    /// A list of (offset, kept apart). Offsets are multiples of 8.
    pub fn new(touches: impl IntoIterator<Item = (usize, bool)>) -> Self {
        let entry = |(offset, apart): (usize, bool)| {
            assert!(offset.is_multiple_of(8), "offset {offset} is not a multiple of 8");
            offset as u64 | u64::from(apart)
        };
        let offsets: Vec<u64> = touches.into_iter().map(entry).collect();
        let highest = offsets.iter().map(|offset| offset & !MARK).max().unwrap_or(0);
        Self { offsets, highest }
    }

    /// Number of touches.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether nothing is touched.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Number of touches that are kept apart.
    pub fn kept_apart(&self) -> usize {
        self.offsets.iter().filter(|offset| *offset & MARK != 0).count()
    }

    pub(crate) fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    pub(crate) fn assert_within(&self, extent: usize, bytes: usize) {
        assert!(self.highest + bytes as u64 <= extent as u64, "touch outside the area");
    }
}

/// Writes at every step of `from..to` of the windows laid end to end.
///
/// # Safety
/// Every window of `layout` at `base` is mapped writable.
#[inline(never)]
pub(crate) unsafe fn ascending(
    base: *mut u8,
    layout: Layout,
    from: usize,
    to: usize,
    stride: Stride,
) {
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
        arch::store_words(start, bytes, stride.step);
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

/// Writes at every listed offset.
///
/// # Safety
/// Every offset of the list, plus `stride.bytes`, lies in memory mapped writable at `base`.
#[inline(never)]
pub(crate) unsafe fn listed(base: *mut u8, offsets: &[u64], stride: Stride) {
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

/// What one timed touch does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Loads 8 bytes.
    Read,
    /// Stores 8 bytes.
    Write,
}

/// What the latency loop could not use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dropped {
    /// Samples during which the thread moved to another CPU.
    pub migrated: u64,
}

impl Area {
    /// Times every listed touch on its own and hands (nanoseconds, kept apart) to `record`.
    ///
    /// `record` runs between samples, never inside one; it must not allocate or call the kernel.
    ///
    /// # Panics
    /// When the list reaches outside the area.
    pub fn time_touches(
        &self,
        list: &TouchList,
        access: Access,
        clock: &Clock,
        record: impl FnMut(u64, bool),
    ) -> Dropped {
        list.assert_within(self.layout().windows * self.layout().stride, 8);
        let base = self.base_ptr();
        match access {
            Access::Read => time_each(list.offsets(), clock, record, |offset| {
                // SAFETY: the list lies within the windows (asserted), which are mapped.
                let value = unsafe { word_at(base, offset).read_volatile() };
                std::hint::black_box(value);
            }),
            Access::Write => time_each(list.offsets(), clock, record, |offset| {
                // SAFETY: as above; the windows are writable.
                unsafe { word_at(base, offset).write_volatile(0) };
            }),
        }
    }
}

/// Times a body that does nothing, exactly as the latency loop times a touch: the harness alone.
pub fn time_nothing(list: &TouchList, clock: &Clock, record: impl FnMut(u64, bool)) -> Dropped {
    time_each(list.offsets(), clock, record, |_| ())
}

/// The word `offset` bytes above `base`: a page-aligned address and a multiple of 8.
#[inline(always)]
pub(crate) fn word_at(base: *mut u8, offset: usize) -> *mut u64 {
    base.wrapping_add(offset).cast()
}

/// The latency loop, one copy for each clock: a million bodies of one operation.
#[inline(always)]
fn time_each(
    offsets: &[u64],
    clock: &Clock,
    record: impl FnMut(u64, bool),
    body: impl Fn(usize),
) -> Dropped {
    match clock {
        Clock::Tsc(tsc) => {
            // A body that was moved to another CPU shows in TSC_AUX of its closing stamp.
            let mut aux = arch::ticks_end().1;
            sample_loop(offsets, record, |offset| {
                let start = arch::ticks_start();
                body(offset);
                let (end, now) = arch::ticks_end();
                let same = now == aux;
                aux = now;
                same.then(|| tsc.elapsed_ns(start, end))
            })
        }
        Clock::Raw { overhead_ns } => sample_loop(offsets, record, |offset| {
            let start = monotonic_raw_ns();
            body(offset);
            Some((monotonic_raw_ns() - start).saturating_sub(*overhead_ns))
        }),
        Clock::Scripted { .. } => sample_loop(offsets, record, |offset| {
            let start = clock.scripted();
            body(offset);
            Some(clock.scripted() - start)
        }),
    }
}

#[inline(never)]
fn sample_loop(
    offsets: &[u64],
    mut record: impl FnMut(u64, bool),
    mut sample: impl FnMut(usize) -> Option<u64>,
) -> Dropped {
    let mut dropped = Dropped::default();
    for entry in offsets {
        #[expect(clippy::cast_possible_truncation, reason = "offsets were made from usize")]
        match sample((entry & !MARK) as usize) {
            Some(ns) => record(ns, entry & MARK != 0),
            None => dropped.migrated += 1,
        }
    }
    dropped
}
