//! The arms of `fault/latency`: the loop that faults, its control, and the published method.
//!
//! The fault arm and the control run one function over the same list of touches; what differs is
//! whether the pages are present.

use std::{cell::RefCell, rc::Rc};

use hdrhistogram::Histogram;
use pagelab_record::{Unit, latency};
use pagelab_sys::{
    Area,
    clock::Clock,
    counters::Counters,
    crew, note,
    perf::FaultCounter,
    residency::{Residency, Scanner},
    sched::{Fifo, current_cpu},
    touch::{Access, Dropped, Stride, TouchList},
    usage::{self, Usage},
};

use super::space::Space;
use crate::{
    meter::{Meter, Witness},
    params::PageSize,
    workload::{Error, Trial},
};

/// Samples of the published note: runs of its program.
const NOTE_SAMPLES: usize = 100;

/// What both arms of a case share.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    /// Where.
    pub(super) space: Space,
    /// What is touched, in which order.
    pub(super) list: TouchList,
    /// Load or store.
    pub(super) access: Access,
    /// Run under `SCHED_FIFO`.
    pub(super) fifo: bool,
    /// Whether the thread is bound to a CPU.
    pub(super) is_pinned: bool,
}

/// What the latency loop leaves, allocated and present beforehand.
#[derive(Debug)]
struct Samples {
    ordinary: Histogram<u64>,
    apart: Histogram<u64>,
    dropped: Dropped,
    saturated: u64,
    counted: Usage,
    perf: Option<u64>,
    moved_cpu: u64,
}

impl Samples {
    fn new() -> Self {
        Self {
            ordinary: latency::empty(),
            apart: latency::empty(),
            dropped: Dropped::default(),
            saturated: 0,
            counted: Usage::default(),
            perf: None,
            moved_cpu: 0,
        }
    }

    /// Runs the loop over an area and counts what it did.
    fn take(&mut self, area: &Area, setup: &Setup, meter: &Meter) -> Result<(), Error> {
        let clock = meter.clock();
        let Setup { list, access, fifo, .. } = setup;
        self.ordinary.reset();
        self.apart.reset();
        let mut saturated = 0;
        let mut perf = if meter.is_warm_up() { FaultCounter::open() } else { None };
        let _fifo = if *fifo { Some(Fifo::enter()?) } else { None };
        let cpu = current_cpu();
        // Both counters are read once before they count: their own code may be fresh.
        // Twice: whoever traces the calls finds a reading before and one after each loop.
        usage::thread();
        usage::thread();
        perf.as_mut().and_then(FaultCounter::faults);
        let perf_before = perf.as_mut().and_then(FaultCounter::faults);
        let before = usage::thread();
        let (ordinary, apart) = (&mut self.ordinary, &mut self.apart);
        self.dropped = area.time_touches(list, *access, clock, |ns, kept_apart| {
            let histogram = if kept_apart { &mut *apart } else { &mut *ordinary };
            if histogram.record(ns).is_err() {
                saturated += 1;
                histogram.saturating_record(ns);
            }
        });
        self.counted = usage::thread().since(before);
        let perf_after = perf.as_mut().and_then(FaultCounter::faults);
        self.perf = perf_before.zip(perf_after).map(|(before, after)| after - before);
        self.moved_cpu = u64::from(current_cpu() != cpu);
        self.saturated = saturated;
        Ok(())
    }

    fn file(&self, meter: &mut Meter, bytes: u64) {
        meter.distribution("fault", Unit::Ns, bytes, &self.ordinary);
        meter.distribution("fault-pagetable", Unit::Ns, bytes, &self.apart);
    }

    fn testify(&self, faults: u64, is_pinned: bool, witness: &mut Witness) {
        witness.expect("minor faults of the loop", faults, self.counted.minor_faults);
        if let Some(perf) = self.perf {
            let claim = "minor faults of the loop in the warm-up, by perf as by getrusage";
            witness.expect_lasting(claim, self.counted.minor_faults, perf);
        }
        witness.expect("major faults", 0, self.counted.major_faults);
        if is_pinned {
            witness.expect("loops that ended on another CPU", 0, self.moved_cpu);
        }
        witness.count("migrated_samples", self.dropped.migrated);
        witness.count("saturated_samples", self.saturated);
        witness.count("preemptions", self.counted.involuntary_switches);
    }
}

/// The area of a case: the fault arm makes a fresh one in each repetition and leaves it, all
/// present, to the control.
pub(super) type SharedArea = Rc<RefCell<Option<Area>>>;

/// The arm that faults.
#[derive(Debug)]
pub(super) struct Faults {
    setup: Setup,
    scanner: Scanner,
    samples: Samples,
    area: SharedArea,
    residency: Residency,
    moved: Counters,
}

impl Faults {
    pub(super) fn new(setup: Setup, area: SharedArea) -> Result<Self, Error> {
        Ok(Self {
            setup,
            scanner: Scanner::open()?,
            samples: Samples::new(),
            area,
            residency: Residency::default(),
            moved: Counters::default(),
        })
    }
}

