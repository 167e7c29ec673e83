#![expect(unsafe_code, reason = "PERF_EVENT_IOC_SET_OUTPUT has no wrapper")]
//! Events of other processes, received while they happen.
//!
//! The one idea: a session has *sources* (kinds of events); each source has one event and one ring
//! for each CPU, because events that forked children inherit may not share one across CPUs. Records
//! come out in order of time over all rings, are handed on one by one, and none is kept: memory is
//! bounded by the rings. What the kernel had no room for is counted, and can be told from what did
//! not happen: a source's count is what it told plus what was lost.
//!
//! The clock is `CLOCK_MONOTONIC_RAW`, so that records compare with stamps of our own.
//! It interprets nothing: that is for its user.
//!
//! Rules for the unsafe block:
//! 1. `PERF_EVENT_IOC_SET_OUTPUT` takes two descriptors that the caller holds open, and changes
//!    where the kernel writes, never what is mapped here.

use std::{io, os::fd::AsRawFd, time::Duration};

use super::{
    descriptors, event,
    parse::{Body, Record, Shape, parse},
    plan::{Plan, Source, Target, When},
};
use crate::{Called, SysError, machine::Topology, time::monotonic_raw_ns};
use perf_event::{Counter, Sampler};

/// What became of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Told {
    /// Events that the kernel counted.
    pub counted: u64,
    /// Samples that came through the rings.
    pub samples: u64,
    /// Records of any type that the rings had no room for, as records in the rings say; those lost
    /// last may be missing.
    pub lost_told: u64,
    /// The same as the kernel's own counter says (since Linux 6.0).
    pub lost: Option<u64>,
}

impl Told {
    /// The sum of two sources.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            counted: self.counted + other.counted,
            samples: self.samples + other.samples,
            lost_told: self.lost_told + other.lost_told,
            lost: self.lost.map_or(other.lost, |lost| Some(lost + other.lost.unwrap_or(0))),
        }
    }
}

/// Records younger than this are held back: an older one may still be on its way.
const SETTLE_NS: u64 = 5_000_000;
/// The smallest ring worth having.
const RING_MIN: usize = 32 << 10;

/// Events being received.
#[derive(Debug)]
pub struct Session {
    rings: Vec<Ring>,
    /// Events of further threads, which write into the rings of the first.
    others: Vec<(usize, Counter)>,
    shapes: Vec<Shape>,
    whens: Vec<When>,
    told: Vec<Told>,
    open: Vec<bool>,
    pending: Vec<Record>,
    /// Records up to then are complete.
    settled_ns: u64,
    sees_kernel: bool,
}

struct Ring {
    source: usize,
    cpu: usize,
    sampler: Sampler,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ring({} on {})", self.source, self.cpu)
    }
}

impl Session {
    /// Opens every source on every CPU, with the kernel's part where that is allowed.
    ///
    /// # Errors
    /// When a required source is not allowed (`perf_event_paranoid` above 2, a seccomp filter,
    /// somebody else's process) or there are too many descriptors.
    pub fn open(plan: &Plan) -> Result<Self, SysError> {
        descriptors::raise(plan)?;
        // Tracepoints aside, an unprivileged user may watch user space only.
        match Self::open_with(plan, true) {
            Err(error) if is_denied(&error.source) => Self::open_with(plan, false),
            result => result,
        }
    }

    fn open_with(plan: &Plan, sees_kernel: bool) -> Result<Self, SysError> {
        let count = plan.sources.len();
        let mut session = Self {
            rings: Vec::new(),
            others: Vec::new(),
            shapes: plan.sources.iter().map(Shape::of).collect(),
            whens: plan.sources.iter().map(|source| source.when).collect(),
            told: vec![Told::default(); count],
            open: vec![false; count],
            pending: Vec::new(),
            settled_ns: 0,
            sees_kernel,
        };
        for (index, source) in plan.sources.iter().enumerate() {
            match session.open_source(index, source, &plan.target) {
                Ok(()) => session.open[index] = true,
                Err(error) if source.required => return Err(error),
                // What is left of it would count without being read.
                Err(_) => {
                    session.rings.retain(|ring| ring.source != index);
                    session.others.retain(|(source, _)| *source != index);
                }
            }
        }
        Ok(session)
    }

