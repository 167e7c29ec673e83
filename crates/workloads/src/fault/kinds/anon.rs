//! Anonymous memory that nobody else has: first touches, the zero page, and no fault at all.

use pagelab_bench::{
    need::{Need, Needed},
    params::PageSize,
    workload::Error,
};
use pagelab_record::Case;
use pagelab_sys::{Area, loops::touch::Access};

use super::{
    huge_zero::{self, HugeZero},
    kind::{FaultKind, Stage},
    state::EACH,
};
use crate::fault::space::{Expectation, Space};

/// A stage that has nothing to prepare: memory is as `mmap` left it.
#[derive(Debug)]
struct Fresh {
    reads: bool,
}

impl Stage for Fresh {
    fn expect(&self, first_touch: Expectation) -> Expectation {
        let zero = if self.reads { first_touch.present } else { 0 };
        Expectation { zero, ..first_touch }
    }
}

/// The first store to a page: it is allocated, cleared and mapped.
#[derive(Debug)]
pub(super) struct Write;

impl FaultKind for Write {
    fn name(&self) -> &'static str {
        "write"
    }

    fn help(&self) -> &'static str {
        "first store: allocates and clears"
    }

    fn stage(&self, _: &Case, _: &mut Space) -> Result<Box<dyn Stage>, Error> {
        Ok(Box::new(Fresh { reads: false }))
    }
}

/// The first load of a page: the shared zero page is mapped.
#[derive(Debug)]
pub(super) struct Read;

impl FaultKind for Read {
    fn name(&self) -> &'static str {
        "read"
    }

    fn help(&self) -> &'static str {
        "first load: maps the zero page, for 2m the huge one"
    }

    fn access(&self) -> Access {
        Access::Read
    }

    fn refuse(&self, case: &Case) -> Result<(), String> {
        let (combination, instead) = match PageSize::of(case) {
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
    }

    fn needs(&self, case: &Case) -> Vec<Needed> {
        huge_zero_need(case)
    }

    fn stage(&self, _: &Case, space: &mut Space) -> Result<Box<dyn Stage>, Error> {
        if space.page == PageSize::Thp {
            return Ok(Box::new(HugeZero::new(space, false)?));
        }
        Ok(Box::new(Fresh { reads: true }))
    }
}

/// Touches of pages that are present.
#[derive(Debug)]
pub(super) struct Present;

impl FaultKind for Present {
    fn name(&self) -> &'static str {
        "present"
    }

    fn help(&self) -> &'static str {
        "no fault at all"
    }

    fn is_fault(&self) -> bool {
        false
    }

    fn stage(&self, _: &Case, _: &mut Space) -> Result<Box<dyn Stage>, Error> {
        Ok(Box::new(Populated))
    }
}

/// Memory that was written everywhere.
#[derive(Debug)]
struct Populated;

impl Stage for Populated {
    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        area.touch(0, area.layout().bytes(), EACH);
        Ok(())
    }

    fn expect(&self, first_touch: Expectation) -> Expectation {
        Expectation { faults: 0, ..first_touch }
    }
}

/// The first store to a page that was only read: the zero page is replaced by one of its own.
#[derive(Debug)]
pub(super) struct ZeroWrite;

impl FaultKind for ZeroWrite {
    fn name(&self) -> &'static str {
        "zero-write"
    }

    fn help(&self) -> &'static str {
        "store to a page that was read before: replaces the zero page"
    }

    fn allocates_tables(&self) -> bool {
        false
    }

    fn refuse(&self, case: &Case) -> Result<(), String> {
        if PageSize::of(case) == PageSize::Thp {
            return Ok(());
        }
        base_only(self, case, "there are two zero pages, the small one and that of 2m")
    }

    fn needs(&self, case: &Case) -> Vec<Needed> {
        huge_zero_need(case)
    }

    fn stage(&self, _: &Case, space: &mut Space) -> Result<Box<dyn Stage>, Error> {
        if space.page == PageSize::Thp {
            return Ok(Box::new(HugeZero::new(space, true)?));
        }
        Ok(Box::new(ZeroMapped))
    }
}

/// What reads of this page size need.
fn huge_zero_need(case: &Case) -> Vec<Needed> {
    if PageSize::of(case) == PageSize::Thp { vec![huge_zero::NEED.needed()] } else { Vec::new() }
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
pub(super) fn base_only(kind: &dyn FaultKind, case: &Case, why: &str) -> Result<(), String> {
    match PageSize::of(case) {
        PageSize::Base => Ok(()),
        other => Err(format!("kind={} with page={other}: {why}; use page=4k", kind.name())),
    }
}
