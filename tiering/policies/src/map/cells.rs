//! Small records, eight, two or one to a word.
//!
//! The one idea: how many bits a record has is a setting, and a map of two million of them takes no
//! more memory than it says. In memory the records lie as an array would.

/// Records of 8, 32 or 64 bits.
#[derive(Debug)]
pub(super) struct Cells {
    words: Vec<u64>,
    len: usize,
    bits: u32,
}

impl Cells {
    /// So many records, all zero.
    pub(super) fn new(len: usize, bits: u32) -> Self {
        let lanes = (u64::BITS / bits) as usize;
        Self { words: vec![0; len.div_ceil(lanes)], len, bits }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The word of a record, where in it the record starts, and the bits of a record, all set.
    #[inline]
    fn place(&self, index: usize) -> (usize, u32, u64) {
        let (word, lane) = match self.bits {
            8 => (index / 8, index % 8 * 8),
            32 => (index / 2, index % 2 * 32),
            _ => (index, 0),
        };
        // Below 64.
        (word, u32::from(lane.to_le_bytes()[0]), u64::MAX >> (u64::BITS - self.bits))
    }

    #[inline]
    pub(super) fn load(&self, index: usize) -> u64 {
        let (word, shift, mask) = self.place(index);
        self.words[word] >> shift & mask
    }

    /// Brings the words of some records near, all at once: a walk over records that lie anywhere
    /// would otherwise wait for one after the other. Only a hint, which changes nothing.
    #[inline]
    pub(super) fn warm(&self, indices: impl Iterator<Item = usize>) {
        let words = indices.map(|index| self.words[self.place(index).0]);
        std::hint::black_box(words.fold(0, |sum, word| sum ^ word));
    }

    /// Puts a record in the place of the one that is there, which it returns.
    #[inline]
    pub(super) fn replace(&mut self, index: usize, record: u64) -> u64 {
        let (word, shift, mask) = self.place(index);
        let word = &mut self.words[word];
        let old = *word >> shift & mask;
        *word = *word & !(mask << shift) | record << shift;
        old
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_do_not_touch_each_other() {
        for bits in [8, 32, 64] {
            let mut cells = Cells::new(21, bits);
            for index in 0..21 {
                assert_eq!(cells.replace(index, index as u64 + 1), 0);
            }
            for index in 0..21 {
                assert_eq!(cells.load(index), index as u64 + 1);
            }
            assert_eq!(cells.replace(7, 0), 8);
            assert_eq!((cells.load(6), cells.load(7), cells.load(8)), (7, 0, 9));
        }
    }
}
