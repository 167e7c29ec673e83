//! The arms of `fault/throughput`: rounds by one worker or many, and the loop in C.
//!
//! A repetition is one round. What it did to the counters and to the page table is compared with
//! the formula of its space; the comparison is the witness, and is taken off the clock.

use std::cell::RefCell;

use pagelab_bench::{Error, Meter, PageSize, Trial, Witness};
use pagelab_record::{
    schema,
    vocabulary::{Check, counter},
};
use pagelab_sys::{
    counts::Counters,
    loops::TouchList,
    memory::{Backing, Layout},
    process::{Barrier, Pinned, crew},
    time::Span,
};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{
    Plan, Populate,
    beside::{Beside, Part},
    outcome::{Outcome, Phase, UNKNOWN},
    page_bytes,
    pieces::{Pieces, Share},
    populate,
    round::round,
    said::Said,
    stage::Untouched,
    workers::{SharedStages, Staged},
};

/// The touches of memory that the host may have had to back first.
use pagelab_record::vocabulary::series::TOUCH_COLD;

/// The arm that measures: rounds by one worker or many.
#[derive(Debug)]
pub struct Rounds {
    plan: Plan,
    stages: SharedStages,
    /// Whether the kind is a first store, which alone allocates in the touch and nowhere else.
    is_plain: bool,
    beside: Option<Beside>,
    /// Where the host may take memory back during a repetition and its touch can tell.
    pieces: Option<Pieces>,
    latest: Option<(Outcome, Said)>,
    folio_kib: Option<u64>,
    moved: Counters,
}

impl Rounds {
    /// By a plan, of staged workers; `is_plain` where the kind is a first store.
    pub fn new(plan: Plan, stages: SharedStages, is_plain: bool) -> Self {
        let folio_kib = folio_kib(plan.space.page);
        let (latest, moved) = (None, Counters::default());
        Self { plan, stages, is_plain, beside: None, pieces: None, latest, folio_kib, moved }
    }

    /// The same with its touch in pieces.
    #[must_use]
    pub fn in_pieces(self) -> Self {
        let Plan { space, stride, .. } = &self.plan;
        let page = page_bytes(space.page);
        let pieces = Some(Pieces::of(space.layout.bytes(), page, stride.step));
        Self { pieces, ..self }
    }

    /// The same with calls beside it, or as the arm that lacks them.
    #[must_use]
    pub fn beside(self, beside: Beside) -> Self {
        Self { beside: Some(beside), ..self }
    }

    /// CPU time of all phases of the latest round.
    pub fn cpu_ns(&self) -> u64 {
        self.latest.as_ref().map_or(0, |(outcome, _)| all_phases(outcome, |phase| phase.cpu_ns))
    }

    /// Minor faults of the touch of the latest round.
    pub fn faults(&self) -> u64 {
        self.latest.as_ref().map_or(0, |(outcome, _)| outcome.touch.minor)
    }

    fn part(&self) -> Option<Part> {
        self.beside.as_ref().map(|beside| beside.part)
    }

    fn processes(&self) -> usize {
        self.stages.borrow().len()
    }

    /// A round in this process; again, a few times, where no call fell into the touch.
    fn round_here(&mut self, meter: &Meter) -> Result<Outcome, Error> {
        let alone = Barrier::new(1)?;
        let mut stages = self.stages.borrow_mut();
        let stage = stages[0].stage.as_mut();
        let mut attempt = 0;
        loop {
            let (beside, pieces) = (self.beside.as_mut(), self.pieces.as_mut());
            let outcome = round(&self.plan, meter.clock(), &alone, stage, beside, pieces)?;
            if self.beside.as_ref().is_none_or(|beside| beside.is_enough(attempt)) {
                return Ok(outcome);
            }
            attempt += 1;
        }
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
        self.part().map_or("pagelab", Part::name)
    }

    fn is_first_touch(&self) -> bool {
        self.plan.space.takes_free_memory()
    }

