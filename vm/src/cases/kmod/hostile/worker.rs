//! One thread of a hostile process: its files, its ground, and what must hold.

use fastrand::Rng;
use pagelab_sys::vm::hostile::{End, Errno, Forked, Ground, Tally, fork};

use super::{
    super::abi::{Alloc, Device, PAGE, SEGMENT, ZERO_AT_FAULT},
    dice::Dice,
};

/// What is counted, over all workers of a run.
pub(super) const COUNTED: [&str; 9] = [
    "calls",
    "that were refused",
    "allocations",
    "mappings",
    "pages proven by QUERY",
    "pages read back",
    "children that a signal ended",
    "processes killed",
    "pages that outlasted a cut beside them",
];
pub(super) const CALLED: usize = 0;
pub(super) const REFUSED: usize = 1;
pub(super) const ALLOCATIONS: usize = 2;
pub(super) const MAPPINGS: usize = 3;
pub(super) const PROVEN: usize = 4;
const READ_BACK: usize = 5;
pub(super) const DIED: usize = 6;
pub(super) const KILLED: usize = 7;
pub(super) const CUT: usize = 8;

/// Exit codes of a process.
pub(super) const NO_GROUND: u8 = 10;
const WRONG_TYPE: u8 = 11;
const STRANGE_DATA: u8 = 12;
pub(super) const WIPED: u8 = 13;

/// What an end that is not 0 means.
pub(super) fn meaning(end: Result<End, Errno>) -> &'static str {
    match end {
        Ok(End::Exited(10)) => "it could not begin",
        Ok(End::Exited(11)) => "a page was of another type than its file",
        Ok(End::Exited(12)) => "a page held what nobody wrote to its file",
        Ok(End::Exited(13)) => "a page lost what was written to it, by a cut beside it",
        Ok(End::Exited(101)) => "it panicked",
        _ => "it died",
    }
}

/// A file that several processes have.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) device: Device,
    /// The type of its allocation; unknown when it is raced for.
    pub(super) memtype: Option<u32>,
}

/// A descriptor of a worker.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) device: Device,
    /// The type of its allocation, where this worker alone can have made it.
    pub(super) memtype: Option<u32>,
    /// Bytes of it; 0 where they are unknown.
    pub(super) bytes: usize,
    /// Whether no other process has this file.
    pub(super) is_own: bool,
    /// What is written to its pages; none where others may write too.
    pub(super) mark: Option<u64>,
}

/// Where something was mapped not long ago.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    pub(super) at: usize,
    pub(super) pages: usize,
    pub(super) slot: usize,
}

/// Open files of a worker at a time.
const SLOTS: usize = 6;

