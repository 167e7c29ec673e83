//! The huge zero page: 2 MiB of nothing, shared by all who read before they write.
//!
//! It is made once for the machine and kept while any process has used it, so one page of it is
//! mapped before the clock starts and stays until the case's process ends: no sample makes it. What
//! kernels tell of it differs (before Linux 6.7 `smaps` has no word for it, and until 6.17 the page
//! table's zero bit was for the small one only), so what this one says of one such page is
//! what it must say of all; that it takes no memory is claimed of every kernel.
//!
//! A store to it splits the PMD and allocates one base page; since Linux 6.13 it allocates a THP
//! instead. Again one page is asked, before anything is claimed.

use pagelab_bench::{Error, Witness, needs::Setting};
use pagelab_record::vocabulary::Check;
use pagelab_sys::{
    Area,
    counts::Counters,
    loops::Stride,
    memory::{Advice, Ranges, Residency, Scanner, account},
};

use super::state;
use crate::{Expectation, Space, Stage};

/// One load in each 2 MiB.
const EACH_PMD: Stride = Stride { step: 2 << 20, bytes: 8 };
const PAGES_OF_PMD: u64 = 512;

/// What the huge zero page needs.
pub(super) const NEED: Setting =
    Setting::new("/sys/kernel/mm/transparent_hugepage/use_zero_page", "1");

/// Memory that maps the huge zero page, or is about to.
#[derive(Debug)]
pub(super) struct HugeZero {
    /// Keeps the huge zero page in being.
    _one: Area,
    scanner: Scanner,
    /// What one page of it looks like here.
    zero: Residency,
    /// What it looks like after a store; `None` where the touches are loads.
    stored: Option<Residency>,
    ranges: Ranges,
    before: Residency,
    rss_kib: u64,
    moved: Counters,
}

impl HugeZero {
    /// For loads of untouched memory, or for stores to what was loaded.
    pub(super) fn new(space: &Space, is_stored: bool) -> Result<Self, Error> {
        let scanner = Scanner::open()?;
        // Honest even where the case lies: the difference is what the witness looks for.
        let space = &Space { advice: Some(Advice::HugePage), ..*space };
        let one = state::sample(space)?;
        one.read(EACH_PMD);
        let zero = scanner.scan(&one)?;
        let rss_kib = account::smaps_kib(&one.ranges(), "Rss")?;
        if zero.present != PAGES_OF_PMD || rss_kib > 0 {
            return Err(Error::Case(format!(
                "a load of a 2 MiB page mapped {} base pages and {rss_kib} KiB of memory, not the \
                 huge zero page: is THP allowed for this process?",
                zero.present
            )));
        }
        let stored = if is_stored {
            let other = state::sample(space)?;
            other.read(EACH_PMD);
            other.touch(0, 2 << 20, EACH_PMD);
            Some(scanner.scan(&other)?)
        } else {
            None
        };
        Ok(Self {
            _one: one,
            scanner,
            zero,
            stored,
            ranges: Ranges::default(),
            before: Residency::default(),
            rss_kib: 0,
            moved: Counters::default(),
        })
    }
}

impl Stage for HugeZero {
    fn ready(&mut self, area: &mut Area) -> Result<(), Error> {
        self.ranges = area.ranges();
        if self.stored.is_some() {
            area.read(EACH_PMD);
        }
        self.before = self.scanner.scan(area)?;
        self.moved = Counters::read(None);
        Ok(())
    }

    fn done(&mut self) -> Result<(), Error> {
        self.moved = Counters::read(None).since(&self.moved);
        self.rss_kib = account::smaps_kib(&self.ranges, "Rss")?;
        Ok(())
    }

    fn expect(&self, first_touch: Expectation) -> Expectation {
        let one = self.stored.unwrap_or(self.zero);
        let pages = first_touch.faults;
        Expectation {
            present: pages * one.present,
            huge: pages * one.huge,
            zero: pages * one.zero.unwrap_or(0),
            ..first_touch
        }
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let pages = (self.ranges.bytes() >> 21) as u64;
        let (present, memory) = match self.stored {
            None => (0, 0),
            // All of a THP, or the one base page that was stored to.
            Some(after) if after.zero == Some(0) || after.huge > 0 => (PAGES_OF_PMD, PAGES_OF_PMD),
            Some(_) => (PAGES_OF_PMD, 1),
        };
        witness.expect(Check::PresentBefore, pages * present, self.before.present);
        witness.expect(Check::MemoryTaken, pages * memory * 4, self.rss_kib);
        if let Some(made) = self.moved.get("thp_zero_page_alloc") {
            witness.expect(Check::HugeZeroMade, 0, made);
        }
        if self.stored.is_some() {
            witness.set("base_pages_allocated_by_a_store", memory);
        }
        Ok(())
    }
}
