#![expect(unsafe_code, reason = "copies what programs have; the rules are in lib.rs")]
//! Copies of memory that the kernel does not copy: made beside it, then moved to its place.
//!
//! The one idea: `mremap` puts a whole range in place of another at once, so that nobody sees an
//! address without memory. A copy lies in 2 MiB as what it is made of, so that it can have huge
//! pages, too.

use std::{ops::Range, ptr};

use pagelab_interpose::{
    Errno, Map,
    kernel::{self, OWN, USABLE},
};

use crate::{
    area::{self, PMD},
    orders,
};

/// Puts a copy of what is there into its place, in ordinary memory; what is not there is zero.
///
/// Nobody may write to it meanwhile.
pub(crate) fn replace(range: &Range<usize>, is_there: impl Fn(usize) -> bool) -> Result<(), Errno> {
    let place = staging(range.len())?;
    fill(place, range, is_there);
    settle(place, range).inspect_err(|_| kernel::forgotten(place, range.len()))
}

/// Copies what is there of some addresses, by pieces of 2 MiB; how many bytes that were.
pub(crate) fn fill(place: usize, range: &Range<usize>, is_there: impl Fn(usize) -> bool) -> usize {
    let mut copied = 0;
    for piece in (0..range.len()).step_by(PMD) {
        if is_there(range.start + piece) {
            let length = PMD.min(range.len() - piece);
            let source = ptr::with_exposed_provenance::<u8>(range.start + piece);
            let goal = ptr::with_exposed_provenance_mut::<u8>(place + piece);
            // SAFETY: both are mapped for so long, and do not overlap.
            unsafe { ptr::copy_nonoverlapping(source, goal, length) };
            copied += length;
        }
    }
    copied
}

/// Copies memory to pages that were just taken.
pub(crate) fn copy(from: &Range<usize>, to: usize) {
    fill(to, from, |_| true);
}

/// Moves a copy to the place of what it was made of.
pub(crate) fn settle(place: usize, range: &Range<usize>) -> Result<(), Errno> {
    let (length, flags) = (range.len(), libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED);
    // SAFETY: the same contents at the same addresses, all at once.
    unsafe { kernel::remap(place, length, length, flags, range.start) }.map(drop)
}

/// Ordinary memory that begins at a multiple of 2 MiB.
pub(crate) fn staging(length: usize) -> Result<usize, Errno> {
    let whole = length + PMD;
    // SAFETY: a new place, which the kernel chooses.
    let at = unsafe { kernel::map(&Map::new(whole, USABLE, OWN)) }?.addr();
    let place = at.next_multiple_of(PMD);
    for (start, rest) in [(at, place - at), (place + length, at + whole - (place + length))] {
        if rest > 0 {
            kernel::forgotten(start, rest);
        }
    }
    area::advise_leaf(place, length, orders::leaf());
    Ok(place)
}
