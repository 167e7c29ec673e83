//! One repetition of the latency loop: what it is told, what it leaves, and how that is filed.
//!
//! The one idea: the fault arm and its control run this one function over the same list of touches;
//! what differs is whether the pages are present. The arms themselves are in [`super::arms`].

use std::rc::Rc;

use hdrhistogram::Histogram;
use pagelab_bench::{Error, Meter, Witness};
use pagelab_record::{
    Unit, latency,
    vocabulary::{Check, series::WALK},
};
use pagelab_sys::{
    Area,
    counts::perf::FaultCounter,
    loops::{Access, MIGRATED, Paced, TouchList, Walk},
    process::{Fifo, current_cpu},
    time::{Usage, usage},
};

use super::stalls::Watch;
use pagelab_mappings::{
    Calls, Expectation, Populate, Space, Stage,
    sorted::{HostLevel, SET_ASIDE, Sorted},
};

/// What both arms of a case share.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    /// Where.
    pub(super) space: Space,
    /// What is touched, in which order.
    pub(super) list: TouchList,
    /// How the memory comes to be present.
    pub(super) populate: Populate,
    /// Load or store.
    pub(super) access: Access,
    /// Run under `SCHED_FIFO`.
    pub(super) fifo: bool,
    /// Whether the thread is bound to a CPU.
    pub(super) is_pinned: bool,
    /// Nanoseconds from when one touch is due to when the next one is; none waits for nothing.
    pub(super) interval_ns: Option<u64>,
    /// What is walked over between two touches; nothing where caches stay as the loop leaves them.
    pub(super) walk: Option<Rc<Walk>>,
    /// Who backs the memory.
    pub(super) host: Host,
}

/// Who backs the memory that a case touches for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    /// Nobody but this kernel, or the case touches nothing for the first time.
    None,
    /// A host, as it comes: what it had to back first is told apart.
    AsItComes,
    /// A host that took the memory back before each repetition.
    Cold,
}

/// What the latency loop leaves: one slot for each touch, present beforehand, and counts.
#[derive(Debug)]
pub(super) struct Samples {
    pub(super) service: Vec<u64>,
    pub(super) response: Vec<u64>,
    /// Nanoseconds of the walk after each touch, where there is one.
    walks: Vec<u64>,
    walked: Histogram<u64>,
    pub(super) sorted: Sorted,
    pub(super) fallback: Histogram<u64>,
    pub(super) counted: Usage,
    pub(super) perf: Option<u64>,
    pub(super) moved_cpu: u64,
    pub(super) watch: Watch,
}

impl Samples {
    pub(super) fn new(setup: &Setup) -> Self {
        let touches = setup.list.len();
        // Not zeroes: those would be the zero page, and the loop would fault on its own slots.
        let responses = if setup.interval_ns.is_some() { touches } else { 0 };
        Self {
            service: vec![1; touches],
            response: vec![1; responses],
            walks: vec![1; if setup.walk.is_some() { touches } else { 0 }],
            walked: latency::empty(),
            sorted: Sorted::empty(),
            fallback: latency::empty(),
            counted: Usage::default(),
            perf: None,
            moved_cpu: 0,
            watch: Watch::default(),
        }
    }

    /// Runs the loop over an area and counts what it did.
    pub(super) fn take(
        &mut self,
        area: &Area,
        setup: &Setup,
        stage: Option<&mut dyn Stage>,
        meter: &Meter,
    ) -> Result<(), Error> {
        let clock = meter.clock();
        let Setup { list, access, fifo, .. } = setup;
        let mut perf = if meter.is_warm_up() { FaultCounter::open() } else { None };
        self.watch.start(setup.is_pinned);
        let _fifo = if *fifo { Some(Fifo::enter()?) } else { None };
        let cpu = current_cpu();
        // Both counters are read once before they count: their own code may be fresh.
        // Twice: whoever traces the calls finds a reading before and one after each loop.
        usage::thread();
        usage::thread();
        perf.as_mut().and_then(FaultCounter::faults);
        let perf_before = perf.as_mut().and_then(FaultCounter::faults);
        let before = usage::thread();
        let mut slots = self.service.iter_mut();
        let mut record = |ns| *slots.next().expect("one slot for each call") = ns;
        let calls = Calls { area, list, clock };
        let called = stage.and_then(|stage| stage.calls(calls, &mut record));
        match (called, setup.interval_ns, &setup.walk) {
            (Some(result), ..) => result?,
            (None, None, None) => area.sample_touches(list, *access, clock, &mut self.service),
            (None, None, Some(walk)) => {
                let times = (&mut *self.service, &mut *self.walks);
                area.sample_and_walk(list, *access, clock, walk, times);
            }
            (None, Some(interval), _) => {
                let (service, response) = (&mut self.service, &mut self.response);
                let mut paced = Paced { service, response };
                area.sample_paced(list, *access, clock, interval, &mut paced);
            }
        }
        self.counted = usage::thread().since(before);
        let perf_after = perf.as_mut().and_then(FaultCounter::faults);
        self.perf = perf_before.zip(perf_after).map(|(before, after)| after - before);
        self.moved_cpu = u64::from(current_cpu() != cpu);
        self.watch.stop();
        Ok(())
    }

