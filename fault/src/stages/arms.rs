//! The arms of `fault/stages`: the same faults with every event open, with the first only, with
//! none; and the same loop over pages that are present.
//!
//! All of them run one loop and read one clock. The difference between the first and the third is
//! what being told costs, the second says how much of that is one event.

use hdrhistogram::Histogram;
use pagelab_bench::{Error, Meter, Trial, Witness};
use pagelab_record::{
    Unit, latency,
    schema::Clock,
    vocabulary::{Check, counter},
};
use pagelab_sys::{
    Area,
    counts::perf::{Session, Told as Account},
    loops::{Access, Stamps, TouchList},
    process::{Fifo, current_cpu},
    time::{Usage, usage},
};

use super::{
    marks::{self, Tied, median},
    sources::{Marks, RETURN, WHOLE},
};
use pagelab_mappings::{Space, populate::touch_all};

/// Stages and the whole may differ by one part in so many.
const PARTS: u64 = 10;

/// What all arms share.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    /// Where.
    pub(super) space: Space,
    /// What is touched, in which order; those that also allocate a page table are kept apart.
    pub(super) list: TouchList,
    /// For each touch whether it is kept apart.
    pub(super) apart: Vec<bool>,
    /// For each touch the offset of its page.
    pub(super) pages: Vec<u64>,
    /// Load or store.
    pub(super) access: Access,
    /// Run under `SCHED_FIFO`.
    pub(super) fifo: bool,
}

/// One arm.
#[derive(Debug)]
pub(super) struct Staged {
    name: &'static str,
    setup: Setup,
    /// Events that are open meanwhile.
    marks: Option<Marks>,
    /// Whether pages are present beforehand.
    is_control: bool,
    /// Marks that every fault passes, as the warm-up found.
    used: Option<Vec<usize>>,
    area: Option<Area>,
    stamps: Vec<Stamps>,
    latest: Latest,
}

/// What the latest repetition came to.
#[derive(Debug, Default)]
struct Latest {
    counted: Usage,
    moved_cpu: u64,
    tied: Tied,
    accounts: Vec<Account>,
    broken: u64,
    stages_ns: u64,
    whole_ns: u64,
}

impl Staged {
    pub(super) fn new(
        name: &'static str,
        setup: Setup,
        marks: Option<Marks>,
        is_control: bool,
    ) -> Self {
        // Written to, so that the loop does not fault on them.
        let stamps = vec![Stamps { start: 1, end: 1 }; setup.list.len()];
        let latest = Latest::default();
        Self { name, setup, marks, is_control, used: None, area: None, stamps, latest }
    }

    /// The loop, and what the kernel told meanwhile.
    fn take(&mut self) -> Result<(Vec<marks::Told>, Vec<Account>), Error> {
        let Self { setup, marks, stamps, area, .. } = self;
        let area = area.as_ref().expect("reset comes before run");
        let faults = setup.list.len();
        let mut session: Option<Session> =
            marks.as_ref().map(|marks| marks.session(faults)).transpose()?;
        let _fifo = if setup.fifo { Some(Fifo::enter()?) } else { None };
        // Read once before they count: their own code may be fresh.
        usage::thread();
        let cpu = current_cpu();
        if let Some(session) = &mut session {
            session.start()?;
        }
        let before = usage::thread();
        area.stamp_touches(&setup.list, setup.access, stamps);
        self.latest.counted = usage::thread().since(before);
        self.latest.moved_cpu = u64::from(current_cpu() != cpu);
        let mut events = Vec::new();
        let Some((session, marks)) = session.as_mut().zip(marks.as_ref()) else {
            return Ok((events, Vec::new()));
        };
        let accounts = session.stop(&mut |record| events.extend(marks.told(&record)))?;
        Ok((events, accounts))
    }

    fn file(&self, meter: &mut Meter, name: &str, values: &[u64]) {
        let mut histogram: Histogram<u64> = latency::empty();
        for ns in values {
            histogram.saturating_record(*ns);
        }
        let bytes = if self.is_control { 0 } else { self.setup.space.page.bytes() };
        meter.distribution_by(name, Clock::Wall, Unit::Ns, bytes, &histogram);
    }
}