    fn open_source(
        &mut self,
        index: usize,
        source: &Source,
        target: &Target,
    ) -> Result<(), SysError> {
        let (threads, on_exec): (&[u32], bool) = match target {
            Target::OnExec(process) => (std::slice::from_ref(process), true),
            Target::Threads(threads) => (threads, false),
        };
        let sees_kernel = self.sees_kernel;
        let open = |cpu, thread| event::open(source, thread, cpu, on_exec, sees_kernel);
        for cpu in Topology::machine().cpus().online {
            for thread in threads {
                let counter = match open(cpu, *thread) {
                    Ok(counter) => counter,
                    // The CPU went away, or the thread did.
                    Err(error) if is_gone(&error) && (!on_exec || cpu > 0) => continue,
                    Err(error) => {
                        let on = format!("{} of thread {thread}", source.event.name());
                        return Err(SysError::new("perf_event_open", on, error));
                    }
                };
                let ring = self.rings.iter().find(|r| (r.source, r.cpu) == (index, cpu));
                if let Some(ring) = ring {
                    redirect(&counter, &ring.sampler)?;
                    self.others.push((index, counter));
                } else {
                    let sampler = map(counter, source.ring_bytes, || open(cpu, *thread))?;
                    self.rings.push(Ring { source: index, cpu, sampler });
                }
            }
        }
        if self.rings.iter().any(|ring| ring.source == index) {
            return Ok(());
        }
        let on = format!("{}: no thread is left", source.event.name());
        Err(SysError::new("perf_event_open", on, io::Error::from_raw_os_error(libc::ESRCH)))
    }

    /// Whether this source could be opened.
    pub fn has(&self, source: usize) -> bool {
        self.open.get(source).copied().unwrap_or(false)
    }

    /// Whether faults taken in kernel mode are told too.
    pub fn sees_kernel(&self) -> bool {
        self.sees_kernel
    }

    /// Starts the events of [`Target::Threads`].
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn start(&mut self) -> Result<(), SysError> {
        self.enable(|when| when != When::InBrief)
    }

