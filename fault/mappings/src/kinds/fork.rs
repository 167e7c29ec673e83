//! Pages that a forked process holds too, and pages that it held: copy, or reuse.
//!
//! The holder is forked after the area was populated and sleeps. As long as it lives a store copies
//! the page (`wp_page_copy`); once it is gone the last owner keeps the page and is only given the
//! right to write (`wp_page_reuse`, or its likes for larger pages). Both are one minor fault, so
//! the proof is elsewhere: in who maps the pages before and after, and for root in their frames.
//!
//! Which of the two processes stores makes no difference to the kernel; here it is the parent,
//! whose page tables exist. The fork's other copies, of the loop's own data, are taken off the
//! clock.

use pagelab_bench::{
    Error, Need, PageSize, Witness,
    needs::{Memory, POPULATE_WRITE, Pool},
};
use pagelab_record::vocabulary::Check;
use pagelab_sys::{
    Area,
    counts::Counters,
    loops::fork::{self, Holder},
    memory::{Ranges, account::Frames},
};

use super::state::{Before, is_true_of_populated, only, populated};
use crate::{Expectation, FaultKind, Space, Stage, populate::touch_all};

/// What both have in common.
const OF_FORK: FaultKind = FaultKind {
    allocates_tables: false,
    cannot_tell: is_true_of_populated,
    needs: |_| vec![POPULATE_WRITE.needed()],
    ..FaultKind::PLAIN
};

/// A store to a page that a forked process holds too.
pub(super) const COW: FaultKind = FaultKind {
    name: "fork-cow",
    help: "store to a page that a forked process holds too: copies it",
    refuse: |asked| {
        let why = "a store copies one base page out of a large folio; use page=4k";
        only(asked, |page| !page.is_folio(), why)
    },
    needs: |asked| {
        // Both processes' pages at once.
        let mut needs = vec![POPULATE_WRITE.needed(), Memory(2 * asked.size).needed()];
        if let PageSize::Hugetlb(shift) = asked.page {
            let pages = 2 * asked.size.div_ceil(1 << shift);
            needs.push(Pool { shift, pages }.needed());
        }
        needs
    },
    stage: |_, space, _| Ok(Box::new(Shared::new(space, true)?)),
    ..OF_FORK
};

/// A store to a page that a forked process held: the last owner keeps it.
pub(super) const REUSE: FaultKind = FaultKind {
    name: "reuse",
    help: "store to a page that a forked process held until it ended: no copy",
    takes_fresh_memory: false,
    refuse: |asked| {
        let why = "kernels differ in whether they reuse a part of a large folio; use page=4k or 2m";
        only(asked, |page| !page.is_folio(), why)
    },
    stage: |_, space, _| Ok(Box::new(Shared::new(space, false)?)),
    ..OF_FORK
};

/// Populated memory that a forked process holds, or held.
#[derive(Debug)]
struct Shared {
    page: PageSize,
    is_held: bool,
    holder: Option<Holder>,
    ranges: Ranges,
    before: Before,
    frames: [Frames; 2],
    reused: Counters,
}

impl Shared {
    fn new(space: &Space, is_held: bool) -> Result<Self, Error> {
        Ok(Self {
            page: space.page,
            is_held,
            holder: None,
            ranges: Ranges::default(),
            before: Before::new(populated(space))?,
            frames: Default::default(),
            reused: Counters::default(),
        })
    }
}

impl Stage for Shared {
    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        touch_all(area);
        self.ranges = area.ranges();
        let holder = Holder::fork()?;
        self.holder = self.is_held.then_some(holder);
        self.before.look(area)?;
        self.frames[0] = Frames::read(&self.ranges)?;
        self.reused = Counters::read(None);
        // Last: whatever was allocated since the fork is settled, too.
        fork::settle(&self.ranges)?;
        Ok(())
    }

    fn done(&mut self) -> Result<(), Error> {
        self.reused = Counters::read(None).since(&self.reused);
        // While the holder lives: what is exclusive now was copied.
        self.frames[1] = Frames::read(&self.ranges)?;
        self.holder = None;
        Ok(())
    }

    fn expect(&self, first_touch: Expectation) -> Expectation {
        // The PMD of a shared THP is split, and one of its base pages copied.
        let splits = self.is_held && self.page == PageSize::Thp;
        Expectation { huge: if splits { 0 } else { first_touch.huge }, ..first_touch }
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let all = self.before.expected.present;
        self.before.testify(witness);
        let [before, after] = &self.frames;
        let alone = "base pages that nobody else maps, before the touches";
        if !self.is_held {
            witness.expect((Check::UnsharedBefore, alone), all, before.exclusive());
            if let Some(moved) = after.moved_since(before) {
                witness.expect(Check::FramesMoved, 0, moved);
            }
            if self.page == PageSize::Base
                && let Some(reused) = self.reused.get("pgreuse")
            {
                witness.expect_at_least(Check::ReusedByOwner, all, reused);
            }
            return Ok(());
        }
        witness.expect((Check::UnsharedBefore, alone), 0, before.exclusive());
        // Of a THP one base page is copied; of the others all.
        let copied = if self.page == PageSize::Thp { self.before.expected.faults } else { all };
        witness.expect(Check::UnsharedAfter, copied, after.exclusive());
        if let Some(moved) = after.moved_since(before) {
            witness.expect(Check::FramesMoved, copied, moved);
        }
        Ok(())
    }
}
