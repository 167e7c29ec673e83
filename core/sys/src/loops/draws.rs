#![expect(unsafe_code, reason = "the measured loop reaches memory through raw pointers")]
//! Random accesses to base pages, as many as were fixed beforehand: the loop of a published
//! micro-benchmark of tiered memory, and the same draws once more off the clock.
//!
//! The one idea: who draws has a word of its own in every page, so that what all its stores leave
//! behind and what its loads add up to follow from the seed alone. [`Draws::replay`] says what they
//! must be, and thousands of millions of accesses are proven by comparing.
//!
//! Rules: (1) the loop is a function of primitives, never inlined into its caller; (2) a drawn page
//! is below the number of pages, and the word lies in a page: both follow from [`Draws::of`], and
//! the area's size is asserted before the clock starts; (3) every access is volatile.

use crate::{Area, memory::word_at};

const BASE_PAGE: usize = 4096;
const LINE: usize = 64;

/// Those who draw that have a word of their own in a page: the words of a page.
pub const DRAWERS_MAX: usize = BASE_PAGE / 8;

/// What one thread accesses, before it does.
#[derive(Debug, Clone, Copy)]
pub struct Draws {
    state: u64,
    pages: u32,
    accesses: u64,
    slot: usize,
    stores: bool,
    waits: bool,
}

impl Draws {
    /// `accesses` accesses to `pages` pages by thread `thread`; every second one is a store, or
    /// none. Threads have lines of their own as long as there are some.
    ///
    /// # Panics
    /// When there is no page, or a thread has no word.
    pub fn of(seed: u64, thread: usize, pages: u32, accesses: u64, stores: bool) -> Self {
        assert!(pages > 0 && thread < DRAWERS_MAX, "{pages} pages, thread {thread}");
        let lines = BASE_PAGE / LINE;
        let slot = thread % lines * LINE + thread / lines * 8;
        // Neighbouring seeds start far from each other.
        let mut state = ((seed << 16) | thread as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        state ^= state >> 31;
        let slot = if stores { slot } else { 0 };
        Self { state, pages, accesses, slot, stores, waits: false }
    }

    /// The same, but that the next page is drawn with what the last load found: none can begin
    /// before the one in front of it has ended. Every second access is a store.
    ///
    /// # Panics
    /// Where nothing is stored.
    #[must_use]
    pub fn waiting(self) -> Self {
        assert!(self.stores, "words that nobody stores to are no draw");
        Self { waits: true, ..self }
    }

    /// The byte of its word in each page.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// The same with so many accesses less: a lie.
    #[must_use]
    pub fn fewer(self, accesses: u64) -> Self {
        Self { accesses: self.accesses.saturating_sub(accesses), ..self }
    }

    /// What the loads add up to, and what the stores leave in the words of all pages.
    ///
    /// # Panics
    /// When there is not one word for each page.
    pub fn replay(&self, words: &mut [u64]) -> u64 {
        assert_eq!(words.len(), self.pages as usize, "a word for each page");
        let (mut state, mut sum) = (self.state, 0_u64);
        for nth in 0..self.accesses {
            let page = &mut words[draw(&mut state, self.pages)];
            if self.stores && nth % 2 == 1 {
                *page = nth;
            } else {
                sum = mix(sum, *page);
                state = state.wrapping_add(if self.waits { *page } else { 0 });
            }
        }
        sum
    }
}

impl Area {
    /// Makes the accesses; what the loads add up to.
    ///
    /// # Panics
    /// When the area is smaller than the pages, or lies in pieces.
    pub fn draw(&self, draws: &Draws) -> u64 {
        let (layout, bytes) = (self.layout(), draws.pages as usize * BASE_PAGE);
        assert!(layout.windows == 1 && layout.bytes() >= bytes, "pages outside the area");
        let base = self.base_ptr().wrapping_add(draws.slot);
        if draws.waits {
            // SAFETY: so many pages are mapped at the base, writable, while `self` is borrowed.
            unsafe { one_by_one(base, draws.state, draws.pages, draws.accesses) }
        } else if draws.stores {
            // SAFETY: so many pages are mapped at the base, writable, while `self` is borrowed.
            unsafe { both(base, draws.state, draws.pages, draws.accesses) }
        } else {
            // SAFETY: as above.
            unsafe { loads(base, draws.state, draws.pages, draws.accesses) }
        }
    }
}

/// The next page.
#[inline(always)]
fn draw(state: &mut u64, pages: u32) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (((*state >> 32) * u64::from(pages)) >> 32) as usize
}

