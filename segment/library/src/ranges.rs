//! Which pages of a segment are taken: a bit for each.
//!
//! The one idea: first fit from the top down, so that what is mapped lies close together and large
//! leaves fill up. Nothing here allocates or knows an address; whoever calls holds the lock.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Bits of a word.
const BITS: usize = 64;

/// Pages, some of which are taken.
#[derive(Debug)]
pub(crate) struct Ranges<'w> {
    words: &'w [AtomicU64],
    /// A bit for each word: whether any of its pages is taken, and whether all of them are. Only a
    /// word that is neither empty nor full is looked at, so large ranges cost a few words.
    any: &'w [AtomicU64],
    all: &'w [AtomicU64],
    pages: usize,
    /// All pages from here on are taken.
    top: &'w AtomicUsize,
    /// Pages from the edge of a leaf to the first.
    skew: usize,
}

/// Words that so many pages need.
pub(crate) fn words(pages: usize) -> usize {
    let words = pages.div_ceil(BITS);
    words + 2 * words.div_ceil(BITS)
}

impl<'w> Ranges<'w> {
    /// So many pages, by as many [`words`] as they need.
    pub(crate) fn of(memory: &'w [AtomicU64], pages: usize, top: &'w AtomicUsize) -> Self {
        debug_assert!(memory.len() >= words(pages), "a bit for each page");
        let count = pages.div_ceil(BITS);
        let (words, rest) = memory.split_at(count);
        let (any, all) = rest.split_at(count.div_ceil(BITS));
        Self { words, any, all, pages, top, skew: 0 }
    }

    /// The same, where the first lies so many pages behind the edge of a leaf.
    pub(crate) fn askew(self, skew: usize) -> Self {
        Self { skew, ..self }
    }

    /// Takes so many free pages, the highest that are there; from the edge of a leaf the first of
    /// them is a multiple of `align`.
    pub(crate) fn take(&self, count: usize, align: usize) -> Option<usize> {
        let mut end = self.top.load(Ordering::Relaxed).min(self.pages);
        let mut is_first = true;
        if count == 0 {
            return None;
        }
        loop {
            let last = self.last(end, Look::Free)?;
            if is_first {
                self.top.store(last + 1, Ordering::Relaxed);
                is_first = false;
            }
            let edge = ((last + 1).checked_sub(count)? + self.skew) / align * align;
            let start = edge.checked_sub(self.skew)?;
            match self.last_taken(start, last + 1) {
                None => {
                    self.set(start, start + count, true);
                    return Some(start);
                }
                Some(taken) => end = taken,
            }
        }
    }

    /// Takes these pages, if all of them are free.
    pub(crate) fn take_at(&self, start: usize, end: usize) -> bool {
        let is_free = end <= self.pages && self.last_taken(start, end).is_none();
        if is_free {
            self.set(start, end, true);
        }
        is_free
    }

    /// These pages are taken, whatever they were.
    pub(crate) fn hold(&self, start: usize, end: usize) {
        self.set(start, end.min(self.pages), true);
    }

    /// These pages are free, whatever they were.
    pub(crate) fn free(&self, start: usize, end: usize) {
        self.set(start, end.min(self.pages), false);
        self.top.store(self.top.load(Ordering::Relaxed).max(end), Ordering::Relaxed);
    }

    /// Whether any of these pages is taken.
    pub(crate) fn is_any_taken(&self, start: usize, end: usize) -> bool {
        self.last_taken(start, end.min(self.pages)).is_some()
    }

    /// Whether all of these pages are taken.
    pub(crate) fn are_all_taken(&self, start: usize, end: usize) -> bool {
        end <= self.pages && self.last_in(start, end, Look::Free).is_none()
    }

    /// How many runs of taken pages touch some pages, or lie right beside them.
    pub(crate) fn runs(&self, start: usize, end: usize) -> usize {
        let (mut at, mut runs) = ((end + 1).min(self.pages), 0);
        let start = start.saturating_sub(1);
        while let Some(last) = self.last_in(start, at, Look::Taken) {
            runs += 1;
            match self.last_in(start, last, Look::Free) {
                Some(free) => at = free,
                None => break,
            }
        }
        runs
    }

    fn last_taken(&self, start: usize, end: usize) -> Option<usize> {
        self.last_in(start, end, Look::Taken)
    }

    fn last(&self, end: usize, what: Look) -> Option<usize> {
        self.last_in(0, end, what)
    }

