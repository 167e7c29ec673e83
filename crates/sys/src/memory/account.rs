//! What the kernel keeps about pages of this process beyond their being there: who else maps them,
//! which frame they lie in, whether they may be taken, what the page table itself costs.
//!
//! Read back off the clock, as evidence for kinds of fault that leave the same pages present. Frame
//! numbers are for `CAP_SYS_ADMIN` only; everything else is for everybody.

use std::fs;

use crate::{
    Called, SysError,
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
    sum_in_smaps(&[field], |start, end| {
        ranges.iter().any(|(low, high)| low <= start && end <= high)
    })
}

/// Fields of `/proc/self/smaps`, in KiB, summed over the mappings that count.
pub(crate) fn sum_in_smaps(
    fields: &[&str],
    counts: impl Fn(usize, usize) -> bool,
) -> Result<u64, SysError> {
    let path = "/proc/self/smaps";
    let text = fs::read_to_string(path).called("read", path)?;
    Ok(sum_of(&text, fields, counts))
}

fn sum_of(smaps: &str, fields: &[&str], counts: impl Fn(usize, usize) -> bool) -> u64 {
    let (mut inside, mut total) = (false, 0);
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if let Some(name) = first.strip_suffix(':') {
            if inside && fields.contains(&name) {
                total += words.next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0);
            }
        } else if let Some((start, end)) = bounds(first) {
            inside = counts(start, end);
        }
    }
    total
}

/// Start and end of a mapping, from the first word of its line in `maps` or `smaps`.
pub(crate) fn bounds(word: &str) -> Option<(usize, usize)> {
    let (start, end) = word.split_once('-')?;
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
}

/// KiB of page tables of this process.
///
/// # Errors
/// When `/proc` is not mounted.
pub fn page_tables_kib() -> Result<u64, SysError> {
    number_in("/proc/self/status", "VmPTE:")
}

/// The number after `name` in a file of words.
pub(crate) fn number_in(path: &str, name: &str) -> Result<u64, SysError> {
    let text = fs::read_to_string(path).called("read", path)?;
    let number = text.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?.trim_start().trim_start_matches(':');
        rest.split_whitespace().next()?.parse().ok()
    });
    number.ok_or_else(|| {
        SysError::new("read", path, std::io::Error::other(format!("no `{name}` in it")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_summed_over_the_mappings_that_count() {
        let smaps = "1000-3000 rw-p 0 00:00 0\nRss:  8 kB\nLazyFree:  4 kB\n\
                     3000-9000 rw-p 0 00:00 0\nRss:  16 kB\nLazyFree:  12 kB\n";
        assert_eq!(sum_of(smaps, &["LazyFree"], |_, end| end <= 0x3000), 4);
        assert_eq!(sum_of(smaps, &["Rss", "LazyFree"], |_, _| true), 40);
    }

    #[test]
    fn only_areas_inside_the_range_count_as_huge() {
        let smaps = "1000-3000 rw-p 0 00:00 0\nAnonHugePages:  2048 kB\n\
                     3000-9000 rw-p 0 00:00 0\nAnonHugePages:  4096 kB\n";
        let inside = |low, high| 0x1000 <= low && high <= 0x3000;
        assert_eq!(sum_of(smaps, &["AnonHugePages"], inside), 2048);
    }

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
