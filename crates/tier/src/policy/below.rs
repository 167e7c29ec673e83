//! Which pages are in a lower tier: a bit for each.
//!
//! The one idea: whoever observes asks this of every sample, and pages lie anywhere. A bit for each
//! of two million pages fits into a cache of the processor where a byte for each does not.

use super::Sample;

/// Pages of lower tiers, and pages that are nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Below {
    words: Vec<u64>,
}

impl Below {
    /// So many pages, all of them below or none.
    pub fn new(pages: usize, is_below: bool) -> Self {
        Self { words: vec![if is_below { u64::MAX } else { 0 }; pages.div_ceil(64)] }
    }

    /// Whether a page is below.
    #[inline]
    pub fn has(&self, page: u32) -> bool {
        self.words[page as usize / 64] >> (page % 64) & 1 == 1
    }

    /// Notes where a page is.
    #[inline]
    pub fn set(&mut self, page: u32, is_below: bool) {
        let word = &mut self.words[page as usize / 64];
        *word = *word & !(1 << (page % 64)) | u64::from(is_below) << (page % 64);
    }

    /// The pages of a range that are below, or those that are not, in rising order.
    pub fn pages(&self, range: std::ops::Range<u32>, is_below: bool) -> Pages<'_> {
        let flip = if is_below { 0 } else { u64::MAX };
        let word = range.start / 64;
        let first = self.words.get(word as usize).map_or(0, |word| word ^ flip);
        let left = first & u64::MAX << (range.start % 64);
        Pages { words: &self.words, flip, word, left, end: range.end }
    }

    /// The bits, from page 0 on; what is behind the last page means nothing.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The samples of pages that are below, in their order; `room` is where they are put.
    pub fn of<'r>(&self, samples: &[Sample], room: &'r mut Vec<Sample>) -> &'r [Sample] {
        room.clear();
        room.extend_from_slice(samples);
        let mut kept = 0;
        // No branch: where the next sample's page is, nobody can foresee.
        for sample in samples {
            room[kept] = *sample;
            kept += usize::from(self.has(sample.page));
        }
        &room[..kept]
    }
}

/// Some pages: [`Below::pages`].
#[derive(Debug, Clone)]
pub struct Pages<'b> {
    words: &'b [u64],
    flip: u64,
    /// The word that it is in, and what is left of it.
    word: u32,
    left: u64,
    end: u32,
}

impl Iterator for Pages<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        while self.left == 0 {
            self.word += 1;
            // Sixty-four pages that are all elsewhere are one question.
            let next = self.words.get(self.word as usize).filter(|_| self.word * 64 < self.end);
            self.left = next? ^ self.flip;
        }
        let page = self.word * 64 + self.left.trailing_zeros();
        self.left &= self.left - 1;
        (page < self.end).then_some(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_pages_below_stay_in_order() {
        let mut below = Below::new(200, false);
        for page in [3, 64, 199] {
            below.set(page, true);
        }
        below.set(64, false);
        let sample = |page| Sample { at: u64::from(page), page, node: 0, store: false };
        let samples = [199, 5, 3, 64, 199, 0].map(sample);
        let mut room = vec![sample(7); 2];
        assert_eq!(below.of(&samples, &mut room), [199, 3, 199].map(sample));
        assert_eq!(below.of(&[], &mut room), []);
        assert_eq!(below.words(), [8, 0, 0, 128]);
    }

    #[test]
    fn a_walk_finds_what_is_asked_for_and_stays_in_its_range() {
        let mut below = Below::new(200, false);
        for page in [0, 3, 64, 127, 190, 199] {
            below.set(page, true);
        }
        for range in [0..200, 3..199, 4..64, 64..65, 65..127, 100..100, 128..190, 199..200] {
            for is_below in [false, true] {
                let slow = range.clone().filter(|&page| below.has(page) == is_below);
                assert!(below.pages(range.clone(), is_below).eq(slow), "{range:?} {is_below}");
            }
        }
        assert_eq!(Below::new(0, true).pages(0..0, true).next(), None);
    }
}
