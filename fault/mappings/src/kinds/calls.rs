//! Calls on a page that was touched: giving it up, taking away the right to store to it, and making
//! one huge page of many.
//!
//! Each page of `protect` is a mapping of its own, so that no call divides one. What `munmap` does
//! to pages is what `zap` does; the mapping stays, so that nobody else's can take its place.
//!
//! Each sample of `collapse` is one call on 2 MiB that were populated with base pages: it allocates
//! a huge page, copies, and frees 512 base pages and their table. THP is switched off for the
//! process while it populates, so that the advice of the mapping need not be given and taken back
//! (it cannot be). The call also empties the page lists of every CPU: part of its cost on large
//! machines.

use pagelab_bench::{Error, Need, PageSize, Witness, needs::Memory};
use pagelab_sys::{Area, process::disable_thp};

use super::{
    anon::base_only,
    state::{Before, is_true_of_present, only, populated, single, unpaced},
};
use crate::{
    Called, Calls, Expectation, FaultKind, Lie, Stage, needs, page_bytes, populate::touch_all,
};

/// A call on each page.
pub(super) const CALL: FaultKind = FaultKind {
    in_throughput: false,
    allocates_tables: false,
    cannot_tell: |asked| {
        // Nothing is touched.
        is_true_of_present(asked) || asked.lie == Lie::Read
    },
    takes_fresh_memory: false,
    ..FaultKind::PLAIN
};

/// Giving up a page.
pub(super) const ZAP: FaultKind = FaultKind {
    name: "zap",
    help: "no fault: MADV_DONTNEED of one page that was touched, which goes as by munmap",
    refuse: |asked| {
        let accepted = |page| matches!(page, PageSize::Base | PageSize::Thp);
        only(asked, accepted, "base pages and THP are given up whole; use page=4k or 2m")?;
        unpaced(asked)
    },
    stage: |_, space, _| touched(What::Zapped, populated(space), space.page),
    ..CALL
};

/// Taking away the right to store to a page.
pub(super) const PROTECT: FaultKind = FaultKind {
    name: "protect",
    help: "no fault: mprotect to read-only of one page that was touched, a mapping of its own",
    refuse: |asked| {
        base_only(asked, "every page is a mapping of its own")?;
        unpaced(asked)?;
        if asked.size <= single::SIZE_MAX {
            return Ok(());
        }
        Err("kind=protect above 64m: every page is a mapping of its own; use a smaller size".into())
    },
    automatic_size_max: single::SIZE_MAX,
    needs: |asked| vec![single::mappings(asked).needed()],
    stage: |_, space, _| {
        single::lay(space);
        touched(What::Protected, populated(space), space.page)
    },
    ..CALL
};

/// Making base pages one huge page.
pub(super) const COLLAPSE: FaultKind = FaultKind {
    name: "collapse",
    help: "no fault: MADV_COLLAPSE of 2 MiB of base pages",
    // What the lies change, advice and population, is the stage's own business here.
    cannot_tell: |asked| asked.lie != Lie::None,
    refuse: |asked| {
        let accepted = |page| page == PageSize::Thp;
        only(asked, accepted, "a collapse makes a THP; use page=2m")?;
        unpaced(asked)
    },
    needs: |asked| vec![needs::COLLAPSE.needed(), Memory(asked.size + (4 << 20)).needed()],
    stage: |_, space, _| {
        let scattered = Expectation { huge: 0, ..populated(space) };
        space.advice = None;
        touched(What::Collapsed, scattered, space.page)
    },
    ..CALL
};

/// What is done to the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Zapped,
    Protected,
    Collapsed,
}

/// Memory that was touched.
#[derive(Debug)]
struct Touched {
    what: What,
    page: usize,
    before: Before,
}

fn touched(what: What, before: Expectation, page: PageSize) -> Result<Box<dyn Stage>, Error> {
    Ok(Box::new(Touched { what, page: page_bytes(page), before: Before::new(before)? }))
}

impl Stage for Touched {
    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        let is_scattered = self.what == What::Collapsed;
        if is_scattered {
            disable_thp(true)?;
        }
        touch_all(area);
        if is_scattered {
            disable_thp(false)?;
        }
        self.before.look(area)?;
        Ok(())
    }

    fn series(&self) -> &'static str {
        "call"
    }

    fn expect(&self, first_touch: Expectation) -> Expectation {
        match self.what {
            What::Zapped => Expectation::default(),
            What::Protected | What::Collapsed => Expectation { faults: 0, ..first_touch },
        }
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        self.before.testify(witness);
        Ok(())
    }

    fn calls(&mut self, calls: Calls<'_>, record: &mut dyn FnMut(u64)) -> Called {
        let Calls { area, list, clock } = calls;
        Some(match self.what {
            What::Zapped => area.time_zaps(list, self.page, clock, record),
            What::Protected => area.time_protections(list, self.page, clock, record),
            What::Collapsed => area.time_collapses(list, clock, record),
        })
    }
}
