//! `fault/latency`: how long one fault takes, as a distribution.
//!
//! Every touch has a clock pair of its own; what lies between is one load or one store. The sample
//! goes into a histogram that is allocated and present before the first repetition. The control arm
//! runs the same loop over pages that are present: what it shows is the cost of a touch without a
//! fault, and that the loop itself takes none.
//!
//! A fault that is the first in its 2 MiB of address space also allocates a page of page table. For
//! pages up to 128k such faults are a series of their own, `fault-pagetable`; above, every second
//! fault or more would be one, and the cost is part of the fault.
//!
//! The cache line that is touched moves through the page, so that touches 4 KiB apart do not all
//! fall into one set of the cache.

use hdrhistogram::Histogram;
use pagelab_record::{Case, Unit, latency};
use pagelab_sys::{
    Area,
    clock::Clock,
    counters::Counters,
    crew, note,
    perf::FaultCounter,
    residency::{Residency, Scanner},
    sched::{Fifo, Pinned, current_cpu},
    touch::{Access, Dropped, Stride, TouchList},
    usage::{self, Usage},
};

use super::space::{self, Space, cpus_of, size_of};
use crate::{
    Kind, Need, Param, Role,
    meter::{Meter, Witness},
    params::PageSize,
    workload::{Error, Trial, Workload},
};

const PARAMS: &[Param] = &[
    Param {
        name: "kind",
        help: "read: maps the zero page; write: allocates and clears; present: no fault at all",
        kind: Kind::Choice(&["read", "write", "present"]),
        default: "write",
        role: Role::Axis,
    },
    space::PAGE,
    space::ORDER,
    space::CPU,
    space::NODE,
    space::MEM_NODE,
    space::SIZE,
    Param {
        name: "rounds",
        help: "repetitions in each process; auto is as many as the interval needs",
        kind: Kind::Count { max: 1_000_000, auto: true },
        default: "auto",
        role: Role::Axis,
    },
    space::FIFO,
    Param {
        name: "arms",
        help: "as-published adds seed 003's own method beside ours; the control is always there",
        kind: Kind::Choice(&["pagelab", "as-published"]),
        default: "pagelab",
        role: Role::Arms,
    },
    space::LIE,
];

const REFUSALS: &[(&str, &str)] = &[
    (
        "kind=read with page=8k … 1m",
        "a read maps the 4k zero page whatever folios are on offer; \
      use page=4k",
    ),
    (
        "kind=read with page=2m",
        "a read maps the huge zero page, which is allocated once for the \
      machine: another experiment",
    ),
    (
        "kind=read with page=hugetlb-…",
        "a hugetlb read allocates and clears like a write; use \
      kind=write",
    ),
    ("size not divisible by the page (and by 1m for 8k … 1m)", "only whole pages are touched"),
];

/// Samples of the published note: runs of its program.
const NOTE_SAMPLES: usize = 100;

/// See the module's documentation.
#[derive(Debug)]
pub struct Latency;

