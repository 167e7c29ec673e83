#![expect(unsafe_code, reason = "a chain of addresses in memory is followed by raw loads")]
//! A chain through memory: each word holds the address of the next one, so that a load cannot begin
//! before the one in front of it has ended. What a turn takes is the way to the data, translation
//! included.
//!
//! Rules: (1) a [`Chain`] owns its area, and hands it to nobody who could store to it: each word on
//! the chain holds the address of another one, as [`Chain::lay`] wrote it; (2) the walk is a
//! function of primitives that is never inlined; it allocates nothing, calls nobody and branches on
//! nothing but its count; (3) every access is volatile.

use crate::{
    Area, SysError,
    memory::{Ranges, Residency, Scanner, word_at},
};

/// A closed chain through the memory of an area.
#[derive(Debug)]
pub struct Chain {
    area: Area,
    /// The words where the walks began, and those that they will load next.
    first: Vec<usize>,
    at: Vec<usize>,
    length: u64,
}

/// What a lap around a chain found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lap {
    /// Blocks of 4 KiB with a word of the chain, each counted once.
    pub blocks: u64,
    /// Whether it ended where it began.
    pub is_closed: bool,
}

const BLOCK: usize = 4096;

impl Chain {
    /// Lays a chain through mapped memory: from each of the places to the next, and from the last
    /// to the first. A place is a byte of the windows laid end to end. So many walks go around it
    /// at once, as far from each other as may be.
    ///
    /// # Panics
    /// When there is no place, or one is no aligned word of the area, or nobody walks.
    pub fn lay(area: Area, places: &[usize], walks: usize) -> Self {
        let (layout, base) = (area.layout(), area.base_ptr());
        let word = |place: usize| {
            let is_inside = place.is_multiple_of(8) && place < layout.bytes();
            assert!(is_inside, "{place} is no word of the area");
            word_at(base, layout.offset(place))
        };
        assert!(!places.is_empty() && walks > 0, "a chain has a word, and somebody walks");
        let next = places.iter().skip(1).chain(places.first());
        for (from, to) in places.iter().zip(next) {
            let to = word(*to).expose_provenance() as u64;
            // SAFETY: an aligned word of a window (asserted), which is mapped and writable.
            unsafe { word(*from).write_volatile(to) };
        }
        let start = |walk: usize| word(places[walk * places.len() / walks]).expose_provenance();
        let first: Vec<usize> = (0..walks).map(start).collect();
        Self { area, at: first.clone(), first, length: places.len() as u64 }
    }

    /// The words on it.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// So many loads of each walk, from where the last ones ended: the measured loop.
    ///
    /// # Panics
    /// When it is neither one walk nor eight: a loop is made for each number.
    pub fn walk(&mut self, loads: u64) {
        if let [at] = self.at.as_mut_slice() {
            *at = follow(*at, loads);
            return;
        }
        let walks = self.at.len();
        let at: &mut [usize; 8] = self.at.as_mut_slice().try_into().unwrap_or_else(|_| {
            panic!("no loop goes {walks} ways at once");
        });
        *at = follow_all(*at, loads);
    }

    /// Whether the next load is that of the first word, as after any number of whole laps.
    pub fn is_home(&self) -> bool {
        self.at == self.first
    }

    /// One lap, to see where it leads. Not for a clock.
    pub fn lap(&self) -> Lap {
        let blocks = (self.area.end() - self.area.base()).div_ceil(BLOCK);
        let mut seen = vec![false; blocks];
        let mut at = self.first[0];
        for _ in 0..self.length {
            seen[(at - self.area.base()) / BLOCK] = true;
            at = follow(at, 1);
        }
        let blocks = seen.iter().filter(|seen| **seen).count() as u64;
        Lap { blocks, is_closed: at == self.first[0] }
    }

    /// The addresses of its memory, to be asked about.
    pub fn ranges(&self) -> Ranges {
        self.area.ranges()
    }

    /// How its memory is mapped, by the page table.
    ///
    /// # Errors
    /// When the page table cannot be read.
    pub fn residency(&self, scanner: &Scanner) -> Result<Residency, SysError> {
        scanner.scan(&self.area)
    }
}

/// Follows a chain from several words of it at once: called by a [`Chain`] alone. None waits for
/// another.
#[inline(never)]
fn follow_all<const WALKS: usize>(mut at: [usize; WALKS], loads: u64) -> [usize; WALKS] {
    for _ in 0..loads {
        for at in &mut at {
            let word = std::ptr::with_exposed_provenance::<usize>(*at);
            // SAFETY: a word of the chain, which holds the address of another one (rule 1).
            *at = unsafe { word.read_volatile() };
        }
    }
    at
}

/// Follows a chain from a word of it: called by a [`Chain`] alone.
#[inline(never)]
fn follow(from: usize, loads: u64) -> usize {
    let mut at = from;
    for _ in 0..loads {
        let word = std::ptr::with_exposed_provenance::<usize>(at);
        // SAFETY: a word of the chain, which holds the address of another one (rule 1).
        at = unsafe { word.read_volatile() };
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Backing, Layout};

    fn area(layout: Layout) -> Area {
        Area::mapped(layout, Backing::Anonymous, 2 << 20).unwrap()
    }

    #[test]
    fn a_walk_goes_from_place_to_place_and_comes_home() {
        let places = [4096 + 64, 8, 3 * 4096 + 8, 2 * 4096];
        for layout in [
            Layout::contiguous(4 * BLOCK),
            Layout { window: 2 * BLOCK, stride: 8 * BLOCK, windows: 2 },
        ] {
            let mut chain = Chain::lay(area(layout), &places, 1);
            assert_eq!(chain.lap(), Lap { blocks: 4, is_closed: true });
            let mut seen = Vec::new();
            for _ in 0..4 {
                seen.push(layout.position(chain.at[0] - chain.area.base()));
                chain.walk(1);
            }
            assert_eq!(seen, places);
            assert!(chain.is_home());
            chain.walk(4 * 1000 + 1);
            assert!(!chain.is_home());
            chain.walk(3);
            assert!(chain.is_home());
        }
    }

    #[test]
    fn eight_walks_begin_apart_and_each_comes_home() {
        let places: Vec<usize> = (0..16).map(|block| block * BLOCK).collect();
        let mut chain = Chain::lay(area(Layout::contiguous(16 * BLOCK)), &places, 8);
        let at = |chain: &Chain| -> Vec<usize> {
            chain.at.iter().map(|at| (at - chain.area.base()) / BLOCK).collect()
        };
        assert_eq!(at(&chain), [0, 2, 4, 6, 8, 10, 12, 14]);
        chain.walk(3);
        assert_eq!(at(&chain), [3, 5, 7, 9, 11, 13, 15, 1]);
        assert!(!chain.is_home());
        chain.walk(13);
        assert!(chain.is_home());
        assert_eq!(chain.lap(), Lap { blocks: 16, is_closed: true });
    }

    #[test]
    fn a_lap_that_leaves_blocks_out_says_so() {
        let mut chain = Chain::lay(area(Layout::contiguous(4 * BLOCK)), &[0, 64, BLOCK], 1);
        assert_eq!(chain.lap(), Lap { blocks: 2, is_closed: true });
        // Two chains in place of one: what a walk would not notice.
        chain.length = 2;
        assert_eq!(chain.lap(), Lap { blocks: 1, is_closed: false });
    }

    #[test]
    #[should_panic(expected = "no word of the area")]
    fn a_place_outside_the_area_is_refused() {
        Chain::lay(area(Layout::contiguous(BLOCK)), &[0, BLOCK], 1);
    }
}
