//! How densely memory is touched: what larger pages would have made of the same touches.
//!
//! The one idea: for each 2 MiB of address space one bit a base page says that it had its first
//! touch. How many pages of any size between would have come, and how much memory nobody asked for
//! would have come with them, is counted in those bits. Only blocks that lie in their mapping as a
//! whole count for a size: no larger page fits elsewhere.
//!
//! Memory is bounded by what the program touches: 160 bytes for each 2 MiB, until the process ends.

use std::collections::{BTreeMap, HashMap};

use super::{kind::Place, places::Area};

/// Base pages in a block.
const PAGES: u64 = 512;
/// Sizes that are counted, in base pages: 16k to 2m.
pub const SIZES: [u64; 8] = [4, 8, 16, 32, 64, 128, 256, 512];

/// The touched pages of every watched process.
#[derive(Debug, Default)]
pub struct Blocks {
    blocks: HashMap<(u32, u64), Block>,
    ended: BTreeMap<Place, Density>,
}

#[derive(Debug, Clone)]
struct Block {
    place: Place,
    start: u64,
    end: u64,
    /// First touches that took a base page.
    faults: u64,
    touched: [u64; 8],
    zero: [u64; 8],
    seen: [u64; 8],
}

/// What was touched in one kind of place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Density {
    /// First touches that took a base page.
    pub faults: u64,
    /// Base pages with one or more of them.
    pub pages: u64,
    /// For each of [`SIZES`]: what is in blocks of that size.
    pub by_size: [Whole; SIZES.len()],
}

/// What is in blocks of one size that lie in their mapping as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Whole {
    /// Blocks that were touched.
    pub blocks: u64,
    /// First touches in them.
    pub faults: u64,
    /// Base pages touched in them.
    pub pages: u64,
    /// Blocks times how often their pages came: the faults that this size would take.
    pub waves: u64,
}

impl Blocks {
    /// What was seen of a page: whether it is the zero page, and whether it faulted at all.
    pub fn page(&self, pid: u32, address: u64) -> (bool, bool) {
        let (word, bit) = position(address);
        self.blocks.get(&(pid, address >> 21)).map_or((false, false), |block| {
            (block.zero[word] >> bit & 1 == 1, block.seen[word] >> bit & 1 == 1)
        })
    }

    /// A fault happened on a page; `first` if it took a base page for its first touch, `zero` if
    /// it is the zero page now.
    pub fn add(&mut self, pid: u32, address: u64, area: Option<&Area>, first: bool, zero: bool) {
        let (word, bit) = position(address);
        let block = self.blocks.entry((pid, address >> 21)).or_insert_with(|| Block {
            place: Place::Unknown,
            start: 0,
            end: 0,
            faults: 0,
            touched: [0; 8],
            zero: [0; 8],
            seen: [0; 8],
        });
        if let Some(area) = area {
            (block.place, block.start, block.end) = (area.place, area.start, area.end);
        }
        block.seen[word] |= 1 << bit;
        block.zero[word] &= !(1 << bit);
        block.zero[word] |= u64::from(zero) << bit;
        if first {
            block.faults += 1;
            block.touched[word] |= 1 << bit;
        }
    }

    /// A process has what its parent had.
    pub fn fork(&mut self, pid: u32, parent: u32) {
        let of_parent = self.blocks.iter().filter(|((owner, _), _)| *owner == parent);
        let copies: Vec<_> = of_parent
            .map(|((_, at), block)| {
                ((pid, *at), Block { faults: 0, touched: [0; 8], ..block.clone() })
            })
            .collect();
        self.blocks.extend(copies);
    }

    /// A process has ended, or has become another program.
    pub fn end(&mut self, pid: u32) {
        let Self { blocks, ended } = self;
        blocks.retain(|(owner, at), block| {
            if *owner == pid {
                block.count(*at, ended.entry(block.place).or_default());
            }
            *owner != pid
        });
    }

    /// What was touched, by place.
    pub fn finish(mut self) -> BTreeMap<Place, Density> {
        for ((_, at), block) in &self.blocks {
            block.count(*at, self.ended.entry(block.place).or_default());
        }
        self.ended.retain(|_, density| density.faults > 0);
        self.ended
    }
}

