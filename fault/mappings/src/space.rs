//! From a case to address space, and to what must be found in it afterwards.
//!
//! Here stand the placement rules (alignment, ragged ends, windows for large folios), the formula
//! for the number of faults, and the lies: ways of telling the kernel something else than the case
//! says, which the witness must notice.

use std::sync::LazyLock;

pub use pagelab_bench::common::{CPU, FIFO, MEM_NODE, NODE, ORDER, PAGE, ROUNDS, SIZE};
use pagelab_bench::{Kind, PageSize, Param, Witness};
use pagelab_record::vocabulary::Check;
use pagelab_sys::{
    Area, SysError,
    counts::Counters,
    loops::Stride,
    machine::Topology,
    memory::{Advice, Backing, Layout, Residency},
};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Lies.
pub const LIE: Param = Param::axis(
    "lie",
    Kind::Choice(&[
        "none",
        "thp-on",
        "thp-off",
        "ragged",
        "early-populate",
        "present",
        "unfragmented",
    ]),
    "none",
)
.help("tell the kernel something else than the case says; the record must come out invalid");

/// Where the pages of a case lie, and what they are told.
#[derive(Debug, Clone, Copy)]
pub struct Space {
    /// Page size under test.
    pub page: PageSize,
    /// How the bytes lie.
    pub layout: Layout,
    /// What backs them.
    pub backing: Backing,
    /// What the kernel is told before the first fault.
    pub advice: Option<Advice>,
    /// Node that they are bound to.
    pub mem_node: Option<usize>,
    /// Distance of the base from a page boundary.
    pub skew: usize,
    /// Whether ends are ragged because the case says so.
    pub is_ragged: bool,
    /// `MAP_POPULATE` before the advice, against what the case says.
    pub populates_early: bool,
    /// One untimed touch before the timed one, against what the case says.
    pub touches_twice: bool,
}

/// Bytes of a page, as a distance of addresses.
pub fn page_bytes(page: PageSize) -> usize {
    usize::try_from(page.bytes()).expect("addresses have 64 bits")
}

impl Space {
    /// Whether what is touched is taken from free memory, which the kernel may hand to its host
    /// meanwhile; a hugetlb page stays in its pool.
    pub fn takes_free_memory(&self) -> bool {
        !matches!(self.page, PageSize::Hugetlb(_))
    }

    /// Reserves the address space.
    ///
    /// # Errors
    /// When there is no room.
    pub fn reserve(&self) -> Result<Area, SysError> {
        // A base page under test still gets a PMD boundary, so that page-table pages are counted
        // alike in every repetition, and so that a THP that should not be there could be.
        let align = page_bytes(self.page).max(2 << 20);
        Area::reserve(self.layout, self.backing, align, self.skew)
    }

    /// Reserves its addresses, and maps and advises them.
    ///
    /// # Errors
    /// When memory is short.
    pub fn mapped(&self) -> Result<Area, SysError> {
        let mut area = self.reserve()?;
        area.open()?;
        area.map(false)?;
        if let Some(advice) = self.advice {
            area.advise(advice)?;
        }
        Ok(area)
    }

    /// One touch a page.
    pub fn once(&self) -> Stride {
        Stride { step: page_bytes(self.page), bytes: 8 }
    }

    /// Bytes of the space.
    pub fn bytes(&self) -> u64 {
        self.layout.bytes() as u64
    }

    /// What touching the whole space must leave behind: the formula of the witness.
    pub fn expectation(&self, stride: Stride) -> Expectation {
        let page = self.page.bytes();
        let step = stride.step as u64;
        let pages = self.bytes() / page;
        if self.is_ragged {
            // Two half pages at the ends are served in base pages, the rest in whole ones.
            let ends = page / 4096;
            let huge = if self.page == PageSize::Thp { (pages - 1) * 512 } else { 0 };
            let (faults, present) = (pages - 1 + ends, pages * page / 4096);
            return Expectation { faults, present, huge, ..Expectation::default() };
        }
        let faults = if step > page { self.bytes() / step } else { pages };
        let present = faults * page / 4096;
        let is_huge = matches!(self.page, PageSize::Thp | PageSize::Hugetlb(_));
        let huge = if is_huge { present } else { 0 };
        Expectation { faults, present, huge, ..Expectation::default() }
    }
}

