//! The arms of `fault/throughput`: rounds by one worker or many, and the loop in C.
//!
//! A repetition is one round. What it did to the counters and to the page table is compared with
//! the formula of its space; the comparison is the witness, and is taken off the clock.

use pagelab_record::schema;
use pagelab_sys::{
    area::{Backing, Layout},
    clock::Span,
    counters::Counters,
    crew::{self, Barrier},
    sched::Pinned,
    twin, usage,
};

use super::round::{NO_PERF, Outcome, Phase, Plan, Populate, WORDS, round};
use crate::{
    meter::{Meter, Witness},
    params::PageSize,
    workload::{Error, Trial},
};

/// The arm that measures: rounds by one worker or many.
#[derive(Debug)]
pub(super) struct Rounds {
    plan: Plan,
    processes: usize,
    latest: Option<Outcome>,
    folio_kib: Option<u64>,
    moved: Counters,
}

impl Rounds {
    pub(super) fn new(plan: Plan, processes: usize) -> Self {
        let folio_kib = folio_kib(plan.space.page);
        Self { plan, processes, latest: None, folio_kib, moved: Counters::default() }
    }
}

fn folio_kib(page: PageSize) -> Option<u64> {
    match page {
        PageSize::Folio(bytes) => Some(bytes / 1024),
        _ => None,
    }
}

impl Trial for Rounds {
    fn arm(&self) -> &'static str {
        "pagelab"
    }

    fn is_first_touch(&self) -> bool {
        true
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        self.plan.by_perf = meter.is_warm_up();
        let before = Counters::read(self.folio_kib);
        let outcome = if self.processes == 1 {
            round(&self.plan, meter.clock(), &Barrier::new(1)?)?
        } else {
            self.round_in_processes(meter)?
        };
        self.moved = Counters::read(self.folio_kib).since(&before);
        self.latest = Some(outcome);

        let bytes = self.plan.space.bytes() * self.processes as u64;
        let touches = bytes / self.plan.stride.step as u64;
        let pages = bytes / self.plan.space.page.bytes();
        let calls = (self.plan.space.layout.windows * self.processes) as u64;
        let elapsed = meter.elapsed();
        for (name, phase, ops) in [
            ("map", outcome.map, calls),
            ("advise", outcome.advise, calls),
            ("populate", outcome.populate, pages),
            ("touch", outcome.touch, touches),
            ("release", outcome.release, calls),
        ] {
            if phase.span != Span::default() {
                let ns = meter.clock().elapsed_ns(phase.span);
                meter.observe(name, elapsed, ops, bytes, ns);
                meter.observe(name, schema::Clock::Cpu, ops, bytes, phase.cpu_ns);
            }
        }
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let outcome = self.latest.take().expect("run comes before verify");
        self.testify(&outcome, witness);
        Ok(())
    }
}

impl Rounds {
    /// Each worker in a forked process, with an address space of its own.
    fn round_in_processes(&self, meter: &Meter) -> Result<Outcome, Error> {
        let barrier = Barrier::new(u32::try_from(self.processes).expect("a few processes"))?;
        let alone = Barrier::new(1)?;
        let words = crew::processes::<WORDS>(self.processes, |worker| {
            let run = || {
                let _pinned = self.plan.cpus[worker].map(Pinned::to).transpose()?;
                // A fresh process faults on code and stack; a tiny round takes those faults.
                let mut small = self.plan.clone();
                small.list = None;
                small.populate = Populate::Touch;
                small.space.page = PageSize::Base;
                small.space.backing = Backing::Anonymous;
                small.space.skew = 0;
                small.space.layout = Layout::contiguous(16 << 12);
                small.stride.step = 4096;
                small.stride.bytes = 8;
                round(&small, meter.clock(), &alone)?;
                round(&self.plan, meter.clock(), &barrier)
            };
            // The parent sees the text on stderr and the failure in the exit status.
            run().unwrap_or_else(|error| panic!("{error}")).words()
        })?;
        let outcomes = words.iter().map(Outcome::of);
        Ok(outcomes.reduce(Outcome::join).expect("at least one process"))
    }

