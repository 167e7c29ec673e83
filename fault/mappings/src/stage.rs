//! A kind of fault at work.
//!
//! The one idea: a kind is a *state of memory* from which the next touch takes one particular path
//! through the kernel. A row of `kinds::KINDS` says what it is called and where it makes
//! sense; its [`Stage`] brings freshly mapped memory into that state, off the clock, and says what
//! the touches must leave behind. The loop that touches, its clock and its control are the
//! workload's and the same for all of them.
//!
//! A kind whose cost is a call on each page and no touch at all (collapsing, migrating) times its
//! own calls: see [`Stage::calls`].

use std::fmt;

use pagelab_bench::{Error, Witness};
use pagelab_sys::{Area, SysError, loops::TouchList, memory::Residency, time::Clock};

use crate::Expectation;

/// A kind at work on one space.
pub trait Stage: fmt::Debug {
    /// Makes what will be mapped as the first repetition found it; comes before every mapping, when
    /// that of the repetition before is gone. Not measured.
    ///
    /// # Errors
    /// When the machine refuses.
    fn renew(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Distance of the touches in bytes, where one fault maps more than the page under test.
    fn step(&self) -> Option<usize> {
        None
    }

    /// Brings memory that was just mapped, bound and advised into the state from which every touch
    /// takes this fault. Not measured; comes before every repetition.
    ///
    /// # Errors
    /// When the machine refuses.
    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        let _ = area;
        Ok(())
    }

    /// Whether somebody else reclaimed what the touches were to find in memory, after they took
    /// `major` faults and left `present` base pages; what is gone is made anew by the next
    /// [`Stage::renew`].
    fn was_reclaimed(&mut self, major: u64, present: u64) -> bool {
        let _ = (major, present);
        false
    }

    /// Looks at what the touches left, after the page table was read and before [`Stage::done`]; a
    /// claim follows in [`Stage::verify`].
    ///
    /// # Errors
    /// When the proof cannot be taken.
    fn inspect(&mut self, area: &Area, found: &Residency) -> Result<(), Error> {
        let _ = (area, found);
        Ok(())
    }

    /// Whether the touch of the byte `at` of the windows laid end to end got a base page instead of
    /// the page under test; known after [`Stage::inspect`].
    fn fell_back(&self, at: usize) -> bool {
        let _ = at;
        false
    }

    /// Lets go of what [`Stage::ready`] took, after the touches and before the memory is unmapped.
    ///
    /// # Errors
    /// When the machine refuses.
    fn done(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// The name of its samples: `fault`; `touch` where the kernel takes none, `call` where a call
    /// is timed.
    fn series(&self) -> &'static str {
        "fault"
    }

    /// What the touches must leave, where a first touch of the same space leaves `first_touch`.
    fn expect(&self, first_touch: Expectation) -> Expectation {
        first_touch
    }

    /// Claims and counters of its own, after the touches.
    ///
    /// # Errors
    /// When the proof cannot be taken.
    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let _ = witness;
        Ok(())
    }

    /// Which samples of the last loop are of another kind, in the order of the list, and the name
    /// of their series; `None` where all are alike.
    fn others(&self) -> Option<(&'static str, &[bool])> {
        None
    }

    /// Times a call on each listed page instead of a touch, and hands nanoseconds to `record`;
    /// `None` for kinds that touch.
    fn calls(&mut self, calls: Calls<'_>, record: &mut dyn FnMut(u64)) -> Called {
        let _ = (calls, record);
        None
    }
}

/// What became of the calls, where calls are what is timed.
pub type Called = Option<Result<(), SysError>>;

/// Where calls are made, and by which clock.
#[derive(Debug, Clone, Copy)]
pub struct Calls<'a> {
    /// The memory.
    pub area: &'a Area,
    /// The pages.
    pub list: &'a TouchList,
    /// The clock.
    pub clock: &'a Clock,
}

/// Memory as `mmap` left it.
#[derive(Debug)]
pub(super) struct Untouched;

impl Stage for Untouched {}
