//! `tier/micro`: what random accesses to memory on the slow node take, while one of the kernel's
//! modes moves pages or none does.
//!
//! The published micro-benchmark of tiered memory: threads on the fast node access memory on the
//! slow one, a page at random each time, as often as was fixed beforehand; every second access is a
//! store. The score is the time from the first thread's start to the last one's end. What happens
//! meanwhile is looked at ten times a second: the kernel's counters, and where pages lie.
//!
//! Every repetition has fresh memory, which is found to be on the slow node before the first
//! access. Afterwards the same draws are made once more over an array: what the loads add up to and
//! what the stores leave must be the same, so that no access is missing.
//!
//! Where a machine has one node all of it runs there, and the record says that nothing can move.

mod asked;
mod damon;
mod ground;
mod mode;
mod ours;
mod watch;

use pagelab_bench::{
    Described, Error, Experiment, Inputs, Kind, Meter, Needed, Over, Param, Trial, Witness,
    needs::{far_node, near_node},
};
use pagelab_record::vocabulary::Check;
use pagelab_record::vocabulary::{
    counter::{
        COLD_ON_SLOW, COLD_PAGES, FOUND_ON_FAST, LOOKED_AT, PAGES, PAGES_DEMOTED, PAGES_PROMOTED,
    },
    series::SCORE,
};
use pagelab_sys::{
    counts::Counters,
    knobs::OwnMonitor,
    loops::draws::{DRAWERS_MAX, Draws},
    memory::{Residency, Scanner},
};

use self::{
    asked::{Asked, Lie, Memory, REFUSALS},
    ground::Ground,
    mode::{Mode, Tuned},
    ours::Engine,
    watch::{Watch, demoted},
};
use super::drawn::{self, Drawn, Made};
use pagelab_mappings::space;

/// What keeps every page where it is.
pub(super) fn still() -> Vec<Needed> {
    Mode::None.needs(Tuned::default())
}

const PARAMS: &[Param] = &[
    Param::axis("mode", Kind::Choice(Mode::WORDS), "none").help(
        "what moves pages: nothing, NUMA balancing 1 or 2, pghot by hint faults or samples, our \
         own engine, or DAMON's migrate_hot",
    ),
    Param::axis("kind", Kind::Choice(Memory::WORDS), "anon")
        .help("anonymous memory, half of the accesses stores; or loads of a mapped file"),
    Param::axis("page", Kind::Choice(&["4k", "2m"]), "4k").help("page size: 4k, or 2m (THP)"),
    Param::axis("size", Kind::Size, "64m").help("memory that is accessed; published: 8g, 64g"),
    Param::axis("threads", Kind::Count { max: DRAWERS_MAX as u64, auto: true }, "auto")
        .help("threads, on CPUs of the fast node; auto: one for each of them; published: 64"),
    Param::axis("accesses", Kind::Ops, "1m").help("accesses of each thread, an even number"),
    Param::axis("seed", Kind::Count { max: 1 << 32, auto: false }, "1")
        .help("where the draws begin: pages and their order follow from it"),
    Param::axis("fast", Kind::Choice(&["room", "full"]), "room")
        .help("the fast node has room, or is full of memory that nobody touches"),
    Param::axis("scan", Kind::Choice(&["kernel", "hurried"]), "kernel")
        .help("how often NUMA balancing marks pages: as it is set, or as often as it can"),
    Param::axis("window", Kind::Count { max: 3_600_000, auto: true }, "auto")
        .help("milliseconds in which two accesses make a page hot to pghot; auto: as it is set"),
    space::CPU,
    Param { default: "3", ..space::ROUNDS }.help("repetitions in each process, all of them kept"),
    Param::axis("dir", Kind::Dir, "auto").help("directory of the file of kind=file"),
    Param { kind: Kind::Choice(Lie::WORDS), ..space::LIE },
];

/// See the module's documentation.
pub const MICRO: Described<Asked> = Described {
    resolve: Drawn::resolve,
    refusals: REFUSALS,
    parts: &[&Over { of: |asked: &Asked| &asked.drawn, tables: &[drawn::REFUSALS] }],
    ..Described::new(
        "tier/micro",
        "random accesses to memory on the slow node, while a mode of the kernel promotes it",
        PARAMS,
        &[("size", "4m"), ("accesses", "20k"), ("threads", "2"), ("rounds", "2")],
        Asked::of,
    )
};

impl Experiment for Asked {
    fn needs(&self) -> Vec<Needed> {
        self.needed()
    }

    fn footprint(&self) -> u64 {
        self.peak()
    }

    fn seconds(&self) -> f64 {
        // Made by all at once, made once more by one; the memory is faulted in, and filled beside.
        let accesses = self.drawn.accesses.unwrap_or(0) as f64;
        let each = accesses * 150e-9 + accesses * self.drawn.threads as f64 * 20e-9;
        each + self.peak() as f64 / 2e9 + 0.01
    }

    fn repetitions(&self) -> Option<u32> {
        self.rounds
    }