    fn testify(&self, outcome: &Outcome, witness: &mut Witness) {
        let Plan { space, populate, stride, .. } = &self.plan;
        let shares = self.processes as u64;
        let expected = space.expectation(*stride);
        let by_touch = matches!(populate, Populate::Touch | Populate::LockOnFault);
        let touch_faults = if by_touch { expected.faults * shares } else { 0 };
        witness.expect(
            "minor faults of the touch",
            touch_faults + outcome.again_minor,
            outcome.touch.minor,
        );
        witness.expect("faults of the same loop over present pages", 0, outcome.again_minor);
        if outcome.perf_faults != NO_PERF {
            let claim = "minor faults of the touch in the warm-up, by perf as by getrusage";
            witness.expect_lasting(claim, outcome.touch.minor, outcome.perf_faults);
        }
        witness.expect("major faults", 0, all_phases(outcome, |phase| phase.major));
        // A populating call makes the whole range present, whatever the stride of the touch.
        let whole = space.bytes() / 4096;
        let present = if by_touch { expected.present } else { whole };
        let huge = if expected.huge == 0 || by_touch { expected.huge } else { whole };
        let huge = if space.is_ragged { expected.huge } else { huge };
        witness.expect("base pages present afterwards", present * shares, outcome.present);
        witness.expect("base pages mapped by a PMD or larger", huge * shares, outcome.huge);
        if let Some(folios) = self.moved.get("anon_fault_alloc") {
            let page = space.page.bytes();
            witness.expect_at_least(
                "folios of this size allocated, machine-wide, at least",
                present * shares * 4096 / page,
                folios,
            );
        }
        if self.plan.cpus[0].is_some() {
            let moved = all_phases(outcome, |phase| phase.moved);
            witness.expect("phases that ended on another CPU", 0, moved);
        }
        if let Some(node) = space.mem_node {
            let claim = format!("pages asked about that are not on node {node}");
            witness.expect(&claim, 0, outcome.elsewhere);
        }
        let faults = outcome.touch.minor;
        witness.set("faults_per_repetition", faults);
        witness.count("faults", faults);
        witness.count("faults_in_populate", outcome.populate.minor + outcome.map.minor);
        witness.count("repetitions", 1);
        witness.count("preemptions", all_phases(outcome, |phase| phase.preempted));
        for (name, by) in self.moved.iter().filter(|(_, by)| *by > 0) {
            witness.count(&format!("machine_{name}"), by);
        }
    }
}

fn all_phases(outcome: &Outcome, of: impl Fn(&Phase) -> u64) -> u64 {
    [outcome.map, outcome.advise, outcome.populate, outcome.touch, outcome.release]
        .iter()
        .map(of)
        .sum()
}

/// The arm in C.
#[derive(Debug)]
pub(super) struct Twin {
    bytes: u64,
    page: u64,
    step: u64,
    minor: u64,
}

impl Twin {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            bytes: plan.space.bytes(),
            page: plan.space.page.bytes(),
            step: plan.stride.step as u64,
            minor: 0,
        }
    }
}

impl Trial for Twin {
    fn arm(&self) -> &'static str {
        "c"
    }

    fn is_first_touch(&self) -> bool {
        true
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let before = usage::thread();
        // Two MiB of alignment for both page sizes: page-table pages are then the same in number.
        let round = twin::round(self.bytes, self.step, 2 << 20, self.page > 4096)?;
        self.minor = usage::thread().since(before).minor_faults;
        let touches = self.bytes / self.step;
        for (name, ops, ns) in [
            ("map", 1, round.map_ns),
            ("touch", touches, round.touch_ns),
            ("release", 1, round.release_ns),
        ] {
            meter.observe(name, meter.elapsed(), ops, self.bytes, ns);
        }
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let expected = self.bytes / self.page.max(self.step);
        witness.expect("minor faults of the whole C round", expected, self.minor);
        Ok(())
    }
}
