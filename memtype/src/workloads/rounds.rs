//! The arms of `memtype/bandwidth`: rounds of stores, or rounds of loads, with their proof.
//!
//! All arms of a case share one memory, one after the other. Before a repetition of stores every
//! word is set to what no round stores, so that even a single round cannot be verified by what the
//! repetition before it left.

use std::{cell::RefCell, rc::Rc};

use pagelab_bench::{Error, Meter, Trial, Witness};
use pagelab_record::vocabulary::{Check, counter};
use pagelab_sys::memtype::{
    self, Engine, FenceWord, ReadRun, ReadSpec, StoreRound, StoreRun, StoreSpec, read_rounds,
    store_rounds, values,
};

use super::{
    asked::{Asked, Lie},
    ground::Ground,
    point::{Fence, Loads, Stores, Verify},
};

/// Word 0 of the contents that no round stores: rounds are far below.
const SCRUB: u64 = 1 << 63;

/// Rounds that warm up: what is to be warm (pages, caches, clocks of the processor) is then, and
/// uncached memory takes seconds for a whole repetition.
const WARM_UP_ROUNDS: u64 = 2;

/// The word that an overlapping fence takes away from the measured memory.
const OVERLAP: u64 = memtype::FENCE_WORD;

/// An arm of a case.
#[derive(Debug)]
pub(super) struct Setup {
    /// Its name, and whose loop it is.
    pub(super) arm: (&'static str, Engine),
    /// The case.
    pub(super) asked: Asked,
    /// One worker on each.
    pub(super) cpus: Vec<usize>,
}

impl Setup {
    fn rounds(&self, is_warm_up: bool) -> u64 {
        let rounds = self.asked.iterations;
        if is_warm_up { rounds.min(WARM_UP_ROUNDS) } else { rounds }
    }
}

impl Asked {
    fn words(&self) -> u64 {
        self.space.bytes / 8
    }

    fn skip(&self) -> Option<u64> {
        self.overlaps.then_some(OVERLAP)
    }
}

/// An arm that stores.
#[derive(Debug)]
pub(super) struct Storing {
    setup: Setup,
    shared: Rc<RefCell<Ground>>,
    run: StoreRun,
    /// Whether every word of the last run was right: one that is wrong is never taken again.
    is_right: bool,
}

impl Storing {
    pub(super) fn new(setup: Setup, shared: Rc<RefCell<Ground>>) -> Self {
        Self { setup, shared, run: StoreRun::default(), is_right: false }
    }
}

impl Trial for Storing {
    fn arm(&self) -> &'static str {
        self.setup.arm.0
    }

    fn reset(&mut self) -> Result<(), Error> {
        let mut shared = self.shared.borrow_mut();
        shared.plot.fill(SCRUB);
        shared.look_up()
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let Setup { arm: (_, engine), asked, cpus } = &self.setup;
        let Asked { point, width, load_width, overlaps, .. } = asked;
        let Ground { plot, fence_word, .. } = &mut *self.shared.borrow_mut();
        let word = || match fence_word.as_ref() {
            Some(own) if !overlaps => FenceWord::Own(own),
            _ => FenceWord::Overlap,
        };
        let spec = StoreSpec {
            engine: *engine,
            stores: match point.store {
                Stores::NonTemporal => memtype::Stores::NonTemporal,
                Stores::Plain | Stores::None => memtype::Stores::Plain,
            },
            width: *width,
            fence: match point.fence {
                Fence::None => memtype::Fence::None,
                Fence::Sfence => memtype::Fence::Sfence,
                Fence::UcStore => memtype::Fence::UcStore(word()),
                Fence::UcStoreLoad => memtype::Fence::UcStoreLoad(word()),
            },
            skip: asked.skip(),
            verify: match (point.load, point.verify) {
                (Loads::None, Verify::EachRound) => memtype::Verify::EachRound,
                (Loads::None, Verify::Deferred) => memtype::Verify::Last,
                (Loads::Plain, _) => memtype::Verify::ReadBack(memtype::Loads::Plain, *load_width),
                (Loads::NonTemporal, _) => {
                    memtype::Verify::ReadBack(memtype::Loads::NonTemporal, *load_width)
                }
            },
        };
        let rounds = self.setup.rounds(meter.is_warm_up());
        self.run = store_rounds(plot, &spec, 0..rounds, cpus, meter.clock())?;
        self.file(meter);
        Ok(())
    }

    fn counts_faults(&self) -> bool {
        self.is_right
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let run = std::mem::take(&mut self.run);
        self.is_right = run.wrong_words() == 0;
        let rounds = run.rounds.len() as u64;
        let verified = match self.setup.asked.point.verify {
            Verify::Deferred => rounds.min(1),
            Verify::EachRound => rounds,
        };
        witness.expect(Check::WrongWords, 0, run.wrong_words());
        witness.expect(Check::RoundsVerified, verified, run.verified());
        let words = self.setup.asked.words() - u64::from(self.setup.asked.overlaps);
        witness.expect(Check::WordsStored, words, run.words);
        witness.expect(Check::FaultsOfLoop, 0, run.faults());
        witness.set("width_bytes", self.setup.asked.width.bytes());
        if self.setup.asked.point.is_readback() {
            witness.set("load_width_bytes", self.setup.asked.load_width.bytes());
        }
        witness.count("verified_rounds", run.verified());
        witness.count(counter::WRONG_WORDS, run.wrong_words());
        self.shared.borrow().testify(witness)
    }
}