impl Workload for Latency {
    fn name(&self) -> &'static str {
        "fault/latency"
    }

    fn summary(&self) -> &'static str {
        "the time of every single fault, as a distribution, beside a control that takes none"
    }

    fn params(&self) -> &'static [Param] {
        PARAMS
    }

    fn resolve(&self, case: Case) -> Case {
        if case.get("size") != Some("auto") {
            return case;
        }
        let size = match PageSize::of(&case) {
            PageSize::Hugetlb(30) => "1g",
            page if page.bytes() == 2 << 20 => "128m",
            page if page.bytes() >= 512 << 10 => "64m",
            _ => "32m",
        };
        case.with("size", size)
    }

    fn refuse(&self, case: &Case) -> Result<(), String> {
        let page = PageSize::of(case);
        let read = case.get("kind") == Some("read");
        let folio = matches!(page, PageSize::Folio(_));
        let unit = if folio { 1 << 20 } else { page.bytes() };
        let refused = [
            read && folio,
            read && page == PageSize::Thp,
            read && matches!(page, PageSize::Hugetlb(_)),
            !size_of(case).is_multiple_of(unit),
        ];
        match refused.iter().position(|refused| *refused) {
            Some(index) => Err(format!("{}: {}", REFUSALS[index].0, REFUSALS[index].1)),
            None => Ok(()),
        }
    }

    fn refusals(&self) -> &'static [(&'static str, &'static str)] {
        REFUSALS
    }

    fn needs(&self, case: &Case) -> Vec<Need> {
        let mut needs = space::needs(case, self.footprint(case), false);
        for need in &mut needs {
            if let Need::Pool { pages, .. } = need {
                // The control holds its pages while the fault arm takes its own.
                *pages *= 2;
            }
        }
        if arms(case).contains(&"as-published") {
            needs.push(Need::Tsc);
        }
        needs
    }

    fn footprint(&self, case: &Case) -> u64 {
        2 * size_of(case)
    }

    fn repetitions(&self, case: &Case) -> Option<u32> {
        case.get("rounds").and_then(|rounds| rounds.parse().ok())
    }

    fn smallest(&self) -> &'static [(&'static str, &'static str)] {
        &[("size", "4m"), ("rounds", "2")]
    }

    fn prepare(&self, case: &Case) -> Result<Vec<Box<dyn Trial>>, Error> {
        let space = Space::of(case, 1);
        let list = touches(&space, case.get("order") == Some("random"));
        let access = if case.get("kind") == Some("read") { Access::Read } else { Access::Write };
        let cpu = cpus_of(case, 1)[0];
        let fifo = case.get("fifo") == Some("on");
        std::mem::forget(cpu.map(Pinned::to).transpose()?);
        let samples = || Samples {
            ordinary: latency::empty(),
            apart: latency::empty(),
            dropped: Dropped::default(),
            saturated: 0,
            counted: Usage::default(),
            perf: None,
            moved_cpu: 0,
        };
        let is_pinned = cpu.is_some();
        let mut trials: Vec<Box<dyn Trial>> = Vec::new();
        for arm in arms(case) {
            match arm {
                "as-published" => trials.push(Box::new(Note { ticks: Vec::new() })),
                _ if case.get("kind") == Some("present") => (),
                _ => trials.push(Box::new(Faults {
                    space,
                    list: list.clone(),
                    access,
                    fifo,
                    is_pinned,
                    scanner: Scanner::open()?,
                    samples: samples(),
                    area: None,
                    residency: Residency::default(),
                    moved: Counters::default(),
                })),
            }
        }
        trials.push(Box::new(Control::new(&space, list, access, fifo, samples())?));
        Ok(trials)
    }
}

fn arms(case: &Case) -> Vec<&'static str> {
    let asked = case.get("arms").unwrap_or("pagelab");
    ["pagelab", "as-published"]
        .into_iter()
        .filter(|arm| asked.split(',').any(|word| word == *arm))
        .collect()
}

/// One touch a page, on a line that moves through the first 4 KiB of the page.
fn touches(space: &Space, random: bool) -> TouchList {
    let page = usize::try_from(space.page.bytes()).expect("addresses have 64 bits");
    let mut pages: Vec<usize> = (0..space.layout.bytes() / page).collect();
    if random {
        fastrand::Rng::with_seed(0x7061_6765).shuffle(&mut pages);
    }
    let keeps_apart = page <= 128 << 10;
    let mut seen = std::collections::BTreeSet::new();
    TouchList::new(pages.into_iter().map(|index| {
        let start = space.layout.offset(index * page);
        // The base is 2 MiB-aligned, so offsets tell page-table pages apart.
        let first = seen.insert(start >> 21);
        // 5 is coprime to 64: all lines of a page are used before one comes again.
        (start + index * 5 % 64 * 64, keeps_apart && first)
    }))
}

