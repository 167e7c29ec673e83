//! Calls on a page that was touched: giving it up, and taking away the right to store to it.
//!
//! Each page of `protect` is a mapping of its own, so that no call divides one. What `munmap` does
//! to pages is what `zap` does; the mapping stays, so that nobody else's can take its place.

use pagelab_bench::{Error, Need, PageSize, Witness};
use pagelab_sys::{Area, memory::Layout};

use super::{
    anon::base_only,
    state::{Before, is_true_of_present, only, populate, populated, unpaced},
};
use crate::fault::{
    Called, Calls, Expectation, FaultKind, Lie, Space, Stage, needs::Mappings, page_bytes,
};

/// A call on each page.
const CALL: FaultKind = FaultKind {
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
    stage: |_, space, _| Ok(Box::new(Touched::new(space, What::Zapped)?)),
    ..CALL
};

/// Taking away the right to store to a page.
pub(super) const PROTECT: FaultKind = FaultKind {
    name: "protect",
    help: "no fault: mprotect to read-only of one page that was touched, a mapping of its own",
    refuse: |asked| {
        base_only(asked, "every page is a mapping of its own")?;
        unpaced(asked)?;
        // The default of `vm.max_map_count` is 65530, and each page has a guard behind it.
        if asked.size <= SINGLE_MAX {
            return Ok(());
        }
        Err("kind=protect above 64m: every page is a mapping of its own; use a smaller size".into())
    },
    automatic_size_max: SINGLE_MAX,
    needs: |asked| vec![Mappings((2 * asked.size / 4096 + 1000).max(65530)).needed()],
    stage: |_, space, _| {
        let windows = space.layout.bytes() / 4096;
        space.layout = Layout { window: 4096, stride: 8192, windows };
        Ok(Box::new(Touched::new(space, What::Protected)?))
    },
    ..CALL
};

/// A call on each mapping of 4 KiB, with a guard each.
const SINGLE_MAX: u64 = 64 << 20;

/// What is done to the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Zapped,
    Protected,
}

/// Memory that was touched.
#[derive(Debug)]
struct Touched {
    what: What,
    page: usize,
    before: Before,
}

impl Touched {
    fn new(space: &Space, what: What) -> Result<Self, Error> {
        Ok(Self { what, page: page_bytes(space.page), before: Before::new(populated(space))? })
    }
}

impl Stage for Touched {
    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        populate(area);
        self.before.look(area)?;
        Ok(())
    }

    fn series(&self) -> &'static str {
        "call"
    }

    fn expect(&self, first_touch: Expectation) -> Expectation {
        match self.what {
            What::Zapped => Expectation::default(),
            What::Protected => Expectation { faults: 0, ..first_touch },
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
        })
    }
}