    fn set_cold_apart(&mut self, meter: &mut Meter) {
        let Some(pieces) = &self.pieces else { return meter.all_cold() };
        let shares = pieces.apart(self.plan.space.layout.bytes());
        meter.withdraw("touch");
        for (name, share) in ["touch", TOUCH_COLD].into_iter().zip(shares) {
            self.observe_touch(name, share, meter);
        }
    }

    fn was_reclaimed(&mut self) -> bool {
        let Some((outcome, _)) = &self.latest else { return false };
        let major = all_phases(outcome, |phase| phase.major);
        let mut stages = self.stages.borrow_mut();
        // Nobody says whose pages they were.
        let present = outcome.present / stages.len() as u64;
        // Each is told, so that each makes its file anew.
        let told = stages.iter_mut().map(|it| it.stage.was_reclaimed(major, present));
        told.filter(|was_reclaimed| *was_reclaimed).count() > 0
    }

    fn counts_faults(&self) -> bool {
        true
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        self.plan.by_perf = meter.is_warm_up();
        if meter.elapsed() == schema::Clock::Scripted {
            // Each reading would count.
            self.pieces = None;
        }
        let processes = self.processes();
        let before = Counters::read(self.folio_kib);
        let (outcome, said) = if processes == 1 {
            (self.round_here(meter)?, Said::default())
        } else {
            self.round_in_processes(meter)?
        };
        self.moved = Counters::read(self.folio_kib).since(&before);
        self.latest = Some((outcome, said));

        let bytes = self.plan.space.bytes() * processes as u64;
        let mut touches = bytes / self.plan.stride.step as u64;
        let pages = bytes / self.plan.space.page.bytes();
        let calls = (self.plan.space.layout.windows * processes) as u64;
        if let Some(beside) = &self.beside {
            touches = touches * beside.laps / self.plan.threads as u64;
            if beside.part != Part::Alone {
                beside.log.file(meter);
            }
        }
        let elapsed = meter.elapsed();
        for (name, phase, ops) in [
            ("map", outcome.map, calls),
            ("advise", outcome.advise, calls),
            ("populate", outcome.populate, pages),
            ("touch", outcome.touch, touches),
            ("release", outcome.release, calls),
        ] {
            if let Some(pieces) = self.pieces.as_mut().filter(|_| name == "touch") {
                let whole = pieces.whole(self.plan.space.layout.bytes());
                self.observe_touch(name, whole, meter);
            } else if phase.span != Span::default() {
                let ns = meter.clock().elapsed_ns(phase.span);
                meter.observe(name, elapsed, ops, bytes, ns);
                meter.observe(name, schema::Clock::Cpu, ops, bytes, phase.cpu_ns);
            }
        }
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let (outcome, said) = self.latest.take().expect("run comes before verify");
        self.testify(&outcome, witness);
        said.testify(witness);
        if self.processes() == 1 {
            self.stages.borrow_mut()[0].stage.verify(witness)?;
        }
        if let Some(beside) = self.beside.as_ref().filter(|beside| beside.part != Part::Alone) {
            beside.log.testify(true, witness);
        }
        Ok(())
    }
}

/// What crosses from a forked worker.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Told {
    outcome: Outcome,
    said: Said,
}

impl Rounds {
    /// Files the touches of some pieces, if there are any.
    fn observe_touch(&self, name: &str, share: Share, meter: &mut Meter) {
        let Share { bytes, ns, cpu_ns } = share;
        let touches = bytes / self.plan.stride.step as u64;
        for (clock, ns) in [(meter.elapsed(), ns), (schema::Clock::Cpu, cpu_ns)] {
            if bytes > 0 {
                meter.observe(name, clock, touches, bytes, ns);
            }
        }
    }

