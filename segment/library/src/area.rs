#![expect(unsafe_code, reason = "reserves what programs get; the rules are in lib.rs")]
//! A segment: a contiguous range of addresses, aligned to its leaf.
//!
//! A segment of ordinary memory is addresses and nothing else: they are mapped when they are taken
//! and unmapped when they are given back, so limits, locks and forks meet what the program has. No
//! address is reserved for it; it lies far from where the kernel places maps by itself, and whoever
//! maps it notices if another is there (`MAP_FIXED_NOREPLACE`).
//!
//! Memory that is set aside (a pool, the module) and memory that is zeroed ahead is mapped at once,
//! leaf by leaf (`back.rs`), and stays mapped.

use std::{
    ops::Range,
    ptr,
    sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering},
};

use pagelab_interpose::{
    Errno, Map,
    kernel::{self, OWN, USABLE},
    segment::{Backing, Leaf, Wish},
};

use crate::{
    filtered,
    ground::Ground,
    kept, pages,
    ranges::{self, Ranges},
};

pub(crate) use crate::ground::{PAGE, PMD, PUD};

/// Which end of a segment is used first, and lies at the edge of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grows {
    Up,
    Down,
}

/// Some addresses of a segment, set once.
#[derive(Debug)]
struct Piece {
    start: AtomicUsize,
    end: AtomicUsize,
}

impl Piece {
    const fn new() -> Self {
        Self { start: AtomicUsize::new(0), end: AtomicUsize::new(0) }
    }

    fn has(&self, at: usize) -> bool {
        (self.start.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed)).contains(&at)
    }
}

/// Where a segment lies; nowhere before it is reserved.
#[derive(Debug)]
pub(crate) struct Area {
    start: AtomicUsize,
    length: AtomicUsize,
    /// Whether its pages are mapped when they are taken.
    on_demand: AtomicBool,
    /// Leaves of a pool: of 1 GiB, and of 2 MiB.
    pools: [Piece; 2],
    /// The module's open file; negative where all is the kernel's.
    device: AtomicI32,
    /// A bit for each 2 MiB: a leaf of a pool that is ordinary memory by now, or of the module that
    /// may hold something though nothing is mapped.
    marks: AtomicPtr<AtomicU64>,
    top: AtomicUsize,
}

/// What lays memory, and answers with the part that it left over.
pub(crate) type Lay = fn(&Area, &Range<usize>, &Wish, Grows) -> Result<Range<usize>, Errno>;

impl Area {
    pub(crate) const fn new() -> Self {
        Self {
            start: AtomicUsize::new(0),
            length: AtomicUsize::new(0),
            on_demand: AtomicBool::new(false),
            pools: [const { Piece::new() }; 2],
            device: AtomicI32::new(-1),
            marks: AtomicPtr::new(ptr::null_mut()),
            top: AtomicUsize::new(0),
        }
    }

