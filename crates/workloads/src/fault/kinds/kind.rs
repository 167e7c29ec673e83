//! What a kind of fault is.
//!
//! The one idea: a kind is a *state of memory* from which the next touch takes one particular path
//! through the kernel. [`FaultKind`] says what it is called and where it makes sense; its [`Stage`]
//! brings freshly mapped memory into that state, off the clock, and says what the touches must
//! leave behind. The loop that touches, its clock and its control are the workload's and the same
//! for all of them.
//!
//! A kind whose cost is a call on each page and no touch at all (collapsing, migrating) times its
//! own calls: see [`Stage::calls`].

use std::fmt;

use pagelab_bench::{inputs::Inputs, meter::Witness, need::Needed, workload::Error};
use pagelab_record::Case;
use pagelab_sys::{
    Area, SysError,
    loops::touch::{Access, TouchList},
    memory::residency::Residency,
    time::clock::Clock,
};

use crate::fault::space::{Expectation, Space};

/// One kind of fault.
pub trait FaultKind: fmt::Debug + Sync {
    /// The value of the parameter `kind`.
    fn name(&self) -> &'static str;

    /// One line: from which state the touch starts and what the kernel does about it.
    fn help(&self) -> &'static str;

    /// What a touch does.
    fn access(&self) -> Access {
        Access::Write
    }

    /// Whether a touch of the stage's memory faults at all; without, there is only the control.
    fn is_fault(&self) -> bool {
        true
    }

    /// Whether `fault/throughput` measures it, too; not what costs a call instead of a touch.
    fn in_throughput(&self) -> bool {
        true
    }

    /// Whether the first touch in each 2 MiB also allocates a page of page table, so that it is to
    /// be kept apart; not where the table is there before the touch.
    fn allocates_tables(&self) -> bool {
        true
    }

    /// Whether the fault takes memory that was free until then, which a host may have to back
    /// first.
    fn takes_fresh_memory(&self) -> bool {
        true
    }

    /// Whether the case's lie would be the truth for this kind, or leave no trace in it.
    fn cannot_tell(&self, case: &Case) -> bool {
        let _ = case;
        false
    }

    /// Refuses a case that would measure something else than it says.
    ///
    /// # Errors
    /// A sentence that says what it would measure instead, and what to ask for.
    fn refuse(&self, case: &Case) -> Result<(), String> {
        let _ = case;
        Ok(())
    }

    /// Whether it takes memory from a file in the directory that `dir` names.
    fn uses_dir(&self) -> bool {
        false
    }

    /// The most that `size=auto` gives it, in bytes: less where repetitions wait for a disk.
    fn automatic_size_max(&self) -> u64 {
        u64::MAX
    }

    /// The lies that few kinds can be told: a file that is `cached`, and `fault-around`.
    fn lies(&self) -> &'static [&'static str] {
        &[]
    }

    /// What it needs of the host beyond what its page size needs.
    fn needs(&self, case: &Case) -> Vec<Needed> {
        let _ = case;
        Vec::new()
    }

    /// What lives as long as the case's process: files above all. May choose another backing or
    /// layout for the space, which is not reserved yet.
    ///
    /// # Errors
    /// When the machine refuses.
    fn stage(&self, case: &Case, space: &mut Space) -> Result<Box<dyn Stage>, Error>;

    /// The same for kinds that need what was made for the case.
    ///
    /// # Errors
    /// When the machine refuses, or it was not made.
    fn stage_with(
        &self,
        case: &Case,
        space: &mut Space,
        inputs: &Inputs,
    ) -> Result<Box<dyn Stage>, Error> {
        let _ = inputs;
        self.stage(case, space)
    }
}

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
    fn calls(
        &mut self,
        area: &Area,
        list: &TouchList,
        clock: &Clock,
        record: &mut dyn FnMut(u64),
    ) -> Option<Result<(), SysError>> {
        let _ = (area, list, clock, record);
        None
    }
}

/// Memory as `mmap` left it.
#[derive(Debug)]
pub struct Untouched;

impl Stage for Untouched {}