    /// Each worker in a forked process, with an address space of its own.
    fn round_in_processes(&self, meter: &Meter) -> Result<(Outcome, Said), Error> {
        let mut stages = self.stages.borrow_mut();
        let workers = stages.len();
        let barrier = Barrier::new(u32::try_from(workers).expect("a few processes"))?;
        let alone = Barrier::new(1)?;
        // A worker has a copy of its stage, and the one of its number in the list.
        let stages = RefCell::new(&mut *stages);
        let told = crew::processes(workers, |worker| {
            let run = || {
                let _pinned = self.plan.cpus[worker].map(Pinned::to).transpose()?;
                // A fresh process faults on code and stack; a tiny round takes those faults, by
                // the same loop.
                let mut small = self.plan.clone();
                let tiny = || TouchList::new((0..16).map(|page| (page << 12, false)));
                small.list = self.plan.list.as_ref().map(|_| tiny());
                small.populate = Populate::Touch;
                small.space.page = PageSize::Base;
                small.space.backing = Backing::Anonymous;
                small.space.skew = 0;
                small.space.layout = Layout::contiguous(16 << 12);
                small.stride.step = 4096;
                small.stride.bytes = 8;
                round(&small, meter.clock(), &alone, &mut Untouched, None, None)?;
                let mut stages = stages.borrow_mut();
                let Staged { space, stage } = &mut stages[worker];
                let plan = Plan { space: *space, ..self.plan.clone() };
                let outcome = round(&plan, meter.clock(), &barrier, stage.as_mut(), None, None)?;
                let mut witness = Witness::default();
                stage.verify(&mut witness)?;
                Ok::<_, Error>(Told { outcome, said: Said::of(witness.drafted()) })
            };
            // The parent sees the text on stderr and the failure in the exit status.
            run().unwrap_or_else(|error| panic!("{error}"))
        })?;
        let join = |one: Told, other: Told| Told {
            outcome: one.outcome.join(other.outcome),
            said: one.said.join(other.said),
        };
        let Told { outcome, said } = told.into_iter().reduce(join).expect("at least one process");
        Ok((outcome, said))
    }

    fn testify(&self, outcome: &Outcome, witness: &mut Witness) {
        let Plan { space, populate, .. } = &self.plan;
        let shares = self.processes() as u64;
        let expected = outcome.expected;
        let was_present = self.part() == Some(Part::Present);
        let touch_faults = if was_present { 0 } else { expected.faults };
        witness.expect(
            Check::FaultsOfTouch,
            touch_faults + outcome.again_minor,
            outcome.touch.minor,
        );
        witness.expect(Check::FaultsOfControl, 0, outcome.again_minor);
        if outcome.perf_faults != UNKNOWN {
            let claim = match expected.major {
                0 => "minor faults of the touch in the warm-up, by perf as by getrusage",
                _ => "faults of the touch in the warm-up, by perf as by getrusage",
            };
            let counted = outcome.touch.minor + outcome.touch.major;
            witness.expect_lasting(
                (Check::FaultsOfTouchByPerf, claim),
                counted,
                outcome.perf_faults,
            );
        }
        let major = if was_present { 0 } else { expected.major };
        witness.expect(Check::MajorFaults, major, all_phases(outcome, |phase| phase.major));
        expected.testify(&outcome.residency(), witness);
        populate::testify(*populate, space.bytes() * shares, outcome.locked, witness);
        // Other kinds have pages allocated before the touch as well.
        if self.is_plain {
            expected.testify_folios(space.page, &self.moved, witness);
        }
        if self.plan.cpus[0].is_some() {
            let moved = all_phases(outcome, |phase| phase.moved);
            witness.expect((Check::MovedCpu, "phases that ended on another CPU"), 0, moved);
        }
        if let Some(node) = space.mem_node {
            let claim = format!("pages asked about that are not on node {node}");
            witness.expect((Check::OnOtherNode, &claim), 0, outcome.elsewhere);
        }
        let faults = outcome.touch.minor;
        if !was_present {
            witness.set(counter::FAULTS_PER_REPETITION, faults + outcome.touch.major);
        }
        witness.count("faults", faults + outcome.touch.major);
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