    /// Chooses addresses for so many bytes, whole pieces of 2 MiB; maps them, unless they are
    /// mapped on demand.
    pub(crate) fn reserve(
        &self,
        bytes: usize,
        wish: &Wish,
        grows: Grows,
        lay: Lay,
    ) -> Result<(), Errno> {
        let align = usize::try_from(wish.leaf.bytes()).unwrap_or(PMD).max(PMD);
        // The module's frames begin at a leaf.
        let grows = if wish.backing == Backing::Module { Grows::Up } else { grows };
        let length = bytes.checked_next_multiple_of(PMD).ok_or(libc::ENOMEM)?;
        if wish.is_on_demand() {
            let start = vacant(length, align, grows).ok_or(libc::ENOMEM)?;
            self.on_demand.store(true, Ordering::Relaxed);
            self.is_there(start, length);
            return Ok(());
        }
        let whole = length.checked_add(align).ok_or(libc::ENOMEM)?;
        // SAFETY: a new place, which the kernel chooses.
        let at = unsafe { kernel::map(&Map::new(whole, libc::PROT_NONE, OWN)) }?.addr();
        let start = match grows {
            Grows::Up => at.next_multiple_of(align),
            Grows::Down => (at + whole) / align * align - length,
        };
        let (before, after) = (start - at, at + whole - (start + length));
        for (start, length) in [(at, before), (start + length, after)] {
            if length > 0 {
                // SAFETY: mapped above, and nobody has seen it.
                unsafe { kernel::unmap(start, length) }?;
            }
        }
        let rest = lay(self, &(start..start + length), wish, grows)?;
        ordinary(&rest, wish.leaf)?;
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

    /// Whether its pages are mapped when they are taken, and not before.
    pub(crate) fn is_on_demand(&self) -> bool {
        self.on_demand.load(Ordering::Relaxed)
    }

    /// Whether some of its pages are as they were reserved, which is noted of maps only.
    pub(crate) fn is_plain(&self, part: &Range<usize>) -> bool {
        !ptr::eq(self, &raw const pages::AREA) || pages::is_plain(part)
    }

    /// Whether an address lies in it.
    pub(crate) fn has(&self, at: usize) -> bool {
        let start = self.start.load(Ordering::Acquire);
        // Its length is there before its start is.
        start != 0 && at.wrapping_sub(start) < self.length.load(Ordering::Relaxed)
    }

    /// The part of some addresses that lies in it.
    pub(crate) fn part(&self, of: &Range<usize>) -> Option<Range<usize>> {
        let own = self.range();
        let part = of.start.max(own.start)..of.end.min(own.end);
        (part.start < part.end).then_some(part)
    }

    /// A bit for each 2 MiB of `range`, none of them set.
    pub(crate) fn mark_by(&self, range: &Range<usize>) -> Result<(), Errno> {
        let words = ranges::words(range.len() / PMD);
        self.marks.store(kernel::table(words)?, Ordering::Release);
        Ok(())
    }

    /// These addresses are leaves of a pool.
    pub(crate) fn is_pool(&self, leaf: Leaf, range: &Range<usize>) {
        let piece = &self.pools[usize::from(leaf == Leaf::Pmd)];
        piece.start.store(range.start, Ordering::Relaxed);
        piece.end.store(range.end, Ordering::Relaxed);
    }

    /// All of it is the module's, by this open file; or the kernel's.
    pub(crate) fn is_of(&self, file: i32) {
        self.device.store(file, Ordering::Release);
    }

    /// All of it is ordinary memory from now on.
    pub(crate) fn is_ordinary(&self) {
        for piece in &self.pools {
            piece.end.store(0, Ordering::Relaxed);
        }
        self.is_of(-1);
    }

    /// The module's file.
    pub(crate) fn file(&self) -> Option<i32> {
        Some(self.device.load(Ordering::Acquire)).filter(|file| *file >= 0)
    }

    fn marks(&self) -> Option<(Ranges<'_>, usize)> {
        let words = self.marks.load(Ordering::Acquire);
        if words.is_null() {
            return None;
        }
        let range = self.range();
        let pieces = range.len() / PMD;
        // SAFETY: `mark_by` mapped so many words, zero, and for good.
        let words =
            unsafe { std::slice::from_raw_parts(words.cast_const(), ranges::words(pieces)) };
        Some((Ranges::of(words, pieces, &self.top), range.start))
    }

    /// Marks every 2 MiB of which some addresses are a part.
    pub(crate) fn mark(&self, range: &Range<usize>) {
        if let Some((marks, start)) = self.marks() {
            marks.hold((range.start - start) / PMD, (range.end - start).div_ceil(PMD));
        }
    }

    /// Whether the 2 MiB around an address are marked.
    pub(crate) fn is_marked(&self, at: usize) -> bool {
        self.marks().is_some_and(|(marks, start)| {
            let nth = (at - start) / PMD;
            marks.is_any_taken(nth, nth + 1)
        })
    }

    /// What lies at an address of it.
    pub(crate) fn ground(&self, at: usize) -> Ground {
        if self.file().is_some() {
            return Ground::Module;
        }
        let leaves = [Leaf::Pud, Leaf::Pmd];
        let pool = self.pools.iter().zip(leaves).find(|(piece, _)| piece.has(at));
        match pool {
            Some((_, leaf)) if !self.is_marked(at) => Ground::Pool(leaf),
            _ => Ground::Ordinary,
        }
    }

    /// Whether a part of it is of leaves that the kernel cannot split.
    pub(crate) fn has_pool(&self) -> bool {
        self.pools.iter().any(|piece| piece.end.load(Ordering::Relaxed) > 0)
    }

    /// Whether some of it was set aside for this program alone.
    pub(crate) fn is_set_aside(&self) -> bool {
        self.has_pool() || self.file().is_some()
    }

    /// Goes through some of its addresses, by runs of one kind of memory.
    pub(crate) fn runs(
        &self,
        part: &Range<usize>,
        mut each: impl FnMut(Ground, &Range<usize>) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let mut start = part.start;
        while start < part.end {
            let ground = self.ground(start);
            let mut end = start;
            while end < part.end && self.ground(end) == ground {
                end = (end / ground.step() + 1) * ground.step();
            }
            let run = start..end.min(part.end);
            each(ground, &run)?;
            start = run.end;
        }
        Ok(())
    }
}

/// Addresses for so many bytes, of which the first (or where it grows down, the end) is a multiple
/// of `align`.
///
/// The kernel maps from the top of the address space down, and where the stack has no limit from
/// its third up: this library lies where its first maps do, and few programs have 512 GiB of them.
pub(crate) fn vacant(length: usize, align: usize, grows: Grows) -> Option<usize> {
    /// Whatever was chosen last lies from here on.
    static CHOSEN: AtomicUsize = AtomicUsize::new(usize::MAX);
    const APART: usize = 512 << 30;
    /// No write beyond the end of one is in another, and no program lies below.
    const GAP: usize = 1 << 30;
    const LEAST: usize = 64 << 30;
    let first = (&raw const CHOSEN).addr().checked_sub(APART)?;
    let start = |chosen: usize| {
        let end = chosen.min(first).checked_sub(GAP)?;
        let start = match grows {
            Grows::Up => end.checked_sub(length)? / align * align,
            Grows::Down => (end / align * align).checked_sub(length)?,
        };
        (start >= LEAST).then_some(start)
    };
    let chosen = CHOSEN.fetch_update(Ordering::AcqRel, Ordering::Acquire, start).ok()?;
    start(chosen)
}

/// Maps ordinary memory where nobody has any; of it as much is promised as of a program's own.
///
/// # Errors
/// With `EEXIST` where somebody has, and with whatever the kernel says.
pub(crate) fn map(range: &Range<usize>) -> Result<(), Errno> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: nothing is there.
    kept::spared(|| unsafe { kernel::map(&Map::at(range, USABLE, flags)) }).map(drop)
}

