//! What a round of an arm has cost, part by part and in all.
//!
//! The one idea: every arm files the same series, so that whatever is compared is made of the same
//! parts. A first pass files them under names of its own.

use pagelab_bench::Meter;
use pagelab_record::{
    schema::Clock as By,
    vocabulary::series::{ALL, FIRST, MAP, PROCESS, RELEASE, RESERVE, SETUP, TOUCH, ZERO},
};
use pagelab_sys::{counts::KernelHelpers, time::Clock};

use pagelab_mappings::outcome::Phase;

/// Elapsed time, and that on the CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Timed {
    ns: u64,
    cpu_ns: u64,
}

impl Timed {
    /// By the clock that timed the phase.
    pub(super) fn of(phase: &Phase, clock: &Clock) -> Self {
        Self { ns: clock.elapsed_ns(phase.span), cpu_ns: phase.cpu_ns }
    }

    /// Of a phase that was timed in nanoseconds.
    pub(super) fn of_raw(phase: &Phase) -> Self {
        Self { ns: phase.span.end - phase.span.start, cpu_ns: phase.cpu_ns }
    }

    /// One after the other.
    #[must_use]
    pub(super) fn and(self, other: Self) -> Self {
        Self { ns: self.ns + other.ns, cpu_ns: self.cpu_ns + other.cpu_ns }
    }

    /// Files both.
    pub(super) fn file(self, name: &str, (ops, bytes): (u64, u64), meter: &mut Meter) {
        meter.observe(name, meter.elapsed(), ops, bytes, self.ns);
        meter.observe(name, By::Cpu, ops, bytes, self.cpu_ns);
    }
}

/// What a round of a segment has cost.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Paid {
    /// CPU time of filling the pool that a first pass takes from.
    pub(super) reserve_ns: Option<u64>,
    /// Reserving, mapping, starting the helper; of a first pass only.
    pub(super) setup: Option<Timed>,
    /// Clearing the memory that this round took.
    pub(super) zero: Option<Timed>,
    /// Taking it.
    pub(super) map: Timed,
    /// Storing to it.
    pub(super) touch: Timed,
    /// Giving it back.
    pub(super) release: Timed,
}

impl Paid {
    /// Files every part, and the sums.
    pub(super) fn file(&self, bytes: u64, helpers_ns: u64, meter: &mut Meter) {
        let first = if self.setup.is_some() { FIRST } else { "" };
        let named = |name: &str| format!("{first}{name}");
        let calls = (1, bytes);
        let parts = [
            (SETUP, self.setup, calls),
            (ZERO, self.zero, calls),
            (MAP, Some(self.map), calls),
            (TOUCH, Some(self.touch), (bytes / 4096, bytes)),
            (RELEASE, Some(self.release), calls),
        ];
        let mut process_ns = 0;
        for (name, part, of) in parts {
            let Some(part) = part else { continue };
            process_ns += part.cpu_ns;
            // There is no second set-up to tell it from.
            let name = if name == SETUP { SETUP.to_owned() } else { named(name) };
            part.file(&name, of, meter);
        }
        let elsewhere_ns = helpers_ns + self.reserve_ns.unwrap_or(0);
        if let Some(ns) = self.reserve_ns {
            meter.observe(RESERVE, By::Cpu, 1, bytes, ns);
        }
        file_sums(&named(PROCESS), &named(ALL), (process_ns, elsewhere_ns), bytes, meter);
    }
}

/// Files the CPU time of a process, and that with what was spent elsewhere.
pub(super) fn file_sums(
    process: &str,
    all: &str,
    (process_ns, elsewhere_ns): (u64, u64),
    bytes: u64,
    meter: &mut Meter,
) {
    meter.observe(process, By::Cpu, bytes / 4096, bytes, process_ns);
    meter.observe(all, By::Cpu, bytes / 4096, bytes, process_ns + elsewhere_ns);
}

/// The kernel's helpers during a round.
#[derive(Debug)]
pub(super) struct Watch {
    helpers: KernelHelpers,
    before_ns: u64,
}

impl Watch {
    /// Finds them.
    pub(super) fn new() -> Self {
        Self { helpers: KernelHelpers::find(), before_ns: 0 }
    }

    /// Begins a round.
    pub(super) fn begin(&mut self) {
        self.before_ns = self.helpers.cpu_ns();
    }

    /// Nanoseconds since.
    pub(super) fn spent_ns(&self) -> u64 {
        self.helpers.cpu_ns().saturating_sub(self.before_ns)
    }
}
