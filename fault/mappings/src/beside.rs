//! `--beside`: one more thread of the same address space makes calls while the others fault.
//!
//! The one idea: a call that changes mappings and a fault meet in three places: the locks of the
//! address space and its mappings, the page table, and the TLBs of other CPUs. Which of them costs
//! what is told by four arms of one case, which alternate in one process:
//!
//! | arm | the fault threads | the thread beside them |
//! | --- | --- | --- |
//! | `pagelab` | touch fresh memory | calls |
//! | `alone` | touch fresh memory | is not there |
//! | `present` | touch present memory, lap after lap | calls |
//! | `idle` | are not there | calls |
//!
//! `pagelab` over `alone` is what the calls do to faults; `pagelab` over `present` what faults do
//! to the calls; `present` over `idle` what it costs to have other CPUs' TLBs flushed.
//!
//! Only calls that began and ended while a fault thread was touching are kept.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hdrhistogram::Histogram;
use pagelab_bench::{Error, Kind, Meter, Param, Trial, Witness, words};
use pagelab_record::{Unit, latency, vocabulary::Check};
use pagelab_sys::{
    Area, SysError,
    loops::beside::{Call, Ground, PAGES},
    process::{Barrier, Fifo, Pinned},
    time::{Clock, usage},
};

use super::{
    Plan,
    outcome::{Phase, phase},
    plan::touch_share,
};

/// What is called beside the touches.
pub const BESIDE: Param =
    Param::axis("beside", Kind::Choice(&["none", "munmap", "mprotect", "madvise"]), "none")
        .help("calls that one more thread makes meanwhile on 16 pages of its own; adds three arms");

/// Calls of the arms that end by their number: those without a fresh touch.
const CALLS: u64 = 256;

/// Attempts at a round in which at least one call falls into the touch: a short touch may be over
/// many times before the thread that calls gets a processor.
const ATTEMPTS_MAX: u32 = 1000;

words! {
    /// Who does what in an arm, which is called so.
    pub enum Part {
        /// Fresh touches and calls.
        Both = "pagelab",
        /// Fresh touches, no calls.
        Alone = "alone",
        /// Touches of present memory, and calls.
        Present = "present",
    }
}

/// What was called beside a round.
#[derive(Debug, Clone)]
pub struct Log {
    /// Nanoseconds of each call kept; allocated and present beforehand.
    each: Histogram<u64>,
    /// Calls kept.
    calls: u64,
    /// Nanoseconds of them together.
    ns: u64,
    /// Minor faults of the calling thread, from its first call to its last.
    minor: u64,
    /// Faults that preparing must take.
    announced: u64,
    /// Pages of the ground present at the end, and how many there must be.
    present: (u64, u64),
}

impl Log {
    fn new() -> Self {
        let each = latency::empty();
        Self { each, calls: 0, ns: 0, minor: 0, announced: 0, present: (0, 0) }
    }

    /// Files what was called.
    pub(super) fn file(&self, meter: &mut Meter) {
        let bytes = PAGES * 4096;
        meter.observe("beside", meter.elapsed(), self.calls, self.calls * bytes, self.ns);
        meter.distribution("beside-call", Unit::Ns, bytes, &self.each);
    }

    /// Proves that the calls were made and took away what they were to take away.
    pub(super) fn testify(&self, during_touch: bool, witness: &mut Witness) {
        if during_touch {
            witness.expect_at_least(Check::CallsDuringTouch, 1, self.calls);
        } else {
            witness.expect(Check::CallsMade, CALLS, self.calls);
        }
        // Pages that a call took away fault when they are made present for the next one.
        witness.expect(Check::FaultsOfCaller, self.announced, self.minor);
        let (present, expected) = self.present;
        witness.expect(Check::PresentForCall, expected, present);
        witness.count("calls_beside", self.calls);
        witness.count("faults_beside", self.minor);
    }
}

/// An arm with fault threads.
#[derive(Debug)]
pub struct Beside {
    /// What is called.
    pub call: Call,
    /// Who does what.
    pub part: Part,
    /// What was called in the latest round.
    pub log: Log,
    /// Times that a thread went over its share inside the phase, added over threads.
    pub laps: u64,
}

impl Beside {
    /// With nothing called yet.
    pub fn new(call: Call, part: Part) -> Self {
        Self { call, part, log: Log::new(), laps: 0 }
    }

    /// Whether a round has what it is for; it is taken again otherwise, a few times.
    pub(super) fn is_enough(&self, attempt: u32) -> bool {
        self.part == Part::Alone || self.log.calls > 0 || attempt + 1 >= ATTEMPTS_MAX
    }
}

