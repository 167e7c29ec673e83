//! One round: map, advise, populate, touch, release, each between two clock readings of its own.
//!
//! The same function runs in the case's process, in forked processes, and (its touching part) in
//! threads. It allocates nothing between mapping and releasing: with `backing=brk` the heap's end
//! is ours meanwhile.

use pagelab_sys::{
    Area, SysError,
    clock::{Clock, Span},
    crew::Barrier,
    perf::FaultCounter,
    residency::{Scanner, nodes_of},
    sched::{Fifo, Pinned, current_cpu, disable_thp},
    touch::{Stride, TouchList},
    usage,
};

use super::space::Space;

/// How memory comes to be present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Populate {
    /// By touching it.
    Touch,
    /// `MAP_POPULATE`.
    Map,
    /// `MADV_POPULATE_WRITE`.
    Madvise,
    /// `mlock`.
    Lock,
    /// `mlock2(MLOCK_ONFAULT)`, then by touching it.
    LockOnFault,
}

/// Everything that a round needs to know.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where.
    pub space: Space,
    /// How memory comes to be present.
    pub populate: Populate,
    /// What is written where.
    pub stride: Stride,
    /// Random order, as a list of touches; ascending without.
    pub list: Option<TouchList>,
    /// Run under `SCHED_FIFO`.
    pub fifo: bool,
    /// Count faults by a perf event too, which makes each of them dearer.
    pub by_perf: bool,
    /// Workers that share one mapping; 1 for all other cases.
    pub threads: usize,
    /// CPU of each worker.
    pub cpus: Vec<Option<usize>>,
}

/// One timed phase of a round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Phase {
    /// Clock readings around it.
    pub span: Span,
    /// CPU time of the thread.
    pub cpu_ns: u64,
    /// Minor faults.
    pub minor: u64,
    /// Major faults.
    pub major: u64,
    /// Whether the thread ended on another CPU than it began.
    pub moved: u64,
    /// Times that the CPU was taken away.
    pub preempted: u64,
}

/// What a round came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The mapping call.
    pub map: Phase,
    /// The advice.
    pub advise: Phase,
    /// A populating call of its own.
    pub populate: Phase,
    /// The touch loop.
    pub touch: Phase,
    /// The unmapping call.
    pub release: Phase,
    /// The touch loop again, over pages that are present now: its faults are the loop's own.
    pub again_minor: u64,
    /// User faults of the touch loop by the perf software event; [`NO_PERF`] where there is none.
    pub perf_faults: u64,
    /// Base pages present afterwards.
    pub present: u64,
    /// Base pages mapped by a PMD or larger.
    pub huge: u64,
    /// Of the pages asked about, those on another node than the case says.
    pub elsewhere: u64,
}

/// Stands for a count that perf did not give.
pub const NO_PERF: u64 = u64::MAX;

/// Words of an [`Outcome`] that crosses from a forked worker.
pub const WORDS: usize = 5 * 7 + 5;

impl Phase {
    fn words(&self) -> [u64; 7] {
        let Self { span, cpu_ns, minor, major, moved, preempted } = *self;
        [span.start, span.end, cpu_ns, minor, major, moved, preempted]
    }

    fn of(words: &[u64]) -> Self {
        let [start, end, cpu_ns, minor, major, moved, preempted] =
            *words.first_chunk().expect("seven words a phase");
        Self { span: Span { start, end }, cpu_ns, minor, major, moved, preempted }
    }

    /// Both at once: from the earliest start to the latest end, counts added.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self {
            span: self.span.union(other.span),
            cpu_ns: self.cpu_ns + other.cpu_ns,
            minor: self.minor + other.minor,
            major: self.major + other.major,
            moved: self.moved + other.moved,
            preempted: self.preempted + other.preempted,
        }
    }
}

impl Outcome {
    /// For shared memory.
    pub fn words(&self) -> [u64; WORDS] {
        let phases = [self.map, self.advise, self.populate, self.touch, self.release];
        let counts = [self.again_minor, self.perf_faults, self.present, self.huge, self.elsewhere];
        let mut words = phases.iter().flat_map(Phase::words).chain(counts);
        std::array::from_fn(|_| words.next().expect("as many words as the outcome has"))
    }

