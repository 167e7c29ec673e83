//! From a case to address space, and to what must be found in it afterwards.
//!
//! Here stand the parameters that both fault workloads share, the placement rules (alignment,
//! ragged ends, windows for large folios), the formula for the number of faults, and the lies:
//! ways of telling the kernel something else than the case says, which the witness must notice.

use std::sync::LazyLock;

use pagelab_bench::{
    Kind, Param,
    need::{Need, Needed},
    params::{PageSize, Touch},
};
use pagelab_record::Case;
use pagelab_sys::{
    Area, SysError,
    loops::touch::Stride,
    machine::topology::Topology,
    memory::area::{Advice, Backing, Layout},
};

use crate::{
    cpus,
    needs::{Cpus, FarNode, Memory, Node, Pool, SCHED_FIFO, Transparent, Without},
};

/// Page size under test.
pub const PAGE: Param = Param::axis("page", Kind::Page, "4k")
    .help("page size: 4k, 16k … 1m, 2m (THP), hugetlb-2m, hugetlb-1g; large (all but 4k); all");
/// Memory touched in a repetition.
pub const SIZE: Param = Param::axis("size", Kind::Size, "auto")
    .help("memory touched in each repetition, all workers together");
/// Order of touching.
pub const ORDER: Param = Param::axis("order", Kind::Choice(&["ascending", "random"]), "ascending")
    .help("order in which pages are touched");
/// CPUs of the workers.
pub const CPU: Param = Param::axis("cpu", Kind::Cpus(&["auto", "none"]), "auto")
    .help("CPUs that workers are pinned to: a list, auto (the least busy, then on), none");
/// Node of the CPUs.
pub const NODE: Param =
    Param::axis("node", Kind::Node(&["any"]), "any").help("node whose CPUs are used by cpu=auto");
/// Node of the memory.
pub const MEM_NODE: Param = Param::axis("mem-node", Kind::Node(&["any", "far"]), "any")
    .help("node that memory is bound to, or far: the one farthest from the CPU");
/// Repetitions.
pub const ROUNDS: Param = Param::axis("rounds", Kind::Count { max: 1_000_000, auto: true }, "auto")
    .help("repetitions in each process; auto is as many as the interval needs");
/// Real-time scheduling.
pub const FIFO: Param = Param::axis("fifo", Kind::Choice(&["off", "on"]), "off")
    .help("run measured threads under SCHED_FIFO, one repetition at a time");
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

impl Space {
    /// The space of a case, for one of `shares` equal parts of its memory.
    pub fn of(case: &Case, shares: u64) -> Self {
        let page = PageSize::of(case);
        let bytes = usize::try_from(size_of(case) / shares).expect("addresses have 64 bits");
        let lie = case.get("lie").unwrap_or("none");
        let backing = match (case.get("backing"), page) {
            (_, PageSize::Hugetlb(shift)) => Backing::Hugetlb(shift),
            (Some("brk"), _) => Backing::Brk,
            (Some("fixed"), _) => Backing::Fixed,
            _ => Backing::Anonymous,
        };
        let advice = match (page, lie) {
            (PageSize::Hugetlb(_), _) => None,
            (PageSize::Base, "thp-on") => Some(Advice::HugePage),
            (PageSize::Base, _) | (_, "thp-off") => Some(Advice::NoHugePage),
            _ => Some(Advice::HugePage),
        };
        let layout = match page {
            PageSize::Folio(_) => Layout::windowed(bytes),
            _ => Layout::contiguous(bytes),
        };
        let is_ragged = case.get("align") == Some("ragged");
        let skewed = is_ragged || lie == "ragged";
        let half = usize::try_from(page.bytes()).expect("addresses have 64 bits") / 2;
        let mem_node = match case.get("mem-node") {
            Some("far") => crate::needs::far_node(),
            Some(number) => number.parse().ok(),
            None => None,
        };
        Self {
            page,
            layout,
            backing,
            advice,
            mem_node,
            skew: if skewed { half } else { 0 },
            is_ragged,
            populates_early: lie == "early-populate",
            touches_twice: lie == "present",
        }
    }

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
        let page = usize::try_from(self.page.bytes()).expect("addresses have 64 bits");
        // A base page under test still gets a PMD boundary, so that page-table pages are counted
        // alike in every repetition, and so that a THP that should not be there could be.
        self.reserve_at(page.max(2 << 20))
    }

    fn reserve_at(&self, align: usize) -> Result<Area, SysError> {
        Area::reserve(self.layout, self.backing, align, self.skew)
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
    /// Pages under test among those present, which are one base page each where a touch fell back.
    pub fn whole_pages(self, page: u64) -> u64 {
        let base_pages = page / 4096;
        if self.faults * base_pages > self.present && base_pages > 1 {
            return self.present.saturating_sub(self.faults) / (base_pages - 1);
        }
        self.present / base_pages
    }

    /// For shared memory.
    pub fn words(self) -> [u64; 5] {
        let Self { faults, major, present, huge, zero } = self;
        [faults, major, present, huge, zero]
    }

    /// Back from shared memory.
    pub fn of(words: &[u64; 5]) -> Self {
        let [faults, major, present, huge, zero] = *words;
        Self { faults, major, present, huge, zero }
    }

    /// What two workers must leave together.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        let (one, two) = (self.words(), other.words());
        Self::of(&std::array::from_fn(|index| one[index] + two[index]))
    }
}

/// The size of a resolved case.
///
/// # Panics
/// When the case still says `auto`.
pub fn size_of(case: &Case) -> u64 {
    let text = case.get("size").expect("a fault case has a size");
    pagelab_record::units::parse_bytes(text).expect("the case is resolved")
}