/// Touches an area in threads, with calls beside them where the part says so; returns the touches
/// of all threads and the faults of the same loop over present pages.
///
/// # Errors
/// When a thread cannot be bound to its CPU, or the kernel refuses a call.
pub fn touch_beside(
    plan: &Plan,
    area: &Area,
    clock: &Clock,
    beside: &mut Beside,
) -> Result<(Phase, u64), SysError> {
    let Beside { call, part, .. } = *beside;
    let log = &mut beside.log;
    let has_calls = part != Part::Alone;
    let workers = plan.threads + usize::from(has_calls);
    let barrier = Barrier::new(u32::try_from(workers).expect("a few threads"))?;
    let touching = AtomicUsize::new(plan.threads);
    let called = AtomicU64::new(0);
    let share = area.layout().bytes() / plan.threads;
    let ground = Ground::new(call)?;
    // A thread that cannot start ends the case: the others would wait for it for ever.
    let stop = |error: SysError| -> ! { panic!("{error}") };
    let settle = |worker: usize| {
        let pinned = plan.cpus[worker].map(|cpu| Pinned::to(cpu).unwrap_or_else(|e| stop(e)));
        let fifo = plan.fifo.then(|| Fifo::enter().unwrap_or_else(|e| stop(e)));
        (pinned, fifo)
    };
    let fault = |worker: usize| {
        let _settled = settle(worker);
        let (from, to) = (worker * share, (worker + 1) * share);
        // The first call of a fresh stack takes faults of its own.
        phase(clock, &mut || touch_share(plan, area, from, from));
        let mut laps = 0;
        // All threads are up, and then the one that calls is warm.
        barrier.wait();
        if has_calls {
            barrier.wait();
        }
        let first = phase(clock, &mut || loop {
            touch_share(plan, area, from, to);
            laps += 1;
            if part != Part::Present || called.load(Ordering::Relaxed) >= CALLS {
                break;
            }
        });
        touching.fetch_sub(1, Ordering::Release);
        barrier.wait();
        let again = phase(clock, &mut || touch_share(plan, area, from, to));
        (first, again.minor, laps)
    };
    let (touched, made) = std::thread::scope(|scope| {
        let (barrier, touching, called, settle) = (&barrier, &touching, &called, &settle);
        let make = move || {
            let _settled = settle(plan.threads);
            let goes_on = || touching.load(Ordering::Acquire) > 0;
            let result = make_calls(ground, clock, log, &|| barrier.wait(), &goes_on, called);
            if result.is_err() {
                // Nobody waits for calls that will not come.
                called.store(u64::MAX, Ordering::Relaxed);
            }
            barrier.wait();
            result
        };
        let calling = if has_calls { Some(scope.spawn(make)) } else { None };
        let fault = &fault;
        let threads: Vec<_> =
            (0..plan.threads).map(|worker| scope.spawn(move || fault(worker))).collect();
        let touched: Vec<_> =
            threads.into_iter().map(|thread| thread.join().expect("a worker panicked")).collect();
        (touched, calling.map(|thread| thread.join().expect("the thread beside panicked")))
    });
    made.transpose()?;
    let join = |(all, faults, laps): (Phase, u64, u64), (phase, again, more)| {
        (all.join(phase), faults + again, laps + more)
    };
    let (touch, again_minor, laps) = touched.into_iter().reduce(join).expect("at least one thread");
    beside.laps = laps;
    Ok((touch, again_minor))
}

/// Makes calls until told otherwise; keeps those that ended while they were still wanted.
///
/// `meet` is called twice: when nobody maps memory any more, which a hole in the ground could
/// catch, and after the first call, which takes the faults of code and stack.
fn make_calls(
    mut ground: Ground,
    clock: &Clock,
    log: &mut Log,
    meet: &dyn Fn(),
    goes_on: &dyn Fn() -> bool,
    called: &AtomicU64,
) -> Result<(), SysError> {
    meet();
    let warmed = ground.call().and_then(|()| ground.prepare());
    log.each.reset();
    let (mut announced, mut calls, mut ns) = (0, 0, 0);
    usage::thread();
    meet();
    warmed?;
    let before = usage::thread();
    // A copy of the loop condition inside it: a call that ended too late is not kept.
    while goes_on() {
        announced += ground.prepare()?;
        let mut result = Ok(());
        let span = clock.span(|| result = ground.call());
        result?;
        if !goes_on() {
            break;
        }
        let each = clock.elapsed_ns(span);
        log.each.saturating_record(each);
        ns += each;
        calls += 1;
        called.store(calls, Ordering::Relaxed);
    }
    log.minor = usage::thread().since(before).minor_faults;
    ground.prepare()?;
    log.present = (ground.present()?, PAGES);
    (log.announced, log.calls, log.ns) = (announced, calls, ns);
    Ok(())
}

/// The arm without fault threads: calls, and nobody beside them.
#[derive(Debug)]
pub struct Idle {
    call: Call,
    cpu: Option<usize>,
    fifo: bool,
    log: Log,
}

impl Idle {
    /// On the processor behind those of the plan's workers.
    pub fn new(call: Call, plan: &Plan) -> Self {
        let cpu = plan.cpus.last().copied().flatten();
        Self { call, cpu, fifo: plan.fifo, log: Log::new() }
    }
}

impl Trial for Idle {
    fn arm(&self) -> &'static str {
        "idle"
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let Self { call, cpu, fifo, log } = self;
        let (clock, called) = (meter.clock(), AtomicU64::new(0));
        let ground = Ground::new(*call)?;
        let work = || {
            let _pinned = cpu.map(Pinned::to).transpose()?;
            let _fifo = fifo.then(Fifo::enter).transpose()?;
            let goes_on = || called.load(Ordering::Relaxed) < CALLS;
            make_calls(ground, clock, log, &|| (), &goes_on, &called)
        };
        // In a thread of its own, as in the other arms: the first one sleeps meanwhile.
        std::thread::scope(|scope| scope.spawn(work).join()).expect("the thread panicked")?;
        log.file(meter);
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        self.log.testify(false, witness);
        Ok(())
    }
}
