//! A set of pages, such as those in a lower tier: a bit for each.
//!
//! The one idea: whoever observes asks this of every sample, and pages lie anywhere. A bit for each
//! of two million pages fits into a cache of the processor where a byte for each does not. And
//! who walks over a set has its pages in order without sorting them.

use super::Sample;

/// Some of so many pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageSet {
    words: Vec<u64>,
}

impl PageSet {
    /// All of so many pages, or none.
    pub fn new(pages: usize, is_in: bool) -> Self {
        Self { words: vec![if is_in { u64::MAX } else { 0 }; pages.div_ceil(64)] }
    }

    /// Whether a page is in it.
    #[inline]
    pub fn has(&self, page: u32) -> bool {
        self.words[page as usize / 64] >> (page % 64) & 1 == 1
    }

    /// Puts a page in, or takes it out.
    #[inline]
    pub fn set(&mut self, page: u32, is_in: bool) {
        let word = &mut self.words[page as usize / 64];
        *word = *word & !(1 << (page % 64)) | u64::from(is_in) << (page % 64);
    }

    /// Takes out the pages that are not to be kept; asks of each in rising order.
    pub fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        for (first, word) in (0..).step_by(64).zip(&mut self.words) {
            let mut left = *word;
            while left != 0 {
                let bit = left & left.wrapping_neg();
                left ^= bit;
                if !keep(first + bit.trailing_zeros()) {
                    *word ^= bit;
                }
            }
        }
    }

    /// The pages of a range that are in it, or those that are not, in rising order.
    pub fn pages(&self, range: std::ops::Range<u32>, is_in: bool) -> Pages<'_> {
        let flip = if is_in { 0 } else { u64::MAX };
        let word = range.start / 64;
        let first = self.words.get(word as usize).map_or(0, |word| word ^ flip);
        let left = first & u64::MAX << (range.start % 64);
        Pages { words: &self.words, flip, word, left, end: range.end }
    }

    /// The bits, from page 0 on; what is behind the last page means nothing.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The samples of pages that are in it, in their order; `room` is where they are put.
    pub fn of<'r>(&self, samples: &[Sample], room: &'r mut Vec<Sample>) -> &'r [Sample] {
        if room.len() < samples.len() {
            *room = samples.to_vec();
        }
        let mut kept = 0;
        // No branch: where the next sample's page is, nobody can foresee.
        for sample in samples {
            room[kept] = *sample;
            kept += usize::from(self.has(sample.page));
        }
        &room[..kept]
    }

    /// The same, and to `others` go the pages of the other samples.
    pub fn split<'r>(
        &self,
        samples: &[Sample],
        room: &'r mut Vec<Sample>,
        others: &mut Vec<u32>,
    ) -> &'r [Sample] {
        if room.len() < samples.len() {
            *room = samples.to_vec();
        }
        let (mut kept, mut left) = (0, others.len());
        others.resize(left + samples.len(), 0);
        for sample in samples {
            let is_in = usize::from(self.has(sample.page));
            (room[kept], others[left]) = (*sample, sample.page);
            (kept, left) = (kept + is_in, left + 1 - is_in);
        }
        others.truncate(left);
        &room[..kept]
    }
}

/// Some pages: [`PageSet::pages`].
#[derive(Debug, Clone)]
pub struct Pages<'b> {
    words: &'b [u64],
    flip: u64,
    /// The word that it is in, and what is left of it.
    word: u32,
    left: u64,
    end: u32,
}

impl FromIterator<bool> for PageSet {
    /// From page 0 on, whether each is in it.
    fn from_iter<I: IntoIterator<Item = bool>>(pages: I) -> Self {
        let mut pages = pages.into_iter().fuse();
        let word = || {
            let first = pages.next()?;
            let rest = (1..64).zip(&mut pages);
            Some(rest.fold(u64::from(first), |word, (at, bit)| word | u64::from(bit) << at))
        };
        Self { words: std::iter::from_fn(word).collect() }
    }
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
    fn samples_of_pages_of_a_set_stay_in_order() {
        let mut below = PageSet::new(200, false);
        for page in [3, 64, 199] {
            below.set(page, true);
        }
        below.set(64, false);
        let sample = |page| Sample { at: u64::from(page), page, node: 0, store: false };
        let samples = [199, 5, 3, 64, 199, 0].map(sample);
        let mut room = vec![sample(7); 2];
        assert_eq!(below.of(&samples, &mut room), [199, 3, 199].map(sample));
        assert_eq!(below.of(&[], &mut room), []);
        let mut others = vec![8];
        assert_eq!(below.split(&samples, &mut room, &mut others), [199, 3, 199].map(sample));
        assert_eq!(others, [8, 5, 64, 0]);
        assert_eq!(below.words(), [8, 0, 0, 128]);
        let bits = (0..200).map(|page| below.has(page));
        assert_eq!(bits.collect::<PageSet>(), below);
    }

    #[test]
    fn what_is_not_kept_is_asked_for_in_order_and_gone() {
        let mut set: PageSet = (0..300).map(|page| page % 7 == 0).collect();
        let mut asked = Vec::new();
        set.retain(|page| {
            asked.push(page);
            page % 2 == 0
        });
        assert!(asked.into_iter().eq((0..300).filter(|page| page % 7 == 0)));
        assert!(set.pages(0..300, true).eq((0..300).filter(|page| page % 14 == 0)));
    }

    #[test]
    fn a_walk_finds_what_is_asked_for_and_stays_in_its_range() {
        let mut below = PageSet::new(200, false);
        for page in [0, 3, 64, 127, 190, 199] {
            below.set(page, true);
        }
        for range in [0..200, 3..199, 4..64, 64..65, 65..127, 100..100, 128..190, 199..200] {
            for is_below in [false, true] {
                let slow = range.clone().filter(|&page| below.has(page) == is_below);
                assert!(below.pages(range.clone(), is_below).eq(slow), "{range:?} {is_below}");
            }
        }
        assert_eq!(PageSet::new(0, true).pages(0..0, true).next(), None);
    }
}
