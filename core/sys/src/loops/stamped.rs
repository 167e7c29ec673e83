#![expect(unsafe_code, reason = "the loop loads and stores through raw pointers")]
//! Touches with both of their stamps kept, on the clock that kernel events are stamped with.
//!
//! The one idea: to tie what the kernel tells of a fault to the touch that took it, both must be
//! stamped by one clock. That is `CLOCK_MONOTONIC_RAW`, which `perf_event_open(2)` offers for its
//! records and the vDSO for user space; the kernel computes both from one base. A difference of two
//! of our stamps contains one reading of the clock (some 20 to 50 ns), which is not subtracted.
//!
//! It is not the loop of `fault/latency`, which reads the time stamp counter and keeps no stamps.
//!
//! Rules: (1) the list was checked to lie within the windows, which are mapped; (2) every access is
//! volatile; (3) nothing between the stamps but the access.

use crate::{
    Area,
    loops::{Access, TouchList, touch::MARK},
    memory::word_at,
    time::monotonic_raw_ns,
};

/// The stamps of one touch, in nanoseconds of `CLOCK_MONOTONIC_RAW`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamps {
    /// Before the access.
    pub start: u64,
    /// After it.
    pub end: u64,
}

impl Area {
    /// Touches every listed place and leaves the stamps of each, in order. `stamps` should have
    /// been written to before: otherwise the loop takes faults of its own.
    ///
    /// # Panics
    /// When the list reaches outside the area, or there are not as many stamps as touches.
    pub fn stamp_touches(&self, list: &TouchList, access: Access, stamps: &mut [Stamps]) {
        list.assert_within(self.layout().windows * self.layout().stride, 8);
        assert_eq!(list.len(), stamps.len(), "one pair of stamps a touch");
        let base = self.base_ptr();
        match access {
            Access::Read => stamp_each(list.offsets(), stamps, |offset| {
                // SAFETY: rule 1.
                let value = unsafe { word_at(base, offset).read_volatile() };
                std::hint::black_box(value);
            }),
            Access::Write => stamp_each(list.offsets(), stamps, |offset| {
                // SAFETY: rule 1; the windows are writable.
                unsafe { word_at(base, offset).write_volatile(0) };
            }),
        }
    }
}

#[inline(always)]
fn stamp_each(offsets: &[u64], stamps: &mut [Stamps], body: impl Fn(usize)) {
    for (entry, stamp) in offsets.iter().zip(stamps) {
        #[expect(clippy::cast_possible_truncation, reason = "offsets were made from usize")]
        let offset = (entry & !MARK) as usize;
        let start = monotonic_raw_ns();
        body(offset);
        *stamp = Stamps { start, end: monotonic_raw_ns() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        alone,
        counts::perf::{Body, Callers, Event, Plan, Record, Session, Source, Target, When},
        memory::{Advice, Backing, Layout},
    };

    /// The test of the one clock: what perf tells of a fault lies between the stamps around it.
    #[test]
    #[expect(clippy::print_stderr, reason = "a skip says so")]
    fn the_kernel_tells_each_fault_between_our_stamps() {
        const PAGES: usize = 64;
        let _alone = alone();
        let list = TouchList::new((0..PAGES).map(|page| (page << 12, false)));
        let mut stamps = vec![Stamps { start: 1, end: 1 }; PAGES];
        let source = Source {
            when: When::Always,
            event: Event::MinorFaults,
            callers: Callers::None,
            mappings: false,
            ring_bytes: 64 << 10,
            required: true,
        };
        let target = Target::Threads(vec![crate::process::thread_id()]);
        let plan = Plan { target, sources: vec![source] };
        if Session::open(&plan).is_err() {
            eprintln!(
                "skipped: no perf events here; to run it: sudo sysctl kernel.perf_event_paranoid=2"
            );
            return;
        }
        crate::counted([1; PAGES], || {
            let layout = Layout::contiguous(PAGES << 12);
            let area = Area::mapped(layout, Backing::Anonymous, 2 << 20).unwrap();
            area.advise(Advice::NoHugePage).unwrap();
            let mut session = Session::open(&plan).unwrap();
            session.start().unwrap();
            area.stamp_touches(&list, Access::Write, &mut stamps);
            let mut told = Vec::new();
            let mut tell = |record: Record| {
                if let Body::Sample { addr, .. } = record.body {
                    told.push((record.time_ns, addr));
                }
            };
            session.stop(&mut tell).unwrap();
            std::array::from_fn(|page| {
                let (address, stamp) = ((area.base() + (page << 12)) as u64, stamps[page]);
                let mine = told.iter().filter(|(_, at)| at & !4095 == address);
                let times: Vec<u64> = mine.map(|(time, _)| *time).collect();
                let is_between = |time: &u64| (stamp.start..=stamp.end).contains(time);
                assert!(times.iter().all(is_between), "{stamp:?} {times:?}");
                times.len()
            })
        });
    }
}
