//! Time: three clocks, known when the loop is compiled.
//!
//! The one idea: the clock is an enum, not a trait object, so that nothing between two readings is
//! dispatched. The time stamp counter is used where it is invariant and the kernel trusts it too;
//! its rate is measured against `CLOCK_MONOTONIC_RAW`, never read off the box. The median empty
//! pair, taken on the measuring CPU, is subtracted and shown.
//!
//! Ticks are ticks of the counter, not core cycles.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering},
};

use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::{Deserialize, Serialize, Serializer};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{arch, machine::Tree};

/// Shortest span that the counter is calibrated over.
const CALIBRATION_NS: u64 = 200_000_000;

/// Empty pairs whose median is the overhead.
const PAIRS: usize = 2001;

/// How a run reads time; decided once by the parent and handed to every child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockChoice {
    /// The time stamp counter, at this many ticks a second.
    Tsc {
        /// Measured rate; `None` is this machine's, which is waited for when it is first told or
        /// used: what only plans, or refuses, waits for nothing.
        #[serde(serialize_with = "told")]
        hz: Option<u64>,
    },
    /// `CLOCK_MONOTONIC_RAW`.
    Raw,
    /// Every reading is `step_ns` later than the one before.
    Scripted {
        /// The step.
        step_ns: u64,
    },
}

impl ClockChoice {
    /// The best clock of this machine; the span that a counter is calibrated over begins here.
    pub fn of_this_machine() -> Self {
        if !tsc_is_trusted() {
            return Self::Raw;
        }
        first();
        Self::Tsc { hz: None }
    }
}

/// Whether the counter is invariant and is what the kernel keeps time by.
///
/// A guest's clock source is often `kvm-clock`, which is itself read off the counter.
fn tsc_is_trusted() -> bool {
    let source = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = Tree::machine().text(source);
    let kernel_trusts = source.is_some_and(|name| matches!(&*name, "tsc" | "kvm-clock"));
    arch::has_reliable_tsc() && kernel_trusts
}

/// A rate is told as a number: another process has no first reading to go on from.
#[expect(clippy::ref_option, reason = "what serde hands over")]
fn told<S: Serializer>(hz: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(hz.unwrap_or_else(rate))
}

/// Ticks a second, against `CLOCK_MONOTONIC_RAW`: waits until the span is long enough, once.
fn rate() -> u64 {
    static RATE: OnceLock<u64> = OnceLock::new();
    *RATE.get_or_init(|| {
        let (ticks_a, ns_a) = first();
        let left = CALIBRATION_NS.saturating_sub(monotonic_raw_ns() - ns_a);
        // Woken early by a signal, the span is shorter and still a span.
        let _ = rustix::thread::nanosleep(&Timespec { tv_sec: 0, tv_nsec: left.cast_signed() });
        let (ticks_b, ns_b) = bracketed();
        let ticks = u128::from(ticks_b - ticks_a) * 1_000_000_000;
        u64::try_from(ticks / u128::from(ns_b - ns_a))
            .expect("no counter ticks 2^64 times a second")
    })
}

/// Where the span begins: at the first who asks for it.
fn first() -> (u64, u64) {
    static FIRST: OnceLock<(u64, u64)> = OnceLock::new();
    *FIRST.get_or_init(bracketed)
}

/// Ticks and the monotonic time at which they were read: the tightest of several brackets.
fn bracketed() -> (u64, u64) {
    (0..9)
        .map(|_| {
            let before = monotonic_raw_ns();
            let ticks = arch::ticks_start();
            let after = monotonic_raw_ns();
            (after - before, ticks, before.midpoint(after))
        })
        .min()
        .map(|(_, ticks, ns)| (ticks, ns))
        .expect("nine brackets were taken")
}

/// Nanoseconds of `CLOCK_MONOTONIC_RAW`.
pub fn monotonic_raw_ns() -> u64 {
    ns(clock_gettime(ClockId::MonotonicRaw))
}

/// Nanoseconds of CPU time of the calling thread, user and system.
pub(crate) fn thread_cpu_ns() -> u64 {
    ns(clock_gettime(ClockId::ThreadCPUTime))
}

/// Seconds since 1970, for names and dates only.
pub fn unix_seconds() -> i64 {
    clock_gettime(ClockId::Realtime).tv_sec
}

fn ns(time: Timespec) -> u64 {
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Two readings with a body between them, in the units of the clock that took them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Span {
    /// Reading before the body.
    pub start: u64,
    /// Reading after it.
    pub end: u64,
}

impl Span {
    /// From the earliest start to the latest end of both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A clock that is ready to be read on the calling CPU.
#[derive(Debug)]
pub enum Clock {
    /// The time stamp counter.
    Tsc(Tsc),
    /// `CLOCK_MONOTONIC_RAW`.
    Raw {
        /// Median empty pair.
        overhead_ns: u64,
    },
    /// A script.
    Scripted {
        /// Last reading.
        now_ns: AtomicU64,
        /// Distance of readings.
        step_ns: u64,
    },
}

/// A calibrated time stamp counter.
#[derive(Debug, Clone, Copy)]
pub struct Tsc {
    /// Ticks a second.
    pub hz: u64,
    /// Median empty pair.
    pub overhead_ticks: u64,
    /// Nanoseconds a tick, in units of 2⁻³².
    ns_per_tick: u64,
}

impl Tsc {
    fn new(hz: u64, overhead_ticks: u64) -> Self {
        let ns_per_tick = ((1_000_000_000_u128 << 32) + u128::from(hz) / 2) / u128::from(hz);
        let ns_per_tick =
            u64::try_from(ns_per_tick).expect("a counter ticks more than once in 4 s");
        Self { hz, overhead_ticks, ns_per_tick }
    }

    /// Nanoseconds of some ticks.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "2^64 ns are 584 years")]
    pub fn ns(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.ns_per_tick) + (1 << 31)) >> 32) as u64
    }

    /// Ticks of some nanoseconds.
    pub(crate) fn ticks(&self, ns: u64) -> u64 {
        let ticks = u128::from(ns) * u128::from(self.hz) / 1_000_000_000;
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    /// Nanoseconds between two readings, without the cost of reading.
    #[inline(always)]
    pub(crate) fn elapsed_ns(&self, start: u64, end: u64) -> u64 {
        self.ns(end.saturating_sub(start).saturating_sub(self.overhead_ticks))
    }
}

