#![expect(unsafe_code, reason = "loops over whole lines take pointers")]
//! One worker's part of a plot: whole cache lines, with one word left out where that is asked for.
//!
//! The one idea: everything that must be worked out about a share is worked out before the clock
//! starts, so that a round is a loop, at most one line by hand, and another loop.

use super::{Loads, Plot, Stores, Width};
use crate::arch::{self, Word};

const LINE: usize = 64;
const LINE_WORDS: usize = LINE / 8;
/// Shares begin and end with pairs of lines, which is what the read loops work on.
const PAIR: usize = 2;

/// Lines of a plot: those before the line of a word to be skipped, that line, those after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share<'plot> {
    plot: &'plot Plot,
    base: *mut u8,
    first: usize,
    before: usize,
    /// The word to be skipped and 1, or any word and 0.
    skipped: (usize, usize),
    after: usize,
}

impl<'plot> Share<'plot> {
    /// The share of worker `index` of `workers`.
    ///
    /// # Panics
    /// When the word to be skipped lies outside the plot.
    pub(super) fn of(plot: &'plot Plot, index: usize, workers: usize, skip: Option<u64>) -> Self {
        let pairs = plot.bytes() / LINE / PAIR;
        let [first, end] = [index, index + 1].map(|at| pairs * at / workers * PAIR);
        let skip = skip.map(|word| {
            let word = usize::try_from(word).unwrap_or(usize::MAX);
            assert!(word < plot.words(), "word {word} is outside the plot");
            word
        });
        let own = skip.filter(|word| (first..end).contains(&(word / LINE_WORDS)));
        let (before, skipped, after) = own.map_or((end - first, (0, 0), 0), |word| {
            let line = word / LINE_WORDS;
            (line - first, (word, 1), end - line - 1)
        });
        Self { plot, base: plot.start(), first, before, skipped, after }
    }

    /// Words that a store loop over this share stores.
    pub(super) fn words(&self) -> usize {
        (self.before + self.after) * LINE_WORDS + self.skipped.1 * (LINE_WORDS - 1)
    }

    /// Stores the values of a round.
    #[inline(always)]
    pub(super) fn store(&self, round: u64, stores: Stores, width: Width) {
        let nt = stores == Stores::NonTemporal;
        self.each_run(
            |line, lines| {
                let first = (line * LINE_WORDS) as u64;
                let (at, first) = (self.line(line), first.wrapping_add(round));
                // SAFETY: the lines are the plot's, and callers have asserted the width.
                unsafe { arch::store_counting(at, lines, first, width.bytes(), nt) };
            },
            |word| {
                let (at, value) = (self.word(word), (word as u64).wrapping_add(round));
                if nt { arch::store_word_nt(at, value) } else { arch::store_word(at, value) }
            },
        );
    }

    /// The wrapping sum of every word, the skipped one included.
    #[inline(always)]
    pub(super) fn sum(&self, loads: Loads, width: Width) -> u64 {
        let nt = loads == Loads::NonTemporal;
        let lines = self.before + self.skipped.1 + self.after;
        // SAFETY: the lines are the plot's, and callers have asserted the width.
        unsafe { arch::sum_words(self.line(self.first), lines, width.bytes(), nt) }
    }

    /// Not 0 when a word differs from what the round stored.
    #[inline(always)]
    pub(super) fn differs(&self, round: u64, loads: Loads, width: Width) -> u64 {
        let nt = loads == Loads::NonTemporal;
        let mut all = 0;
        let mut by_word = 0;
        self.each_run(
            |line, lines| {
                let first = (line * LINE_WORDS) as u64;
                let (at, first) = (self.line(line), first.wrapping_add(round));
                // SAFETY: the lines are the plot's, and callers have asserted the width.
                all |= unsafe { arch::differing_words(at, lines, first, width.bytes(), nt) };
            },
            |word| by_word |= arch::load_word(self.word(word)) ^ (word as u64).wrapping_add(round),
        );
        all | by_word
    }

    /// Words that differ from what the round stored: first a fast look at all, then a count.
    pub(super) fn wrong_words(&self, round: u64) -> u64 {
        let width = Width::widest(Stores::Plain);
        if self.differs(round, Loads::Plain, width) == 0 {
            return 0;
        }
        let mut wrong = 0;
        let mut count = |word: usize| {
            wrong += u64::from(self.plot.word(word) != (word as u64).wrapping_add(round));
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
    pub(super) fn whole(&self) -> Option<(*mut u64, u64, u64)> {
        let first = self.first * LINE_WORDS;
        let words = (self.before * LINE_WORDS) as u64;
        (self.skipped.1 == 0).then(|| (self.line(self.first).cast(), words, first as u64))
    }

    #[inline(always)]
    fn line(&self, line: usize) -> *mut u8 {
        self.base.wrapping_add(line * LINE)
    }

    #[inline(always)]
    fn word(&self, word: usize) -> Word<'plot> {
        // SAFETY: the share was made of words of the plot, which is borrowed.
        unsafe { Word::new(self.base.wrapping_add(word * 8).cast()) }
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
