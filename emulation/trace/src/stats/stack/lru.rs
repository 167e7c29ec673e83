//! An LRU stack that says how deep a page lay.
//!
//! The one idea: every access takes the next place on a line, and a page keeps only its latest, so
//! its depth is the number of taken places after its own. Places are bits; a Fenwick tree counts
//! them by words, for the depths that are too far to count bit by bit. When the line is full, the
//! taken places move together, so that it needs no more than a few words for each page.

/// Words that are counted one by one before the tree is asked.
const NEAR_WORDS: usize = 4;
/// Places of the shortest line.
const PLACES_MIN: usize = 1024;
const WORD: usize = u64::BITS as usize;

/// The stack. Pages have numbers that count up from 0.
#[derive(Debug)]
pub(super) struct Lru {
    /// Which places are taken.
    taken: Vec<u64>,
    /// Fenwick tree over the words of `taken`: entry `i` counts the words below `i + 1` that its
    /// lowest bit covers.
    tree: Vec<usize>,
    /// The page that took each place last.
    owner: Vec<usize>,
    /// The place of each page.
    place: Vec<usize>,
    next: usize,
}

impl Lru {
    pub(super) fn new() -> Self {
        Self { taken: Vec::new(), tree: Vec::new(), owner: Vec::new(), place: Vec::new(), next: 0 }
    }

    /// Moves a page to the top; returns how many pages lay above it. A page that has the next
    /// number is new, and lay nowhere.
    pub(super) fn touch(&mut self, page: usize) -> Option<usize> {
        if self.next == self.owner.len() {
            self.renumber();
        }
        let next = self.next;
        self.next += 1;
        let above = if page == self.place.len() {
            self.place.push(next);
            self.add(next / WORD, 1);
            None
        } else {
            let place = std::mem::replace(&mut self.place[page], next);
            let above = self.above(place, next);
            self.taken[place / WORD] &= !(1 << (place % WORD));
            if place / WORD != next / WORD {
                self.add(place / WORD, -1);
                self.add(next / WORD, 1);
            }
            Some(above)
        };
        self.taken[next / WORD] |= 1 << (next % WORD);
        self.owner[next] = page;
        above
    }

    /// Every page, from the bottom to the top.
    pub(super) fn bottom_up(&self) -> Vec<usize> {
        let is_taken = |place: &usize| self.taken[place / WORD] >> (place % WORD) & 1 == 1;
        let places = (0..self.next).filter(is_taken);
        places.map(|place| self.owner[place]).collect()
    }

    /// Taken places after `place`; none is at or after `next`.
    fn above(&self, place: usize, next: usize) -> usize {
        let word = place / WORD;
        let ones = |word: u64| word.count_ones() as usize;
        let here = self.taken[word] >> (place % WORD) >> 1;
        if next / WORD - word <= NEAR_WORDS {
            let near = self.taken[word + 1..=next / WORD].iter();
            return ones(here) + near.map(|taken| ones(*taken)).sum::<usize>();
        }
        ones(here) + self.place.len() - self.count(word + 1)
    }

    /// Taken places in the first `words` words.
    fn count(&self, words: usize) -> usize {
        let (mut at, mut sum) = (words, 0);
        while at > 0 {
            sum += self.tree[at - 1];
            at &= at - 1;
        }
        sum
    }

    /// Counts so many places more in a word.
    fn add(&mut self, word: usize, count: isize) {
        let mut at = word + 1;
        while let Some(node) = self.tree.get_mut(at - 1) {
            *node = node.wrapping_add_signed(count);
            at += at & at.wrapping_neg();
        }
    }

    /// Moves the taken places together, on a line that is at most half full.
    fn renumber(&mut self) {
        let mut next = 0;
        for word in 0..self.taken.len() {
            let mut taken = self.taken[word];
            while taken != 0 {
                let page = self.owner[word * WORD + taken.trailing_zeros() as usize];
                taken &= taken - 1;
                self.owner[next] = page;
                self.place[page] = next;
                next += 1;
            }
        }
        self.next = next;
        let places = (2 * next).max(PLACES_MIN).next_multiple_of(WORD);
        self.owner.resize(places.max(self.owner.len()), 0);
        let words = self.owner.len() / WORD;
        self.taken.clear();
        self.taken.resize(next / WORD, u64::MAX);
        self.taken.resize(words, 0);
        if !next.is_multiple_of(WORD) {
            self.taken[next / WORD] = (1 << (next % WORD)) - 1;
        }
        self.tree.clear();
        self.tree.extend(self.taken.iter().map(|taken| taken.count_ones() as usize));
        for at in 1..=words {
            let parent = at + (at & at.wrapping_neg());
            if parent <= words {
                self.tree[parent - 1] += self.tree[at - 1];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stack as the textbook has it.
    #[derive(Default)]
    struct List(Vec<usize>);

    impl List {
        fn touch(&mut self, page: usize) -> Option<usize> {
            let depth = self.0.iter().position(|held| *held == page);
            if let Some(depth) = depth {
                self.0.remove(depth);
            }
            self.0.insert(0, page);
            depth
        }
    }

    /// Accesses to `pages` pages, new ones in the order of their numbers; mostly near the top.
    fn compare(pages: usize, accesses: usize, far_one_in: u64) {
        let (mut lru, mut list) = (Lru::new(), List::default());
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % below as u64).unwrap()
        };
        for access in 0..accesses {
            let known = list.0.len();
            let page = if known < pages && (known == 0 || access % 3 == 0) {
                known
            } else if (random(100) as u64).is_multiple_of(far_one_in) {
                random(known)
            } else {
                list.0[random(known.min(8))]
            };
            assert_eq!(lru.touch(page), list.touch(page), "access {access}");
        }
    }

    #[test]
    fn depths_are_those_of_a_list() {
        compare(1, 5_000, 1);
        compare(63, 20_000, 2);
        compare(700, 20_000, 1);
        compare(3_000, 20_000, 3);
    }
}