impl Trial for Faults {
    fn arm(&self) -> &'static str {
        "pagelab"
    }

    fn is_first_touch(&self) -> bool {
        true
    }

    fn reset(&mut self) -> Result<(), Error> {
        // The old one first: two at once would double the footprint.
        self.area.borrow_mut().take();
        *self.area.borrow_mut() = Some(mapped(&self.setup.space)?);
        Ok(())
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let area = self.area.borrow();
        let area = area.as_ref().expect("reset comes before run");
        let folio_kib = self.setup.space.page.bytes() / 1024;
        let before = Counters::read(Some(folio_kib));
        self.samples.take(area, &self.setup, meter)?;
        self.moved = Counters::read(Some(folio_kib)).since(&before);
        self.residency = self.scanner.scan(area)?;
        self.samples.file(meter, self.setup.space.page.bytes());
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let pages = self.setup.list.len() as u64;
        self.samples.testify(pages, self.setup.is_pinned, witness);
        let once = Stride {
            step: usize::try_from(self.setup.space.page.bytes()).unwrap_or(4096),
            bytes: 8,
        };
        let expected = self.setup.space.expectation(once);
        let found = self.residency;
        witness.expect("base pages present afterwards", expected.present, found.present);
        witness.expect("base pages mapped by a PMD or larger", expected.huge, found.huge);
        if let Some(zero) = found.zero {
            let expected = if self.setup.access == Access::Read { expected.present } else { 0 };
            witness.expect("base pages that are the zero page", expected, zero);
        }
        if matches!(self.setup.space.page, PageSize::Folio(_))
            && let Some(folios) = self.moved.get("anon_fault_alloc")
        {
            let claim = "folios of this size allocated, machine-wide, at least";
            witness.expect_at_least(claim, pages, folios);
        }
        witness.count("faults", self.samples.counted.minor_faults);
        witness.count("repetitions", 1);
        witness.set("samples_per_repetition", pages);
        witness.set("samples_kept_apart", self.setup.list.kept_apart() as u64);
        for (name, by) in self.moved.iter().filter(|(_, by)| *by > 0) {
            witness.count(&format!("machine_{name}"), by);
        }
        Ok(())
    }
}

/// Maps and advises a space; nothing is touched unless the case lies about it.
fn mapped(space: &Space) -> Result<Area, Error> {
    let mut area = space.reserve()?;
    area.open()?;
    area.map(space.populates_early)?;
    if let Some(node) = space.mem_node {
        area.bind(node)?;
    }
    if let Some(advice) = space.advice {
        area.advise(advice)?;
    }
    if space.touches_twice {
        populate(&area);
    }
    Ok(area)
}

fn populate(area: &Area) {
    area.touch(0, area.layout().bytes(), Stride { step: 4096, bytes: 8 });
}

/// The arm that does not fault: the same loop over pages that are present.
#[derive(Debug)]
pub(super) struct Control {
    setup: Setup,
    area: SharedArea,
    samples: Samples,
}

impl Control {
    /// The control over the pages that the fault arm leaves; over its own where there is none.
    pub(super) fn new(setup: Setup, area: SharedArea, is_alone: bool) -> Result<Self, Error> {
        if is_alone {
            let present = mapped(&setup.space)?;
            populate(&present);
            *area.borrow_mut() = Some(present);
        }
        Ok(Self { setup, area, samples: Samples::new() })
    }
}

impl Trial for Control {
    fn arm(&self) -> &'static str {
        "control"
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let Self { setup, area, samples } = self;
        let area = area.borrow();
        let area = area.as_ref().expect("the fault arm comes first, in the warm-up");
        // One lap that is not kept: what the fault arm left in the caches is not the control's.
        area.time_touches(&setup.list, setup.access, meter.clock(), |_, _| ());
        samples.take(area, setup, meter)?;
        // The control has no page-table pages to allocate: all its samples are of one kind.
        let apart = samples.apart.clone();
        samples.ordinary.add(&apart).expect("all histograms have one shape");
        samples.apart.reset();
        samples.file(meter, 0);
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        self.samples.testify(0, false, witness);
        Ok(())
    }
}

/// The arm that measures as seed 003 did: each sample in a process of its own.
#[derive(Debug, Default)]
pub(super) struct Note {
    ticks: Vec<u64>,
}

impl Trial for Note {
    fn arm(&self) -> &'static str {
        "as-published"
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let Clock::Tsc(tsc) = *meter.clock() else {
            return Err(Error::Case("the published method reads the time stamp counter".into()));
        };
        self.ticks.clear();
        for _ in 0..NOTE_SAMPLES {
            let sample = crew::processes(1, |_| {
                [note::sample_ticks().unwrap_or_else(|error| panic!("{error}"))]
            })?;
            self.ticks.push(sample[0][0]);
        }
        let ns = self.ticks.iter().map(|ticks| tsc.ns(*ticks)).collect();
        meter.observe_all("fault", Unit::Ns, ns);
        meter.observe_all("fault-ticks", Unit::Ticks, self.ticks.clone());
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let taken = self.ticks.len() as u64;
        witness.expect("samples, each in a process of its own", NOTE_SAMPLES as u64, taken);
        Ok(())
    }
}