impl Storing {
    /// One observation for each round, in three series.
    fn file(&self, meter: &mut Meter) {
        let Asked { point, width, .. } = &self.setup.asked;
        let bytes = self.run.words * 8;
        let stores = bytes / width.bytes();
        let of = |ns: fn(&StoreRound) -> u64| self.run.rounds.iter().map(ns).collect();
        meter.observe_rounds("issue", stores, bytes, of(|round| round.issue_ns));
        // What is read back is counted too, as the original counts it.
        let both = if point.is_readback() { 2 * bytes } else { bytes };
        meter.observe_rounds("test", stores, both, of(|round| round.test_ns));
        meter.observe_rounds("completion", stores, bytes, of(|round| round.completion_ns));
    }
}

/// An arm that loads.
#[derive(Debug)]
pub(super) struct Reading {
    setup: Setup,
    shared: Rc<RefCell<Ground>>,
    run: ReadRun,
    /// Whether the last sum was right: one that is wrong is never taken again.
    is_right: bool,
}

impl Reading {
    pub(super) fn new(setup: Setup, shared: Rc<RefCell<Ground>>) -> Self {
        Self { setup, shared, run: ReadRun::default(), is_right: false }
    }

    /// The round whose values lie in memory: the last one of a store test before.
    fn stored(&self) -> u64 {
        self.setup.asked.iterations - 1
    }

    /// The sum that so many passes must give, and what it starts from.
    fn expected(&self, passes: u64) -> (u64, u64) {
        expected_sums(&self.setup.asked, self.stored(), passes)
    }
}

/// What the sum of a read test starts from, and what `passes` passes add to it.
///
/// The original never set its sum to 0 before the read test, so that its published sums start with
/// the last verification's. Where the fence word overlaps, that verification skipped it, and the
/// passes find the last fence's value, which is the round's number, in its place.
fn expected_sums(asked: &Asked, stored: u64, passes: u64) -> (u64, u64) {
    let held = asked.skip().map(|word| (word, stored));
    let from = if asked.accumulates {
        values::expected_sum(asked.words(), stored, asked.skip())
    } else {
        0
    };
    (from, values::expected_read_sum(asked.words(), stored, passes, held))
}

impl Trial for Reading {
    fn arm(&self) -> &'static str {
        self.setup.arm.0
    }

    fn reset(&mut self) -> Result<(), Error> {
        let (stored, asked) = (self.stored(), &self.setup.asked);
        let mut shared = self.shared.borrow_mut();
        if !shared.filled {
            shared.plot.fill(stored + u64::from(asked.lie == Lie::Stale));
            if asked.overlaps {
                shared.plot.set_word(usize::try_from(OVERLAP).unwrap_or(0), stored);
            }
            shared.filled = true;
        }
        shared.look_up()
    }

    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let Setup { arm: (_, engine), asked, cpus } = &self.setup;
        let Asked { point, load_width, space, .. } = asked;
        let spec = ReadSpec {
            engine: *engine,
            loads: match point.load {
                Loads::NonTemporal => memtype::Loads::NonTemporal,
                Loads::Plain | Loads::None => memtype::Loads::Plain,
            },
            width: *load_width,
        };
        let rounds = self.setup.rounds(meter.is_warm_up());
        let shared = self.shared.borrow();
        self.run = read_rounds(&shared.plot, &spec, rounds, cpus, meter.clock())?;
        let loads = space.bytes / load_width.bytes();
        meter.observe_rounds("test", loads, space.bytes, self.run.ns.clone());
        Ok(())
    }

    fn counts_faults(&self) -> bool {
        self.is_right
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let run = std::mem::take(&mut self.run);
        let passes = run.ns.len() as u64;
        let (from, added) = self.expected(passes);
        let (expected, observed) = (from.wrapping_add(added), from.wrapping_add(run.sum));
        self.is_right = expected == observed;
        witness.expect_digest(Check::SumOfLoads, expected, observed);
        witness.expect(Check::FaultsOfLoop, 0, run.faults);
        for (name, sum) in [("sum", observed), ("expected_sum", expected)] {
            witness.set(&format!("{name}_low"), sum & u64::from(u32::MAX));
            witness.set(&format!("{name}_high"), sum >> 32);
        }
        witness.set("width_bytes", self.setup.asked.load_width.bytes());
        witness.count("verified_rounds", passes);
        self.shared.borrow().testify(witness)
    }
}

#[cfg(test)]
mod tests {
    use pagelab_sys::memtype::MemoryType;

    use super::*;
    use crate::workloads::{bandwidth::BANDWIDTH, space::Space};
    use pagelab_bench::plan::complete;

    fn asked(memory_type: MemoryType, overlaps: bool, accumulates: bool) -> Asked {
        let case = complete(&BANDWIDTH, &[("test", "read"), ("type", "wb")]).unwrap();
        let asked = Asked::of(&case);
        Asked { space: Space { memory_type, ..asked.space }, overlaps, accumulates, ..asked }
    }

    fn sum(asked: &Asked) -> u64 {
        let (from, added) = expected_sums(asked, 49, 50);
        from.wrapping_add(added)
    }

    #[test]
    fn the_published_read_sums_follow_from_accumulation_and_from_the_overlapping_fence_word() {
        assert_eq!(sum(&asked(MemoryType::Wb, false, true)), 0x6601_3530_0000);
        assert_eq!(sum(&asked(MemoryType::UcMinus, true, true)), 0x6601_352f_9a02);
    }

    #[test]
    fn without_accumulation_the_sum_is_that_of_the_passes() {
        let words = (16_u64 << 20) / 8;
        let pass = words * (words - 1) / 2 + 49 * words;
        assert_eq!(sum(&asked(MemoryType::Wb, false, false)), 50 * pass);
        assert_eq!(sum(&asked(MemoryType::UcMinus, true, false)), 50 * (pass - 511));
    }
}
