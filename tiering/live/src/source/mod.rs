//! Sources: who says which pages of a process were used.
//!
//! The one idea: what a source sees is a type. A [`Pages`] source names base pages, a [`Blocks`]
//! source only blocks of 2 MiB or regions of any size, and an engine that moves pages takes the
//! first kind: no row of the table can say that it is finer than what it hands out.

pub mod damon;
pub mod hardware;
mod hint_faults;
mod inside;
pub mod page_idle;
mod soft_dirty;

use std::ops::Range;

use pagelab_sys::{machine::Tree, memory::Stretch};

use self::hardware::{Access, BadRing, Ring};
pub use self::inside::Shared;
use crate::{PAGE, target::Refused};

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
    /// Of a program that pagelab starts, with a library in it.
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
    pub(crate) fn new(what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { what: what.into(), cure: cure.into() }
    }
}

/// A pass over a process, page by page.
pub trait Pages: std::fmt::Debug {
    /// Whether there is anything new to be known. A source that looks at its own pace says no until
    /// it has looked at everything, and is asked again.
    ///
    /// # Errors
    /// When the process has ended.
    fn is_ready(&mut self) -> Result<bool, Refused> {
        Ok(true)
    }

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

    /// What the last pass led to is carried out: a source that hinders it may begin to look again.
    ///
    /// # Errors
    /// When it cannot.
    fn done(&mut self) -> Result<(), Refused> {
        Ok(())
    }
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

/// Hands on a stretch in parts: pages that were seen, and pages that were not.
fn split(stretch: Stretch, seen: &[u64], found: &mut dyn FnMut(Stretch)) {
    let mut at = stretch.start;
    let first = seen.partition_point(|page| *page < stretch.start);
    let mut part = |start, end, written| {
        if start < end {
            found(Stretch { start, end, written, huge: stretch.huge });
        }
    };
    for &page in seen[first..].iter().take_while(|page| **page < stretch.end) {
        part(at, page, false);
        part(page.max(at), page + PAGE, true);
        at = page + PAGE;
    }
    part(at, stretch.end, false);
}

/// How a ring is read between two positions.
pub type Read = fn(&[u8], u64, u64, &mut dyn FnMut(Access)) -> Result<Ring, BadRing>;

/// How a source is begun.
#[derive(Debug, Clone, Copy)]
pub enum Opens {
    /// For a process.
    Pages(fn(&Tree, u32) -> Box<dyn Pages>),
    /// For a process that was started with the library.
    Inside(fn(&Shared, u32) -> Box<dyn Pages>),
    /// For a process.
    Blocks(fn(&Tree, u32) -> Box<dyn Blocks>),
    /// It samples some accesses, and is read from a ring that somebody recorded.
    Recorded(Read),
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
            Opens::Pages(_) | Opens::Inside(_) => "pages",
            Opens::Blocks(_) => "regions",
            Opens::Recorded(_) => "single accesses",
        }
    }

    /// Begins it for a process; `None` where it knows no pages, or needs a library that the process
    /// was not started with.
    pub fn open(&self, pid: u32, yard: Option<&Shared>) -> Option<Box<dyn Pages>> {
        match self.opens {
            Opens::Pages(open) => Some(open(&Tree::machine(), pid)),
            Opens::Inside(open) => Some(open(yard?, pid)),
            Opens::Blocks(_) | Opens::Recorded(_) => None,
        }
    }

    /// Whether an engine can have it: it names pages, of a process like that.
    pub fn serves(&self, reach: Reach) -> bool {
        let names_pages = matches!(self.opens, Opens::Pages(_) | Opens::Inside(_));
        names_pages && (self.reach == Reach::Foreign || reach == Reach::Own)
    }
}

