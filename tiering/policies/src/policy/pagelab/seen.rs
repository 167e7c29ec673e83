//! How often each page was sampled in a window: three bits for each, sixty-four pages to a word.
//!
//! The one idea: bit 0 of sixty-four pages is one word, bit 1 another, bit 2 the third, side by
//! side. Two million pages take 768 KiB, which a processor's own cache holds, and how many pages of
//! a block have which count is a matter of a few words, not of a walk over all pages.

use super::estimate::COUNTS;
use crate::BLOCK_PAGES;

/// Pages of a word.
pub(super) const WORD_PAGES: u32 = u64::BITS;
/// Words of a block.
pub(super) const BLOCK_WORDS: usize = (BLOCK_PAGES / WORD_PAGES) as usize;

/// The three bits of sixty-four pages.
type Planes = [u64; 3];

/// Counts of all pages, up to the largest that fits: 7.
#[derive(Debug)]
pub(super) struct Seen {
    words: Vec<Planes>,
    pages: u32,
}

impl Seen {
    /// So many pages, none of them seen.
    pub(super) fn new(pages: u32) -> Self {
        Self { words: vec![[0; 3]; pages.div_ceil(WORD_PAGES) as usize], pages }
    }

    /// Pages that nobody has seen.
    pub(super) fn clear(&mut self) {
        self.words.fill([0; 3]);
    }

    /// A sample of a page; whether it is the first.
    #[inline]
    pub(super) fn add(&mut self, page: u32) -> bool {
        let word = &mut self.words[(page / WORD_PAGES) as usize];
        let [low, middle, high] = *word;
        let bit = 1 << (page % WORD_PAGES);
        // One is added to a number of three bits, unless it is 7.
        let add = bit & !(low & middle & high);
        let carry = low & add;
        *word = [low ^ add, middle ^ carry, high ^ (middle & carry)];
        (low | middle | high) & bit == 0
    }

    /// How often a page was sampled.
    pub(super) fn count(&self, page: u32) -> usize {
        let shift = page % WORD_PAGES;
        let planes = self.words[(page / WORD_PAGES) as usize];
        let bit = |plane: u64, place: u32| (plane >> shift & 1) << place;
        let count = bit(planes[0], 0) | bit(planes[1], 1) | bit(planes[2], 2);
        usize::from(count.to_le_bytes()[0])
    }

    /// The pages of a word that there are.
    pub(super) fn valid(&self, word: usize) -> u64 {
        let left = u64::from(self.pages) - word as u64 * u64::from(WORD_PAGES);
        if left < u64::from(WORD_PAGES) { (1 << left) - 1 } else { u64::MAX }
    }

    /// Words.
    pub(super) fn words(&self) -> usize {
        self.words.len()
    }

    /// The pages of a word that have each count.
    #[inline]
    pub(super) fn by_count(&self, word: usize) -> [u64; COUNTS] {
        let [low, middle, high] = self.words[word];
        let pairs = [!low & !middle, low & !middle, !low & middle, low & middle];
        std::array::from_fn(|count| pairs[count % 4] & if count < 4 { !high } else { high })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_apart_and_no_further_than_seven() {
        let mut seen = Seen::new(130);
        for page in 0..130 {
            for time in 0..page % 11 {
                assert_eq!(seen.add(page), time == 0, "{page}");
            }
        }
        let mut by_count = vec![0; COUNTS];
        for page in 0..130 {
            let count = (page % 11).min(7) as usize;
            assert_eq!(seen.count(page), count, "{page}");
            by_count[count] += 1;
            let word = (page / WORD_PAGES) as usize;
            assert_eq!(seen.by_count(word)[count] >> (page % WORD_PAGES) & 1, 1, "{page}");
        }
        for (count, pages) in by_count.into_iter().enumerate() {
            let found = |word| (seen.by_count(word)[count] & seen.valid(word)).count_ones();
            assert_eq!((0..seen.words()).map(found).sum::<u32>(), pages);
        }
        assert_eq!((seen.valid(0), seen.valid(2)), (u64::MAX, 3));
        seen.clear();
        assert_eq!((seen.count(10), seen.add(10)), (0, true));
    }
}
