//! Pages that were given up, freed, or protected, and are stored to again.
//!
//! `dontneed` and `free-reclaimed` are first touches over page tables that exist already: what they
//! lack to a first touch is the table, what they have in common is the page that is allocated and
//! cleared. `free` and `mprotect` are the two that people expect a fault of and that mostly take
//! none: after `MADV_FREE` the processor itself marks the page dirty (x86-64), and since Linux 6.0
//! `mprotect` makes page-table entries writable at once where nobody else has the page. A probe on
//! a few pages decides what is claimed, and the series is called `touch` where nothing faults.

use pagelab_bench::{Error, PageSize, Witness};
use pagelab_record::vocabulary::Check;
use pagelab_sys::{
    Area,
    memory::{Ranges, account},
};

use super::state::{
    Before, faults_again, is_true_of_populated, is_true_of_present, only, populated,
};
use crate::{Asked, Expectation, FaultKind, Lie, Space, Stage, page_bytes, populate::touch_all};

/// A store to a page that was given up by `MADV_DONTNEED`.
pub(super) const DONT_NEED: FaultKind = FaultKind {
    name: "dontneed",
    help: "store after MADV_DONTNEED: allocates again, the page table is there",
    allocates_tables: false,
    cannot_tell: is_true_of_populated,
    takes_fresh_memory: false,
    stage: |_, space, _| {
        let page = page_bytes(space.page);
        // Below 2 MiB a call leaves the page table; a larger page is given up whole.
        let piece = page.max(1 << 20);
        Ok(Box::new(Gone::new(space, Loss::Given { piece })?))
    },
    ..FaultKind::PLAIN
};

/// A store to a page that was freed by `MADV_FREE` and then taken.
pub(super) const FREE_RECLAIMED: FaultKind = FaultKind {
    name: "free-reclaimed",
    help: "store after MADV_FREE and reclaim (MADV_PAGEOUT): the page is gone",
    allocates_tables: false,
    cannot_tell: is_true_of_populated,
    refuse: |asked| {
        not_hugetlb(asked, "hugetlb pages cannot be freed lazily; use kind=dontneed")?;
        let why = "reclaim takes a THP apart and leaves a table of base pages, so that what is \
                   allocated again is a base page; use page=4k, or kind=dontneed";
        only(asked, |page| page != PageSize::Thp, why)
    },
    takes_fresh_memory: false,
    stage: |_, space, _| Ok(Box::new(Gone::new(space, Loss::Taken)?)),
    ..FaultKind::PLAIN
};

/// How populated memory was lost.
#[derive(Debug, Clone, Copy)]
enum Loss {
    /// `MADV_DONTNEED` in pieces of so many bytes.
    Given { piece: usize },
    /// `MADV_FREE`, then `MADV_PAGEOUT`.
    Taken,
}

/// Attempts at reclaiming what was freed: pages that another CPU's lists hold are passed over.
const TAKINGS_MAX: u32 = 50;

/// Memory that was populated and is gone, under page tables that stayed.
#[derive(Debug)]
struct Gone {
    loss: Loss,
    page: PageSize,
    before: Before,
    tables_lost_kib: u64,
}

impl Gone {
    fn new(space: &Space, loss: Loss) -> Result<Self, Error> {
        Ok(Self {
            loss,
            page: space.page,
            before: Before::new(Expectation::default())?,
            tables_lost_kib: 0,
        })
    }
}

impl Stage for Gone {
    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        touch_all(area);
        let tables = account::page_tables_kib()?;
        match self.loss {
            Loss::Given { piece } => {
                area.give_up(piece)?;
                self.before.look(area)?;
            }
            Loss::Taken => {
                for _ in 0..TAKINGS_MAX {
                    area.free_lazily()?;
                    area.page_out()?;
                    if self.before.look(area)?.present == 0 {
                        break;
                    }
                    std::thread::yield_now();
                }
            }
        }
        self.tables_lost_kib = tables.saturating_sub(account::page_tables_kib()?);
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        self.before.testify(witness);
        // A THP takes its table along, whoever gives it up.
        if matches!(self.page, PageSize::Base | PageSize::Folio(_)) {
            witness.expect(Check::TablesGivenBack, 0, self.tables_lost_kib);
        }
        Ok(())
    }
}

