//! A case of `memtype/bandwidth`, read once: what its arms, its cost and its refusals look at.

use pagelab_bench::{Read, words};
use pagelab_record::Case;
use pagelab_sys::memtype::{Engine, MemoryType, Width};

use super::{
    point::{Loads, Point},
    space::{Source, Space},
};
use pagelab_bench::cpus::Chosen;

/// Loops that are compared.
pub(super) const ENGINES: [(&str, Engine); 2] = [("pagelab", Engine::Pagelab), ("c", Engine::C)];

words! {
    /// What is done against what the case says, for the witness to notice.
    pub(super) enum Lie {
        /// Nothing.
        None = "none",
        /// Memory of the module is WB.
        Wb = "wb",
        /// Leaves are huge ones.
        Huge = "huge",
        /// Values are those of another round.
        Stale = "stale",
    }
}

/// A case, read.
#[derive(Debug, Clone)]
pub struct Asked {
    /// What a round does.
    pub(super) point: Point,
    /// The memory.
    pub(super) space: Space,
    /// Width of stores, and of loads that follow none.
    pub(super) width: Width,
    /// Loads that follow stores are 8 bytes wide, as the original's, unless they are `movntdqa`.
    pub(super) load_width: Width,
    /// Rounds in a repetition.
    pub(super) iterations: u64,
    /// Threads.
    pub(super) workers: usize,
    /// The arms, by name.
    pub(super) engines: Vec<(&'static str, Engine)>,
    /// Where the threads run.
    pub(super) cpus: Chosen,
    /// What is done against what the case says.
    pub(super) lie: Lie,
    /// Whether the fence word lies in the measured memory.
    pub(super) overlaps: bool,
    /// Whether the sum of loads starts from the last verification's.
    pub(super) accumulates: bool,
}

impl Asked {
    /// What a complete case asks for.
    pub(super) fn of(case: &Case) -> Self {
        let point = Point::of(case);
        let width = case.number("width").and_then(Width::of_bytes).unwrap_or(Width::Bytes8);
        let is_narrow = point.is_readback() && point.load == Loads::Plain;
        Self {
            point,
            space: Space::of(case, case.bytes("size").unwrap_or(0)),
            width,
            load_width: if is_narrow { Width::Bytes8 } else { width },
            iterations: case.number("iterations").unwrap_or(1),
            workers: case.number("threads").unwrap_or(1),
            engines: case.some_of("arms", &ENGINES).collect(),
            cpus: Chosen::of(case, "cpu"),
            lie: case.word("lie"),
            overlaps: case.is("fence-word", "overlap"),
            accumulates: case.is("sum", "accumulated"),
        }
    }

    /// Whether the lie changes nothing that the case says, or nothing that could be noticed.
    pub(super) fn lies_truly(&self) -> bool {
        let Self { space, point, .. } = self;
        let is_ordinary = space.source == Source::Ordinary;
        match self.lie {
            Lie::None => false,
            Lie::Wb => space.memory_type == MemoryType::Wb,
            Lie::Huge => !is_ordinary || space.leaf > 4096 || space.bytes < 2 << 20,
            Lie::Stale => !point.is_read(),
        }
    }

    /// Whether the original had such a test with its fence word in the measured memory.
    pub(super) fn may_overlap(&self) -> bool {
        self.space.memory_type == MemoryType::UcMinus
            && (self.point.has_uc_fence() || self.point.is_read())
    }
}
