//! 2 MiB of address space: which pages came, and which would have come with larger pages.
//!
//! The one idea: each size is played through beside what happens. A window of a size comes as one
//! page when its first page faults, if it lies in its mapping *then* and none of its pages is there
//! yet; later first touches in it take no fault. Memory that grows page by page never gets a window
//! though it lies in one in the end. (`thp_vma_suitable_order` and `pte_range_none` of the kernel,
//! 6.8 to 6.18.)

/// Base pages in a block.
pub const PAGES: u64 = 512;
/// Sizes that are played through, in base pages: 16k to 2m.
pub const SIZES: [u64; 8] = [4, 8, 16, 32, 64, 128, 256, 512];

/// What a first touch of a base page would have been with pages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The same fault of a base page.
    Base,
    /// The fault that brings the larger page.
    Whole,
    /// No fault: the larger page was there.
    Covered,
    /// One of these, and nobody knows which.
    Unknown,
}

/// A bit for each base page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Pages([u64; 8]);

impl Pages {
    fn has(&self, page: u64) -> bool {
        self.0[word(page)] >> (page % 64) & 1 == 1
    }

    fn set(&mut self, page: u64, value: bool) {
        self.0[word(page)] &= !(1 << (page % 64));
        self.0[word(page)] |= u64::from(value) << (page % 64);
    }

    /// Bits set among `length` from `first`; both are multiples of the length, or of 64.
    fn count(&self, first: u64, length: u64) -> u64 {
        if length >= 64 {
            let words = &self.0[word(first)..word(first + length)];
            return words.iter().map(|word| u64::from(word.count_ones())).sum();
        }
        let mask = (1_u64 << length) - 1;
        u64::from((self.0[word(first)] >> (first % 64) & mask).count_ones())
    }
}

fn word(page: u64) -> usize {
    usize::try_from(page / 64).unwrap_or(0)
}

/// A bit for each window of each size: 128 of four pages, 64 of eight, to one of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Windows([u64; 4]);

impl Windows {
    /// Where the bit of a page's window is.
    fn at(size: u64, page: u64) -> (usize, u64) {
        let bit = 256 - 1024 / size + page / size;
        (word(bit), bit % 64)
    }

    fn has(&self, size: u64, page: u64) -> bool {
        let (word, bit) = Self::at(size, page);
        self.0[word] >> bit & 1 == 1
    }

    fn set(&mut self, size: u64, page: u64, value: bool) {
        let (word, bit) = Self::at(size, page);
        self.0[word] &= !(1 << bit);
        self.0[word] |= u64::from(value) << bit;
    }
}

/// What the kernel has for 2 MiB that are no page of that size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Entry {
    /// Nothing: such a page can come.
    #[default]
    Empty,
    /// The huge zero page, since nothing but loads came: the first store replaces it.
    HugeZero,
    /// A page table of base pages: no larger page can come.
    Table,
}

/// What is known of the pages of one block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    /// Pages with a first touch, ever.
    touched: Pages,
    /// Pages that are the zero page.
    zero: Pages,
    /// Pages that are there.
    seen: Pages,
    /// Pages of its own that it has shared since a fork.
    shared: Pages,
    /// For each size, the pages that were taken away from a window that stayed; most blocks have
    /// none.
    gone: Option<Box<[Pages; SIZES.len()]>>,
    /// Windows that are there as one page, and those that ever were.
    whole: Windows,
    ever: Windows,
    /// What the kernel would have for the block as a whole.
    entry: Entry,
    /// Whether something of it may have had no larger page.
    denied: bool,
    /// Whether it lay in its mapping as a whole when a part was unmapped.
    pub lay_whole: bool,
}

/// Pages of a block: from one to another, which is not among them.
pub type Extent = (u64, u64);

impl Block {
    /// Whether a page is the zero page, and whether it is there at all.
    pub fn page(&self, page: u64) -> (bool, bool) {
        (self.zero.has(page), self.seen.has(page))
    }

    /// Whether a page had a first touch, ever.
    pub fn was_touched(&self, page: u64) -> bool {
        self.touched.has(page)
    }

    /// Pages that are there.
    pub fn present(&self) -> u64 {
        self.seen.count(0, PAGES)
    }

    /// A fault that brought no base page for a first touch; `zero` if it is the zero page now.
    pub fn other(&mut self, page: u64, zero: bool) {
        self.seen.set(page, true);
        self.shared.set(page, false);
        for gone in self.gone.iter_mut().flat_map(|gone| gone.iter_mut()) {
            gone.set(page, false);
        }
        self.zero.set(page, zero);
        if !self.whole.has(PAGES, page) {
            self.entry = Entry::Table;
        }
    }

    /// A load that brought the zero page, in a mapping that has this extent now where a whole block
    /// may come at a load; with which of [`SIZES`] it would have taken no fault.
    pub fn read(&mut self, page: u64, extent: Option<Extent>) -> [bool; SIZES.len()] {
        let mut spared = SIZES.map(|size| self.has_whole(size, page) && !self.seen.has(page));
        spared[SIZES.len() - 1] |= self.entry == Entry::HugeZero && !self.seen.has(page);
        if extent == Some((0, PAGES))
            && self.seen.count(0, PAGES) == 0
            && self.entry == Entry::Empty
            && !self.whole.has(PAGES, page)
        {
            self.entry = Entry::HugeZero;
        }
        let entry = self.entry;
        self.other(page, true);
        if entry == Entry::HugeZero {
            self.entry = entry;
        }
        spared
    }

