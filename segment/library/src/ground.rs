//! What is behind an address of a segment.

use pagelab_interpose::{kernel, segment::Leaf};

/// A base page.
pub(crate) const PAGE: usize = 4096;
/// What segments are cut by: no leaf that a kernel needs alignment for is smaller.
pub(crate) const PMD: usize = 2 << 20;
/// A leaf of 1 GiB.
pub(crate) const PUD: usize = 1 << 30;

/// Which kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// Private anonymous memory.
    Ordinary,
    /// A page of a pool.
    Pool(Leaf),
    /// Frames of the module.
    Module,
}

impl Ground {
    /// It changes at multiples of so many bytes only.
    pub(crate) fn step(self) -> usize {
        if self == Self::Pool(Leaf::Pud) { PUD } else { PMD }
    }
}

/// Whether a page of some addresses is there; of a pool's leaf one is enough.
pub(crate) fn is_present(at: usize) -> bool {
    let mut answer = [0_u8];
    kernel::present(at, PAGE, &mut answer) && answer[0] & 1 == 1
}