/// A sum in which the order counts.
#[inline(always)]
fn mix(sum: u64, word: u64) -> u64 {
    sum.rotate_left(1).wrapping_add(word)
}

/// # Safety
/// `pages` pages are mapped from the page of `base` on, which is aligned to 8, and writable.
#[inline(never)]
unsafe fn both(base: *mut u8, mut state: u64, pages: u32, accesses: u64) -> u64 {
    let (mut sum, mut nth) = (0_u64, 0_u64);
    while nth < accesses {
        let at = word_at(base, draw(&mut state, pages) * BASE_PAGE);
        // SAFETY: the page is one of those that the caller answers for.
        sum = mix(sum, unsafe { at.read_volatile() });
        if nth + 1 < accesses {
            let at = word_at(base, draw(&mut state, pages) * BASE_PAGE);
            // SAFETY: as above.
            unsafe { at.write_volatile(nth + 1) };
        }
        nth += 2;
    }
    sum
}

/// # Safety
/// As [`both`].
#[inline(never)]
unsafe fn one_by_one(base: *mut u8, mut state: u64, pages: u32, accesses: u64) -> u64 {
    let (mut sum, mut nth) = (0_u64, 0_u64);
    while nth < accesses {
        let at = word_at(base, draw(&mut state, pages) * BASE_PAGE);
        // SAFETY: the page is one of those that the caller answers for.
        let word = unsafe { at.read_volatile() };
        (sum, state) = (mix(sum, word), state.wrapping_add(word));
        if nth + 1 < accesses {
            let at = word_at(base, draw(&mut state, pages) * BASE_PAGE);
            // SAFETY: as above.
            unsafe { at.write_volatile(nth + 1) };
        }
        nth += 2;
    }
    sum
}

/// # Safety
/// As [`both`], but that nothing is stored.
#[inline(never)]
unsafe fn loads(base: *mut u8, mut state: u64, pages: u32, accesses: u64) -> u64 {
    let mut sum = 0_u64;
    for _ in 0..accesses {
        let at = word_at(base, draw(&mut state, pages) * BASE_PAGE);
        // SAFETY: the page is one of those that the caller answers for.
        sum = mix(sum, unsafe { at.read_volatile() });
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Backing, Layout};

    const PAGES: u32 = 64;

    fn area() -> Area {
        let layout = Layout::contiguous(PAGES as usize * BASE_PAGE);
        Area::mapped(layout, Backing::Anonymous, 2 << 20).unwrap()
    }

    #[test]
    fn memory_holds_what_a_replay_says_and_one_access_less_shows() {
        let area = area();
        let both = |thread| Draws::of(7, thread, PAGES, 1001, true);
        let loads = Draws::of(7, 2, PAGES, 1001, false);
        for (thread, draws) in [0, 1, 63, 511]
            .map(|thread| (thread, both(thread)))
            .into_iter()
            .chain([(2, loads), (3, both(3).waiting())])
        {
            let stores = draws.stores;
            let mut words = vec![0; PAGES as usize];
            if !stores {
                let all = words.iter_mut().enumerate();
                all.for_each(|(page, word)| *word = area.word(page * BASE_PAGE));
            }
            let sum = area.draw(&draws);
            assert_eq!(sum, draws.replay(&mut words), "thread {thread}");
            let found = |page: usize| area.word(page * BASE_PAGE + draws.slot());
            assert!((0..PAGES as usize).all(|page| found(page) == words[page]), "thread {thread}");
            let mut left = vec![0; PAGES as usize];
            assert!(draws.fewer(2).replay(&mut left) != sum || left != words, "thread {thread}");
        }
    }

    #[test]
    fn every_thread_has_a_word_of_its_own_and_its_own_line_while_there_are_some() {
        let slots: Vec<usize> =
            (0..DRAWERS_MAX).map(|thread| Draws::of(1, thread, 1, 0, true).slot()).collect();
        let mut sorted = slots.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), DRAWERS_MAX);
        assert!(slots.iter().all(|slot| slot + 8 <= BASE_PAGE && slot % 8 == 0));
        let mut lines: Vec<usize> = slots[..64].iter().map(|slot| slot / LINE).collect();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), 64);
    }

    #[test]
    fn pages_are_drawn_alike_and_threads_draw_others() {
        let mut counts = [0_u32; 16];
        let mut state = Draws::of(3, 0, 16, 0, true).state;
        (0..160_000).for_each(|_| counts[draw(&mut state, 16)] += 1);
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 500), "{counts:?}");
        let state = |seed, thread| Draws::of(seed, thread, 16, 0, true).state;
        assert!(state(3, 0) != state(3, 1) && state(3, 0) != state(4, 0));
    }
}