    /// Has events told in full from now on, or in brief. What happens just then is told both ways,
    /// so that nothing is missed, however late the next call comes. Later sources begin first and
    /// end last: whoever tells the end of something finds what tells its parts.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn tell(&mut self, in_full: bool) -> Result<(), SysError> {
        let (from, to) =
            if in_full { (When::InBrief, When::InFull) } else { (When::InFull, When::InBrief) };
        self.enable(|when| when == to)?;
        let mut old = self.of(|when| when == from).into_iter();
        old.try_for_each(|(_, counter)| counter.disable()).called("ioctl", "PERF_EVENT_IOC_DISABLE")
    }

    fn enable(&mut self, is_due: impl Fn(When) -> bool) -> Result<(), SysError> {
        let mut due = self.of(is_due).into_iter().rev();
        let enabled = due.try_for_each(|(_, counter)| counter.enable());
        enabled.called("ioctl", "PERF_EVENT_IOC_ENABLE")
    }

    /// Counters of some sources, in the order of the sources.
    fn of(&mut self, is_due: impl Fn(When) -> bool) -> Vec<(usize, &mut Counter)> {
        let whens = self.whens.clone();
        let mut counters: Vec<_> =
            self.counters().filter(|(source, _)| is_due(whens[*source])).collect();
        counters.sort_by_key(|(source, _)| *source);
        counters
    }

    /// Events that are open: each source on each CPU, of each thread.
    pub fn events(&self) -> usize {
        self.rings.len() + self.others.len()
    }

    /// Samples of a source that came so far, or are known to be lost.
    pub fn came(&self, source: usize) -> u64 {
        self.told[source].samples + self.told[source].lost_told
    }

    /// Takes what has come since the last call, and shows it, in no order.
    pub fn receive(&mut self) -> &[Record] {
        let known = self.pending.len();
        // Before a ring is read: what comes later may be missing in one.
        self.settled_ns = monotonic_raw_ns().saturating_sub(SETTLE_NS);
        self.gather();
        &self.pending[known..]
    }

    /// Hands on what was received, in order of time; what is too young comes next time.
    pub fn drain(&mut self, on_record: &mut dyn FnMut(Record)) {
        self.hand_on(self.settled_ns, on_record);
    }

    /// Ends the events, hands on what is left, and says what became of each source.
    ///
    /// # Errors
    /// When a counter cannot be read.
    pub fn stop(&mut self, on_record: &mut dyn FnMut(Record)) -> Result<Vec<Told>, SysError> {
        let failed = |error| SysError::new("read", "a perf counter", error);
        self.counters().try_for_each(|(_, counter)| counter.disable()).map_err(failed)?;
        // A handler that was running on another CPU has left by then.
        std::thread::sleep(Duration::from_millis(1));
        self.gather();
        self.hand_on(u64::MAX, on_record);
        let mut told = std::mem::take(&mut self.told);
        let mut counters = self.counters();
        counters.try_for_each(|(of, counter)| add(&mut told[of], counter)).map_err(failed)?;
        Ok(told)
    }

    /// Every counter, with and without a ring of its own, and its source.
    fn counters(&mut self) -> impl Iterator<Item = (usize, &mut Counter)> {
        let rings = self.rings.iter_mut().map(|r| (r.source, r.sampler.as_counter_mut()));
        rings.chain(self.others.iter_mut().map(|(source, counter)| (*source, counter)))
    }

    fn gather(&mut self) {
        for ring in &mut self.rings {
            let (source, shape) = (ring.source, self.shapes[ring.source]);
            while let Some(record) = ring.sampler.next_record() {
                let (kind, misc) = (record.ty(), record.misc());
                let parsed = parse(source, kind, misc, &record.to_contiguous(), shape);
                let Some(parsed) = parsed else { continue };
                match parsed.body {
                    Body::Sample { .. } => self.told[source].samples += 1,
                    Body::Lost(count) => self.told[source].lost_told += count,
                    _ => (),
                }
                self.pending.push(parsed);
            }
        }
    }

    fn hand_on(&mut self, settled: u64, on_record: &mut dyn FnMut(Record)) {
        self.pending.sort_by_key(|record| record.time_ns);
        let ready = self.pending.partition_point(|record| record.time_ns <= settled);
        self.pending.drain(..ready).for_each(on_record);
    }
}

/// Adds what the kernel counted for one event and those inherited from it.
fn add(told: &mut Told, counter: &mut Counter) -> io::Result<()> {
    let data = counter.read_full()?;
    told.counted += data.count();
    if let Some(lost) = data.lost() {
        *told.lost.get_or_insert(0) += lost;
    }
    Ok(())
}

/// Maps a ring, a smaller one where the user may not lock so much memory.
fn map(
    counter: Counter,
    bytes: usize,
    again: impl Fn() -> io::Result<Counter>,
) -> Result<Sampler, SysError> {
    let failed = |bytes| move |error| SysError::new("mmap", format!("a ring of {bytes}"), error);
    let (mut counter, mut bytes) = (counter, bytes.next_power_of_two().max(RING_MIN));
    loop {
        match counter.sampled(bytes) {
            Err(error) if is_denied(&error) && bytes > RING_MIN => {
                bytes /= 2;
                counter = again().map_err(failed(bytes))?;
            }
            result => return result.map_err(failed(bytes)),
        }
    }
}

/// Makes an event write into the ring of another.
fn redirect(counter: &Counter, ring: &Sampler) -> Result<(), SysError> {
    /// `_IO('$', 5)`.
    const SET_OUTPUT: libc::c_ulong = 0x2405;
    let (from, to) = (counter.as_raw_fd(), ring.as_raw_fd());
    // SAFETY: rule 1: both descriptors are open, and the ring outlives the event in the session.
    let result = unsafe { libc::ioctl(from, SET_OUTPUT as _, to) };
    SysError::checked(result, "ioctl", "PERF_EVENT_IOC_SET_OUTPUT").map(drop)
}

fn is_denied(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ESRCH))
}
