//! What the kernel keeps about pages of this process beyond their being there: who else maps them,
//! which frame they lie in, whether they may be taken, what the page table itself costs.
//!
//! Read back off the clock, as evidence for kinds of fault that leave the same pages present. Frame
//! numbers are for `CAP_SYS_ADMIN` only; everything else is for everybody.

use std::ops::Range;

use crate::{
    Called, SysError,
    machine::{
        Tree,
        proc::{self, mappings},
    },
    memory::{
        Ranges,
        pagemap::{EXCLUSIVE, FRAME, PRESENT, Pagemap},
    },
};
/// The page-table entries of some ranges at one moment, one for each base page.
#[derive(Debug, Clone, Default)]
pub struct Frames(Vec<u64>);

impl Frames {
    /// Reads them.
    ///
    /// # Errors
    /// When `/proc` is not mounted.
    pub fn read(ranges: &Ranges) -> Result<Self, SysError> {
        let (pagemap, mut entries) = (Pagemap::open()?, Vec::new());
        for (start, end) in ranges.iter() {
            pagemap.each(start, end, |entry| entries.push(entry))?;
        }
        Ok(Self(entries))
    }

    /// Reads those of a range of addresses of this process.
    ///
    /// # Errors
    /// When `/proc` is not mounted.
    pub fn of_range(start: usize, end: usize) -> Result<Self, SysError> {
        let mut entries = Vec::new();
        Pagemap::open()?.each(start, end, |entry| entries.push(entry))?;
        Ok(Self(entries))
    }

    /// Base pages of one leaf, which begins where these do and is aligned to its bytes, that do not
    /// lie in it as their addresses do: contiguous, and equal to them modulo the leaf. `None` where
    /// the kernel does not tell this user.
    pub fn astray(&self) -> Option<u64> {
        let known = |entry: &u64| entry & PRESENT != 0 && entry & FRAME != 0;
        if !self.0.iter().all(known) {
            return None;
        }
        let first = self.0.first().map_or(0, |entry| entry & FRAME);
        let is_aligned = first.is_multiple_of((self.0.len() as u64).max(1));
        let place = |(nth, entry): (usize, &u64)| entry & FRAME == first + nth as u64;
        let lie = self.0.iter().enumerate().filter(|page| is_aligned && place(*page)).count();
        Some((self.0.len() - lie) as u64)
    }

    /// Base pages that are mapped here and by nobody else.
    pub fn exclusive(&self) -> u64 {
        let both = PRESENT | EXCLUSIVE;
        self.0.iter().filter(|entry| **entry & both == both).count() as u64
    }

    /// Base pages that lie in another frame than they did `earlier`; `None` where the kernel does
    /// not tell this user.
    pub fn moved_since(&self, earlier: &Self) -> Option<u64> {
        let known = |entry: &u64| entry & PRESENT != 0 && entry & FRAME != 0;
        let pairs = || self.0.iter().zip(&earlier.0);
        if self.0.len() != earlier.0.len() || !pairs().all(|(now, then)| known(now) && known(then))
        {
            return None;
        }
        Some(pairs().filter(|(now, then)| (*now ^ *then) & FRAME != 0).count() as u64)
    }
}

/// A field of `/proc/self/smaps`, such as `LazyFree`, summed over the mappings inside the ranges.
///
/// # Errors
/// When `/proc` is not mounted.
pub fn smaps_kib(ranges: &Ranges, field: &str) -> Result<u64, SysError> {
    sum_in_smaps(&[field], |of| ranges.iter().any(|(low, high)| low <= of.start && of.end <= high))
}

/// Fields of `/proc/self/smaps`, in KiB, summed over the mappings that count.
pub(crate) fn sum_in_smaps(
    fields: &[&str],
    counts: impl Fn(Range<usize>) -> bool,
) -> Result<u64, SysError> {
    let text = proc::text("self", "smaps").called("read", "/proc/self/smaps")?;
    let counted = mappings(&text).filter(|mapping| counts(mapping.addresses()));
    let sizes = counted.flat_map(|mapping| mapping.sizes());
    Ok(sizes.filter(|(name, _)| fields.contains(name)).map(|(_, bytes)| bytes >> 10).sum())
}

/// KiB of page tables of this process.
///
/// # Errors
/// When `/proc` is not mounted.
pub fn page_tables_kib() -> Result<u64, SysError> {
    number_in("/proc/self/status", "VmPTE")
}

/// A number of the kernel by its file and its name there.
pub(crate) fn number_in(path: &str, name: &str) -> Result<u64, SysError> {
    let none = || std::io::Error::other(format!("no `{name}` in it"));
    Tree::machine().field_number(path, name).ok_or_else(none).called("read", path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_compared_only_where_they_are_told() {
        let frames = |list: &[u64]| Frames(list.iter().map(|frame| frame | PRESENT).collect());
        assert_eq!(frames(&[5, 6]).moved_since(&frames(&[5, 7])), Some(1));
        assert_eq!(frames(&[0, 0]).moved_since(&frames(&[0, 0])), None);
        assert_eq!(Frames(vec![5]).moved_since(&frames(&[5])), None, "not present");
    }

    #[test]
    fn pages_of_a_leaf_that_lie_elsewhere_are_astray() {
        let astray = |list: &[u64]| Frames(list.iter().map(|at| at | PRESENT).collect()).astray();
        assert_eq!(astray(&[8, 9, 10, 11]), Some(0));
        assert_eq!(astray(&[8, 9, 11, 10]), Some(2));
        assert_eq!(astray(&[9, 10, 11, 12]), Some(4), "contiguous, and not aligned");
        assert_eq!(astray(&[0, 0]), None, "not told");
        assert_eq!(Frames(vec![8, 9]).astray(), None, "not present");
    }

    #[test]
    fn a_process_has_page_tables() {
        assert!(page_tables_kib().unwrap() > 0);
    }
}
