#![expect(unsafe_code, reason = "the C loop takes pointers")]
//! The measured rounds: a store loop with its fence, or a read loop, by one thread or several.
//!
//! The one idea: a round has four stamps. `t0` is before the first store, `t1` after the last one
//! was issued, `t2` after the fence (or the read-back) of the test, `t3` after an `sfence` and an
//! `mfence` that let nothing stay under way. So a test without a fence cannot hide the stores that
//! it left in buffers: its issue and its completion stand side by side.
//!
//! Verification is between rounds, outside the clock. Nothing between `t0` and `t3` allocates,
//! calls the kernel or faults: faults are counted around each round.

use std::ops::Range;

use super::{
    Loads, Plot, Stores,
    fence::FenceAt,
    share::Share,
    spec::{Engine, ReadRun, ReadSpec, StoreRound, StoreRun, StoreSpec, Verify},
    stamps::{elapsed_ns, stamped},
};
use crate::{
    SysError,
    loops::twin,
    process::crew,
    time::{Clock, usage},
};

/// Stores every word of a plot once in each round: word `i` in round `k` becomes `i + k`.
///
/// One worker on each listed CPU, each with a share of the words; a single one runs in the calling
/// thread.
///
/// # Errors
/// When a CPU cannot be had.
///
/// # Panics
/// Without a CPU, where this processor has no such stores, when an overlapping fence word is not
/// skipped, and when the C loop is to skip a word, which it cannot.
pub fn store_rounds(
    plot: &mut Plot,
    spec: &StoreSpec<'_>,
    rounds: Range<u64>,
    cpus: &[usize],
    clock: &Clock,
) -> Result<StoreRun, SysError> {
    assert!(spec.stores.has(spec.width), "no such stores: {:?} {:?}", spec.stores, spec.width);
    if let Verify::ReadBack(loads, width) = spec.verify {
        assert!(loads.has(width), "no such loads: {loads:?} {width:?}");
    }
    assert!(spec.engine == Engine::Pagelab || spec.skip.is_none(), "the C loop skips no word");
    let plot = &*plot;
    let fence = FenceAt::of(plot, spec.fence, spec.skip);
    let last = rounds.end.wrapping_sub(1);
    let samples = work(plot, cpus, spec.skip, &rounds, |share, round| {
        let before = usage::thread();
        let (stamps, differs) = match spec.engine {
            Engine::Pagelab => stamped(clock, share, spec, fence, round),
            Engine::C => twin_round(share, spec, fence, round),
        };
        let faults = usage::thread().since(before).minor_faults;
        let verified = match spec.verify {
            Verify::EachRound => true,
            Verify::Last => round == last,
            Verify::Never => false,
            // Equal words have shown themselves; others are counted.
            Verify::ReadBack(..) => differs != 0,
        };
        let wrong = verified.then(|| share.wrong_words(round));
        let read_back = matches!(spec.verify, Verify::ReadBack(..));
        Sample { stamps, faults, wrong: wrong.or(read_back.then_some(0)), sum: 0 }
    })?;
    let elapsed = |sample: &Sample, end, readings| match spec.engine {
        Engine::Pagelab => elapsed_ns(clock, sample.stamps[0], sample.stamps[end], readings),
        Engine::C => sample.stamps[end] - sample.stamps[0],
    };
    let fenced = fence != FenceAt::None || matches!(spec.verify, Verify::ReadBack(..));
    let extra = u64::from(fenced);
    let round = |sample: Sample| StoreRound {
        issue_ns: elapsed(&sample, 1, 1),
        test_ns: elapsed(&sample, 2, 1 + extra),
        completion_ns: elapsed(&sample, 3, 2 + extra),
        wrong_words: sample.wrong,
        faults: sample.faults,
    };
    let workers = cpus.len();
    let words = (0..workers).map(|index| Share::of(plot, index, workers, spec.skip).words());
    Ok(StoreRun {
        words: words.sum::<usize>() as u64,
        rounds: samples.into_iter().map(round).collect(),
    })
}

