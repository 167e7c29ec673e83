//! What one faulting thread leaves: a distribution, and what the kernel counted meanwhile.

use hdrhistogram::Histogram;
use pagelab_record::latency;
use pagelab_sys::{
    Area,
    counts::perf::FaultCounter,
    loops::{Access, Dropped, TouchList},
    process::{Barrier, current_cpu},
    time::{Clock, Span, Usage, usage},
};

/// How a touch is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Touching {
    /// As in `fault/latency`.
    Plain(Access),
    /// A store that can be stepped over.
    SteppedOver,
}

/// Allocated and present before the first repetition.
#[derive(Debug)]
pub(super) struct Samples {
    /// Touches that fault.
    pub(super) faults: Histogram<u64>,
    /// Those that also allocate a page-table page, with one page at a fault; with more, those that
    /// find their page present.
    pub(super) others: Histogram<u64>,
    pub(super) dropped: Dropped,
    pub(super) saturated: u64,
    /// All samples added up.
    pub(super) total_ns: u64,
    pub(super) counted: Usage,
    pub(super) perf: Option<u64>,
    pub(super) moved_cpu: u64,
    pub(super) span: Span,
}

impl Samples {
    pub(super) fn new() -> Self {
        Self {
            faults: latency::empty(),
            others: latency::empty(),
            dropped: Dropped::default(),
            saturated: 0,
            total_ns: 0,
            counted: Usage::default(),
            perf: None,
            moved_cpu: 0,
            span: Span::default(),
        }
    }

    /// Runs the loop when all threads are there. `marked` says that the list marks the touches that
    /// fault, and not those that are kept apart from them.
    pub(super) fn take(
        &mut self,
        (area, list): (&Area, &TouchList),
        (touching, marked): (Touching, bool),
        clock: &Clock,
        by_perf: bool,
        ready: &Barrier,
    ) {
        self.faults.reset();
        self.others.reset();
        let (mut saturated, mut total_ns) = (0, 0);
        let mut perf = if by_perf { FaultCounter::open() } else { None };
        // Both counters are read once before they count: their own code may be fresh.
        usage::thread();
        perf.as_mut().and_then(FaultCounter::faults);
        ready.wait();
        let cpu = current_cpu();
        let perf_before = perf.as_mut().and_then(FaultCounter::faults);
        let before = usage::thread();
        let (faults, others) = (&mut self.faults, &mut self.others);
        let record = |ns, mark: bool| {
            total_ns += ns;
            let histogram = if mark == marked { &mut *faults } else { &mut *others };
            if histogram.record(ns).is_err() {
                saturated += 1;
                histogram.saturating_record(ns);
            }
        };
        let mut dropped = Dropped::default();
        self.span = clock.span(|| {
            dropped = match touching {
                Touching::Plain(access) => area.time_touches(list, access, clock, record),
                Touching::SteppedOver => area.time_stores_over(list, clock, record),
            };
        });
        self.counted = usage::thread().since(before);
        let perf_after = perf.as_mut().and_then(FaultCounter::faults);
        self.perf = perf_before.zip(perf_after).map(|(before, after)| after - before);
        self.moved_cpu = u64::from(current_cpu() != cpu);
        self.dropped = dropped;
        self.saturated = saturated;
        self.total_ns = total_ns;
    }
}
