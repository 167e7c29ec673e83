//! Calls with arguments from the dice.

use std::{fs::File, os::unix::fs::FileExt};

use fastrand::Rng;
use pagelab_sys::vm::hostile::{
    End, Errno, Mapping, Nowhere, PRIVATE, READ, SHARED, Touch, WRITE, touch_in_a_child,
};

use super::{
    super::abi::{ALLOC, INFO, MIB, PAGE, QUERY, VERSION},
    call::Call,
    dice::Dice,
    worker::{DIED, MAPPINGS, Place, Worker},
};

/// `madvise` by any number but those that reach beyond the ground.
const ADVICE: &[i32] =
    &[0, 1, 2, 3, 4, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 25, 26, 102, -1];

impl Worker<'_> {
    /// A part of the ground: mostly whole pages, sometimes whole leaves, sometimes neither.
    fn part(&mut self) -> (usize, usize) {
        let all = self.ground.bytes();
        let dice = &mut self.dice;
        let step = if dice.once_in(6) { 2 * MIB } else { PAGE };
        let at = dice.usize(..all / step) * step;
        let room = (all - at) / step;
        let most = if step == PAGE { 16 } else { 2 };
        let bytes = (1 + dice.usize(..room.min(most))) * step;
        if dice.once_in(30) { (at, bytes - 1) } else { (at, bytes) }
    }

    /// One call of the kinds that only need a slot and the ground.
    pub(super) fn rough(&mut self, call: Call) -> Result<(), Errno> {
        let (at, bytes) = self.part();
        let bits = self.dice.u64(..);
        match call {
            Call::Map => self.map(at, bytes),
            Call::Unmap => self.ground.unmap(at, bytes),
            Call::Remap => {
                let (to, new) = self.part();
                let fits = to + bytes <= self.ground.bytes();
                let new = if bits.is_multiple_of(2) && fits { bytes } else { new };
                self.ground.remap(at, bytes, to, new)
            }
            Call::Repage => {
                let page = self.dice.one_of(&[0, 1, 8, 512, 1 << 40]);
                self.ground.repage(at, bytes, page)
            }
            Call::Protect => {
                let protection = self.dice.one_of(&[0, READ, WRITE, READ | WRITE, 4, 7, 8, -1]);
                self.ground.protect(at, bytes, protection)
            }
            Call::Advise => self.ground.advise(at, bytes, self.dice.one_of(ADVICE)),
            Call::Lock => self.ground.lock(at, bytes),
            Call::CopyOut => self.ground.copy_out(at, &mut [0; 64]),
            Call::CopyIn => self.write(),
            Call::Pin => self.ground.pin(at, bytes).map(|_| ()),
            Call::Touch => self.touch(),
            Call::Walk => self.walk(),
            _ => self.ioctl(call),
        }
    }

    fn map(&mut self, at: usize, bytes: usize) -> Result<(), Errno> {
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
        // MAP_ANONYMOUS and MAP_HUGETLB would be about other memory.
        let flags = flags & !0x20 & !0x4_0000;
        let how = Mapping { bytes, protection, flags, offset };
        let Some(slot) = &self.slots[index] else { return Err(Errno::BADF) };
        self.ground.map(at, &slot.device.0, how)?;
        let oldest = self.dice.usize(..self.recent.len());
        self.recent[oldest] = Place { at: at / PAGE * PAGE, pages: bytes / PAGE, slot: index };
        self.count(MAPPINGS);
        Ok(())
    }

    /// Writes the mark of a file where it is mapped, if it is mapped there.
    fn write(&mut self) -> Result<(), Errno> {
        let (page, index) = self.place();
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
        file.read_at(&mut bytes, at).map(|_| ()).map_err(|_| Errno::IO)
    }

    fn ioctl(&mut self, call: Call) -> Result<(), Errno> {
        let index = self.any()?;
        let dice = &mut self.dice;
        let known = dice.one_of(&[VERSION, INFO, ALLOC, QUERY]);
        let flip = 1_u32 << dice.usize(..32);
        let number = match dice.usize(..4) {
            0 => dice.u32(..),
            1 => known ^ flip,
            _ => known,
        };
        // Few bits set: most fields stay what somebody might accept.
        let sparse = |dice: &mut Rng| dice.u64(..) & dice.u64(..) & dice.u64(..);
        let mut raw = [0; 64];
        for word in raw.chunks_mut(8) {
            let bits = if dice.once_in(4) { sparse(dice) } else { 0 };
            word.copy_from_slice(&bits.to_ne_bytes());
        }
        let address = dice.u64(..);
        let Some(slot) = &self.slots[index] else { return Err(Errno::BADF) };
        match call {
            Call::Garbage => {
                // An ALLOC may have been among them, of whatever type.
                let answer = slot.device.0.call(number, &mut raw).map(|_| ());
                if let Some(slot) = self.slots[index].as_mut().filter(|_| answer.is_ok()) {
                    (slot.memtype, slot.mark) = (None, None);
                }
                answer
            }
            Call::Nowhere => slot.device.0.call_nowhere(number, Nowhere::of(address)).map(|_| ()),
            Call::Query => slot.device.query(usize::try_from(address).unwrap_or(0)).map(|_| ()),
            Call::Misuse => slot.device.0.misuse()[0].map(|_| ()),
            _ => slot.device.0.call(INFO, &mut [0; 160]).map(|_| ()),
        }
    }
}
