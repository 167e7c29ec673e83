//! Sources: who says which pages of a process were used.
//!
//! The one idea: what a source sees is a type. A [`Pages`] source names base pages, a [`Blocks`]
//! source only blocks of 2 MiB or regions of any size, and an engine that moves pages takes the
//! first kind: no row of the table can say that it is finer than what it hands out.

mod soft_dirty;

use std::ops::Range;

use pagelab_sys::{machine::Tree, memory::Stretch};

use crate::target::Refused;

/// What a source can see of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sees {
    /// Stores only.
    Stores,
    /// Loads and stores.
    Accesses,
}

/// Whose memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Of any process that may be looked at.
    Foreign,
    /// Of the process that the source runs in.
    Own,
}

/// What a kernel lacks, or a user, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// What is missing.
    pub what: String,
    /// What to do.
    pub cure: String,
}

impl Lack {
    fn new(what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { what: what.into(), cure: cure.into() }
    }
}

/// A pass over a process, page by page.
pub trait Pages: std::fmt::Debug {
    /// Hands on every stretch of present pages of the mappings, in rising order; those whose
    /// `written` is set were used since the last pass. The next pass begins with this one's end.
    ///
    /// # Errors
    /// When the process has ended.
    fn pass(
        &mut self,
        mappings: &[Range<u64>],
        found: &mut dyn FnMut(Stretch),
    ) -> Result<(), Refused>;
}

/// A region of a process of which some page was used, and how hot it was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Its addresses.
    pub range: Range<u64>,
    /// What the source counted.
    pub accesses: u64,
}

/// A pass over a process that knows nothing of pages.
pub trait Blocks: std::fmt::Debug {
    /// Regions that were used.
    ///
    /// # Errors
    /// When the source cannot be read.
    fn regions(&mut self) -> Result<Vec<Region>, Refused>;
}

/// How a source is begun.
#[derive(Debug, Clone, Copy)]
pub enum Opens {
    /// For a process.
    Pages(fn(u32) -> Box<dyn Pages>),
    /// For a process.
    Blocks(fn(u32) -> Box<dyn Blocks>),
}

/// A row of [`SOURCES`].
pub struct Source {
    /// Its name.
    pub name: &'static str,
    /// One line: how it knows.
    pub summary: &'static str,
    /// What it sees.
    pub sees: Sees,
    /// Whose.
    pub reach: Reach,
    /// What it asks for.
    pub privilege: &'static str,
    /// What it costs the process and the engine.
    pub cost: &'static str,
    /// Whether it can be had here.
    pub probe: fn(&Tree) -> Result<(), Lack>,
    /// How.
    pub opens: Opens,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Source {
    /// What it tells apart.
    pub fn granularity(&self) -> &'static str {
        match self.opens {
            Opens::Pages(_) => "pages",
            Opens::Blocks(_) => "regions",
        }
    }
}

/// Every source, in the order in which an engine tries them.
pub const SOURCES: &[Source] = &[Source {
    name: "soft-dirty",
    summary: "stores fault once after their bit was cleared (clear_refs 4)",
    sees: Sees::Stores,
    reach: Reach::Foreign,
    privilege: "the process's own user; root for huge pages before Linux 6.7",
    cost: "a fault for each page that is written in a pass; a walk over the page table",
    probe: soft_dirty::probe,
    opens: Opens::Pages(soft_dirty::open),
}];

/// The source of a name, or the first that can be had here.
///
/// # Errors
/// What is missing for the one that was named, or for each of them all.
pub fn choose(name: Option<&str>, tree: &Tree) -> Result<&'static Source, Vec<(String, Lack)>> {
    let asked = SOURCES.iter().filter(|source| name.is_none_or(|name| name == source.name));
    let mut lacks = Vec::new();
    for source in asked {
        match (source.probe)(tree) {
            Ok(()) => return Ok(source),
            Err(lack) => lacks.push((source.name.to_owned(), lack)),
        }
    }
    Err(lacks)
}
