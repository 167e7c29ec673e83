//! The four stamps of a round of stores.
//!
//! One copy of the round for each clock and each fence, so that nothing but the stores, the fence
//! and the stamps is between two readings. It knows nothing of threads.

use super::{
    fence::{FenceAt, with_fence},
    share::Share,
    spec::{StoreSpec, Verify},
};
use crate::{
    arch,
    time::{Clock, clock::Tsc, monotonic_raw_ns},
};

/// A clock whose kind is known when the round is compiled.
pub(super) trait Stamp {
    /// A reading before what is timed.
    fn start(&self) -> u64;
    /// A reading after it.
    #[inline(always)]
    fn end(&self) -> u64 {
        self.start()
    }
}

impl Stamp for Tsc {
    #[inline(always)]
    fn start(&self) -> u64 {
        arch::ticks_start()
    }

    #[inline(always)]
    fn end(&self) -> u64 {
        arch::ticks_end().0
    }
}

/// `CLOCK_MONOTONIC_RAW`.
pub(super) struct Raw;

impl Stamp for Raw {
    #[inline(always)]
    fn start(&self) -> u64 {
        monotonic_raw_ns()
    }
}

/// A scripted clock.
pub(super) struct Scripted<'clock>(pub(super) &'clock Clock);

impl Stamp for Scripted<'_> {
    fn start(&self) -> u64 {
        self.0.scripted()
    }
}

/// One round of one share: its stamps, and not 0 when a read-back differed.
pub(super) fn stamped(
    clock: &Clock,
    share: &Share<'_>,
    spec: &StoreSpec<'_>,
    fence: FenceAt<'_>,
    round: u64,
) -> ([u64; 4], u64) {
    match clock {
        Clock::Tsc(tsc) => fenced(tsc, share, spec, fence, round),
        Clock::Raw { .. } => fenced(&Raw, share, spec, fence, round),
        Clock::Scripted { .. } => fenced(&Scripted(clock), share, spec, fence, round),
    }
}

#[inline(always)]
fn fenced(
    clock: &impl Stamp,
    share: &Share<'_>,
    spec: &StoreSpec<'_>,
    fence: FenceAt<'_>,
    round: u64,
) -> ([u64; 4], u64) {
    // A copy, so that no field of it is fetched between the stamps.
    let share = *share;
    let mut differs = 0;
    let store = || share.store(round, spec.stores, spec.width);
    let stamps = match (spec.verify, fence) {
        (Verify::ReadBack(loads, width), _) => with_fence!(fence, round, |fence| {
            four(clock, store, || {
                fence();
                differs = share.differs(round, loads, width);
            })
        }),
        // Without a fence the test ends where issuing does, and there is no stamp to be paid for.
        (_, FenceAt::None) => {
            let start = clock.start();
            store();
            let issued = clock.end();
            arrive();
            [start, issued, issued, clock.end()]
        }
        _ => with_fence!(fence, round, |fence| four(clock, store, fence)),
    };
    (stamps, differs)
}

#[inline(always)]
fn four(clock: &impl Stamp, store: impl FnOnce(), fence: impl FnOnce()) -> [u64; 4] {
    let start = clock.start();
    store();
    let issued = clock.end();
    fence();
    let tested = clock.end();
    arrive();
    [start, issued, tested, clock.end()]
}

/// Lets nothing stay under way.
#[inline(always)]
fn arrive() {
    arch::sfence();
    arch::mfence();
}

/// Nanoseconds between two stamps of ours, without the cost of the `readings` that ended in it.
pub(super) fn elapsed_ns(clock: &Clock, start: u64, end: u64, readings: u64) -> u64 {
    match clock {
        Clock::Tsc(tsc) => {
            tsc.elapsed_ns(start, end.saturating_sub((readings - 1) * tsc.overhead_ticks))
        }
        Clock::Raw { overhead_ns } => {
            end.saturating_sub(start).saturating_sub(readings * overhead_ns)
        }
        Clock::Scripted { .. } => end.saturating_sub(start),
    }
}
