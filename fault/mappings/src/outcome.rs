//! What a round came to: its timed phases, and what was found afterwards.
//!
//! The one idea: an outcome is plain numbers, so that it crosses from a forked worker in shared
//! memory, and several workers' outcomes join into one.

use pagelab_sys::{
    SysError,
    memory::Residency,
    process::current_cpu,
    time::{Clock, Span, usage},
};

use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::Expectation;

/// One timed phase of a round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
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
    /// User faults of the touch loop by the perf software event; [`UNKNOWN`] where there is none.
    pub perf_faults: u64,
    /// Base pages present afterwards.
    pub present: u64,
    /// Base pages mapped by a PMD or larger.
    pub huge: u64,
    /// Of the pages asked about, those on another node than the case says.
    pub elsewhere: u64,
    /// Bytes locked afterwards, where the case locks.
    pub locked: u64,
    /// Base pages that are the zero page; [`UNKNOWN`] where the kernel does not tell.
    pub zero: u64,
    /// What touching must leave, as the kind's stage had it.
    pub expected: Expectation,
}

/// Stands for a count that nobody gave: without perf, or on a kernel that does not tell.
pub const UNKNOWN: u64 = u64::MAX;

impl Phase {
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
    /// What the page table showed afterwards.
    pub fn residency(&self) -> Residency {
        let zero = (self.zero != UNKNOWN).then_some(self.zero);
        Residency { present: self.present, huge: self.huge, zero, ..Residency::default() }
    }

    /// Several workers' outcomes as one.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        let both = |a: u64, b: u64| if a == UNKNOWN || b == UNKNOWN { UNKNOWN } else { a + b };
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
            locked: self.locked + other.locked,
            zero: both(self.zero, other.zero),
            expected: self.expected.join(other.expected),
        }
    }
}

/// Times one phase and counts what happened in it.
///
/// Not generic: every phase runs the same code, so that only the first one of a process can fault
/// on it.
pub fn phase(clock: &Clock, body: &mut dyn FnMut()) -> Phase {
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
pub fn try_phase(
    clock: &Clock,
    mut body: impl FnMut() -> Result<(), SysError>,
) -> Result<Phase, SysError> {
    let mut result = Ok(());
    let phase = phase(clock, &mut || result = body());
    result.map(|()| phase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_phases_span_both() {
        let phase =
            |start, end, minor| Phase { span: Span { start, end }, minor, ..Phase::default() };
        let joined = phase(10, 20, 3).join(phase(5, 15, 4));
        assert_eq!((joined.span, joined.minor), (Span { start: 5, end: 20 }, 7));
    }
}