/// What the latency loop leaves, allocated and present beforehand.
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
    /// Runs the loop over an area and counts what it did.
    fn take(
        &mut self,
        area: &Area,
        list: &TouchList,
        access: Access,
        fifo: bool,
        clock: &Clock,
    ) -> Result<(), Error> {
        self.ordinary.reset();
        self.apart.reset();
        let mut saturated = 0;
        let mut perf = FaultCounter::open();
        let _fifo = if fifo { Some(Fifo::enter()?) } else { None };
        let cpu = current_cpu();
        let perf_before = perf.as_mut().and_then(FaultCounter::faults);
        let before = usage::thread();
        let (ordinary, apart) = (&mut self.ordinary, &mut self.apart);
        self.dropped = area.time_touches(list, access, clock, |ns, kept_apart| {
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
            witness.expect("minor faults of the loop, by perf", faults, perf);
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

/// The arm that faults.
struct Faults {
    space: Space,
    list: TouchList,
    access: Access,
    fifo: bool,
    is_pinned: bool,
    scanner: Scanner,
    samples: Samples,
    area: Option<Area>,
    residency: Residency,
    moved: Counters,
}

impl Trial for Faults {
    fn arm(&self) -> &'static str {
        "pagelab"
    }

    fn is_first_touch(&self) -> bool {
        true
    }

    fn reset(&mut self) -> Result<(), Error> {
        self.area = None;
        self.area = Some(mapped(&self.space)?);
        Ok(())
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let area = self.area.as_ref().expect("reset comes before run");
        let folio_kib = self.space.page.bytes() / 1024;
        let before = Counters::read(Some(folio_kib));
        self.samples.take(area, &self.list, self.access, self.fifo, meter.clock())?;
        self.moved = Counters::read(Some(folio_kib)).since(&before);
        self.residency = self.scanner.scan(area)?;
        self.samples.file(meter, self.space.page.bytes());
        // What was touched is released now, so that the other arms do not add to the footprint.
        self.area = None;
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let pages = self.list.len() as u64;
        self.samples.testify(pages, self.is_pinned, witness);
        let once =
            Stride { step: usize::try_from(self.space.page.bytes()).unwrap_or(4096), bytes: 8 };
        let expected = self.space.expectation(once);
        let found = self.residency;
        witness.expect("base pages present afterwards", expected.present, found.present);
        witness.expect("base pages mapped by a PMD or larger", expected.huge, found.huge);
        if let Some(zero) = found.zero {
            let expected = if self.access == Access::Read { expected.present } else { 0 };
            witness.expect("base pages that are the zero page", expected, zero);
        }
        if matches!(self.space.page, PageSize::Folio(_))
            && let Some(folios) = self.moved.get("anon_fault_alloc")
        {
            let claim = "folios of this size allocated, machine-wide, at least";
            witness.expect_at_least(claim, pages, folios);
        }
        witness.count("faults", self.samples.counted.minor_faults);
        witness.count("repetitions", 1);
        witness.set("samples_per_repetition", pages);
        witness.set("samples_kept_apart", self.list.kept_apart() as u64);
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
struct Control {
    area: Area,
    list: TouchList,
    access: Access,
    fifo: bool,
    samples: Samples,
}

impl Control {
    fn new(
        space: &Space,
        list: TouchList,
        access: Access,
        fifo: bool,
        samples: Samples,
    ) -> Result<Self, Error> {
        let area = mapped(space)?;
        populate(&area);
        Ok(Self { area, list, access, fifo, samples })
    }
}

impl Trial for Control {
    fn arm(&self) -> &'static str {
        "control"
    }

    fn reset(&mut self) -> Result<(), Error> {
        // One lap without a clock: what the fault arm left in the caches is not the control's.
        self.area.touch_listed(&self.list, Stride { step: 8, bytes: 8 });
        Ok(())
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let Self { area, list, access, fifo, samples } = self;
        samples.take(area, list, *access, *fifo, meter.clock())?;
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
struct Note {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::complete;

    fn space(pairs: &[(&str, &str)]) -> Space {
        Space::of(&complete(&Latency, pairs).unwrap(), 1)
    }

    #[test]
    fn one_touch_a_page_and_one_in_each_page_table_page_kept_apart() {
        let list = touches(&space(&[("page", "4k"), ("size", "8m")]), false);
        assert_eq!((list.len(), list.kept_apart()), (2048, 4));
        let list = touches(&space(&[("page", "4k"), ("size", "8m")]), true);
        assert_eq!((list.len(), list.kept_apart()), (2048, 4));
        let list = touches(&space(&[("page", "2m"), ("size", "8m")]), false);
        assert_eq!((list.len(), list.kept_apart()), (4, 0));
    }

    #[test]
    fn a_read_of_anything_but_a_base_page_is_refused_with_what_to_ask_for() {
        for page in ["64k", "2m", "hugetlb-2m"] {
            let error = complete(&Latency, &[("kind", "read"), ("page", page)]).unwrap_err();
            assert!(error.contains("kind=read"), "{error}");
        }
    }
}
