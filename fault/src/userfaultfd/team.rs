//! The threads of one repetition: those that fault, and those that resolve.
//!
//! The one idea: handlers are ready before the first touch and are told when the last one is done,
//! so no thread waits for a fault that does not come. Under `SCHED_FIFO` a faulting thread stands
//! one priority above its handlers: woken, it takes the CPU back at once, and the handler does
//! what is left of its own work while the next fault waits.
//!
//! A thread that cannot start aborts the process, as everywhere: the others would wait for it.

use std::thread;

use pagelab_bench::Error;
use pagelab_sys::{
    SysError,
    loops::TouchList,
    process::{Barrier, Fifo, Pinned, current_cpu},
    time::{Clock, Span, usage},
    uffd::{Armed, Counts, Stop, Tally, serve},
};

use super::{
    choice::{Choice, Handler, Way},
    ground::Ground,
    samples::{Samples, Touching},
};

/// What the threads did, all together.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Work {
    /// By the threads that resolve, or by signals.
    pub(super) counts: Counts,
    /// Handlers that began or ended on another CPU than the case says.
    pub(super) handlers_elsewhere: u64,
    /// Faults that handlers took themselves.
    pub(super) handler_faults: u64,
    /// From the first touch to the last.
    pub(super) span: Span,
}

/// Touches everything, each thread its part, while handlers resolve.
pub(super) fn fault(
    choice: &Choice,
    ground: &Ground,
    lists: &[TouchList],
    samples: &mut [Samples],
    clock: &Clock,
    by_perf: bool,
) -> Result<Work, Error> {
    let stop = Stop::new()?;
    let everybody = choice.threads + choice.handler_threads();
    let ready = Barrier::new(u32::try_from(everybody).expect("a few threads"))?;
    let tallies: Vec<Tally> = (0..everybody).map(|_| Tally::default()).collect();
    let (mine, theirs) = tallies.split_at(choice.threads);
    let (stop, ready) = (&stop, &ready);
    let mut work = thread::scope(|scope| {
        let handlers: Vec<_> = theirs
            .iter()
            .enumerate()
            .map(|(index, tally)| {
                let uffd = index % choice.uffds();
                scope.spawn(move || handle(choice, ground, uffd, tally, stop, ready))
            })
            .collect();
        let mut threads = samples.iter_mut().zip(lists).zip(mine).enumerate();
        let first = threads.next().expect("at least one thread faults");
        let run = |(thread, ((samples, list), tally)): (usize, ((&mut Samples, _), _))| {
            let done =
                touch(choice, ground, thread, (list, samples), (clock, by_perf), (ready, tally));
            done.unwrap_or_else(|error| panic!("a faulting thread: {error}"));
            samples.span
        };
        let others: Vec<_> = threads.map(|one| scope.spawn(move || run(one))).collect();
        let mut span = run(first);
        for other in others {
            span = span.union(other.join().expect("a faulting thread panicked"));
        }
        stop.stop();
        let mut work = Work { span, ..Work::default() };
        for handler in handlers {
            let (elsewhere, faults) = handler.join().expect("a handler panicked");
            work.handlers_elsewhere += elsewhere;
            work.handler_faults += faults;
        }
        work
    });
    work.counts = tallies.iter().map(Tally::counts).fold(Counts::default(), |a, b| a + b);
    match i32::try_from(work.counts.errno) {
        Ok(0) | Err(_) => Ok(work),
        Ok(errno) => {
            let why = std::io::Error::from_raw_os_error(errno);
            let what = format!("{:?}, {} bytes at a fault", choice.way.op(), choice.real_unit());
            Err(SysError::new("ioctl", what, why).into())
        }
    }
}