/// Every source, in the order in which an engine tries them.
pub const SOURCES: &[Source] = &[
    Source {
        name: "write-protect",
        summary: "stores take a protection away that each look puts back (userfaultfd, WP_ASYNC)",
        sees: Sees::Stores,
        reach: Reach::Own,
        privilege: "the program's own user",
        cost: "a fault inside the kernel for each page that is written in a look",
        probe: inside::probe_protection,
        opens: Opens::Inside(inside::open_protection),
    },
    Source {
        name: "soft-dirty",
        summary: "stores fault once after their bit was cleared (clear_refs 4)",
        sees: Sees::Stores,
        reach: Reach::Foreign,
        privilege: "the process's own user; root for huge pages before Linux 6.7",
        cost: "a fault for each page that is written in a pass; a walk over the page table",
        probe: soft_dirty::probe,
        opens: Opens::Pages(soft_dirty::open),
    },
    Source {
        name: "prot-none",
        summary: "large memory is closed for moments; what is accessed meanwhile is a signal",
        sees: Sees::Accesses,
        reach: Reach::Own,
        privilege: "the program's own user",
        cost: "a signal for each page that is accessed in a look; huge pages are mapped small",
        probe: inside::probe_closing,
        opens: Opens::Inside(inside::open_closing),
    },
    Source {
        name: "hint-faults",
        summary: "the kernel's own hint faults of NUMA balancing, told by perf",
        sees: Sees::Accesses,
        reach: Reach::Foreign,
        privilege: "kernel.numa_balancing at 1 or 3; root, or perf_event_paranoid of 2 or less",
        cost: "a record for each minor fault; the faults are there anyway",
        probe: hint_faults::probe,
        opens: Opens::Pages(hint_faults::open),
    },
    Source {
        name: "page-idle",
        summary: "bits of page frames that an access clears (page_idle/bitmap)",
        sees: Sees::Accesses,
        reach: Reach::Foreign,
        privilege: "root, and a kernel with CONFIG_IDLE_PAGE_TRACKING",
        cost: "a walk over the page table and the bitmap; accessed bits that others use, too",
        probe: page_idle::probe,
        opens: Opens::Pages(page_idle::open),
    },
    Source {
        name: "damon",
        summary: "regions of a monitor that somebody runs; read, never disturbed",
        sees: Sees::Accesses,
        reach: Reach::Foreign,
        privilege: "root, and a monitor that shows its regions",
        cost: "nothing beside what the monitor costs",
        probe: damon::probe,
        opens: Opens::Blocks(damon::open),
    },
    Source {
        name: "ibs",
        summary: "accesses that a processor of AMD samples (ibs_op)",
        sees: Sees::Accesses,
        reach: Reach::Foreign,
        privilege: "perf_event_paranoid of 1 or less; CAP_PERFMON for page frames",
        cost: "an interrupt for each sample, about a microsecond",
        probe: hardware::probe_ibs,
        opens: Opens::Recorded(hardware::read),
    },
    Source {
        name: "pebs",
        summary: "accesses that a processor of Intel samples (mem-loads, mem-stores)",
        sees: Sees::Accesses,
        reach: Reach::Foreign,
        privilege: "perf_event_paranoid of 1 or less; CAP_PERFMON for page frames",
        cost: "200 to 300 ns for each sample",
        probe: hardware::probe_pebs,
        opens: Opens::Recorded(hardware::read),
    },
];

/// The source of a name, or the first that can be had here, for a process like that.
///
/// # Errors
/// What is missing for the one that was named, or for each of them all.
pub fn choose(
    name: Option<&str>,
    reach: Reach,
    tree: &Tree,
) -> Result<&'static Source, Vec<(String, Lack)>> {
    let asked = SOURCES.iter().filter(|source| name.is_none_or(|name| name == source.name));
    let mut lacks = Vec::new();
    for source in asked {
        if !source.serves(reach) {
            let lack = match source.opens {
                Opens::Blocks(_) => {
                    Lack::new("it names regions, and pages are what moves", "another source")
                }
                Opens::Recorded(_) => {
                    Lack::new("only rings that somebody recorded are read", "another source")
                }
                _ => Lack::new(
                    "it is for programs that pagelab starts",
                    "pagelab tier promote -- PROGRAM",
                ),
            };
            lacks.push((source.name.to_owned(), lack));
            continue;
        }
        match (source.probe)(tree) {
            Ok(()) => return Ok(source),
            Err(lack) => lacks.push((source.name.to_owned(), lack)),
        }
    }
    Err(lacks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_one_name_and_says_everything_of_itself() {
        let mut names: Vec<&str> = SOURCES.iter().map(|source| source.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SOURCES.len());
        for source in SOURCES {
            for text in [source.summary, source.privilege, source.cost] {
                assert!(!text.is_empty() && !text.ends_with('.'), "{}: {text}", source.name);
            }
        }
    }

    #[test]
    fn a_source_of_regions_is_not_chosen_for_pages() {
        for source in SOURCES.iter().filter(|source| source.granularity() != "pages") {
            for reach in [Reach::Own, Reach::Foreign] {
                assert!(!source.serves(reach), "{}", source.name);
                assert!(choose(Some(source.name), reach, &Tree::machine()).is_err());
            }
            assert!(source.open(1, None).is_none(), "{}", source.name);
        }
    }

    #[test]
    fn a_source_inside_is_not_for_a_process_that_runs_already() {
        let lacks = choose(Some("prot-none"), Reach::Foreign, &Tree::machine()).unwrap_err();
        assert_eq!(lacks[0].1.cure, "pagelab tier promote -- PROGRAM");
    }
}