impl Trial for Staged {
    fn arm(&self) -> &'static str {
        self.name
    }

    fn is_first_touch(&self) -> bool {
        !self.is_control
    }

    fn counts_faults(&self) -> bool {
        true
    }

    fn reset(&mut self) -> Result<(), Error> {
        self.area.take();
        let area = self.setup.space.mapped()?;
        if self.is_control {
            touch_all(&area);
        }
        self.area = Some(area);
        Ok(())
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let (events, accounts) = self.take()?;
        let base = self.area.as_ref().expect("reset comes before run").base() as u64;
        let pages: Vec<u64> = self.setup.pages.iter().map(|offset| base + offset).collect();
        let count = self.marks.as_ref().map_or(0, Marks::len);
        let tied = marks::tie(&self.stamps, &pages, &events, count);
        // What a kernel does not tell of each fault is found once, before anything is kept.
        if self.used.is_none() || meter.is_warm_up() {
            self.used = Some(marks::passed_by_all(&tied));
        }
        let used = self.used.as_deref().unwrap_or_default();
        let split = marks::split(&self.stamps, &tied, used, |touch| !self.setup.apart[touch]);
        if let Some(marks) = &self.marks {
            let names = used.iter().map(|mark| marks.stage(*mark)).chain([RETURN]);
            for (name, values) in names.zip(&split.stages) {
                self.file(meter, name, values);
            }
        }
        self.file(meter, WHOLE, &split.whole);
        self.latest.stages_ns = split.stages.iter().map(|stage| median(stage)).sum();
        self.latest.whole_ns = median(&split.whole);
        (self.latest.broken, self.latest.tied) = (split.broken, tied);
        self.latest.accounts = accounts;
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let (latest, touches) = (&self.latest, self.setup.list.len() as u64);
        let faults = if self.is_control { 0 } else { touches };
        witness.expect(
            (Check::FaultsOfLoop, "minor faults of the loop"),
            faults,
            latest.counted.minor_faults,
        );
        witness.expect(Check::MajorFaults, 0, latest.counted.major_faults);
        witness.expect(Check::MovedCpu, 0, latest.moved_cpu);
        witness.count("preemptions", latest.counted.involuntary_switches);
        let Some(marks) = &self.marks else { return Ok(()) };
        // The first mark, and the last where all are open, are passed once by every fault.
        let mut ends = vec![0, marks.len() - 1];
        ends.dedup();
        for mark in ends {
            let claim = format!("faults told at the end of the stage {}", marks.stage(mark));
            witness.expect((Check::ToldAtStage, &claim), touches, latest.tied.told[mark]);
        }
        let lost = |told: &Account| told.lost.unwrap_or(0).max(told.counted - told.samples);
        witness.expect(Check::EventsLost, 0, latest.accounts.iter().map(lost).sum());
        witness.expect(Check::EventsElsewhere, 0, latest.tied.elsewhere);
        witness.expect(Check::EventsInOrder, 0, latest.broken);
        // Each fault adds up exactly (above); medians need not, where times scatter.
        let apart = latest.whole_ns.abs_diff(latest.stages_ns);
        if apart > latest.whole_ns / PARTS {
            witness.warn(format!(
                "the stages' medians add up to {} ns where the median end-to-end is {} ns: the \
                 times scatter too much for medians of stages to be added; take more repetitions \
                 on a quieter machine",
                latest.stages_ns, latest.whole_ns
            ));
        }
        witness.count("events_outside_of_stamps", latest.tied.outside);
        if marks.len() > 1 {
            witness.set(counter::EVENTS_PER_FAULT, marks.len() as u64);
            let unused = marks.len() - self.used.as_ref().map_or(0, Vec::len);
            witness.set("events_without_a_stage", unused as u64);
        }
        Ok(())
    }
}