    /// Back from shared memory.
    pub fn of(words: &[u64; WORDS]) -> Self {
        let phase = |index: usize| Phase::of(&words[index * 7..]);
        let [again_minor, perf_faults, present, huge, elsewhere] =
            *words.last_chunk().expect("five counts");
        Self {
            map: phase(0),
            advise: phase(1),
            populate: phase(2),
            touch: phase(3),
            release: phase(4),
            again_minor,
            perf_faults,
            present,
            huge,
            elsewhere,
        }
    }

    /// Several workers' outcomes as one.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        let both = |a: u64, b: u64| if a == NO_PERF || b == NO_PERF { NO_PERF } else { a + b };
        Self {
            map: self.map.join(other.map),
            advise: self.advise.join(other.advise),
            populate: self.populate.join(other.populate),
            touch: self.touch.join(other.touch),
            release: self.release.join(other.release),
            again_minor: self.again_minor + other.again_minor,
            perf_faults: both(self.perf_faults, other.perf_faults),
            present: self.present + other.present,
            huge: self.huge + other.huge,
            elsewhere: self.elsewhere + other.elsewhere,
        }
    }
}

/// Times one phase and counts what happened in it.
///
/// Not generic: every phase runs the same code, so that only the first one of a process can fault
/// on it.
fn phase(clock: &Clock, body: &mut dyn FnMut()) -> Phase {
    let before = usage::thread();
    let cpu = current_cpu();
    let cpu_ns = clock.thread_cpu_ns();
    let span = clock.span(body);
    let cpu_ns = clock.thread_cpu_ns() - cpu_ns;
    let moved = u64::from(current_cpu() != cpu);
    let counted = usage::thread().since(before);
    Phase {
        span,
        cpu_ns,
        minor: counted.minor_faults,
        major: counted.major_faults,
        moved,
        preempted: counted.involuntary_switches,
    }
}

/// A phase whose body can fail.
fn try_phase(
    clock: &Clock,
    mut body: impl FnMut() -> Result<(), SysError>,
) -> Result<Phase, SysError> {
    let mut result = Ok(());
    let phase = phase(clock, &mut || result = body());
    result.map(|()| phase)
}

/// Runs one round in the calling thread (and in `plan.threads` of its own for the touch).
///
/// # Errors
/// When the machine refuses.
pub fn round(plan: &Plan, clock: &Clock, barrier: &Barrier) -> Result<Outcome, SysError> {
    let space = &plan.space;
    let scanner = Scanner::open()?;
    let mut perf = if plan.by_perf { FaultCounter::open() } else { None };
    // Without this a mapping that is populated before it is advised could come in huge pages.
    let base_only = plan.populate == Populate::Map && space.advice != Some(HUGE);
    disable_thp(base_only)?;
    let mut area = space.reserve()?;
    area.open()?;
    let _fifo = if plan.fifo { Some(Fifo::enter()?) } else { None };
    let mut outcome = Outcome { perf_faults: NO_PERF, ..Outcome::default() };

    barrier.wait();
    let populates = plan.populate == Populate::Map || space.populates_early;
    outcome.map = try_phase(clock, || area.map(populates))?;
    if let Some(node) = space.mem_node {
        area.bind(node)?;
    }
    if let Some(advice) = space.advice {
        outcome.advise = try_phase(clock, || area.advise(advice))?;
    }
    barrier.wait();
    outcome.populate = match plan.populate {
        Populate::Touch | Populate::Map => Phase::default(),
        Populate::Madvise => try_phase(clock, || area.populate_write())?,
        Populate::Lock => try_phase(clock, || area.lock(false))?,
        Populate::LockOnFault => try_phase(clock, || area.lock(true))?,
    };
    if space.touches_twice {
        touch(plan, &area);
    }
    barrier.wait();
    if perf.is_some() {
        // Both counters are read once before they count: their own code may be fresh.
        phase(clock, &mut || ());
        perf.as_mut().and_then(FaultCounter::faults);
    }
    let perf_before = perf.as_mut().and_then(FaultCounter::faults);
    if plan.threads > 1 {
        (outcome.touch, outcome.again_minor) = touch_in_threads(plan, &area, clock)?;
    } else {
        outcome.touch = phase(clock, &mut || touch(plan, &area));
        if let (Some(before), Some(after)) =
            (perf_before, perf.as_mut().and_then(FaultCounter::faults))
        {
            outcome.perf_faults = after - before;
        }
        outcome.again_minor = phase(clock, &mut || touch(plan, &area)).minor;
    }
    let residency = scanner.scan(&area)?;
    (outcome.present, outcome.huge) = (residency.present, residency.huge);
    outcome.elsewhere = pages_elsewhere(&area, space)?;
    barrier.wait();
    outcome.release = try_phase(clock, || area.release())?;
    Ok(outcome)
}

