#![expect(unsafe_code, reason = "measured loops store through raw pointers")]
//! The measured loops over memory: what stands between two clock readings.
//!
//! Rules: (1) functions of primitives, never inlined into their caller, so that every build
//! measures the same code; (2) nothing here allocates, calls the kernel, or branches on an option,
//! but for [`Area::sample_and_ask`], which asks it between samples; (3) every access is volatile;
//! (4) callers have checked every offset before the clock starts.

mod list;
mod untimed;

pub(crate) use list::MARK;
pub use list::{Stride, TouchList};

use crate::{
    Area, arch,
    loops::{Walk, marks::Watched},
    memory::word_at,
    time::{Clock, Usage, monotonic_raw_ns, usage},
};

/// What one timed touch does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Loads 8 bytes.
    Read,
    /// Stores 8 bytes.
    Write,
}

/// Stands for the time of a touch during which the thread moved to another CPU.
pub const MIGRATED: u64 = u64::MAX;

/// Where a paced loop leaves its times, in nanoseconds: one slot for each touch.
#[derive(Debug)]
pub struct Paced<'s> {
    /// From the start of the touch to its end; [`MIGRATED`] where that means nothing.
    pub service: &'s mut [u64],
    /// From when the touch was due to its end: with what the ones before it cost it.
    pub response: &'s mut [u64],
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
        mut record: impl FnMut(u64, bool),
    ) -> Dropped {
        let mut dropped = Dropped::default();
        self.time_each(list, access, clock, |_, ns, apart| match ns {
            Some(ns) => record(ns, apart),
            None => dropped.migrated += 1,
        });
        dropped
    }

    /// Times every listed touch on its own, into one slot for each, in the order of the list:
    /// nanoseconds, or [`MIGRATED`].
    ///
    /// # Panics
    /// When the list reaches outside the area, or there is not one slot for each touch.
    pub fn sample_touches(
        &self,
        list: &TouchList,
        access: Access,
        clock: &Clock,
        into: &mut [u64],
    ) {
        assert_eq!(list.len(), into.len(), "one slot for each touch");
        self.time_each(list, access, clock, |index, ns, _| into[index] = ns.unwrap_or(MIGRATED));
    }

    /// The same, and between two touches, outside the clock pair, other memory is walked over: how
    /// long that takes after each touch goes into `walks`.
    ///
    /// # Panics
    /// As [`Area::sample_touches`], for both.
    pub fn sample_and_walk(
        &self,
        list: &TouchList,
        access: Access,
        clock: &Clock,
        walk: &Walk,
        (into, walks): (&mut [u64], &mut [u64]),
    ) {
        assert_eq!(list.len(), into.len(), "one slot for each touch");
        assert_eq!(list.len(), walks.len(), "one slot for each walk");
        self.time_each(list, access, clock, |index, ns, _| {
            into[index] = ns.unwrap_or(MIGRATED);
            let walked = clock.span(|| {
                walk.walk();
            });
            walks[index] = clock.elapsed_ns(walked);
        });
    }

    /// Times every listed touch on its own, as [`Area::sample_touches`] does, and asks the kernel
    /// after each what it was: (nanoseconds or [`MIGRATED`], what was counted for it).
    ///
    /// The question is a system call (`getrusage`) outside the clock pair. It leaves its traces in
    /// the caches, so this is for touches of which nobody knows beforehand what they will take.
    ///
    /// # Panics
    /// When the list reaches outside the area.
    pub fn sample_and_ask(
        &self,
        list: &TouchList,
        access: Access,
        clock: &Clock,
        mut record: impl FnMut(u64, Usage),
    ) {
        let mut before = usage::thread();
        self.time_each(list, access, clock, |_, ns, _| {
            let now = usage::thread();
            record(ns.unwrap_or(MIGRATED), now.since(before));
            before = now;
        });
    }

    /// The same with an open loop: touch `i` is due `i × interval_ns` after the start and waits
    /// until then, spinning; when it is late, the ones after it do not wait for it.
    ///
    /// # Panics
    /// As [`Area::sample_touches`].
    pub fn sample_paced(
        &self,
        list: &TouchList,
        access: Access,
        clock: &Clock,
        interval_ns: u64,
        into: &mut Paced<'_>,
    ) {
        assert_eq!(list.len(), into.service.len(), "one slot for each touch");
        assert_eq!(list.len(), into.response.len(), "one slot for each touch");
        list.assert_within(self.layout().windows * self.layout().stride, 8);
        let base = self.base_ptr();
        match access {
            Access::Read => paced(list.offsets(), clock, interval_ns, into, |offset| {
                // SAFETY: the list lies within the windows (asserted), which are mapped.
                let value = unsafe { word_at(base, offset).read_volatile() };
                std::hint::black_box(value);
            }),
            Access::Write => paced(list.offsets(), clock, interval_ns, into, |offset| {
                // SAFETY: as above; the windows are writable.
                unsafe { word_at(base, offset).write_volatile(0) };
            }),
        }
    }

    /// One copy of the loop for each access.
    fn time_each(
        &self,
        list: &TouchList,
        access: Access,
        clock: &Clock,
        record: impl FnMut(usize, Option<u64>, bool),
    ) {
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

/// Times a body that does nothing, exactly as [`Area::sample_touches`] times a touch: the harness
/// alone.
///
/// # Panics
/// When there is not one slot for each touch.
pub fn sample_nothing(list: &TouchList, clock: &Clock, into: &mut [u64]) {
    assert_eq!(list.len(), into.len(), "one slot for each touch");
    let record = |index: usize, ns: Option<u64>, _| into[index] = ns.unwrap_or(MIGRATED);
    time_each(list.offsets(), clock, record, |_| ());
}

/// The latency loop, one copy for each clock: a million bodies of one operation.
#[inline(always)]
pub(crate) fn time_each(
    offsets: &[u64],
    clock: &Clock,
    record: impl FnMut(usize, Option<u64>, bool),
    body: impl Fn(usize),
) {
    match clock {
        Clock::Tsc(tsc) => {
            // A body that was moved to another CPU shows in TSC_AUX of its closing stamp.
            let mut aux = arch::ticks_end().1;
            sample_loop(offsets, record, |_, offset| {
                let start = arch::ticks_start();
                body(offset);
                let (end, now) = arch::ticks_end();
                let same = now == aux;
                aux = now;
                same.then(|| tsc.elapsed_ns(start, end))
            });
        }
        Clock::Raw { overhead_ns } => sample_loop(offsets, record, |_, offset| {
            let start = monotonic_raw_ns();
            body(offset);
            Some((monotonic_raw_ns() - start).saturating_sub(*overhead_ns))
        }),
        // What has no time is told by what is executed: whoever emulates the machine knows the
        // marks, and to a processor they are nothing.
        Clock::Scripted { .. } => {
            let _watched = Watched::begin();
            sample_loop(offsets, record, |_, offset| {
                let start = clock.scripted();
                arch::mark_begin();
                body(offset);
                arch::mark_end();
                Some(clock.scripted() - start)
            });
        }
    }
}

/// The paced loop, one copy for each clock.
#[inline(always)]
fn paced(
    offsets: &[u64],
    clock: &Clock,
    interval_ns: u64,
    into: &mut Paced<'_>,
    body: impl Fn(usize),
) {
    let Paced { service, response } = into;
    let record = |index: usize, times: Option<(u64, u64)>, _| {
        (service[index], response[index]) = times.unwrap_or((MIGRATED, MIGRATED));
    };
    match clock {
        Clock::Tsc(tsc) => {
            let interval = tsc.ticks(interval_ns);
            let (first, mut aux) = arch::ticks_end();
            sample_loop(offsets, record, |index, offset| {
                let due = first + index as u64 * interval;
                while arch::ticks_end().0 < due {
                    std::hint::spin_loop();
                }
                let start = arch::ticks_start();
                body(offset);
                let (end, now) = arch::ticks_end();
                let same = now == aux;
                aux = now;
                same.then(|| (tsc.elapsed_ns(start, end), tsc.elapsed_ns(due, end)))
            });
        }
        Clock::Raw { overhead_ns } => {
            let first = monotonic_raw_ns();
            sample_loop(offsets, record, |index, offset| {
                let due = first + index as u64 * interval_ns;
                while monotonic_raw_ns() < due {
                    std::hint::spin_loop();
                }
                let start = monotonic_raw_ns();
                body(offset);
                let end = monotonic_raw_ns();
                let since = |start: u64| end.saturating_sub(start).saturating_sub(*overhead_ns);
                Some((since(start), since(due)))
            });
        }
        // A script has no time to wait for: every touch starts when it is due.
        Clock::Scripted { .. } => sample_loop(offsets, record, |_, offset| {
            let start = clock.scripted();
            body(offset);
            let ns = clock.scripted() - start;
            Some((ns, ns))
        }),
    }
}

#[inline(never)]
fn sample_loop<T>(
    offsets: &[u64],
    mut record: impl FnMut(usize, Option<T>, bool),
    mut sample: impl FnMut(usize, usize) -> Option<T>,
) {
    for (index, entry) in offsets.iter().enumerate() {
        #[expect(clippy::cast_possible_truncation, reason = "offsets were made from usize")]
        let taken = sample(index, (entry & !MARK) as usize);
        record(index, taken, entry & MARK != 0);
    }
}
