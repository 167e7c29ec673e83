//! After how many other pages each page is used again, by class of memory and for several page
//! sizes at once.
//!
//! The one idea is Mattson's, as in [`super::stack`]: a fully associative LRU cache of `n` pages
//! misses where `n` others or more were used since. Here each use also has a class, that of its
//! base page, which somebody says once, when the page is first used. Fetches, where the trace tells
//! them apart ([`FETCHED`]), have a class and stacks of their own, as processors have TLBs for
//! them.

use std::convert::Infallible;

use super::stack::Recency;
use crate::op::{FETCHED, Visit};

/// Page shifts that are looked at: 4k, 64k and 2m.
pub const REUSE_SHIFTS: [u32; 3] = [12, 16, 21];
/// Distances below so many have a bucket each, and so many buckets has an octave of the others.
const STEPS: u64 = 8;

/// Uses of pages of one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reused {
    /// Pages are `2^page_shift` bytes.
    pub page_shift: u32,
    /// First uses of a page, by class.
    pub first: Vec<u64>,
    /// Distances, rising, and how many uses of each class came after so many other pages, or more
    /// but fewer than a ninth more.
    pub again: Vec<(u64, Vec<u64>)>,
}

/// Sees every operation; `class_of` is told an address of each base page of data once.
#[derive(Debug)]
pub struct Uses<F> {
    class_of: F,
    /// How many classes of data there are; that of fetches follows.
    classes: usize,
    /// The class of each base page, by its number.
    known: Vec<usize>,
    data: Stream,
    code: Stream,
}

impl<F: FnMut(u64) -> usize> Uses<F> {
    /// Nothing was used yet; `class_of` says numbers below `classes`.
    pub fn new(classes: usize, class_of: F) -> Self {
        let known = Vec::new();
        let [data, code] = [(); 2].map(|()| Stream::new(classes + 1));
        Self { class_of, classes, known, data, code }
    }

    /// What was used, the smallest pages first; the last class is fetches.
    pub fn finish(self) -> Vec<Reused> {
        let Self { data, code, .. } = self;
        let pairs = data.finish().into_iter().zip(code.finish());
        pairs.map(|(data, code)| data.plus(code)).collect()
    }

    #[inline]
    fn access(&mut self, addr: u64) {
        if addr & FETCHED != 0 {
            if !self.code.stays(addr) {
                let class = self.classes;
                self.code.turn(addr, |_, _| class);
            }
        } else if !self.data.stays(addr) {
            let Self { class_of, classes, known, data, .. } = self;
            data.turn(addr, |number, addr| {
                if number == known.len() {
                    // A class that is none is the last one of data.
                    known.push(class_of(addr).min(classes.saturating_sub(1)));
                }
                known[number]
            });
        }
    }
}

impl<F: FnMut(u64) -> usize> Visit for Uses<F> {
    type Stop = Infallible;

    #[inline]
    fn load<const N: usize>(&mut self, addr: u64) -> Result<(), Infallible> {
        self.access(addr);
        Ok(())
    }

    #[inline]
    fn store<const N: usize>(&mut self, addr: u64, _: [u8; N]) -> Result<(), Infallible> {
        self.access(addr);
        Ok(())
    }
}

/// Data, or code.
#[derive(Debug)]
struct Stream {
    /// The base page that was used last, and its class.
    last: Option<(u64, usize)>,
    /// Uses of the base page that was used last, by class.
    stayed: Vec<u64>,
    sizes: [Pages; REUSE_SHIFTS.len()],
}

/// The pages of one size.
#[derive(Debug)]
struct Pages {
    shift: u32,
    recency: Recency,
    first: Vec<u64>,
    /// Uses by bucket and class.
    again: Vec<Vec<u64>>,
}

impl Stream {
    fn new(classes: usize) -> Self {
        let pages = |shift| {
            let first = vec![0; classes];
            Pages { shift, recency: Recency::new(), first, again: vec![vec![0; classes]] }
        };
        Self { last: None, stayed: vec![0; classes], sizes: REUSE_SHIFTS.map(pages) }
    }

    /// Counts a use of the base page that was used last; `false` of another.
    #[inline]
    fn stays(&mut self, addr: u64) -> bool {
        match self.last {
            Some((page, class)) if page == addr >> REUSE_SHIFTS[0] => {
                self.stayed[class] += 1;
                true
            }
            _ => false,
        }
    }

    /// Counts a use of another base page; its class follows from its number.
    fn turn(&mut self, addr: u64, class_of: impl FnOnce(usize, u64) -> usize) {
        let [base, larger @ ..] = &mut self.sizes;
        let (number, distance) = base.touch(addr);
        let class = class_of(number, addr);
        base.count(class, distance);
        for pages in larger {
            let (_, distance) = pages.touch(addr);
            pages.count(class, distance);
        }
        self.last = Some((addr >> REUSE_SHIFTS[0], class));
    }

    fn finish(self) -> Vec<Reused> {
        let Self { stayed, sizes, .. } = self;
        let reused = |mut pages: Pages| {
            pages.again[0].iter_mut().zip(&stayed).for_each(|(count, more)| *count += more);
            let rows = pages.again.into_iter().enumerate();
            let again = rows.map(|(at, counts)| (least(at), counts)).collect();
            Reused { page_shift: pages.shift, first: pages.first, again }
        };
        sizes.into_iter().map(reused).collect()
    }
}

impl Pages {
    fn touch(&mut self, addr: u64) -> (usize, Option<usize>) {
        self.recency.touch(addr >> self.shift)
    }

    fn count(&mut self, class: usize, distance: Option<usize>) {
        let Some(distance) = distance else {
            self.first[class] += 1;
            return;
        };
        let at = bucket(distance as u64);
        if at >= self.again.len() {
            self.again.resize(at + 1, vec![0; self.first.len()]);
        }
        self.again[at][class] += 1;
    }
}

impl Reused {
    fn plus(self, other: Self) -> Self {
        let add = |mut a: Vec<u64>, b: &[u64]| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            a
        };
        let [long, short] = if self.again.len() < other.again.len() {
            [other.again, self.again]
        } else {
            [self.again, other.again]
        };
        let rows = long.into_iter().enumerate().map(|(at, (distance, counts))| {
            let more = short.get(at).map_or(&[][..], |(_, counts)| counts);
            (distance, add(counts, more))
        });
        let again = rows.filter(|(_, counts)| counts.iter().any(|count| *count > 0)).collect();
        Self { page_shift: self.page_shift, first: add(self.first, &other.first), again }
    }
}

/// Where a distance is counted.
fn bucket(distance: u64) -> usize {
    let octave = distance.max(STEPS).ilog2() - STEPS.ilog2();
    usize::try_from(u64::from(octave) * STEPS + (distance >> octave)).unwrap_or(usize::MAX)
}

/// The least distance that is counted there.
fn least(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let octave = (bucket / STEPS).saturating_sub(1);
    (bucket - octave * STEPS) << octave
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_distance_lies_in_its_bucket_and_powers_of_two_begin_one() {
        for distance in (0..5000).chain([1 << 20, (1 << 20) + 1, (1 << 40) - 1]) {
            let at = bucket(distance);
            assert!(least(at) <= distance && distance < least(at + 1), "{distance}");
        }
        for exact in (0..16).chain([64, 72, 512, 1024, 1536, 2048, 3072, 4096]) {
            assert_eq!(least(bucket(exact)), exact);
        }
    }
}