/// A thread and what it plays with.
#[derive(Debug)]
pub(super) struct Worker<'a> {
    pub(super) dice: Rng,
    pub(super) ground: &'a Ground,
    pub(super) slots: [Option<Slot>; SLOTS],
    pub(super) reserved: u64,
    shared: &'a [Shared],
    tally: &'a Tally,
    /// Whether nobody else changes this address space.
    pub(super) is_alone: bool,
    marks: u64,
    child: Option<Forked>,
    pub(super) recent: [Place; 8],
    /// The exit code of what must not be, once it was seen.
    pub(super) wrong: u8,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        mut dice: Rng,
        ground: &'a Ground,
        shared: &'a [Shared],
        tally: &'a Tally,
        reserved: u64,
        is_alone: bool,
    ) -> Self {
        let marks = dice.u64(..) << 24;
        let slots = [const { None }; SLOTS];
        let (child, recent, wrong) = (None, [Place::default(); 8], 0);
        Self { dice, ground, slots, reserved, shared, tally, is_alone, marks, child, recent, wrong }
    }

    pub(super) fn count(&self, what: usize) {
        self.tally.add(what, 1);
    }

    /// A slot that is open, if the dice find one.
    pub(super) fn any(&mut self) -> Result<usize, Errno> {
        let index = self.dice.usize(..SLOTS);
        if self.slots[index].is_some() { Ok(index) } else { Err(Errno::BADF) }
    }

    /// The device of such a slot.
    pub(super) fn device(&mut self) -> Result<&Device, Errno> {
        let index = self.any()?;
        self.slots[index].as_ref().map(|slot| &slot.device).ok_or(Errno::BADF)
    }

    /// A page where something may be mapped, and the slot that may have mapped it.
    pub(super) fn place(&mut self) -> (usize, usize) {
        let Place { at, pages, slot } = self.dice.one_of(&self.recent);
        (at + self.dice.usize(..pages.max(1)) * PAGE, slot)
    }

    pub(super) fn open(&mut self) -> Result<(), Errno> {
        let index = self.dice.usize(..SLOTS);
        let write = !self.dice.once_in(8);
        let node =
            pagelab_sys::vm::hostile::Node::open(pagelab_sys::vm::hostile::Door::Pagelab, write)?;
        self.slots[index] =
            Some(Slot { device: Device(node), memtype: None, bytes: 0, is_own: true, mark: None });
        // Otherwise most files would be closed before anybody allocates.
        if self.dice.once_in(4) { Ok(()) } else { self.alloc_in(index) }
    }

    /// A descriptor of a file that others have, or another one of one's own.
    pub(super) fn open_shared(&mut self) -> Result<(), Errno> {
        let into = self.dice.usize(..SLOTS);
        let slot = if self.dice.once_in(2) {
            let shared = &self.shared[self.dice.usize(..self.shared.len())];
            let device = Device(shared.device.0.duplicate()?);
            Slot { device, memtype: shared.memtype, bytes: 0, is_own: false, mark: None }
        } else {
            let from = self.any()?;
            let Some(slot) = &self.slots[from] else { return Err(Errno::BADF) };
            let device = Device(slot.device.0.duplicate()?);
            Slot { device, ..*slot }
        };
        self.slots[into] = Some(slot);
        Ok(())
    }

    pub(super) fn close(&mut self) -> Result<(), Errno> {
        let index = self.any()?;
        self.slots[index] = None;
        Ok(())
    }

    pub(super) fn alloc(&mut self) -> Result<(), Errno> {
        let index = self.any()?;
        self.alloc_in(index)
    }

    fn alloc_in(&mut self, index: usize) -> Result<(), Errno> {
        let want = self.want();
        let Some(slot) = &mut self.slots[index] else { return Err(Errno::BADF) };
        slot.device.alloc(&want)?;
        slot.memtype = Some(want.memtype);
        slot.bytes = usize::try_from(want.bytes).unwrap_or(0);
        self.marks += 1;
        slot.mark = slot.is_own.then_some(self.marks);
        self.count(ALLOCATIONS);
        Ok(())
    }

    /// An argument that may well be right.
    fn want(&mut self) -> Alloc {
        let dice = &mut self.dice;
        if dice.once_in(4) {
            return Self::segment(dice, self.reserved);
        }
        let memtype = dice.one_of(&[0, 1, 2, 2, 1, 3]);
        let layout = dice.one_of(if self.reserved > 0 { &[0, 1, 2, 2] } else { &[0, 0, 1, 2] });
        // Giving pages their type is what takes the time: few regions are large.
        let leaf_shift = match dice.usize(..100) {
            0 => 30,
            1..6 => 21,
            _ => 12,
        };
        let leaves = if leaf_shift == 12 { 1 + dice.usize(..64) } else { 1 + dice.usize(..2) };
        let bytes = if leaf_shift == 30 { 1 << 30 } else { leaves << leaf_shift };
        let room = if layout == 2 { (self.reserved >> leaf_shift).max(1) } else { 1 };
        let offset = if layout == 2 { (dice.u64(..) % room) << leaf_shift } else { 0 };
        let flags = u32::from(dice.once_in(2));
        Alloc { layout, leaf_shift, flags, offset, ..Alloc::pages(memtype, bytes) }
    }

    /// The same of what may be split.
    fn segment(dice: &mut Rng, reserved: u64) -> Alloc {
        let layout = if reserved > 0 { dice.one_of(&[1, 2]) } else { 1 };
        let flags = dice.one_of(&[SEGMENT, SEGMENT | ZERO_AT_FAULT, SEGMENT | ZERO_AT_FAULT]);
        let room = if layout == 2 { (reserved >> 21).max(1) } else { 1 };
        let offset = (dice.u64(..) % room) << 21;
        let most = dice.one_of(&[64, 64, 1024]);
        let bytes = (1 + dice.usize(..most)) * PAGE;
        let leaf_shift = dice.one_of(&[12, 21, 21, 21]);
        Alloc { layout, leaf_shift, flags, offset, ..Alloc::pages(0, bytes) }
    }

    /// A page of the ground is nobody's, or of the type of its file with the contents of its file.
    pub(super) fn prove(&mut self) -> Result<(), Errno> {
        let (at, index) = self.place();
        let Some(slot) = &self.slots[index] else { return Ok(()) };
        let found = slot.device.query(self.ground.start() + at)?;
        if found.shift == 0 {
            return Ok(());
        }
        if slot.memtype.is_some_and(|memtype| memtype != found.memtype) {
            self.wrong = WRONG_TYPE;
            return Ok(());
        }
        self.count(PROVEN);
        let (Some(mark), true) = (slot.mark, self.is_alone) else { return Ok(()) };
        let mut words = [0; 64];
        self.ground.copy_out(at, &mut words)?;
        self.count(READ_BACK);
        let known = [[0; 8], mark.to_ne_bytes()];
        if words.chunks(8).any(|word| !known.iter().any(|known| known == word)) {
            self.wrong = STRANGE_DATA;
        }
        Ok(())
    }

    /// A child that goes on for a while with what it inherits, beside its parent.
    pub(super) fn fork(&mut self) -> Result<(), Errno> {
        if !self.is_alone {
            return Err(Errno::BUSY);
        }
        let calls = 8 + self.dice.u64(..) % 32;
        let kill = self.dice.once_in(3);
        // The one before ends first: two at a time are enough.
        if let Some(child) = self.child.take() {
            if kill { child.kill() } else { child.wait() }.map(|_| ())?;
        }
        // From now on two write to the same files.
        for slot in self.slots.iter_mut().flatten() {
            (slot.is_own, slot.mark) = (false, None);
        }
        let child = fork(|| if self.ground.renew().is_ok() { self.run(calls) } else { 0 })?;
        self.child = Some(child);
        Ok(())
    }
}