/// One faulting thread.
fn touch(
    choice: &Choice,
    ground: &Ground,
    thread: usize,
    (list, samples): (&TouchList, &mut Samples),
    (clock, by_perf): (&Clock, bool),
    (ready, tally): (&Barrier, &Tally),
) -> Result<(), SysError> {
    // The first one is the case's own thread, which stays where it is.
    let _pinned = match choice.faulter_cpu(thread) {
        Some(cpu) if thread > 0 => Some(Pinned::to(cpu)?),
        _ => None,
    };
    let _fifo = choice.fifo.then(Fifo::enter_above).transpose()?;
    let marked = choice.batch > 1;
    let plain = Touching::Plain(choice.way.access());
    let poisons = choice.way == Way::Poison;
    let touching = if poisons { Touching::SteppedOver } else { plain };
    let mut take = || samples.take((&ground.area, list), (touching, marked), clock, by_perf, ready);
    let signals = choice.handler == Handler::Sigbus;
    if signals || poisons {
        let resolver = ground.resolver(choice, if choice.each { thread } else { 0 });
        return Armed::during(resolver, signals, tally, take);
    }
    take();
    Ok(())
}

/// One handler thread: whether it was elsewhere, and its own faults.
fn handle(
    choice: &Choice,
    ground: &Ground,
    uffd: usize,
    tally: &Tally,
    stop: &Stop,
    ready: &Barrier,
) -> (u64, u64) {
    let start = || -> Result<_, SysError> {
        // A thread inherits the CPU of the one that starts it.
        let pinned = match choice.real_handler_cpu(uffd) {
            Some(cpu) => Some(Pinned::to(cpu)?),
            None if choice.cpus.is_empty() => None,
            None => Some(Pinned::to_any(&choice.cpus)?),
        };
        Ok((pinned, choice.fifo.then(Fifo::enter).transpose()?))
    };
    let _guards = start().unwrap_or_else(|error| panic!("a handler: {error}"));
    let resolver = ground.resolver(choice, uffd);
    let is_elsewhere = || choice.handler_cpu(uffd).is_some_and(|cpu| cpu != current_cpu());
    usage::thread();
    let before_loop = is_elsewhere();
    ready.wait();
    let before = usage::thread();
    serve(&ground.uffds[uffd], &resolver, choice.handler.wait(), stop, tally);
    let faults = usage::thread().since(before);
    (u64::from(before_loop || is_elsewhere()), faults.minor_faults + faults.major_faults)
}

/// The same touches over pages that are present, by the same threads: no handler, no fault.
pub(super) fn control(
    choice: &Choice,
    ground: &Ground,
    lists: &[TouchList],
    samples: &mut [Samples],
    clock: &Clock,
) -> Result<Span, Error> {
    let ready = Barrier::new(u32::try_from(choice.threads).expect("a few threads"))?;
    let ready = &ready;
    let poisons = choice.way == Way::Poison;
    let plain = Touching::Plain(choice.way.access());
    let touching = if poisons { Touching::SteppedOver } else { plain };
    let area = &ground.area;
    Ok(thread::scope(|scope| {
        let mut threads = samples.iter_mut().zip(lists).enumerate();
        let first = threads.next().expect("at least one thread");
        let run = |(thread, (samples, list)): (usize, (&mut Samples, &TouchList))| {
            let start = || -> Result<_, SysError> {
                let cpu = choice.faulter_cpu(thread).filter(|_| thread > 0);
                Ok((cpu.map(Pinned::to).transpose()?, choice.fifo.then(Fifo::enter).transpose()?))
            };
            let _guards = start().unwrap_or_else(|error| panic!("the control: {error}"));
            // One lap that is not kept: what faulting left in the caches is not the control's.
            area.time_touches(list, choice.way.access(), clock, |_, _| ());
            samples.take((area, list), (touching, choice.batch > 1), clock, false, ready);
            samples.span
        };
        let others: Vec<_> = threads.map(|one| scope.spawn(move || run(one))).collect();
        let span = run(first);
        let join = |other: thread::ScopedJoinHandle<'_, Span>| other.join().expect("the control");
        others.into_iter().map(join).fold(span, Span::union)
    }))
}
