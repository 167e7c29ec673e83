//! Anonymous memory that nobody else has: first touches, the zero page, and no fault at all.

use pagelab_bench::{Error, Need, Needed, PageSize};
use pagelab_sys::{Area, loops::Access};

use super::huge_zero::{self, HugeZero};
use crate::{
    Asked, Expectation, FaultKind, Stage,
    populate::{EACH, touch_all},
};

/// Memory as `mmap` left it, of which loads map the zero page.
#[derive(Debug)]
struct Fresh;

impl Stage for Fresh {
    fn expect(&self, first_touch: Expectation) -> Expectation {
        Expectation { zero: first_touch.present, ..first_touch }
    }
}

/// The first store to a page: it is allocated, cleared and mapped.
pub(super) const WRITE: FaultKind =
    FaultKind { name: "write", help: "first store: allocates and clears", ..FaultKind::PLAIN };

/// The first load of a page: the shared zero page is mapped.
pub(super) const READ: FaultKind = FaultKind {
    name: "read",
    help: "first load: maps the zero page, for 2m the huge one",
    access: Access::Read,
    refuse: |asked| {
        let (combination, instead) = match asked.page {
            PageSize::Base | PageSize::Thp => return Ok(()),
            PageSize::Folio(_) => (
                "kind=read with page=16k … 1m",
                "a read maps the 4k zero page whatever folios are on offer; use page=4k",
            ),
            PageSize::Hugetlb(_) => (
                "kind=read with page=hugetlb-…",
                "a hugetlb read allocates and clears like a write; use kind=write",
            ),
        };
        Err(format!("{combination}: {instead}"))
    },
    needs: huge_zero_need,
    stage: |_, space, _| {
        if space.page == PageSize::Thp {
            return Ok(Box::new(HugeZero::new(space, false)?));
        }
        Ok(Box::new(Fresh))
    },
    ..FaultKind::PLAIN
};

/// Touches of pages that are present.
pub(super) const PRESENT: FaultKind = FaultKind {
    name: "present",
    help: "no fault at all",
    is_fault: false,
    stage: |_, _, _| Ok(Box::new(Populated)),
    ..FaultKind::PLAIN
};

/// Memory that was written everywhere.
#[derive(Debug)]
struct Populated;

impl Stage for Populated {
    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        touch_all(area);
        Ok(())
    }

    fn expect(&self, first_touch: Expectation) -> Expectation {
        Expectation { faults: 0, ..first_touch }
    }
}

/// The first store to a page that was only read: the zero page is replaced by one of its own.
pub(super) const ZERO_WRITE: FaultKind = FaultKind {
    name: "zero-write",
    help: "store to a page that was read before: replaces the zero page",
    allocates_tables: false,
    refuse: |asked| {
        if asked.page == PageSize::Thp {
            return Ok(());
        }
        base_only(asked, "there are two zero pages, the small one and that of 2m")
    },
    needs: huge_zero_need,
    stage: |_, space, _| {
        if space.page == PageSize::Thp {
            return Ok(Box::new(HugeZero::new(space, true)?));
        }
        Ok(Box::new(ZeroMapped))
    },
    ..FaultKind::PLAIN
};

/// What reads of this page size need.
fn huge_zero_need(asked: &Asked) -> Vec<Needed> {
    if asked.page == PageSize::Thp { vec![huge_zero::NEED.needed()] } else { Vec::new() }
}

/// Memory that was read everywhere.
#[derive(Debug)]
struct ZeroMapped;

impl Stage for ZeroMapped {
    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        area.read(EACH);
        Ok(())
    }
}

/// Refuses every page size but the base page.
pub(super) fn base_only(asked: &Asked, why: &str) -> Result<(), String> {
    match asked.page {
        PageSize::Base => Ok(()),
        other => Err(format!("kind={} with page={other}: {why}; use page=4k", asked.kind.name)),
    }
}