/// What touching a space must leave behind, in faults and in base pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Expectation {
    /// Minor faults.
    pub faults: u64,
    /// Major faults.
    pub major: u64,
    /// Base pages mapped.
    pub present: u64,
    /// Base pages mapped by a PMD or larger.
    pub huge: u64,
    /// Base pages mapped to the shared zero page.
    pub zero: u64,
}

impl Expectation {
    /// Claims what the page table must show: which pages are really there.
    pub fn testify(self, found: &Residency, witness: &mut Witness) {
        witness.expect(Check::Present, self.present, found.present);
        witness.expect(Check::Huge, self.huge, found.huge);
        if let Some(zero) = found.zero {
            witness.expect(Check::ZeroPage, self.zero, zero);
        }
    }

    /// Claims that the kernel allocated large folios, where it counts them: nothing else tells
    /// those below the PMD size from base pages.
    pub fn testify_folios(self, page: PageSize, moved: &Counters, witness: &mut Witness) {
        if let Some(folios) = moved.get("anon_fault_alloc").filter(|_| page.is_folio()) {
            witness.expect_at_least(Check::FoliosAllocated, self.whole_pages(page.bytes()), folios);
        }
    }

    /// Pages under test among those present, which are one base page each where a touch fell back.
    pub fn whole_pages(self, page: u64) -> u64 {
        let base_pages = page / 4096;
        if self.faults * base_pages > self.present && base_pages > 1 {
            return self.present.saturating_sub(self.faults) / (base_pages - 1);
        }
        self.present / base_pages
    }

    /// What two workers must leave together.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self {
            faults: self.faults + other.faults,
            major: self.major + other.major,
            present: self.present + other.present,
            huge: self.huge + other.huge,
            zero: self.zero + other.zero,
        }
    }
}

/// Memory for a case that does not name a size: four last-level caches, so that the pages that one
/// repetition frees and the next one takes are not still cached (with a region as large as the
/// cache the median of a write fault wandered by ±4 % from run to run, with four by ±2.5 %).
/// Never more than `most`, which a kind of fault may say.
pub fn automatic_size(page: PageSize, most: u64) -> u64 {
    // Asked once, not for each case of a grid.
    static LLC: LazyLock<Option<u64>> = LazyLock::new(|| {
        let topology = Topology::machine();
        topology.caches(topology.default_cpu().unwrap_or(0)).llc
    });
    let bytes = (4 * LLC.unwrap_or(32 << 20)).next_power_of_two();
    bytes.clamp(128 << 20, 512 << 20).min(most).max(page.bytes())
}

#[cfg(test)]
mod tests {
    use pagelab_record::Case;

    use super::*;
    use crate::kinds::asked;
    use crate::populate::EACH;

    fn case(page: &str, size: &str) -> Case {
        Case::default().with("page", page).with("size", size)
    }

    #[test]
    fn the_published_decomposition_follows_from_ragged_ends() {
        // micro_pagefault: 10 GiB, THP, 8 bytes every 4 KiB: 5119 huge and 512 small ones a round.
        let ragged = asked(&case("2m", "10g").with("align", "ragged")).space(1);
        assert_eq!(ragged.expectation(EACH).faults, 5119 + 512);
        assert_eq!(20 * ragged.expectation(EACH).faults, 112_620);
        let aligned = asked(&case("2m", "10g")).space(1);
        assert_eq!(20 * aligned.expectation(EACH).faults, 102_400);
        let base = asked(&case("4k", "10g")).space(1);
        assert_eq!(20 * base.expectation(EACH).faults, 52_428_800);
    }

    #[test]
    fn a_stride_wider_than_the_page_touches_fewer_pages() {
        let space = asked(&case("4k", "64k")).space(1);
        let expectation = space.expectation(Stride { step: 16384, bytes: 8 });
        assert_eq!(expectation, Expectation { faults: 4, present: 4, ..Expectation::default() });
    }

    #[test]
    fn a_case_is_shared_equally() {
        assert_eq!(asked(&case("4k", "64m")).space(4).bytes(), 16 << 20);
        assert_eq!(asked(&case("64k", "64m")).space(4).layout.windows, 16);
    }
}