/// Sums the words of a plot, `rounds` times.
///
/// # Errors
/// When a CPU cannot be had.
///
/// # Panics
/// Without a CPU, and where this processor has no such loads.
pub fn read_rounds(
    plot: &Plot,
    spec: &ReadSpec,
    rounds: u64,
    cpus: &[usize],
    clock: &Clock,
) -> Result<ReadRun, SysError> {
    assert!(spec.loads.has(spec.width), "no such loads: {:?} {:?}", spec.loads, spec.width);
    let samples = work(plot, cpus, None, &(0..rounds), |share, _| {
        let before = usage::thread();
        let mut sum = 0;
        let (start, end) = match spec.engine {
            Engine::Pagelab => {
                let span = clock.span(|| sum = share.sum(spec.loads, spec.width));
                (span.start, span.end)
            }
            Engine::C => {
                let (from, words, _) = share.whole().expect("a read skips nothing");
                let (width, nt) = (spec.width.bytes(), spec.loads == Loads::NonTemporal);
                // SAFETY: the words are the share's, and the processor has the width (asserted).
                let ([start, end], all) = unsafe { twin::read_round(from, words, width, nt) };
                sum = all;
                (start, end)
            }
        };
        let faults = usage::thread().since(before).minor_faults;
        Sample { stamps: [start, end, end, end], faults, wrong: None, sum }
    })?;
    let ns = |sample: &Sample| match spec.engine {
        Engine::Pagelab => elapsed_ns(clock, sample.stamps[0], sample.stamps[1], 1),
        Engine::C => sample.stamps[1] - sample.stamps[0],
    };
    Ok(ReadRun {
        ns: samples.iter().map(ns).collect(),
        sum: samples.iter().fold(0, |sum, sample| sum.wrapping_add(sample.sum)),
        faults: samples.iter().map(|sample| sample.faults).sum(),
    })
}

/// One round of one worker, or of all.
#[derive(Debug, Clone, Copy)]
struct Sample {
    stamps: [u64; 4],
    faults: u64,
    wrong: Option<u64>,
    sum: u64,
}

impl Sample {
    /// From the earliest start to the latest ends.
    fn union(self, other: Self) -> Self {
        let [a, b] = [self.stamps, other.stamps];
        Self {
            stamps: [a[0].min(b[0]), a[1].max(b[1]), a[2].max(b[2]), a[3].max(b[3])],
            faults: self.faults + other.faults,
            wrong: self.wrong.zip(other.wrong).map(|(a, b)| a + b),
            sum: self.sum.wrapping_add(other.sum),
        }
    }
}

/// Runs `body` for every round and share, all workers starting a round together.
fn work(
    plot: &Plot,
    cpus: &[usize],
    skip: Option<u64>,
    rounds: &Range<u64>,
    body: impl Fn(&Share<'_>, u64) -> Sample + Sync,
) -> Result<Vec<Sample>, SysError> {
    assert!(!cpus.is_empty(), "a worker needs a CPU");
    let count = usize::try_from(rounds.end - rounds.start).expect("rounds fit in memory");
    let results = crew::pinned(cpus, |index, barrier| {
        let share = Share::of(plot, index, cpus.len(), skip);
        let mut samples = Vec::with_capacity(count);
        for round in rounds.clone() {
            barrier.wait();
            samples.push(body(&share, round));
        }
        samples
    })?;
    let mut merged: Vec<Sample> = Vec::new();
    for samples in results {
        if merged.is_empty() {
            merged = samples;
        } else {
            let both = merged.into_iter().zip(samples);
            merged = both.map(|(one, other)| one.union(other)).collect();
        }
    }
    Ok(merged)
}

/// One round of one share by the C loop, on the clock of C.
fn twin_round(
    share: &Share<'_>,
    spec: &StoreSpec<'_>,
    fence: FenceAt<'_>,
    round: u64,
) -> ([u64; 4], u64) {
    let (at, words, first) = share.whole().expect("asserted: nothing is skipped");
    let (loads, load_width) = match spec.verify {
        Verify::ReadBack(loads, width) => (loads, width.bytes()),
        _ => (Loads::Plain, 0),
    };
    let (fence, fence_word) = match fence {
        FenceAt::None => (0, std::ptr::null_mut()),
        FenceAt::Sfence => (1, std::ptr::null_mut()),
        FenceAt::Mfence => (2, std::ptr::null_mut()),
        FenceAt::Store(at) => (3, at.ptr()),
        FenceAt::StoreLoad(at) => (4, at.ptr()),
    };
    let round = twin::StoreRound {
        to: at,
        words,
        first: first.wrapping_add(round),
        value: round,
        fence_word,
        width: twin::narrow(spec.width.bytes()),
        nt: (spec.stores == Stores::NonTemporal).into(),
        fence,
        back_width: twin::narrow(load_width),
        back_nt: (loads == Loads::NonTemporal).into(),
    };
    // SAFETY: the words are the share's and the fence's own, and the widths were asserted.
    unsafe { twin::store_round(&round) }
}

#[cfg(test)]
mod tests;
