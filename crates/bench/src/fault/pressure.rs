//! `--pressure memcg`: faults whose process must give something up first.
//!
//! The one idea: memory is short in a memory cgroup of the case's own, so that nothing else on the
//! machine is. Before each repetition the group is filled with clean page cache of a scratch file
//! and its limit set just above what it holds: the touches then reclaim in the fault (direct
//! reclaim), page cache only, without swap and without a disk being written to.
//!
//! A fault that cannot have the page under test gets a base page instead (it *falls back*). What
//! came out is read back from the page table page by page, and the two are never one distribution:
//! in `fault/latency` faults that fell back are a series of their own, in `fault/throughput`, where
//! one body holds both, they are counted.

use std::fs::{self, File};

use pagelab_record::Case;
use pagelab_sys::{
    Area, SysError,
    counters::Counters,
    knobs::memcg::MemoryGroup,
    pagecache,
    residency::{Residency, Scanner},
    shortage::{scratch_directory, scratch_file},
};

use super::{
    kinds::Stage,
    space::{Expectation, Space, size_of},
};
use crate::{
    Kind, Need, Param, Role, inputs::Inputs, meter::Witness, params::PageSize, workload::Error,
};

/// The parameter.
pub(super) const PRESSURE: Param = Param {
    name: "pressure",
    help: "memcg: memory is short in a cgroup of the case's own, which is full of page cache",
    kind: Kind::Choice(&["none", "memcg"]),
    default: "none",
    role: Role::Axis,
};

/// What the cases of both workloads refuse.
pub(super) const REFUSAL: (&str, &str) = (
    "pressure with kind other than write, populate, lie, hugetlb pages, a skew or processes",
    "only a first store to fresh memory is squeezed; use kind=write and threads",
);

/// Room that is left below the limit: what else the process needs meanwhile.
const SLACK: u64 = 1 << 20;

/// Pages that a CPU may have charged in advance: `MEMCG_CHARGE_BATCH`, on a few CPUs.
const STOCK: u64 = 256;

/// Whether memory is made short.
pub(super) fn is_pressed(case: &Case) -> bool {
    case.get("pressure").is_some_and(|pressure| pressure != "none")
}

/// Whether the case asks for what cannot be squeezed.
pub(super) fn is_refused(case: &Case) -> bool {
    let is_other = |name: &str, value: &str| case.get(name).is_some_and(|given| given != value);
    let is_hugetlb = matches!(PageSize::of(case), PageSize::Hugetlb(_));
    is_pressed(case)
        && (is_hugetlb
            || is_other("kind", "write")
            || is_other("populate", "touch")
            || is_other("lie", "none")
            || is_other("align", "aligned")
            || is_other("backing", "anon")
            || is_other("touch", "8@page")
            || is_other("processes", "1")
            || is_other("beside", "none")
            || is_other("arms", "pagelab"))
}

/// The size that `auto` becomes: what a disk reads in a moment.
pub(super) fn automatic_size(size: u64) -> u64 {
    size.min(64 << 20)
}

/// Bytes of page cache for so many bytes of touches.
fn cache_bytes(size: u64) -> u64 {
    size + size / 4 + (16 << 20)
}

/// A limit that nothing of the case reaches.
fn ample(size: u64) -> u64 {
    4 * size + (512 << 20)
}

/// What it needs of the host.
pub(super) fn needs(case: &Case) -> Vec<Need> {
    if !is_pressed(case) {
        return Vec::new();
    }
    let page = PageSize::of(case);
    let mut needs = vec![
        Need::MemoryGroup(ample(size_of(case))),
        Need::Reclaimable(cache_bytes(size_of(case))),
        Need::Memory(size_of(case) + cache_bytes(size_of(case))),
    ];
    if page != PageSize::Base {
        // What falls back is a base page only where no other folio is on offer.
        let folios = PageSize::offered().into_iter();
        let others = folios.filter(|other| matches!(other, PageSize::Folio(_)) && *other != page);
        needs.extend(others.map(Need::Without));
    }
    needs
}

/// The stage of a case, squeezed where the case says so.
///
/// # Errors
/// When the scratch file cannot be written.
pub(super) fn squeezed(
    case: &Case,
    space: &Space,
    stage: Box<dyn Stage>,
    inputs: &Inputs,
) -> Result<Box<dyn Stage>, Error> {
    if !is_pressed(case) {
        return Ok(stage);
    }
    let missing = || Error::Case("pressure=memcg: no memory cgroup was made for the case".into());
    let group = inputs.group().cloned().ok_or_else(missing)?;
    let bytes = cache_bytes(size_of(case));
    let directory = scratch_directory(bytes).map_err(Error::Case)?;
    Ok(Box::new(Squeezed {
        stage,
        page: space.page,
        group,
        bytes: space.bytes(),
        ample: ample(size_of(case)),
        cache: scratch_file(&directory, bytes)?,
        cache_bytes: bytes,
        scanner: Scanner::open()?,
        folio_kib: space.page.bytes() / 1024,
        before: Reading::default(),
        after: Reading::default(),
        pieces: Vec::with_capacity(
            usize::try_from(space.bytes() / space.page.bytes()).unwrap_or(0),
        ),
    }))
}

