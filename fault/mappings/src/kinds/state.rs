//! What stages have in common: populating memory, and proving the state that touches start from.
//!
//! The one idea: a kind that starts from populated memory looks, after its last preparation, at
//! what the page table says, so that a page that is of another size or not there at all is noticed
//! even where the touches hide it. And where kernels differ in whether a touch faults, a probe on a
//! few pages says what this one does before anything is claimed of a million.

use pagelab_bench::{Error, PageSize, Witness};
use pagelab_record::vocabulary::Check;
use pagelab_sys::{
    Area,
    memory::{Layout, Residency, Scanner},
    time::usage,
};

use crate::{Asked, Expectation, Lie, Space, page_bytes, populate::touch_all};

/// What the page table said before the touches, beside what it was to say.
#[derive(Debug)]
pub(super) struct Before {
    pub(super) expected: Expectation,
    scanner: Scanner,
    found: Residency,
}

impl Before {
    pub(super) fn new(expected: Expectation) -> Result<Self, Error> {
        Ok(Self { expected, scanner: Scanner::open()?, found: Residency::default() })
    }

    pub(super) fn look(&mut self, area: &Area) -> Result<Residency, Error> {
        self.found = self.scanner.scan(area)?;
        Ok(self.found)
    }

    /// Claims that so much was there.
    pub(super) fn testify(&self, witness: &mut Witness) {
        let Self { expected, found: Residency { present, huge, .. }, .. } = *self;
        witness.expect(Check::PresentBefore, expected.present, present);
        witness.expect(Check::HugeBefore, expected.huge, huge);
    }
}

/// What populating the whole space leaves: as many pages as a first touch of each.
pub(super) fn populated(space: &Space) -> Expectation {
    space.expectation(space.once())
}

/// A few pages of the space's kind, brought into some state by `prepare` and stored to again:
/// whether each store faulted, or none did.
pub(super) fn faults_again(
    space: &Space,
    prepare: impl Fn(&mut Area) -> Result<(), Error>,
) -> Result<bool, Error> {
    let once = || -> Result<u64, Error> {
        let mut area = sample(space)?;
        touch_all(&area);
        prepare(&mut area)?;
        let before = usage::thread().minor_faults;
        area.touch(0, area.layout().bytes(), space.once());
        Ok(usage::thread().minor_faults - before)
    };
    // The first round takes the faults of the code.
    once()?;
    let pages = sample_bytes(space) / page_bytes(space.page);
    match once()? {
        0 => Ok(false),
        faults if faults == pages as u64 => Ok(true),
        faults => Err(Error::Case(format!(
            "{faults} of {pages} stores faulted where all or none should: this kernel treats equal \
             pages differently, so that no one cost can be named"
        ))),
    }
}

fn sample_bytes(space: &Space) -> usize {
    page_bytes(space.page).max(16 << 12)
}

/// A small area of the space's pages: mapped, advised, not touched.
pub(super) fn sample(space: &Space) -> Result<Area, Error> {
    let small = Space { layout: Layout::contiguous(sample_bytes(space)), skew: 0, ..*space };
    Ok(small.mapped()?)
}

/// Base pages of which each is a mapping of its own.
pub(super) mod single {
    use pagelab_sys::memory::Layout;

    use crate::{Asked, Space, needs::Mappings};

    /// Where somebody must choose a size, each page having a guard behind it: the default of
    /// `vm.max_map_count` is 65530.
    pub(in super::super) const SIZE_MAX: u64 = 64 << 20;

    /// A page and the guard after it; the rest of the process has far less than a thousand.
    pub(in super::super) fn mappings(asked: &Asked) -> Mappings {
        Mappings((2 * asked.size / 4096 + 1000).max(65530))
    }

    /// Lays the space out so.
    pub(in super::super) fn lay(space: &mut Space) {
        let windows = space.layout.bytes() / 4096;
        space.layout = Layout { window: 4096, stride: 8192, windows };
    }
}

/// Refuses every page size that is not listed.
pub(super) fn only(
    asked: &Asked,
    accepts: impl Fn(PageSize) -> bool,
    why: &str,
) -> Result<(), String> {
    let page = asked.page;
    if accepts(page) {
        return Ok(());
    }
    Err(format!("kind={} with page={page}: {why}", asked.kind.name))
}

/// Whether a lie changes nothing for memory that is populated before the touches anyway.
pub(super) fn is_true_of_populated(asked: &Asked) -> bool {
    let is_plain = matches!(asked.page, PageSize::Base | PageSize::Hugetlb(_));
    asked.lie == Lie::EarlyPopulate && is_plain
}

/// The same, for memory that is touched once more without a fault anyway.
pub(super) fn is_true_of_present(asked: &Asked) -> bool {
    is_true_of_populated(asked) || asked.lie == Lie::Present
}

/// Refuses a rate, and a walk between two samples, for a kind whose samples are calls.
pub(super) fn unpaced(asked: &Asked) -> Result<(), String> {
    match asked.rate {
        None if asked.walks => Err(format!(
            "kind={} with caches=cold: nothing is walked over between calls; leave caches at warm",
            asked.kind.name
        )),
        None => Ok(()),
        Some(rate) => Err(format!(
            "kind={} with rate={rate}: calls are not paced; leave rate at max",
            asked.kind.name
        )),
    }
}
