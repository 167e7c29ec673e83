//! `MADV_COLLAPSE`: base pages made into one huge page by a call, and no fault at all.
//!
//! Each sample is one call on 2 MiB that were populated with base pages: it allocates a huge page,
//! copies, and frees 512 base pages and their table. THP is switched off for the process while it
//! populates, so that the advice of the mapping need not be given and taken back (it cannot be).
//! The call also empties the page lists of every CPU: part of its cost on large machines.

use pagelab_bench::{Error, Need, PageSize, Witness};
use pagelab_sys::{Area, process::disable_thp};

use super::state::{Before, only, populate, populated, unpaced};
use crate::{
    fault::{Called, Calls, Expectation, FaultKind, Lie, Stage, needs::COLLAPSE},
    needs::Memory,
};

/// See the module's documentation.
pub(super) const KIND: FaultKind = FaultKind {
    name: "collapse",
    help: "no fault: MADV_COLLAPSE of 2 MiB of base pages",
    in_throughput: false,
    allocates_tables: false,
    // What the lies change, advice and population, is the stage's own business here.
    cannot_tell: |asked| asked.lie != Lie::None,
    refuse: |asked| {
        let accepted = |page| page == PageSize::Thp;
        only(asked, accepted, "a collapse makes a THP; use page=2m")?;
        unpaced(asked)
    },
    needs: |asked| vec![COLLAPSE.needed(), Memory(asked.size + (4 << 20)).needed()],
    takes_fresh_memory: false,
    stage: |_, space, _| {
        let scattered = Expectation { huge: 0, ..populated(space) };
        space.advice = None;
        Ok(Box::new(Scattered { before: Before::new(scattered)? }))
    },
    ..FaultKind::PLAIN
};

/// Memory that is populated with base pages.
#[derive(Debug)]
struct Scattered {
    before: Before,
}

impl Stage for Scattered {
    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        disable_thp(true)?;
        populate(area);
        disable_thp(false)?;
        self.before.look(area)?;
        Ok(())
    }

    fn series(&self) -> &'static str {
        "call"
    }

    fn expect(&self, first_touch: Expectation) -> Expectation {
        Expectation { faults: 0, ..first_touch }
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        self.before.testify(witness);
        Ok(())
    }

    fn calls(&mut self, calls: Calls<'_>, record: &mut dyn FnMut(u64)) -> Called {
        Some(calls.area.time_collapses(calls.list, calls.clock, record))
    }
}
