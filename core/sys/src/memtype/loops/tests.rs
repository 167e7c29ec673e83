//! Loops over ordinary memory, against the values that they have to leave.

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
                let run =
                    store_rounds(&mut plot, &spec, rounds, &cpus(workers), &scripted()).unwrap();
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
            let run = store_rounds(&mut plot, &spec, 9..10, &cpus(workers), &scripted()).unwrap();
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
            let spec = StoreSpec { engine, fence: *fence, ..spec(Stores::Plain, Width::Bytes8) };
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
