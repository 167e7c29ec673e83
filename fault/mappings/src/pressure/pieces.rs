//! What each touch got: the page under test, one base page, or neither.
//!
//! The one idea: the page table is read back page by page, so that what the kernel gave is known
//! for every touch. What the kernel counted stands beside it and decides nothing by itself.

use std::fmt;

use pagelab_bench::{Error, PageSize, Witness};
use pagelab_record::vocabulary::Check;
use pagelab_sys::{
    Area,
    counts::Counters,
    memory::{Residency, Scanner},
};

use crate::{Expectation, page_bytes};

/// One way in which memory is short.
pub(super) trait Shortage: fmt::Debug {
    /// Makes memory short, right before the touches.
    fn begin(&mut self) -> Result<(), Error>;

    /// Looks at what became of it, right after them.
    fn end(&mut self) -> Result<(), Error>;

    /// Proves that it was short, and that the touches felt it: by the pages that they got, and by
    /// what the kernel counted meanwhile.
    fn verify(&mut self, pieces: &Pieces, moved: &Counters, witness: &mut Witness);
}

/// What one touch got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    /// The page under test.
    Whole,
    /// One base page.
    Base,
    /// Neither.
    Other,
}

/// What each page under test came to be, in the order of addresses.
#[derive(Debug)]
pub(super) struct Pieces {
    page: PageSize,
    scanner: Scanner,
    found: Vec<Piece>,
    /// Base pages of whole ones that are the zero page: where compaction moves a folio and has no
    /// room for it in one piece, it splits it, and since Linux 6.12 that maps pages of zeros so
    /// (`try_to_map_unused_to_zeropage`).
    zero: u64,
}

impl Pieces {
    /// Room for those of so many bytes.
    pub(super) fn new(page: PageSize, bytes: u64) -> Result<Self, Error> {
        let pages = usize::try_from(bytes / page.bytes()).unwrap_or(0);
        Ok(Self { page, scanner: Scanner::open()?, found: Vec::with_capacity(pages), zero: 0 })
    }

    /// Reads the page table. Base pages have no pieces.
    pub(super) fn read(&mut self, area: &Area) -> Result<(), Error> {
        self.found.clear();
        self.zero = 0;
        let page = page_bytes(self.page);
        if self.page != PageSize::Base {
            for at in (0..area.layout().bytes()).step_by(page) {
                let part = self.scanner.scan_part(area, at, page)?;
                let piece = piece(self.page, &part);
                if piece == Piece::Whole {
                    self.zero += part.zero.unwrap_or(0);
                }
                self.found.push(piece);
            }
        }
        Ok(())
    }

    fn count(&self, piece: Piece) -> u64 {
        self.found.iter().filter(|found| **found == piece).count() as u64
    }

    /// Touches that got a base page.
    pub(super) fn base(&self) -> u64 {
        self.count(Piece::Base)
    }

    /// Touches that got the page under test.
    pub(super) fn whole(&self) -> u64 {
        self.count(Piece::Whole)
    }

    /// As many faults as ever: one touch a page. What each of them got must add up.
    pub(super) fn expect(&self, expected: Expectation) -> Expectation {
        if self.page == PageSize::Base {
            return expected;
        }
        let (whole, base) = (self.whole(), self.base());
        let present = whole * self.page.bytes() / 4096 + base;
        let huge = if self.page == PageSize::Thp { whole * 512 } else { 0 };
        Expectation { present, huge, zero: expected.zero + self.zero, ..expected }
    }

    /// Whether the touch of the byte `at` got a base page.
    pub(super) fn fell_back(&self, at: usize) -> bool {
        let page = page_bytes(self.page);
        self.found.get(at / page) == Some(&Piece::Base)
    }

    /// Claims that every touch got one of the two, and that the kernel knows of the fallbacks.
    pub(super) fn testify(&self, moved: &Counters, witness: &mut Witness) {
        if self.page == PageSize::Base {
            return;
        }
        let (all, whole, base) = (self.found.len() as u64, self.whole(), self.base());
        witness.expect(Check::PageOrBase, all, whole + base);
        let fallback = match self.page {
            PageSize::Thp => moved.get("thp_fault_fallback"),
            _ => moved.get("anon_fault_fallback"),
        };
        if let Some(fallback) = fallback {
            witness.expect_at_least(Check::FallbacksCounted, base, fallback);
        }
        witness.count("fell_back", base);
        witness.count("zero_pages_of_folios_split_meanwhile", self.zero);
    }
}

fn piece(page: PageSize, found: &Residency) -> Piece {
    let pages = page.bytes() / 4096;
    let is_whole = match page {
        // Before Linux 6.7 only the whole area's page table tells what is huge, and the claim about
        // that stands by itself: nothing else fills 2 MiB by one touch.
        PageSize::Thp if found.zero.is_some() => found.huge == pages && found.present == pages,
        _ => found.present == pages,
    };
    match found.present {
        _ if is_whole => Piece::Whole,
        1 if found.huge == 0 => Piece::Base,
        _ => Piece::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(page: PageSize, found: &[Piece]) -> Pieces {
        Pieces { page, scanner: Scanner::open().unwrap(), found: found.to_vec(), zero: 0 }
    }

    #[test]
    fn a_page_is_whole_a_base_page_or_neither() {
        let found =
            |present, huge| Residency { present, huge, zero: Some(0), ..Residency::default() };
        let old = Residency { present: 512, ..Residency::default() };
        assert_eq!(piece(PageSize::Thp, &old), Piece::Whole, "a kernel that does not tell");
        assert_eq!(piece(PageSize::Thp, &found(512, 512)), Piece::Whole);
        assert_eq!(piece(PageSize::Thp, &found(512, 0)), Piece::Other);
        assert_eq!(piece(PageSize::Thp, &found(1, 0)), Piece::Base);
        assert_eq!(piece(PageSize::Folio(65536), &found(16, 0)), Piece::Whole);
        assert_eq!(piece(PageSize::Folio(65536), &found(2, 0)), Piece::Other);
    }

    #[test]
    fn what_fell_back_is_expected_as_one_base_page_and_known_by_its_place() {
        let pieces = pieces(PageSize::Thp, &[Piece::Whole, Piece::Base, Piece::Base]);
        let first = Expectation { faults: 3, present: 1536, huge: 1536, ..Expectation::default() };
        let expected = pieces.expect(first);
        assert_eq!((expected.faults, expected.present, expected.huge), (3, 514, 512));
        assert!(!pieces.fell_back(0) && pieces.fell_back(2 << 20) && !pieces.fell_back(6 << 20));
        assert_eq!(expected.whole_pages(2 << 20), 1);
        assert_eq!(first.whole_pages(2 << 20), 3);
    }

    #[test]
    fn a_touch_that_got_neither_breaks_a_claim() {
        let mut witness = Witness::default();
        let known = Counters::default();
        pieces(PageSize::Thp, &[Piece::Base, Piece::Other]).testify(&known, &mut witness);
        assert!(!witness.drafted().iter().any(|claim| claim.holds));
    }
}
