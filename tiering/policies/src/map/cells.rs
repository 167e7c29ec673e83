//! Small records, eight, two or one to a word, changed without locks.
//!
//! The one idea: a word is an atomic, so a change of one record is a compare-exchange of its word,
//! and a walk looks at eight records at a time. In memory the records lie as an array would.

use std::sync::atomic::{AtomicU64, Ordering};

/// Records of 8, 32 or 64 bits.
pub(super) struct Cells {
    words: Box<[AtomicU64]>,
    len: usize,
    bits: u32,
}

impl Cells {
    /// So many records, all zero.
    pub(super) fn new(len: usize, bits: u32) -> Self {
        let lanes = (u64::BITS / bits) as usize;
        let words = (0..len.div_ceil(lanes)).map(|_| AtomicU64::new(0)).collect();
        Self { words, len, bits }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }

    pub(super) const fn words(&self) -> usize {
        self.words.len()
    }

    const fn mask(&self) -> u64 {
        mask(self.bits)
    }

    const fn lanes(&self) -> usize {
        (u64::BITS / self.bits) as usize
    }

    /// The word of a record, and where in it the record starts.
    #[inline]
    fn locate(&self, index: usize) -> (&AtomicU64, u32) {
        let (word, shift) = Self::place(index, self.bits);
        (&self.words[word], shift)
    }

    #[inline]
    fn place(index: usize, bits: u32) -> (usize, u32) {
        let (word, lane) = match bits {
            8 => (index / 8, index % 8 * 8),
            32 => (index / 2, index % 2 * 32),
            _ => (index, 0),
        };
        // Below 64.
        (word, u32::from(lane.to_le_bytes()[0]))
    }

    #[inline]
    pub(super) fn load(&self, index: usize) -> u64 {
        let (word, shift) = self.locate(index);
        word.load(Ordering::Relaxed) >> shift & self.mask()
    }

    /// Replaces a record by what `change` makes of it; it may be asked more than once.
    #[inline]
    pub(super) fn update(&self, index: usize, change: impl FnMut(u64) -> u64) {
        self.update_of(self.bits, index, change);
    }

    /// The same where the compiler knows how many bits a record has.
    #[inline]
    pub(super) fn update_of(&self, bits: u32, index: usize, mut change: impl FnMut(u64) -> u64) {
        let (word, shift) = Self::place(index, bits);
        let (word, mask) = (&self.words[word], mask(bits));
        let mut old = word.load(Ordering::Relaxed);
        loop {
            let new = old & !(mask << shift) | change(old >> shift & mask) << shift;
            if new == old {
                return;
            }
            match word.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => old = now,
            }
        }
    }

    /// Brings the words of some records near, all at once: a walk over records that lie anywhere
    /// would otherwise wait for one after the other. Only a hint, which changes nothing.
    #[inline]
    pub(super) fn warm(&self, indices: impl Iterator<Item = usize>) {
        let bits = self.bits;
        let word = |index| self.words[Self::place(index, bits).0].load(Ordering::Relaxed);
        std::hint::black_box(indices.map(word).fold(0, |sum: u64, word| sum ^ word));
    }

    /// The same for whoever has the records alone: no atomic operation.
    #[inline]
    pub(super) fn update_alone(&mut self, index: usize, change: impl FnOnce(u64) -> u64) {
        match self.bits {
            8 => self.update_alone_of(8, index, change),
            bits => self.update_alone_of(bits, index, change),
        }
    }

    /// The same where the compiler knows how many bits a record has.
    #[inline]
    pub(super) fn update_alone_of(
        &mut self,
        bits: u32,
        index: usize,
        change: impl FnOnce(u64) -> u64,
    ) {
        let mask = mask(bits);
        let (word, shift) = Self::place(index, bits);
        let word = self.words[word].get_mut();
        *word = *word & !(mask << shift) | change(*word >> shift & mask) << shift;
    }

    /// Takes a record out.
    #[inline]
    pub(super) fn swap_zero(&self, index: usize) -> u64 {
        let (word, shift) = self.locate(index);
        let old = word.fetch_and(!(self.mask() << shift), Ordering::AcqRel);
        old >> shift & self.mask()
    }

    /// The same for whoever has the records alone: no atomic operation.
    #[inline]
    pub(super) fn take_alone(&mut self, index: usize) -> u64 {
        let mut taken = 0;
        self.update_alone(index, |old| {
            taken = old;
            0
        });
        taken
    }

    pub(super) fn clear(&self) {
        self.words.iter().for_each(|word| word.store(0, Ordering::Release));
    }

    /// Clears the records of some words that are not to be kept.
    pub(super) fn retain(&self, start: usize, end: usize, keep: impl Fn(u64) -> bool) {
        for (at, word) in self.words[start..end].iter().enumerate() {
            let seen = word.load(Ordering::Relaxed);
            if seen == 0 {
                continue;
            }
            for lane in 0..self.lanes() {
                let record = |word: u64| word >> (self.bits * lane_bits(lane)) & self.mask();
                if record(seen) != 0 && !keep(record(seen)) {
                    let index = (start + at) * self.lanes() + lane;
                    // It may have been recorded again by now.
                    self.update(index, |now| if now != 0 && keep(now) { now } else { 0 });
                }
            }
        }
    }
}

/// The bits of one record, all set.
const fn mask(bits: u32) -> u64 {
    u64::MAX >> (u64::BITS - bits)
}

/// A lane as a factor of bits; below 8.
const fn lane_bits(lane: usize) -> u32 {
    lane.to_le_bytes()[0] as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_do_not_touch_each_other() {
        for bits in [8, 32, 64] {
            let cells = Cells::new(21, bits);
            for index in 0..21 {
                cells.update(index, |old| old + index as u64 + 1);
            }
            for index in 0..21 {
                assert_eq!(cells.load(index), index as u64 + 1);
            }
            assert_eq!(cells.swap_zero(7), 8);
            assert_eq!((cells.load(6), cells.load(7), cells.load(8)), (7, 0, 9));
            cells.retain(0, cells.words(), |record| record % 2 == 0);
            let left: Vec<u64> = (0..21).map(|index| cells.load(index)).collect();
            assert_eq!(&left[..9], [0, 2, 0, 4, 0, 6, 0, 0, 0]);
        }
    }
}