    /// The last page of a kind from `start` to before `end`.
    fn last_in(&self, start: usize, end: usize, what: Look) -> Option<usize> {
        let mut at = end;
        while at > start {
            let nth = (at - 1) / BITS;
            let from = nth * BITS;
            let word = self.word(nth);
            let word = if what == Look::Taken { word } else { !word };
            let word = word & mask(start.saturating_sub(from), at - from);
            if word != 0 {
                return Some(from + last_of(word));
            }
            at = (self.last_word(nth, what)? + 1) * BITS;
        }
        None
    }

    /// The last word before one that has a page of a kind.
    fn last_word(&self, before: usize, what: Look) -> Option<usize> {
        let mut at = before;
        while at > 0 {
            let nth = (at - 1) / BITS;
            let word = match what {
                Look::Taken => self.any[nth].load(Ordering::Relaxed),
                Look::Free => !self.all[nth].load(Ordering::Relaxed),
            };
            let word = word & mask(0, at - nth * BITS);
            if word != 0 {
                return Some(nth * BITS + last_of(word));
            }
            at = nth * BITS;
        }
        None
    }

    fn word(&self, nth: usize) -> u64 {
        let (of, bit) = (nth / BITS, 1 << (nth % BITS));
        if self.any[of].load(Ordering::Relaxed) & bit == 0 {
            0
        } else if self.all[of].load(Ordering::Relaxed) & bit != 0 {
            u64::MAX
        } else {
            self.words[nth].load(Ordering::Relaxed)
        }
    }

    fn set(&self, start: usize, end: usize, taken: bool) {
        let (first, last) = (start.div_ceil(BITS), end / BITS);
        if first > last {
            return self.set_within(first - 1, start, end, taken);
        }
        if start < first * BITS {
            self.set_within(first - 1, start, first * BITS, taken);
        }
        put(self.any, first, last, taken);
        put(self.all, first, last, taken);
        if last * BITS < end {
            self.set_within(last, last * BITS, end, taken);
        }
    }

    /// Sets pages of one word.
    fn set_within(&self, nth: usize, start: usize, end: usize, taken: bool) {
        let mask = mask(start - nth * BITS, end - nth * BITS);
        let was = self.word(nth);
        let word = if taken { was | mask } else { was & !mask };
        self.words[nth].store(word, Ordering::Relaxed);
        put(self.any, nth, nth + 1, word != 0);
        put(self.all, nth, nth + 1, word == u64::MAX);
    }
}

/// Sets the bits from one to before another. Nobody else writes while the lock is held, so no
/// locked operation is needed.
fn put(words: &[AtomicU64], start: usize, end: usize, on: bool) {
    let mut at = start;
    while at < end {
        let nth = at / BITS;
        let from = nth * BITS;
        let mask = mask(at - from, (end - from).min(BITS));
        let was = words[nth].load(Ordering::Relaxed);
        words[nth].store(if on { was | mask } else { was & !mask }, Ordering::Relaxed);
        at = from + BITS;
    }
}

/// The highest bit of a word that is not 0.
fn last_of(word: u64) -> usize {
    BITS - 1 - word.leading_zeros() as usize
}

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Taken,
    Free,
}