    /// Files touches that got a base page instead of the page under test, which are no samples of
    /// the same distribution.
    pub(super) fn set_aside(&mut self, setup: &Setup, stage: &dyn Stage, meter: &mut Meter) {
        let Self { service, fallback, .. } = self;
        fallback.reset();
        for ((offset, _), ns) in setup.list.touches().zip(service) {
            if *ns != MIGRATED && stage.fell_back(setup.space.layout.position(offset)) {
                fallback.saturating_record(*ns);
                *ns = SET_ASIDE;
            }
        }
        meter.distribution("fault-fallback", Unit::Ns, 4096, fallback);
    }

    /// Sorts what the loop left and files it: `series` is what an ordinary sample is of, `others`
    /// what the marked ones are of where they are not faults that make page tables.
    pub(super) fn file(
        &mut self,
        (series, others): (&str, Option<(&str, &[bool])>),
        setup: &Setup,
        host: Option<&mut HostLevel>,
        meter: &mut Meter,
        bytes: u64,
    ) {
        let Self { service, response, walks, walked, sorted, .. } = self;
        let apart = if let Some((name, flags)) = others {
            sorted.sort(&setup.list.clone().marked(flags), service, response, host);
            name
        } else {
            sorted.sort(&setup.list, service, response, host);
            "fault-pagetable"
        };
        self.watch.attribute(&[&sorted.ordinary, &sorted.apart]);
        meter.distribution(series, Unit::Ns, bytes, &sorted.ordinary);
        meter.distribution(apart, Unit::Ns, bytes, &sorted.apart);
        meter.distribution("fault-cold", Unit::Ns, bytes, &sorted.cold);
        meter.distribution("fault-response", Unit::Ns, bytes, &sorted.response);
        walked.reset();
        for ns in walks {
            walked.saturating_record(*ns);
        }
        meter.distribution(WALK, Unit::Ns, 0, walked);
    }

    /// Files touches that take no fault, which must not be called faults.
    pub(super) fn file_touches(&mut self, setup: &Setup, meter: &mut Meter) {
        let list = setup.list.clone().unmarked();
        self.sorted.sort(&list, &self.service, &self.response, None);
        self.watch.attribute(&[&self.sorted.ordinary]);
        meter.distribution("touch", Unit::Ns, 0, &self.sorted.ordinary);
    }

    pub(super) fn testify(&self, expected: Expectation, is_pinned: bool, witness: &mut Witness) {
        let counted = self.counted;
        witness.expect(
            (Check::FaultsOfLoop, "minor faults of the loop"),
            expected.faults,
            counted.minor_faults,
        );
        if let Some(perf) = self.perf {
            let claim = "faults of the loop in the warm-up, by perf as by getrusage";
            let faults = counted.minor_faults + counted.major_faults;
            witness.expect_lasting((Check::FaultsOfLoopByPerf, claim), faults, perf);
        }
        witness.expect(Check::MajorFaults, expected.major, counted.major_faults);
        if is_pinned {
            witness.expect(Check::MovedCpu, 0, self.moved_cpu);
        }
        witness.count("migrated_samples", self.sorted.migrated);
        witness.count("saturated_samples", self.sorted.saturated);
        if !self.sorted.cold.is_empty() {
            witness.count("cold_samples", self.sorted.cold.len());
        }
        witness.count("preemptions", self.counted.involuntary_switches);
        self.watch.testify(witness);
    }
}