/// A store to a page that was freed by `MADV_FREE` and not taken.
pub(super) const FREE: FaultKind = FaultKind {
    name: "free",
    help: "store after MADV_FREE, before reclaim: no fault on x86-64",
    allocates_tables: false,
    cannot_tell: is_true_of_present,
    refuse: |asked| {
        not_hugetlb(asked, "hugetlb pages cannot be freed lazily; use kind=dontneed")?;
        no_folio(asked)
    },
    takes_fresh_memory: false,
    stage: |_, space, _| Ok(Box::new(Kept::new(space, Change::Freed)?)),
    ..FaultKind::PLAIN
};

/// A store to a page that was protected and is writable again.
pub(super) const PROTECT: FaultKind = FaultKind {
    name: "mprotect",
    help: "store after mprotect to read-only and back: no fault since Linux 6.0",
    allocates_tables: false,
    cannot_tell: |asked| {
        // Where the kernel takes no fault, a load takes none either.
        is_true_of_present(asked) || asked.lie == Lie::Read
    },
    refuse: |asked| no_folio(asked),
    takes_fresh_memory: false,
    stage: |_, space, _| Ok(Box::new(Kept::new(space, Change::Protected)?)),
    ..FaultKind::PLAIN
};

/// What happened to memory that stayed present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Freed,
    Protected,
}

impl Change {
    fn apply(self, area: &mut Area) -> Result<(), Error> {
        match self {
            Self::Freed => area.free_lazily()?,
            Self::Protected => area.protect_and_back()?,
        }
        Ok(())
    }
}

/// Memory that is present, and of which a probe said whether a store faults.
#[derive(Debug)]
struct Kept {
    change: Change,
    faults: bool,
    before: Before,
    ranges: Ranges,
    lazy_kib: [u64; 2],
}

impl Kept {
    fn new(space: &Space, change: Change) -> Result<Self, Error> {
        Ok(Self {
            change,
            faults: faults_again(space, |area| change.apply(area))?,
            before: Before::new(populated(space))?,
            ranges: Ranges::default(),
            lazy_kib: [0; 2],
        })
    }

    fn lazy_kib(&self) -> Result<u64, Error> {
        Ok(account::smaps_kib(&self.ranges, "LazyFree")?)
    }
}

impl Stage for Kept {
    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        touch_all(area);
        self.change.apply(area)?;
        self.ranges = area.ranges();
        self.before.look(area)?;
        self.lazy_kib[0] = self.lazy_kib()?;
        Ok(())
    }

    fn done(&mut self) -> Result<(), Error> {
        self.lazy_kib[1] = self.lazy_kib()?;
        Ok(())
    }

    fn series(&self) -> &'static str {
        if self.faults { "fault" } else { "touch" }
    }

    fn expect(&self, first_touch: Expectation) -> Expectation {
        let faults = if self.faults { first_touch.faults } else { 0 };
        Expectation { faults, ..first_touch }
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        self.before.testify(witness);
        if self.change == Change::Freed {
            let all_kib = self.before.expected.present * 4;
            let [before, after] = self.lazy_kib;
            witness.expect(Check::LazyBefore, all_kib, before);
            witness.expect(Check::LazyAfter, 0, after);
        }
        let stores = u64::from(self.faults);
        witness.set("faults_of_a_store_by_the_probe", stores);
        Ok(())
    }
}

fn not_hugetlb(asked: &Asked, why: &str) -> Result<(), String> {
    only(asked, |page| !matches!(page, PageSize::Hugetlb(_)), why)
}

fn no_folio(asked: &Asked) -> Result<(), String> {
    let why = "nothing of that size is allocated, so that the size could not be proven; use \
               page=4k or 2m";
    only(asked, |page| !matches!(page, PageSize::Folio(_)), why)
}
