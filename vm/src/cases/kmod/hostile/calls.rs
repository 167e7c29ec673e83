//! Calls with arguments from the dice.

use std::{fs::File, os::unix::fs::FileExt};

use pagelab_sys::vm::hostile::{
    End, Errno, Mapping, Nowhere, PRIVATE, READ, SHARED, Touch, WRITE, touch_in_a_child,
};

use super::{
    super::abi::{ALLOC, COPY, DROP, FREEZE, INFO, MIB, PAGE, QUERY, VERSION},
    dice::Dice,
    worker::{CALLED, CUT, DIED, MAPPINGS, Place, REFUSED, WIPED, Worker},
};

/// What a hostile caller does, with a part of the ground where it needs one.
type Call = fn(&mut Worker<'_>, (usize, usize)) -> Result<(), Errno>;

/// How often each call is made, in proportion.
const CALLS: &[(usize, Call)] = &[
    (30, |w, _| w.open()),
    (20, |w, _| w.open_shared()),
    (20, |w, _| w.close()),
    (30, |w, _| w.alloc()),
    (200, |w, _| w.prove()),
    (1, |w, _| w.fork()),
    (60, |w, _| w.garbage()),
    (20, |w, _| w.nowhere()),
    (20, |w, _| w.query()),
    (40, |w, part| w.forget(part)),
    (20, |w, _| w.freeze()),
    (40, |w, part| w.copy(part)),
    (10, |w, _| w.device()?.0.call(INFO, &mut [0; 160]).map(drop)),
    (180, |w, part| w.map(part)),
    (60, |w, part| w.cut(part)),
    (60, |w, part| w.remap(part)),
    (15, |w, (at, bytes)| w.ground.repage(at, bytes, w.dice.one_of(&[0, 1, 8, 512, 1 << 40]))),
    (40, |w, (at, bytes)| w.ground.protect(at, bytes, w.dice.one_of(PROTECTIONS))),
    (40, |w, (at, bytes)| w.ground.advise(at, bytes, w.dice.one_of(ADVICE))),
    (5, |w, (at, bytes)| w.ground.lock(at, bytes)),
    (80, |w, (at, _)| w.ground.copy_out(at, &mut [0; 64])),
    (120, |w, _| w.write()),
    (20, |w, (at, bytes)| w.ground.pin(at, bytes).map(drop)),
    (2, |w, _| w.touch()),
    (5, |w, _| w.device()?.0.misuse()[0].map(drop)),
    (3, |w, _| w.walk()),
];

/// `mprotect` to what there is, and to what there is not.
const PROTECTIONS: &[i32] = &[0, READ, WRITE, READ | WRITE, 4, 7, 8, -1];

/// `madvise` by any number but those that reach beyond the ground.
const ADVICE: &[i32] =
    &[0, 1, 2, 3, 4, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 25, 26, 102, -1];

impl Worker<'_> {
    /// Makes so many calls; the exit code.
    pub(super) fn run(&mut self, calls: u64) -> u8 {
        for _ in 0..calls {
            self.count(CALLED);
            let (call, part) = (self.roll(), self.part());
            if call(self, part).is_err() {
                self.count(REFUSED);
            }
            if self.wrong > 0 {
                break;
            }
        }
        self.wrong
    }

    fn roll(&mut self) -> Call {
        let all: usize = CALLS.iter().map(|(weight, _)| weight).sum();
        let mut rest = self.dice.usize(..all);
        for (weight, call) in CALLS {
            if rest < *weight {
                return *call;
            }
            rest -= weight;
        }
        unreachable!("{rest} is below the sum of the weights")
    }

    /// A part of the ground: mostly whole pages, sometimes whole leaves, sometimes neither.
    fn part(&mut self) -> (usize, usize) {
        let all = self.ground.bytes();
        let dice = &mut self.dice;
        let step = if dice.once_in(4) { 2 * MIB } else { PAGE };
        let at = dice.usize(..all / step) * step;
        let room = (all - at) / step;
        let most = if step == PAGE { 16 } else { 2 };
        let bytes = (1 + dice.usize(..room.min(most))) * step;
        if dice.once_in(30) { (at, bytes - 1) } else { (at, bytes) }
    }

    fn map(&mut self, (at, bytes): (usize, usize)) -> Result<(), Errno> {
        let index = self.any()?;
        let dice = &mut self.dice;
        let wild = dice.once_in(10);
        let flags = if wild { dice.u32(..).cast_signed() } else { SHARED };
        let flags = if dice.once_in(20) { PRIVATE } else { flags };
        let protection = dice.one_of(&[3, 3, 3, 3, 3, 3, 1, 2, 0, 7, 15]);
        let offset = match dice.usize(..10) {
            0 => dice.u64(..),
            1 => dice.u64(..) << 12,
            2..4 => (dice.usize(..64) * PAGE) as u64,
            4 => 2 * MIB as u64,
            _ => 0,
        };
        let is_cut = !dice.once_in(4);
        // MAP_ANONYMOUS and MAP_HUGETLB would be about other memory.
        let flags = flags & !0x20 & !0x4_0000;
        let Some(slot) = &self.slots[index] else { return Err(Errno::BADF) };
        // Otherwise most mappings would be longer than what they are of.
        let bytes = if is_cut && slot.bytes > 0 { bytes.min(slot.bytes) } else { bytes };
        self.ground.map(at, &slot.device.0, Mapping { bytes, protection, flags, offset })?;
        let oldest = self.dice.usize(..self.recent.len());
        self.recent[oldest] = Place { at: at / PAGE * PAGE, pages: bytes / PAGE, slot: index };
        self.count(MAPPINGS);
        Ok(())
    }

    /// Takes a part out; what was written beside it just before is there afterwards, whatever
    /// became of the leaf that both lay in.
    fn cut(&mut self, part: (usize, usize)) -> Result<(), Errno> {
        let (page, index) = self.place();
        let near = page + (1 + self.dice.usize(..16)) * PAGE;
        let is_near = near < self.ground.bytes() && !self.dice.once_in(3);
        let (at, bytes) = if is_near { (near, PAGE) } else { part };
        let mark = self.slots[index].as_ref().and_then(|slot| slot.mark);
        let is_apart = self.is_alone && !(at..at + bytes).contains(&page);
        let written = mark.filter(|_| is_apart && self.write_at(page, index).is_ok());
        self.ground.unmap(at, bytes)?;
        let Some(mark) = written else { return Ok(()) };
        let mut words = [0; 64];
        let answer = self.ground.copy_out(page, &mut words);
        let is_there = answer.is_ok() && words.chunks(8).all(|word| *word == mark.to_ne_bytes());
        // A part of a page takes all of it.
        if !is_there && !(at / PAGE * PAGE..(at + bytes).next_multiple_of(PAGE)).contains(&page) {
            self.wrong = WIPED;
        }
        self.count(CUT);
        Ok(())
    }

    /// Writes the mark of a file where it is mapped, if it is mapped there.
    fn write(&mut self) -> Result<(), Errno> {
        let (page, index) = self.place();
        self.write_at(page, index)
    }

    fn write_at(&mut self, page: usize, index: usize) -> Result<(), Errno> {
        let Some(slot) = &self.slots[index] else { return Err(Errno::BADF) };
        slot.device.query(self.ground.start() + page)?;
        let mark = slot.mark.unwrap_or(0);
        let mut words = [0; 64];
        words.chunks_mut(8).for_each(|word| word.copy_from_slice(&mark.to_ne_bytes()));
        self.ground.copy_in(page, &words)
    }

    /// Loads and stores by a child, which may die of them.
    fn touch(&mut self) -> Result<(), Errno> {
        let (page, _) = self.place();
        let touches: [Touch; 8] = std::array::from_fn(|_| {
            let far = self.dice.usize(..self.ground.bytes() / PAGE) * PAGE;
            let at = if self.dice.once_in(2) { page } else { far };
            // A zero disturbs no mark.
            if self.dice.once_in(2) { Touch::Load(at + 128) } else { Touch::Store(at + 128, 0) }
        });
        let end = touch_in_a_child(self.ground, &touches)?;
        if matches!(end, End::Killed(_)) {
            self.count(DIED);
        }
        Ok(())
    }

    /// Lets `/proc` walk the page tables of this process.
    fn walk(&mut self) -> Result<(), Errno> {
        const FILES: [&str; 4] =
            ["/proc/self/maps", "/proc/self/smaps", "/proc/self/numa_maps", "/proc/self/pagemap"];
        let path = self.dice.one_of(&FILES);
        let file = File::open(path).map_err(|_| Errno::NOENT)?;
        let entries = self.ground.start() as u64 / PAGE as u64 * 8;
        let at = if path == FILES[3] { entries } else { 0 };
        let mut bytes = [0; 4096];
        file.read_at(&mut bytes, at).map(drop).map_err(|_| Errno::IO)
    }

    fn remap(&mut self, (at, bytes): (usize, usize)) -> Result<(), Errno> {
        let (to, new) = self.part();
        let fits = to + bytes <= self.ground.bytes();
        let new = if self.dice.once_in(2) && fits { bytes } else { new };
        self.ground.remap(at, bytes, to, new)
    }

    /// The number of a call, mostly a known one.
    fn number(&mut self) -> u32 {
        let known = self.dice.one_of(&[VERSION, INFO, ALLOC, QUERY, DROP, FREEZE, COPY]);
        match self.dice.usize(..4) {
            0 => self.dice.u32(..),
            1 => known ^ 1 << self.dice.usize(..32),
            _ => known,
        }
    }

    /// Few bits set: most fields stay what somebody might accept.
    fn garbage(&mut self) -> Result<(), Errno> {
        let (index, number) = (self.any()?, self.number());
        let mut raw = [0; 64];
        for word in raw.chunks_mut(8) {
            let sparse = self.dice.u64(..) & self.dice.u64(..) & self.dice.u64(..);
            let bits = if self.dice.once_in(4) { sparse } else { 0 };
            word.copy_from_slice(&bits.to_ne_bytes());
        }
        let Some(slot) = &mut self.slots[index] else { return Err(Errno::BADF) };
        slot.device.0.call(number, &mut raw)?;
        // An ALLOC may have been among them, of whatever type.
        (slot.memtype, slot.bytes, slot.mark) = (None, 0, None);
        Ok(())
    }

    fn nowhere(&mut self) -> Result<(), Errno> {
        let (number, at) = (self.number(), Nowhere::of(self.dice.u64(..)));
        self.device()?.0.call_nowhere(number, at).map(drop)
    }

    /// Of a segment; of anything else it is refused.
    fn forget(&mut self, (at, bytes): (usize, usize)) -> Result<(), Errno> {
        let offset = at as u64 % (64 * PAGE) as u64;
        let bytes = if self.dice.once_in(10) { self.dice.u64(..) } else { bytes as u64 };
        self.device()?.forget(offset, bytes)
    }

    /// For a moment that nobody may end, or to let others go on.
    fn freeze(&mut self) -> Result<(), Errno> {
        let milliseconds = self.dice.one_of(&[0, 0, 1, 5, 20, u32::MAX]);
        self.device()?.freeze(milliseconds)
    }

    /// From where something may be mapped to anywhere on the ground.
    fn copy(&mut self, (to, bytes): (usize, usize)) -> Result<(), Errno> {
        let (page, index) = self.place();
        let start = self.ground.start();
        let Some(slot) = &self.slots[index] else { return Err(Errno::BADF) };
        let bytes = if self.dice.once_in(10) { self.dice.u64(..) } else { bytes as u64 };
        slot.device.copy(start + page, bytes, start + to).map(drop)
    }

    fn query(&mut self) -> Result<(), Errno> {
        let address = usize::try_from(self.dice.u64(..)).unwrap_or(0);
        self.device()?.query(address).map(drop)
    }
}