/// Memory for a case that does not name a size: four last-level caches, so that the pages that one
/// repetition frees and the next one takes are not still cached (with a region as large as the
/// cache the median of a write fault wandered by ±4 % from run to run, with four by ±2.5 %).
/// Never more than `most`, which a kind of fault may say.
pub fn automatic_size(page: PageSize, most: u64) -> String {
    // Asked once, not for each case of a grid.
    static LLC: LazyLock<Option<u64>> = LazyLock::new(|| {
        let topology = Topology::machine();
        topology.caches(topology.default_cpu().unwrap_or(0)).llc
    });
    let bytes = (4 * LLC.unwrap_or(32 << 20)).next_power_of_two();
    let bytes = bytes.clamp(128 << 20, 512 << 20).min(most).max(page.bytes());
    pagelab_record::units::format_bytes(bytes)
}

/// The stride of a case.
pub fn stride_of(case: &Case) -> Stride {
    let touch =
        Touch::parse(case.get("touch").unwrap_or("8@page")).expect("the touch is canonical");
    touch.on(PageSize::of(case))
}

/// The CPU of each worker; `None` for one that is not pinned.
pub fn cpus_of(case: &Case, workers: usize) -> Vec<Option<usize>> {
    let list: Vec<usize> = match case.get("cpu") {
        Some("none") => return vec![None; workers],
        None | Some("auto") => automatic_cpus(case),
        Some(list) => pagelab_sys::machine::topology::parse_list(list).unwrap_or_default(),
    };
    (0..workers).map(|worker| list.get(worker % list.len().max(1)).copied()).collect()
}

/// Allowed CPUs of the case's node: the least busy one of all, then on from there.
fn automatic_cpus(case: &Case) -> Vec<usize> {
    let mut cpus = cpus::free().to_vec();
    if let Some(node) = case.get("node").and_then(|node| node.parse::<usize>().ok())
        && let Some(node) = Topology::machine().nodes().into_iter().find(|n| n.id == node)
    {
        cpus.retain(|cpu| node.cpus.contains(cpu));
    }
    cpus
}

/// A fixed number of repetitions, where the case asks for one.
pub fn rounds_of(case: &Case) -> Option<u32> {
    case.get("rounds").and_then(|rounds| rounds.parse().ok())
}

/// What every fault case needs of the host.
pub fn needs(case: &Case, footprint: u64, asks_early: bool) -> Vec<Needed> {
    let page = PageSize::of(case);
    let mut needs = vec![Memory(footprint).needed()];
    match page {
        PageSize::Base => (),
        PageSize::Folio(bytes) => {
            needs.push(Transparent { page, unasked: asks_early }.needed());
            // The kernel takes the largest folio that fits: larger ones must not be on offer.
            let larger = PageSize::offered()
                .into_iter()
                .filter(|other| matches!(other, PageSize::Folio(larger) if *larger > bytes));
            needs.extend(larger.map(|page| Without(page).needed()));
        }
        PageSize::Thp => {
            needs.push(Transparent { page, unasked: asks_early }.needed());
            if case.get("align") == Some("ragged") {
                // The ragged ends are base pages only where no smaller folio is on offer.
                let folios = PageSize::offered().into_iter();
                let folios = folios.filter(|other| matches!(other, PageSize::Folio(_)));
                needs.extend(folios.map(|page| Without(page).needed()));
            }
        }
        PageSize::Hugetlb(shift) => {
            needs.push(Pool { shift, pages: size_of(case).div_ceil(1 << shift) }.needed());
        }
    }
    if case.get("fifo") == Some("on") {
        needs.push(SCHED_FIFO.needed());
    }
    if let Some(cpus) = case.get("cpu").and_then(pagelab_sys::machine::topology::parse_list) {
        needs.push(Cpus(cpus).needed());
    }
    if let Some(node) = case.get("node").and_then(|node| node.parse().ok()) {
        needs.push(Node(node).needed());
    }
    match case.get("mem-node") {
        Some("far") => needs.push(FarNode.needed()),
        Some(node) => needs.extend(node.parse().ok().map(|node| Node(node).needed())),
        None => (),
    }
    needs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(page: &str, size: &str) -> Case {
        Case::default().with("page", page).with("size", size)
    }

    #[test]
    fn the_published_decomposition_follows_from_ragged_ends() {
        // micro_pagefault: 10 GiB, THP, 8 bytes every 4 KiB: 5119 huge and 512 small ones a round.
        let stride = Stride { step: 4096, bytes: 8 };
        let ragged = Space::of(&case("2m", "10g").with("align", "ragged"), 1);
        assert_eq!(ragged.expectation(stride).faults, 5119 + 512);
        assert_eq!(20 * ragged.expectation(stride).faults, 112_620);
        let aligned = Space::of(&case("2m", "10g"), 1);
        assert_eq!(20 * aligned.expectation(stride).faults, 102_400);
        let base = Space::of(&case("4k", "10g"), 1);
        assert_eq!(20 * base.expectation(stride).faults, 52_428_800);
    }

    #[test]
    fn a_stride_wider_than_the_page_touches_fewer_pages() {
        let space = Space::of(&case("4k", "64k"), 1);
        let expectation = space.expectation(Stride { step: 16384, bytes: 8 });
        assert_eq!(expectation, Expectation { faults: 4, present: 4, ..Expectation::default() });
    }

    #[test]
    fn a_case_is_shared_equally() {
        assert_eq!(Space::of(&case("4k", "64m"), 4).bytes(), 16 << 20);
        assert_eq!(Space::of(&case("64k", "64m"), 4).layout.windows, 16);
    }
}