impl Clock {
    /// Makes the chosen clock ready: measures its empty pair on the calling CPU.
    pub fn new(choice: ClockChoice) -> Self {
        match choice {
            ClockChoice::Tsc { hz } => {
                let hz = hz.unwrap_or_else(rate);
                Self::Tsc(Tsc::new(hz, median(&mut empty_pairs())))
            }
            ClockChoice::Raw => {
                let mut pairs: Vec<u64> = (0..PAIRS)
                    .map(|_| {
                        let start = monotonic_raw_ns();
                        monotonic_raw_ns() - start
                    })
                    .collect();
                Self::Raw { overhead_ns: median(&mut pairs) }
            }
            ClockChoice::Scripted { step_ns } => {
                Self::Scripted { now_ns: AtomicU64::new(0), step_ns }
            }
        }
    }

    /// Runs a body between two readings.
    #[inline(always)]
    pub fn span(&self, body: impl FnOnce()) -> Span {
        match self {
            Self::Tsc(_) => {
                let start = arch::ticks_start();
                body();
                Span { start, end: arch::ticks_end().0 }
            }
            Self::Raw { .. } => {
                let start = monotonic_raw_ns();
                body();
                Span { start, end: monotonic_raw_ns() }
            }
            Self::Scripted { .. } => {
                let start = self.scripted();
                body();
                Span { start, end: self.scripted() }
            }
        }
    }

    /// Nanoseconds of a span, without the cost of reading the clock.
    pub fn elapsed_ns(&self, span: Span) -> u64 {
        match self {
            Self::Tsc(tsc) => tsc.elapsed_ns(span.start, span.end),
            Self::Raw { overhead_ns } => {
                span.end.saturating_sub(span.start).saturating_sub(*overhead_ns)
            }
            Self::Scripted { .. } => span.end.saturating_sub(span.start),
        }
    }

    /// CPU time of the calling thread; scripted where the clock is.
    pub fn thread_cpu_ns(&self) -> u64 {
        match self {
            Self::Scripted { .. } => self.scripted(),
            _ => thread_cpu_ns(),
        }
    }

    /// Nanoseconds now, for budgets; scripted where the clock is.
    pub fn now_ns(&self) -> u64 {
        match self {
            Self::Scripted { .. } => self.scripted(),
            _ => monotonic_raw_ns(),
        }
    }

    pub(crate) fn scripted(&self) -> u64 {
        let Self::Scripted { now_ns, step_ns } = self else {
            unreachable!("only a scripted clock is asked for its script")
        };
        now_ns.fetch_add(*step_ns, Ordering::Relaxed) + step_ns
    }
}

/// Raw empty pairs in ticks, as the latency loop takes them.
///
/// # Panics
/// Where the machine has no counter; ask [`ClockChoice`] first.
pub fn empty_pairs() -> Vec<u64> {
    let mut pairs = vec![0_u64; PAIRS];
    // The first lap warms code and branch predictors; the second is kept.
    for _ in 0..2 {
        for pair in &mut pairs {
            let start = arch::ticks_start();
            *pair = arch::ticks_end().0 - start;
        }
    }
    pairs
}

fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds_without_drift() {
        let tsc = Tsc::new(2_300_000_000, 0);
        assert_eq!(tsc.ns(2_300_000_000), 1_000_000_000);
        assert_eq!(tsc.ns(44), 19);
        let minute = tsc.ns(60 * 2_300_000_000);
        assert!(minute.abs_diff(60_000_000_000) <= 60, "{minute}");
    }

    #[test]
    fn the_empty_pair_is_subtracted_and_never_goes_below_zero() {
        let tsc = Tsc::new(1_000_000_000, 40);
        assert_eq!(tsc.elapsed_ns(100, 150), 10);
        assert_eq!(tsc.elapsed_ns(100, 120), 0);
        assert_eq!(tsc.elapsed_ns(120, 100), 0, "a counter that went back is not a huge time");
    }

    #[test]
    fn a_rate_is_told_as_a_number_and_is_the_same_ever_after() {
        if !arch::has_reliable_tsc() {
            return;
        }
        let told = serde_json::to_value(ClockChoice::Tsc { hz: None }).unwrap();
        assert_eq!(told, serde_json::json!({ "tsc": { "hz": rate() } }));
        let read: ClockChoice = serde_json::from_value(told).unwrap();
        assert_eq!(read, ClockChoice::Tsc { hz: Some(rate()) });
    }

    #[test]
    fn a_scripted_clock_is_exact() {
        let clock = Clock::new(ClockChoice::Scripted { step_ns: 7 });
        assert_eq!(clock.elapsed_ns(clock.span(|| ())), 7);
        assert_eq!(clock.now_ns(), 21);
    }
}