/// What the kernel counted.
#[derive(Debug, Clone, Default)]
struct Reading {
    /// Times that the group's limit was hit.
    hits: u64,
    /// Pages of the scratch file in memory.
    cached: u64,
    machine: Counters,
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

/// A stage in a group that is full.
#[derive(Debug)]
struct Squeezed {
    stage: Box<dyn Stage>,
    page: PageSize,
    group: MemoryGroup,
    /// Bytes of the space.
    bytes: u64,
    /// A limit that is out of the way.
    ample: u64,
    cache: File,
    cache_bytes: u64,
    scanner: Scanner,
    folio_kib: u64,
    before: Reading,
    after: Reading,
    /// What each page under test came to be, in the order of addresses.
    pieces: Vec<Piece>,
}

impl Squeezed {
    fn limit(&self, bytes: u64) -> Result<(), SysError> {
        let path = self.group.path.display().to_string();
        self.group.set_limit(bytes).map_err(|error| SysError::new("limit", path, error))
    }

    fn read(&self) -> Result<Reading, SysError> {
        Ok(Reading {
            hits: hits(&self.group),
            cached: pagecache::resident_pages(&self.cache, self.cache_bytes)?,
            machine: Counters::read(Some(self.folio_kib)),
        })
    }

    fn count(&self, piece: Piece) -> u64 {
        self.pieces.iter().filter(|found| **found == piece).count() as u64
    }

    fn piece(&self, found: &Residency) -> Piece {
        let pages = self.page.bytes() / 4096;
        let is_whole = match self.page {
            PageSize::Thp => found.huge == pages && found.present == pages,
            _ => found.present == pages,
        };
        match found.present {
            _ if is_whole => Piece::Whole,
            1 if found.huge == 0 => Piece::Base,
            _ => Piece::Other,
        }
    }
}

/// Times that a group's limit was hit so far.
fn hits(group: &MemoryGroup) -> u64 {
    let file = if group.unified { "memory.events" } else { "memory.failcnt" };
    let text = fs::read_to_string(group.path.join(file)).unwrap_or_default();
    let number = if group.unified {
        text.lines().find_map(|line| line.strip_prefix("max "))
    } else {
        Some(text.as_str())
    };
    number.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

impl Stage for Squeezed {
    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        self.stage.ready(area)?;
        self.limit(self.ample)?;
        // Read, not mapped: clean pages on the inactive list, the first ones to go.
        let failed = |error| SysError::new("read", "the scratch file", error);
        pagecache::fill(&self.cache, self.cache_bytes).map_err(failed)?;
        let used = self.group.used().ok_or_else(|| {
            let why = std::io::Error::other("no such file");
            SysError::new("read", self.group.path.display().to_string(), why)
        })?;
        self.before = self.read()?;
        self.limit(used + SLACK)?;
        Ok(())
    }

    fn inspect(&mut self, area: &Area, found: &Residency) -> Result<(), Error> {
        self.after = self.read()?;
        self.limit(self.ample)?;
        self.pieces.clear();
        let page = usize::try_from(self.page.bytes()).expect("addresses have 64 bits");
        if page > 4096 {
            for at in (0..area.layout().bytes()).step_by(page) {
                let part = self.scanner.scan_part(area, at, page)?;
                self.pieces.push(self.piece(&part));
            }
        }
        self.stage.inspect(area, found)
    }

    fn done(&mut self) -> Result<(), Error> {
        self.stage.done()
    }

    fn expect(&self, first_touch: Expectation) -> Expectation {
        let expected = self.stage.expect(first_touch);
        if self.page == PageSize::Base {
            return expected;
        }
        // As many faults as ever: one touch a page. What each of them got must add up.
        let (whole, base) = (self.count(Piece::Whole), self.count(Piece::Base));
        let present = whole * self.page.bytes() / 4096 + base;
        let huge = if self.page == PageSize::Thp { whole * 512 } else { 0 };
        Expectation { present, huge, ..expected }
    }

    fn fell_back(&self, at: usize) -> bool {
        let page = usize::try_from(self.page.bytes()).expect("addresses have 64 bits");
        self.pieces.get(at / page) == Some(&Piece::Base)
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        self.stage.verify(witness)?;
        let Reading { hits, cached, machine } = &self.after;
        let hits = hits.saturating_sub(self.before.hits);
        let gave_way = self.before.cached.saturating_sub(*cached);
        let moved = machine.since(&self.before.machine);
        witness.expect_at_least("times that the limit of the group was hit, at least", 1, hits);
        let base = self.count(Piece::Base);
        let touched = match self.page {
            PageSize::Base => self.bytes / 4096,
            _ => self.count(Piece::Whole) * self.page.bytes() / 4096 + base,
        };
        // Half: reclaim takes other clean pages of the group as well.
        let least = touched.saturating_sub(SLACK / 4096 + STOCK) / 2;
        let claim = "pages of the scratch file that gave way to the touches, at least";
        witness.expect_at_least(claim, least, gave_way);
        if self.page != PageSize::Base {
            let all = self.pieces.len() as u64;
            let whole = self.count(Piece::Whole);
            let claim = "touches that got the page under test or one base page";
            witness.expect(claim, all, whole + base);
            let fallback = match self.page {
                PageSize::Thp => moved.get("thp_fault_fallback"),
                _ => moved.get("anon_fault_fallback"),
            };
            if let Some(fallback) = fallback {
                let claim = "fallbacks that the kernel counted, machine-wide, at least";
                witness.expect_at_least(claim, base, fallback);
            }
            witness.count("fell_back", base);
        }
        witness.count("limit_hits", hits);
        witness.count("cache_pages_reclaimed", gave_way);
        Ok(())
    }
}