/// The bits from one to before another.
fn mask(from: usize, to: usize) -> u64 {
    let below = |bit: usize| if bit >= BITS { u64::MAX } else { (1 << bit) - 1 };
    below(to) & !below(from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// More than a word of words.
    const PAGES: usize = 4500;

    struct Own {
        words: Vec<AtomicU64>,
        top: AtomicUsize,
    }

    impl Own {
        fn new() -> Self {
            let words = (0..words(PAGES)).map(|_| AtomicU64::new(0)).collect();
            Self { words, top: AtomicUsize::new(PAGES) }
        }

        fn ranges(&self) -> Ranges<'_> {
            Ranges::of(&self.words, PAGES, &self.top)
        }
    }

    #[derive(Debug, Clone)]
    enum Do {
        Take { count: usize, align: usize },
        TakeAt { start: usize, end: usize },
        Hold { start: usize, end: usize },
        Free { start: usize, end: usize },
    }

    /// The same, page by page.
    fn model(pages: &mut [bool], act: &Do) -> Option<usize> {
        match *act {
            Do::Take { count, align } => {
                let starts = (0..=PAGES.checked_sub(count)?).rev().filter(|at| at % align == 0);
                let fits = |at: &usize| pages[*at..at + count].iter().all(|taken| !taken);
                // The highest end decides, which is the highest start.
                let start = starts.into_iter().find(fits).filter(|_| count > 0)?;
                pages[start..start + count].fill(true);
                Some(start)
            }
            Do::TakeAt { start, end } => {
                let is_free = pages[start..end].iter().all(|taken| !taken);
                if is_free {
                    pages[start..end].fill(true);
                }
                is_free.then_some(start)
            }
            Do::Hold { start, end } => {
                pages[start..end].fill(true);
                None
            }
            Do::Free { start, end } => {
                pages[start..end].fill(false);
                None
            }
        }
    }

    fn acts() -> impl Strategy<Value = Do> {
        let range = || (0..PAGES, 0..PAGES).prop_map(|(a, b)| (a.min(b), a.max(b)));
        let count = prop_oneof![0..80_usize, 0..PAGES];
        prop_oneof![
            4 => (count, prop_oneof![Just(1_usize), Just(2), Just(16), Just(64)])
                .prop_map(|(count, align)| Do::Take { count, align }),
            1 => range().prop_map(|(start, end)| Do::TakeAt { start, end }),
            1 => range().prop_map(|(start, end)| Do::Hold { start, end }),
            3 => range().prop_map(|(start, end)| Do::Free { start, end }),
        ]
    }

    proptest! {
        #[test]
        fn pages_are_taken_and_given_back_as_a_plain_list_would(
            acts in prop::collection::vec(acts(), 1..80),
        ) {
            let own = Own::new();
            let ranges = own.ranges();
            let mut pages = [false; PAGES];
            for act in &acts {
                let came = match *act {
                    Do::Take { count, align } => ranges.take(count, align),
                    Do::TakeAt { start, end } => ranges.take_at(start, end).then_some(start),
                    Do::Hold { start, end } => {
                        ranges.hold(start, end);
                        None
                    }
                    Do::Free { start, end } => {
                        ranges.free(start, end);
                        None
                    }
                };
                prop_assert_eq!(came, model(&mut pages, act), "{:?}", act);
                for word in (0..PAGES).step_by(BITS) {
                    let end = (word + BITS).min(PAGES);
                    let model = &pages[word..end];
                    prop_assert_eq!(ranges.is_any_taken(word, end), model.contains(&true));
                    prop_assert_eq!(ranges.are_all_taken(word, end), !model.contains(&false));
                }
                prop_assert_eq!(ranges.are_all_taken(3, 4400), !pages[3..4400].contains(&false));
            }
            for (page, taken) in pages.iter().enumerate() {
                prop_assert_eq!(ranges.is_any_taken(page, page + 1), *taken, "{}", page);
            }
        }
    }

    proptest! {
        #[test]
        fn runs_that_touch_pages_are_counted(
            pages in prop::collection::vec(any::<bool>(), PAGES),
            (a, b) in (0..PAGES, 0..PAGES),
        ) {
            let own = Own::new();
            let ranges = own.ranges();
            for (page, _) in pages.iter().enumerate().filter(|(_, taken)| **taken) {
                ranges.hold(page, page + 1);
            }
            let (start, end) = (a.min(b), a.max(b));
            let window = &pages[start.saturating_sub(1)..(end + 1).min(PAGES)];
            let runs = window.split(|taken| !taken).filter(|run| !run.is_empty()).count();
            prop_assert_eq!(ranges.runs(start, end), runs);
        }

        #[test]
        fn the_edge_of_a_leaf_counts_and_not_the_first_page(
            skew in 0..64_usize,
            counts in prop::collection::vec(1..40_usize, 1..20),
        ) {
            let own = Own::new();
            let ranges = own.ranges().askew(skew);
            for count in counts {
                let Some(start) = ranges.take(count, 16) else { break };
                prop_assert!((start + skew).is_multiple_of(16), "{} {}", start, skew);
                prop_assert!(start + count <= PAGES);
            }
        }
    }

    #[test]
    fn nothing_and_more_than_there_is_are_not_taken() {
        let own = Own::new();
        let ranges = own.ranges();
        assert_eq!([ranges.take(0, 1), ranges.take(PAGES + 1, 1)], [None, None]);
        assert_eq!(ranges.take(PAGES, 1), Some(0));
        assert_eq!(ranges.take(1, 1), None);
        ranges.free(4200, 4201);
        assert_eq!([ranges.take(1, 1), ranges.take(1, 1)], [Some(4200), None]);
    }
}