    /// A store to a page that was the zero page: with which of [`SIZES`] it would have been another
    /// fault or none, and whether that would have brought the block as one page.
    pub fn rewrite(&mut self, page: u64) -> ([bool; SIZES.len()], bool) {
        let came = self.entry == Entry::HugeZero;
        if came {
            self.entry = Entry::Empty;
            self.whole.set(PAGES, page, true);
            self.ever.set(PAGES, page, true);
        }
        let spared = SIZES.map(|size| self.has_whole(size, page) && self.zero.has(page));
        self.other(page, false);
        (spared, came)
    }

    /// Whether a page lies in a window that is there as one page, and was not taken from it.
    fn has_whole(&self, size: u64, page: u64) -> bool {
        let index = SIZES.iter().position(|known| *known == size);
        let gone = self.gone.as_ref().zip(index).map(|(gone, index)| &gone[index]);
        self.whole.has(size, page) && !gone.is_some_and(|gone| gone.has(page))
    }

    /// The first touch of a base page, in a mapping that has this extent now; what it would have
    /// been with each of [`SIZES`]. Where nobody knows what was there before, nothing is promised.
    pub fn first(&mut self, page: u64, extent: Extent, known: bool) -> [Fate; SIZES.len()] {
        let fates = std::array::from_fn(|index| self.fate(index, page, extent, known));
        self.touched.set(page, true);
        if self.entry == Entry::HugeZero {
            self.entry = Entry::Empty;
        }
        self.other(page, false);
        fates
    }

    /// A first touch in memory that may have no larger pages.
    pub fn denied(&mut self, page: u64) {
        self.touched.set(page, true);
        self.denied = true;
        self.other(page, false);
    }

    fn fate(&mut self, index: usize, page: u64, extent: Extent, known: bool) -> Fate {
        let size = SIZES[index];
        let first = page / size * size;
        if self.whole.has(size, page) {
            let is_gone = self.gone.as_ref().is_some_and(|gone| gone[index].has(page));
            return match (is_gone, self.seen.has(page)) {
                (true, _) => Fate::Base,
                (false, false) => Fate::Covered,
                // It was taken away, and nobody said how much with it.
                (false, true) => Fate::Unknown,
            };
        }
        let fits = extent.0 <= first && first + size <= extent.1;
        let is_empty = match self.entry {
            Entry::HugeZero if size == PAGES => true,
            Entry::Table if size == PAGES => false,
            _ => self.seen.count(first, size) == 0,
        };
        match (fits, is_empty, known) {
            (true, true, true) => {
                self.whole.set(size, page, true);
                self.ever.set(size, page, true);
                if let Some(gone) = &mut self.gone {
                    (first..first + size).for_each(|page| gone[index].set(page, false));
                }
                Fate::Whole
            }
            (true, true, false) => Fate::Unknown,
            (true, false, _) if self.seen.has(page) => Fate::Unknown,
            (false, ..) | (true, false, _) => Fate::Base,
        }
    }

    /// Pages were taken away; with their page table where they were unmapped.
    pub fn take(&mut self, (start, end): Extent, unmapped: bool) {
        for page in start..end {
            self.seen.set(page, false);
            self.zero.set(page, false);
            self.shared.set(page, false);
        }
        for (index, size) in SIZES.into_iter().enumerate() {
            for first in (start / size * size..end).step_by(width(size)) {
                if start <= first && first + size <= end {
                    self.whole.set(size, first, false);
                } else if self.whole.has(size, first) {
                    let gone = &mut self.gone.get_or_insert_default()[index];
                    (first.max(start)..(first + size).min(end))
                        .for_each(|page| gone.set(page, true));
                }
            }
        }
        // What is left of the huge zero page is a table of zero pages.
        self.entry = match self.entry {
            Entry::HugeZero if (start, end) != (0, PAGES) => Entry::Table,
            Entry::Table if !unmapped || (start, end) != (0, PAGES) => Entry::Table,
            _ => Entry::Empty,
        };
    }

    /// Whether a page is shared since a fork, as far as this process is concerned.
    pub fn is_shared(&self, page: u64) -> bool {
        self.shared.has(page)
    }

    /// The same pages in another process, which has touched none; both share their own.
    #[must_use]
    pub fn copy(&mut self) -> Self {
        for ((shared, seen), zero) in self.shared.0.iter_mut().zip(self.seen.0).zip(self.zero.0) {
            *shared |= seen & !zero;
        }
        Self { touched: Pages::default(), ever: Windows::default(), ..self.clone() }
    }

    /// Whether none of it could come as a page of the block's size, though it was allowed.
    pub fn is_in_pieces(&self) -> bool {
        !self.denied && !self.ever.has(PAGES, 0)
    }

    /// Pages with a first touch.
    pub fn pages(&self) -> u64 {
        self.touched.count(0, PAGES)
    }

    /// Windows of a size that ever came as one page, and the pages touched in them.
    pub fn windows(&self, size: u64) -> (u64, u64) {
        let firsts = (0..PAGES).step_by(width(size)).filter(|first| self.ever.has(size, *first));
        firsts.fold((0, 0), |(windows, pages), first| {
            (windows + 1, pages + self.touched.count(first, size))
        })
    }
}

fn width(size: u64) -> usize {
    usize::try_from(size).unwrap_or(512)
}

#[cfg(test)]
mod tests;