    fn prepare(&self, inputs: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        let (near, slow) = (near_node(), far_node());
        let draws = self.drawn.draws(self.memory == Memory::Anon);
        Ok(vec![Box::new(Run {
            asked: self.clone(),
            // With one node there is no fast one.
            near: near.filter(|_| slow.is_some()),
            slow,
            places: self.drawn.places(),
            draws,
            scanner: Scanner::open()?,
            monitor: inputs.monitor().cloned(),
            ground: None,
            found: None,
        })])
    }
}

/// What was found of a repetition.
#[derive(Debug)]
struct Found {
    /// Base pages on the slow node before the first access.
    placed: u64,
    before: Residency,
    /// What the loads of each thread added up to.
    sums: Vec<u64>,
    /// What the kernel counted meanwhile.
    counted: Counters,
    /// Base pages that had left the slow node, and those on the fast one.
    left: u64,
    on_fast: u64,
    looked_at: u64,
}

/// The one arm.
#[derive(Debug)]
struct Run {
    asked: Asked,
    near: Option<usize>,
    slow: Option<usize>,
    places: Vec<Option<usize>>,
    draws: Vec<Draws>,
    scanner: Scanner,
    /// What moves pages while it is on.
    monitor: Option<OwnMonitor>,
    ground: Option<Ground>,
    found: Option<Found>,
}

impl Trial for Run {
    fn arm(&self) -> &'static str {
        self.asked.mode.name()
    }

    fn reset(&mut self) -> Result<(), Error> {
        self.ground = None;
        self.ground = Some(Ground::lay(&self.asked, self.near, self.slow)?);
        Ok(())
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let ground = self.ground.as_ref().expect("reset comes before run");
        let all = u64::from(self.asked.drawn.pages());
        let on = |node: Option<usize>| node.map_or(Ok(0), |node| ground.on(node));
        let placed = if self.slow.is_some() { on(self.slow)? } else { all };
        let before = ground.look(&self.scanner)?;
        let near = self.near.and_then(|near| i32::try_from(near).ok());
        let bytes = self.asked.drawn.bytes();
        let watch = Watch::over(ground.area.base(), bytes, near, self.asked.mode.promotions());
        let (clock, is_short) = (meter.clock(), self.asked.lie == Lie::Fewer);
        if self.slow.is_some() {
            // Not before everything else: from here on the kernel may move pages.
            ground.area.unbind()?;
        }
        self.monitor.as_ref().map_or(Ok(()), OwnMonitor::start)?;
        let engine = if self.asked.mode == Mode::Ours { Some(Engine::start()?) } else { None };
        let start = Counters::read_whole();
        let access = || drawn::access(&ground.area, &self.draws, &self.places, is_short, clock);
        let (made, seen) = watch.during(access)?;
        engine.map_or(Ok(()), Engine::stop)?;
        self.monitor.as_ref().map_or(Ok(()), OwnMonitor::stop)?;
        let counted = Counters::read_whole().since(&start);
        let Made { span, sums } = made?;
        let (ns, elapsed) = (clock.elapsed_ns(span), meter.elapsed());
        meter.observe(SCORE, elapsed, 1, 0, ns);
        seen.file(meter);
        self.found = Some(Found {
            placed,
            before,
            sums,
            counted,
            left: if self.slow.is_some() { all - on(self.slow)? } else { 0 },
            on_fast: on(self.near)?,
            looked_at: watch.looked_at(),
        });
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let found = self.found.take().expect("run comes before verify");
        let ground = self.ground.as_ref().expect("reset comes before run");
        let all = u64::from(self.asked.drawn.pages());
        witness.expect(
            (Check::PresentBefore, "base pages present before the accesses"),
            all,
            found.before.present,
        );
        if self.asked.memory == Memory::Anon {
            let huge = if self.asked.is_huge { all } else { 0 };
            witness.expect(
                (Check::HugeBefore, "base pages mapped by a PMD or larger before the accesses"),
                huge,
                found.before.huge,
            );
        }
        if let Some(slow) = self.slow {
            let claim = format!("base pages on the slow node, {slow}, before the accesses");
            witness.expect((Check::PlacedOnSlow, &claim), all, found.placed);
        } else {
            witness.warn(
                "this machine has one memory node: nothing can be promoted, and the score is that \
                 of memory beside the CPU"
                    .to_owned(),
            );
        }
        let is_stored = self.asked.memory == Memory::Anon;
        drawn::compare(&ground.area, &self.draws, &found.sums, is_stored, witness);
        let promoted = found.counted.get(self.asked.mode.promotions()).unwrap_or(0);
        if self.asked.mode == Mode::None {
            witness.expect(Check::LeftSlow, 0, found.left);
        } else {
            witness.expect_at_least(Check::Promoted, found.on_fast, promoted);
        }
        witness.set(PAGES, all);
        witness.set(LOOKED_AT, found.looked_at);
        witness.count(FOUND_ON_FAST, found.on_fast);
        witness.count(PAGES_PROMOTED, if self.slow.is_some() { promoted } else { 0 });
        witness.count(PAGES_DEMOTED, demoted(&found.counted));
        let cold = self.slow.map_or(Ok(None), |slow| ground.cold_on(slow))?;
        if let Some((cold, away)) = cold {
            witness.count(COLD_PAGES, cold);
            witness.count(COLD_ON_SLOW, away);
        }
        found.counted.iter().for_each(|(name, value)| witness.count(name, value));
        Ok(())
    }
}
