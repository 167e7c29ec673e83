#![expect(unsafe_code, reason = "reserves what programs get; the rules are in lib.rs")]
//! A segment: a contiguous range of addresses, aligned to its leaf.
//!
//! The one idea: a segment is private anonymous memory of one mapping, advised once, so that the
//! kernel can serve it by large pages wherever a whole one lies in it, and copies it on a write
//! after a fork. A page of it that is given back is zero when it is taken again.

use std::{
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering},
};

use pagelab_sys::process::{preload::edge::Errno, segment::Leaf};

use crate::kernel::{self, Map, OWN, USABLE};

/// A base page.
pub(crate) const PAGE: usize = 4096;
/// What segments are cut by: no leaf that a kernel needs alignment for is smaller.
pub(crate) const PMD: usize = 2 << 20;

/// Where a segment lies; nowhere before it is reserved.
#[derive(Debug)]
pub(crate) struct Area {
    start: AtomicUsize,
    length: AtomicUsize,
}

impl Area {
    pub(crate) const fn new() -> Self {
        Self { start: AtomicUsize::new(0), length: AtomicUsize::new(0) }
    }

    /// Reserves so many bytes, and a leaf's rest.
    pub(crate) fn reserve(&self, bytes: usize, leaf: Leaf) -> Result<(), Errno> {
        let align = align(leaf);
        let length = bytes.checked_next_multiple_of(align).ok_or(libc::ENOMEM)?;
        let whole = length.checked_add(align).ok_or(libc::ENOMEM)?;
        let map =
            Map { address: 0, length: whole, access: USABLE, flags: OWN, file: -1, offset: 0 };
        // SAFETY: a new place, which the kernel chooses.
        let at = unsafe { kernel::map(&map) }?.addr();
        let start = at.next_multiple_of(align);
        let (before, after) = (start - at, at + whole - (start + length));
        if before > 0 {
            // SAFETY: mapped above, and nobody has seen it.
            unsafe { kernel::unmap(at, before) }?;
        }
        if after > 0 {
            // SAFETY: as above.
            unsafe { kernel::unmap(start + length, after) }?;
        }
        advise_leaf(start, length, leaf);
        self.is_there(start, length);
        Ok(())
    }

    /// It lies there.
    pub(crate) fn is_there(&self, start: usize, length: usize) {
        self.length.store(length, Ordering::Relaxed);
        self.start.store(start, Ordering::Release);
    }

    /// Its addresses; none before it is reserved.
    pub(crate) fn range(&self) -> Range<usize> {
        let start = self.start.load(Ordering::Acquire);
        if start == 0 { 0..0 } else { start..start + self.length.load(Ordering::Relaxed) }
    }

    /// Whether an address lies in it.
    pub(crate) fn has(&self, at: usize) -> bool {
        at.wrapping_sub(self.start.load(Ordering::Acquire)) < self.length.load(Ordering::Relaxed)
    }

    /// The part of some addresses that lies in it.
    pub(crate) fn part(&self, of: &Range<usize>) -> Option<Range<usize>> {
        let own = self.range();
        let part = of.start.max(own.start)..of.end.min(own.end);
        (part.start < part.end).then_some(part)
    }
}

/// What a segment is aligned to: no leaf is smaller than what huge pages need.
fn align(leaf: Leaf) -> usize {
    usize::try_from(leaf.bytes().max(Leaf::Pmd.bytes())).unwrap_or(usize::MAX)
}

/// Asks for the leaf's pages.
pub(crate) fn advise_leaf(start: usize, length: usize, leaf: Leaf) {
    let advice = if leaf == Leaf::Base { libc::MADV_NOHUGEPAGE } else { libc::MADV_HUGEPAGE };
    // A kernel without huge pages serves small ones, which is told by what is there in the end.
    // SAFETY: only the sizes of pages change, never what they hold.
    let _ = unsafe { kernel::advise(start, length, advice) };
}

/// Makes some addresses of a segment what they were when it was reserved, and zero.
pub(crate) fn renew(range: &Range<usize>, leaf: Leaf) -> Result<(), Errno> {
    let (address, length) = (range.start, range.len());
    let flags = OWN | libc::MAP_FIXED;
    let map = Map { address, length, access: USABLE, flags, file: -1, offset: 0 };
    // SAFETY: the caller gives back what is there.
    unsafe { kernel::map(&map) }?;
    advise_leaf(address, length, leaf);
    Ok(())
}