const HUGE: pagelab_sys::area::Advice = pagelab_sys::area::Advice::HugePage;

/// The touch loop of one worker.
fn touch(plan: &Plan, area: &Area) {
    match &plan.list {
        Some(list) => area.touch_listed(list, plan.stride),
        None => area.touch(0, area.layout().bytes(), plan.stride),
    }
}

/// Every thread touches its own contiguous share of the mapping.
fn touch_in_threads(plan: &Plan, area: &Area, clock: &Clock) -> Result<(Phase, u64), SysError> {
    let barrier = Barrier::new(u32::try_from(plan.threads).expect("a few threads"))?;
    let share = area.layout().bytes() / plan.threads;
    let results = pagelab_sys::crew::threads(plan.threads, |worker| {
        // A worker that cannot start ends the case: the others would wait for it for ever.
        let stop = |error: SysError| -> ! { panic!("{error}") };
        let _pinned = plan.cpus[worker].map(|cpu| Pinned::to(cpu).unwrap_or_else(|e| stop(e)));
        let _fifo = plan.fifo.then(|| Fifo::enter().unwrap_or_else(|e| stop(e)));
        let (from, to) = (worker * share, (worker + 1) * share);
        // The first call of a fresh stack takes faults of its own.
        phase(clock, &mut || area.touch(from, from, plan.stride));
        barrier.wait();
        let first = phase(clock, &mut || area.touch(from, to, plan.stride));
        barrier.wait();
        let again = phase(clock, &mut || area.touch(from, to, plan.stride));
        (first, again.minor)
    });
    let join = |(all, faults): (Phase, u64), (phase, again)| (all.join(phase), faults + again);
    Ok(results.into_iter().reduce(join).expect("at least one thread"))
}

/// Asks the kernel on which node 64 pages, evenly spread, really are.
fn pages_elsewhere(area: &Area, space: &Space) -> Result<u64, SysError> {
    const ASKED: usize = 64;
    let Some(node) = space.mem_node else { return Ok(0) };
    let page = usize::try_from(space.page.bytes()).expect("addresses have 64 bits");
    let pages = area.layout().bytes() / page;
    let address = |index: usize| area.base() + area.layout().offset(index * pages / ASKED * page);
    let addresses: [usize; ASKED] = std::array::from_fn(address);
    let mut nodes = [-1; ASKED];
    nodes_of(&addresses, &mut nodes)?;
    Ok(nodes.iter().filter(|found| usize::try_from(**found) != Ok(node)).count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_crosses_shared_memory_unchanged() {
        let words: [u64; WORDS] = std::array::from_fn(|index| index as u64);
        assert_eq!(Outcome::of(&words).words(), words);
    }

    #[test]
    fn joined_phases_span_both() {
        let phase =
            |start, end, minor| Phase { span: Span { start, end }, minor, ..Phase::default() };
        let joined = phase(10, 20, 3).join(phase(5, 15, 4));
        assert_eq!((joined.span, joined.minor), (Span { start: 5, end: 20 }, 7));
    }
}
