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
mod tests {
    use super::*;
    use crate::{
        machine::Topology,
        memtype::{Fence, FenceWord, Width, values},
        time::ClockChoice,
    };

    fn scripted() -> Clock {
        Clock::new(ClockChoice::Scripted { step_ns: 5 })
    }

    fn cpus(count: usize) -> Vec<usize> {
        let allowed = Topology::machine().cpus().allowed;
        // Workers may share a CPU: the barrier sleeps when it must.
        allowed.into_iter().cycle().take(count).collect()
    }

    fn spec(stores: Stores, width: Width) -> StoreSpec<'static> {
        let (engine, fence, skip) = (Engine::Pagelab, Fence::None, None);
        StoreSpec { engine, stores, width, fence, skip, verify: Verify::EachRound }
    }

    /// Every kind of store that this processor has.
    fn stores() -> Vec<(Stores, Width)> {
        let kinds = [Stores::Plain, Stores::NonTemporal];
        let all = kinds.into_iter().flat_map(|kind| Width::ALL.map(|width| (kind, width)));
        all.filter(|(kind, width)| kind.has(*width)).collect()
    }

    fn loads() -> Vec<(Loads, Width)> {
        let kinds = [Loads::Plain, Loads::NonTemporal];
        let all = kinds.into_iter().flat_map(|kind| Width::ALL.map(|width| (kind, width)));
        all.filter(|(kind, width)| kind.has(*width)).collect()
    }

    #[test]
    fn every_store_of_every_engine_leaves_the_values_of_its_round() {
        let mut plot = Plot::ordinary(3 * 4096, false, None).unwrap();
        for (stores, width) in stores() {
            for engine in [Engine::Pagelab, Engine::C] {
                for workers in [1, 2, 5] {
                    plot.fill(u64::MAX / 3);
                    let spec = StoreSpec { engine, ..spec(stores, width) };
                    let last = 1 << 40;
                    let rounds = last - 2..last + 1;
                    let run = store_rounds(&mut plot, &spec, rounds, &cpus(workers), &scripted())
                        .unwrap();
                    let what = format!("{engine:?} {stores:?} {width:?} by {workers}");
                    assert_eq!((run.verified(), run.wrong_words()), (3, 0), "{what}");
                    assert_eq!(run.words, 3 * 512, "{what}");
                    let values = (0..plot.words()).map(|word| plot.word(word));
                    assert!(values.eq((0..3 * 512).map(|word| word + last)), "{what}");
                }
            }
        }
    }

    #[test]
    fn a_round_that_wraps_is_a_round_like_any_other() {
        let mut plot = Plot::ordinary(4096, false, None).unwrap();
        for (stores, width) in stores() {
            let rounds = u64::MAX - 3..u64::MAX;
            let spec = spec(stores, width);
            let run = store_rounds(&mut plot, &spec, rounds, &cpus(1), &scripted()).unwrap();
            assert_eq!(run.wrong_words(), 0, "{stores:?} {width:?}");
            assert_eq!(plot.word(511), 509, "{stores:?} {width:?}");
        }
    }

    #[test]
    fn a_skipped_word_keeps_its_value_and_no_other_does() {
        let mut plot = Plot::ordinary(2 * 4096, false, None).unwrap();
        for (stores, width) in stores() {
            for (skip, workers) in [(0, 1), (7, 1), (511, 1), (511, 3), (512, 2), (1023, 2)] {
                plot.fill(1 << 50);
                let spec = StoreSpec { skip: Some(skip), ..spec(stores, width) };
                let run =
                    store_rounds(&mut plot, &spec, 9..10, &cpus(workers), &scripted()).unwrap();
                let what = format!("{stores:?} {width:?}, word {skip} by {workers}");
                assert_eq!((run.words, run.wrong_words()), (1023, 0), "{what}");
                for word in 0..plot.words() {
                    let expected = word as u64 + if word as u64 == skip { 1 << 50 } else { 9 };
                    assert_eq!(plot.word(word), expected, "{what}: {word}");
                }
                let sum = read(&plot, Loads::Plain, Width::Bytes8, 1).sum;
                let held = Some((skip, skip + (1 << 50)));
                assert_eq!(sum, values::expected_read_sum(1024, 9, 1, held), "{what}");
            }
        }
    }

    fn read(plot: &Plot, loads: Loads, width: Width, workers: usize) -> ReadRun {
        let spec = ReadSpec { engine: Engine::Pagelab, loads, width };
        read_rounds(plot, &spec, 1, &cpus(workers), &scripted()).unwrap()
    }

    #[test]
    fn every_load_of_every_engine_sums_what_is_there() {
        let mut plot = Plot::ordinary(3 * 4096, false, None).unwrap();
        plot.fill(u64::MAX - 100);
        let words = 3 * 512;
        for (loads, width) in loads() {
            for (engine, workers) in [(Engine::Pagelab, 1), (Engine::Pagelab, 5), (Engine::C, 2)] {
                let spec = ReadSpec { engine, loads, width };
                let run = read_rounds(&plot, &spec, 7, &cpus(workers), &scripted()).unwrap();
                let expected = values::expected_read_sum(words, u64::MAX - 100, 7, None);
                assert_eq!(run.sum, expected, "{engine:?} {loads:?} {width:?} by {workers}");
                assert_eq!(run.ns.len(), 7);
            }
        }
    }

    #[test]
    fn wrong_words_are_found_and_counted_wherever_they_are() {
        let mut plot = Plot::ordinary(2 * 4096, false, None).unwrap();
        plot.fill(3);
        assert_eq!(values::wrong_words(&plot, 3, None), 0);
        assert_eq!(values::wrong_words(&plot, 4, None), 1024, "all words of another round");
        for word in [0, 1, 7, 8, 510, 511, 512, 1023] {
            // One bit, the highest, of one word.
            plot.set_word(word, plot.word(word) ^ 1 << 63);
            assert_eq!(values::wrong_words(&plot, 3, None), 1, "{word}");
            assert_eq!(values::wrong_words(&plot, 3, Some(word as u64)), 0, "{word}");
            for (loads, width) in loads() {
                let differs = Share::of(&plot, 0, 1, None).differs(3, loads, width);
                assert_eq!(differs, 1 << 63, "{loads:?} {width:?}, word {word}");
            }
            plot.set_word(word, plot.word(word) ^ 1 << 63);
        }
        plot.set_word(0, 77);
        plot.set_word(1023, 77);
        assert_eq!(values::wrong_words(&plot, 3, None), 2);
    }

    #[test]
    fn a_fence_word_gets_the_number_of_the_round() {
        let word = Plot::ordinary(4096, false, None).unwrap();
        let mut plot = Plot::ordinary(4096, false, None).unwrap();
        let own = FenceWord::Own(&word);
        for (index, engine) in [Engine::Pagelab, Engine::C].into_iter().enumerate() {
            for (kind, fence) in [Fence::UcStore(own), Fence::UcStoreLoad(own)].iter().enumerate() {
                let round = (10 * index + kind) as u64;
                let spec =
                    StoreSpec { engine, fence: *fence, ..spec(Stores::Plain, Width::Bytes8) };
                store_rounds(&mut plot, &spec, round..round + 1, &cpus(1), &scripted()).unwrap();
                assert_eq!(word.word(511), round, "{engine:?} {fence:?}");
                assert_eq!(plot.word(511), 511 + round, "the plot keeps all of its words");
            }
        }
        let fence = Fence::UcStore(FenceWord::Overlap);
        let spec = StoreSpec { fence, skip: Some(511), ..spec(Stores::Plain, Width::Bytes8) };
        let run = store_rounds(&mut plot, &spec, 0..50, &cpus(1), &scripted()).unwrap();
        assert_eq!((run.wrong_words(), plot.word(511)), (0, 49));
        let read = read(&plot, Loads::Plain, Width::Bytes8, 1);
        assert_eq!(read.sum, values::expected_read_sum(512, 49, 1, Some((511, 49))));
    }

    #[test]
    #[should_panic(expected = "skips its fence word")]
    fn an_overlapping_fence_word_must_be_skipped() {
        let mut plot = Plot::ordinary(4096, false, None).unwrap();
        let fence = Fence::UcStore(FenceWord::Overlap);
        let spec = StoreSpec { fence, ..spec(Stores::Plain, Width::Bytes8) };
        let _ = store_rounds(&mut plot, &spec, 0..1, &cpus(1), &scripted());
    }

    #[test]
    fn stamps_stand_where_the_test_says() {
        let mut plot = Plot::ordinary(4096, false, None).unwrap();
        let mut times = |fence, verify| {
            let spec = StoreSpec { fence, verify, ..spec(Stores::Plain, Width::Bytes8) };
            let run = store_rounds(&mut plot, &spec, 0..1, &cpus(1), &scripted()).unwrap();
            let StoreRound { issue_ns, test_ns, completion_ns, wrong_words, .. } = run.rounds[0];
            (issue_ns, test_ns, completion_ns, wrong_words)
        };
        assert_eq!(times(Fence::None, Verify::Never), (5, 5, 10, None), "no fence, no third stamp");
        assert_eq!(times(Fence::Sfence, Verify::Last), (5, 10, 15, Some(0)));
        let back = Verify::ReadBack(Loads::Plain, Width::Bytes8);
        assert_eq!(times(Fence::None, back), (5, 10, 15, Some(0)));
    }

    #[test]
    fn only_the_last_round_is_verified_when_that_is_asked_for() {
        let mut plot = Plot::ordinary(4096, false, None).unwrap();
        let spec = StoreSpec { verify: Verify::Last, ..spec(Stores::Plain, Width::Bytes8) };
        let run = store_rounds(&mut plot, &spec, 0..4, &cpus(2), &scripted()).unwrap();
        let verified: Vec<_> = run.rounds.iter().map(|round| round.wrong_words).collect();
        assert_eq!(verified, [None, None, None, Some(0)]);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error_and_nobody_waits() {
        let mut plot = Plot::ordinary(4096, false, None).unwrap();
        let spec = spec(Stores::Plain, Width::Bytes8);
        let cpus = [cpus(1)[0], 100_000];
        let error = store_rounds(&mut plot, &spec, 0..3, &cpus, &scripted()).unwrap_err();
        assert!(error.to_string().contains("CPU 100000"), "{error}");
    }
}
