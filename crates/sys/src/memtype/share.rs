//! One worker's part of a plot: whole cache lines, with one word left out where that is asked for.
//!
//! The one idea: everything that must be worked out about a share is worked out before the clock
//! starts, so that a round is a loop, at most one line by hand, and another loop.

use super::{Loads, Plot, Stores, Width};
use crate::arch;

const LINE: usize = 64;
const LINE_WORDS: usize = LINE / 8;
/// Shares begin and end with pairs of lines, which is what the read loops work on.
const PAIR: usize = 2;

/// Lines of a plot: those before the line of a word to be skipped, that line, those after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    first: usize,
    before: usize,
    /// The word to be skipped and 1, or any word and 0.
    skipped: (usize, usize),
    after: usize,
}

impl Share {
    /// The share of worker `index` of `workers`.
    ///
    /// # Panics
    /// When the word to be skipped lies outside the plot.
    pub(super) fn of(plot: &Plot, index: usize, workers: usize, skip: Option<u64>) -> Self {
        let pairs = plot.bytes() / LINE / PAIR;
        let [first, end] = [index, index + 1].map(|at| pairs * at / workers * PAIR);
        let skip = skip.map(|word| {
            let word = usize::try_from(word).unwrap_or(usize::MAX);
            assert!(word < plot.words(), "word {word} is outside the plot");
            word
        });
        match skip.filter(|word| (first..end).contains(&(word / LINE_WORDS))) {
            None => Self { first, before: end - first, skipped: (0, 0), after: 0 },
            Some(word) => {
                let line = word / LINE_WORDS;
                Self { first, before: line - first, skipped: (word, 1), after: end - line - 1 }
            }
        }
    }

    /// Words that a store loop over this share stores.
    pub(super) fn words(&self) -> usize {
        (self.before + self.after) * LINE_WORDS + self.skipped.1 * (LINE_WORDS - 1)
    }

    /// Stores the values of a round.
    #[inline(always)]
    pub(super) fn store(&self, base: *mut u8, round: u64, stores: Stores, width: Width) {
        let nt = stores == Stores::NonTemporal;
        self.each_run(
            |line, lines| {
                let first = (line * LINE_WORDS) as u64;
                let at = base.wrapping_add(line * LINE);
                arch::store_counting(at, lines, first.wrapping_add(round), width.bytes(), nt);
            },
            |word| {
                let (at, value) = (at(base, word), (word as u64).wrapping_add(round));
                if nt { arch::store_word_nt(at, value) } else { arch::store_word(at, value) }
            },
        );
    }

    /// The wrapping sum of every word, the skipped one included.
    #[inline(always)]
    pub(super) fn sum(&self, base: *mut u8, loads: Loads, width: Width) -> u64 {
        let nt = loads == Loads::NonTemporal;
        let lines = self.before + self.skipped.1 + self.after;
        arch::sum_words(base.wrapping_add(self.first * LINE), lines, width.bytes(), nt)
    }

    /// Not 0 when a word differs from what the round stored.
    #[inline(always)]
    pub(super) fn differs(&self, base: *mut u8, round: u64, loads: Loads, width: Width) -> u64 {
        let nt = loads == Loads::NonTemporal;
        let mut all = 0;
        let mut by_word = 0;
        self.each_run(
            |line, lines| {
                let first = (line * LINE_WORDS) as u64;
                let at = base.wrapping_add(line * LINE);
                let first = first.wrapping_add(round);
                all |= arch::differing_words(at, lines, first, width.bytes(), nt);
            },
            |word| by_word |= arch::load_word(at(base, word)) ^ (word as u64).wrapping_add(round),
        );
        all | by_word
    }

    /// Words that differ from what the round stored: first a fast look at all, then a count.
    pub(super) fn wrong_words(&self, plot: &Plot, round: u64) -> u64 {
        let width = Width::widest(Stores::Plain);
        if self.differs(plot.start(), round, Loads::Plain, width) == 0 {
            return 0;
        }
        let mut wrong = 0;
        let mut count = |word: usize| {
            wrong += u64::from(plot.word(word) != (word as u64).wrapping_add(round));
        };
        let mut words = Vec::new();
        self.each_run(
            |line, lines| words.push(line * LINE_WORDS..(line + lines) * LINE_WORDS),
            |_| (),
        );
        words.into_iter().flatten().for_each(&mut count);
        self.each_run(|_, _| (), count);
        // What was wrong at first and right at the second look was still under way.
        wrong.max(1)
    }

    /// The C twin's view: the address of its first word, its words, the index of the first.
    pub(super) fn whole(&self, base: *mut u8) -> Option<(*mut u64, u64, u64)> {
        let first = self.first * LINE_WORDS;
        let words = (self.before * LINE_WORDS) as u64;
        (self.skipped.1 == 0).then(|| (at(base, first), words, first as u64))
    }

    /// Hands over runs of whole lines and the single words beside the one that is skipped.
    #[inline(always)]
    fn each_run(&self, mut run: impl FnMut(usize, usize), mut word: impl FnMut(usize)) {
        run(self.first, self.before);
        let (skipped, lines) = self.skipped;
        let line = skipped / LINE_WORDS * LINE_WORDS;
        for one in line..line + lines * LINE_WORDS {
            if one != skipped {
                word(one);
            }
        }
        run(self.first + self.before + lines, self.after);
    }
}

#[inline(always)]
fn at(base: *mut u8, word: usize) -> *mut u64 {
    base.wrapping_add(word * 8).cast()
}