/// Asks for the leaf's pages.
pub(crate) fn advise_leaf(start: usize, length: usize, leaf: Leaf) {
    if filtered::is_set() {
        return;
    }
    let advice = if leaf == Leaf::Base { libc::MADV_NOHUGEPAGE } else { libc::MADV_HUGEPAGE };
    // A kernel without huge pages serves small ones, which is told by what is there in the end.
    // SAFETY: only the sizes of pages change, never what they hold.
    let _ = unsafe { kernel::advise(start, length, advice) };
}

/// Lays ordinary memory, which is zero, over what was there.
pub(crate) fn ordinary(range: &Range<usize>, leaf: Leaf) -> Result<(), Errno> {
    if range.is_empty() {
        return Ok(());
    }
    // SAFETY: the caller gives back what is there.
    unsafe { kernel::map(&Map::at(range, USABLE, OWN | libc::MAP_FIXED)) }?;
    advise_leaf(range.start, range.len(), leaf);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_lies_in_a_segment_whose_length_is_there_before_its_start() {
        let area = Area::new();
        area.length.store(1 << 20, Ordering::Relaxed);
        assert!(!area.has(0) && !area.has(4096));
        area.is_there(1 << 30, 1 << 20);
        assert!(area.has(1 << 30) && area.has((1 << 30) + 4096) && !area.has(4096));
    }
}