impl Block {
    fn count(&self, at: u64, density: &mut Density) {
        if self.faults == 0 {
            return;
        }
        let pages: u64 = self.touched.iter().map(|word| u64::from(word.count_ones())).sum();
        density.faults += self.faults;
        density.pages += pages;
        let base = at << 21;
        for (size, whole) in SIZES.iter().zip(&mut density.by_size) {
            for first in (0..PAGES).step_by(usize::try_from(*size).unwrap_or(512)) {
                let (start, end) = (base + (first << 12), base + ((first + size) << 12));
                let inside = count(&self.touched, first, *size);
                if inside == 0 || start < self.start || end > self.end {
                    continue;
                }
                // Faults are known for the block as a whole: a page that came several times did so
                // as often as its neighbours.
                let faults = (self.faults * inside + pages / 2) / pages;
                whole.blocks += 1;
                whole.pages += inside;
                whole.faults += faults;
                whole.waves += (faults + inside / 2) / inside;
            }
        }
    }
}

/// Bits set among `length` from `first`; both are multiples of the length, or of 64.
fn count(bits: &[u64; 8], first: u64, length: u64) -> u64 {
    let index = |page: u64| usize::try_from(page / 64).unwrap_or(0);
    if length >= 64 {
        let words = &bits[index(first)..index(first + length)];
        return words.iter().map(|word| u64::from(word.count_ones())).sum();
    }
    let mask = (1_u64 << length) - 1;
    u64::from((bits[index(first)] >> (first % 64) & mask).count_ones())
}

/// The word and the bit of a page in its block.
fn position(address: u64) -> (usize, u64) {
    let page = address >> 12 & (PAGES - 1);
    (usize::try_from(page / 64).unwrap_or(0), page % 64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn area(start: u64, end: u64) -> Area {
        let (offset, place, writable) = (0, Place::Anonymous, true);
        Area { start, end, offset, place, writable, name: "".into() }
    }

    fn touched(pages: impl Iterator<Item = u64>, area: &Area) -> Density {
        let mut blocks = Blocks::default();
        for page in pages {
            blocks.add(1, page << 12, Some(area), true, false);
        }
        blocks.finish()[&Place::Anonymous]
    }

    #[test]
    fn a_block_that_is_touched_as_a_whole_is_one_page_of_each_size() {
        let density = touched(512..1536, &area(2 << 20, 6 << 20));
        assert_eq!((density.faults, density.pages), (1024, 1024));
        let blocks: Vec<u64> = density.by_size.iter().map(|whole| whole.waves).collect();
        assert_eq!(blocks, [256, 128, 64, 32, 16, 8, 4, 2]);
    }

    #[test]
    fn what_does_not_lie_in_its_mapping_as_a_whole_gets_no_larger_page() {
        // 1 MiB that starts 4 KiB into its block.
        let density = touched(513..769, &area((2 << 20) + 4096, (3 << 20) + 4096));
        let of = |size: u64| density.by_size[SIZES.iter().position(|s| *s == size).unwrap()];
        assert_eq!(of(512).blocks, 0);
        assert_eq!((of(16).blocks, of(16).pages), (15, 240));
    }

    #[test]
    fn pages_that_come_again_come_again_in_larger_pages() {
        let all = (0..3).flat_map(|_| 512..1024);
        let density = touched(all, &area(2 << 20, 4 << 20));
        assert_eq!((density.faults, density.pages), (1536, 512));
        let whole = density.by_size[7];
        assert_eq!((whole.blocks, whole.faults, whole.waves), (1, 1536, 3));
    }

    #[test]
    fn the_zero_page_is_remembered_until_it_is_replaced() {
        let mut blocks = Blocks::default();
        blocks.add(1, 0x5000, None, false, true);
        assert_eq!(blocks.page(1, 0x5fff), (true, true));
        assert_eq!(
            (blocks.page(1, 0x6000), blocks.page(2, 0x5000)),
            ((false, false), (false, false))
        );
        blocks.fork(2, 1);
        assert_eq!(blocks.page(2, 0x5000), (true, true));
        blocks.add(1, 0x5000, None, false, false);
        assert_eq!(blocks.page(1, 0x5000), (false, true));
        blocks.end(2);
        assert_eq!(blocks.page(2, 0x5000), (false, false));
    }

    proptest! {
        #[test]
        fn sizes_agree_with_a_naive_count(
            pages in prop::collection::btree_set(0_u64..2048, 1..300),
        ) {
            let density = touched(pages.iter().copied(), &area(0, 8 << 20));
            for (size, whole) in SIZES.iter().zip(&density.by_size) {
                let naive: std::collections::BTreeSet<u64> =
                    pages.iter().map(|page| page / size).collect();
                prop_assert_eq!(whole.blocks, naive.len() as u64);
                prop_assert_eq!(whole.waves, naive.len() as u64);
                prop_assert_eq!(whole.pages, pages.len() as u64);
            }
        }
    }
}
