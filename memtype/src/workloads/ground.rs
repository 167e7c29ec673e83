//! What all arms of a case work on, one after the other: the measured memory, the page of a fence
//! word, and what was found out about both.
//!
//! The page table is asked before and after each repetition, and timing once, so that every arm
//! makes the same claims about its memory.

use pagelab_bench::{Error, Witness};
use pagelab_record::vocabulary::Check;
use pagelab_sys::memtype::Plot;

use super::{
    signature::{self, Probe},
    space::{self, Found, Space},
};

/// The memory of a case.
#[derive(Debug)]
pub(super) struct Ground {
    /// The measured memory.
    pub(super) plot: Plot,
    /// The page of the fence word.
    pub(super) fence_word: Option<Plot>,
    /// Whether the memory holds what a read test expects.
    pub(super) filled: bool,
    /// What the case says of the memory.
    space: Space,
    /// What timing said about the memory's type.
    probe: Option<Probe>,
    /// What the page table said before the repetition.
    before: Found,
}

impl Ground {
    /// The memory that `real` says, which is what the case says unless it lies.
    pub(super) fn new(space: Space, real: &Space, has_word: bool) -> Result<Self, Error> {
        let mut plot = real.plot()?;
        let mut fence_word =
            has_word.then(|| Space::of_fence_word(space.node).plot()).transpose()?;
        let probe = signature::probe(&mut plot, fence_word.as_mut())?;
        Ok(Self { plot, fence_word, filled: false, space, probe, before: Found::default() })
    }

    /// Looks the measured memory up before a repetition, where somebody can say.
    pub(super) fn look_up(&mut self) -> Result<(), Error> {
        if self.plot.is_module() {
            self.before = space::look_up(&self.space, &self.plot)?;
        }
        Ok(())
    }

    /// The claims about the memory that every arm makes.
    pub(super) fn testify(&self, witness: &mut Witness) -> Result<(), Error> {
        space::testify(&self.space, &self.plot, self.before, witness)?;
        if let Some(word) = &self.fence_word {
            let space = Space::of_fence_word(None);
            let leaf = word.query(0)?;
            let is_uc = leaf.is_some_and(|leaf| leaf.memory_type == Some(space.memory_type));
            witness.expect(Check::FenceWordsUncached, 0, u64::from(!is_uc));
        }
        if let Some(probe) = &self.probe {
            probe.testify(witness);
        }
        Ok(())
    }
}
