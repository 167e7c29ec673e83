#![expect(unsafe_code, reason = "madvise and mprotect act on raw memory")]
//! What is done to an area that is populated, so that its next touch takes another path.
//!
//! The one idea: each method brings memory from one named state into another, whole windows at a
//! time and off the clock. What it really did is read back elsewhere ([`crate::memory::account`],
//! [`crate::memory::residency`]), never taken from the call's answer.
//!
//! Rules (beside those of [`crate::memory::area`]): (1) contents may be lost, so only an owner
//! (`&mut`) gives them up; (2) memory that was made read-only is writable again when the method
//! returns.

use linux_raw_sys::general as uapi;

use super::{Advice, Area, BASE_PAGE, READ_WRITE, advise};
use crate::SysError;

impl Area {
    /// Stores what `word` returns in every word, ascending.
    ///
    /// # Panics
    /// When the area is not mapped.
    pub fn fill(&self, mut word: impl FnMut() -> u64) {
        assert!(self.mapped, "only mapped memory is filled");
        for base in self.windows() {
            for at in (0..self.layout.window).step_by(8) {
                // SAFETY: the word lies in a window, which is mapped writable.
                unsafe { super::word_at(base as *mut u8, at).write_volatile(word()) };
            }
        }
    }

    /// `MADV_DONTNEED` in calls of `piece` bytes (of a window where that is smaller).
    ///
    /// A call on 2 MiB or more also gives back the page table below it where the kernel was built
    /// with `PT_RECLAIM` (since Linux 6.14); smaller pieces leave it in place everywhere.
    ///
    /// # Errors
    /// On hugetlb memory before Linux 5.18.
    pub fn give_up(&mut self, piece: usize) -> Result<(), SysError> {
        for base in self.windows() {
            for at in (0..self.layout.window).step_by(piece) {
                let bytes = piece.min(self.layout.window - at);
                advise(base + at, bytes, uapi::MADV_DONTNEED)?;
            }
        }
        Ok(())
    }

    /// Takes pages of `page` bytes in the first `bytes` of the windows laid end to end, splits
    /// them, and gives them back but for the first base page of each `piece` bytes, which stays
    /// where it is in memory.
    ///
    /// `MADV_COLD` (since Linux 5.4) on a part of a large page splits it: only then is what
    /// `MADV_DONTNEED` takes out of it free at once. What is kept holds something: since Linux 6.12
    /// a split turns base pages of zeros into the zero page (`try_to_map_unused_to_zeropage`).
    ///
    /// The area is advised against huge pages before anything is split: khugepaged, which is
    /// woken by a first huge page, would put a piece together again at once.
    ///
    /// # Errors
    /// Before Linux 5.4; when the kernel was built without transparent huge pages.
    ///
    /// # Panics
    /// When `page` is no multiple of `piece`, or the bytes are not all in the area.
    pub fn break_up(&mut self, bytes: usize, page: usize, piece: usize) -> Result<(), SysError> {
        assert!(page.is_multiple_of(piece) && piece > BASE_PAGE, "{page} in pieces of {piece}");
        assert!(self.mapped && bytes <= self.layout.bytes(), "{bytes} of {:?}", self.layout);
        let starts = || (0..bytes).step_by(page).map(|at| self.base + self.layout.offset(at));
        for start in starts() {
            for first in (0..page).step_by(piece) {
                // SAFETY: the word lies in a window, which is mapped writable.
                unsafe { super::word_at(start as *mut u8, first).write_volatile(1) };
            }
        }
        self.advise(Advice::NoHugePage)?;
        for start in starts() {
            advise(start, BASE_PAGE, uapi::MADV_COLD)?;
            for first in (start..start + page).step_by(piece) {
                advise(first + BASE_PAGE, piece - BASE_PAGE, uapi::MADV_DONTNEED)?;
            }
        }
        Ok(())
    }

    /// `MADV_FREE`: the kernel may take the pages from now on, until they are stored to again.
    ///
    /// # Errors
    /// On anything but private anonymous memory, and on hugetlb memory.
    pub fn free_lazily(&mut self) -> Result<(), SysError> {
        // Twice: pages that were marked last wait in a list of this CPU, which the next call
        // empties; a thread that may be moved in between leaves some on the other.
        for _ in 0..2 {
            self.advise_windows(uapi::MADV_FREE)?;
        }
        Ok(())
    }

    /// `mprotect` to read-only, and back to writable.
    ///
    /// # Errors
    /// When the kernel refuses; the area is not to be stored to then.
    pub fn protect_and_back(&mut self) -> Result<(), SysError> {
        [uapi::PROT_READ, READ_WRITE].into_iter().try_for_each(|protection| {
            self.each_window("mprotect", format_args!("{protection}"), |at, bytes| {
                // SAFETY: the range is ours, no reference into it exists, contents stay.
                unsafe { libc::mprotect(at, bytes, protection.cast_signed()) }.into()
            })
        })
    }

    /// `MADV_MERGEABLE`, or `MADV_UNMERGEABLE`, which also copies what is still shared.
    ///
    /// # Errors
    /// When the kernel was built without KSM, or memory is short.
    pub fn mergeable(&mut self, yes: bool) -> Result<(), SysError> {
        self.advise_windows(if yes { uapi::MADV_MERGEABLE } else { uapi::MADV_UNMERGEABLE })
    }

    /// The addresses of its windows, to be asked about later.
    pub fn ranges(&self) -> Ranges {
        Ranges { starts: self.windows().collect(), bytes: self.layout.window }
    }
}

/// Addresses of an area. They may be asked about when the area is gone; nothing can be done to it
/// through them that changes what it holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges {
    starts: Vec<usize>,
    bytes: usize,
}

impl Ranges {
    /// Start and end of each window.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        self.starts.iter().map(|start| (*start, start + self.bytes))
    }

    /// Whether any window lies in `start..end`, even in part.
    pub fn overlap(&self, start: usize, end: usize) -> bool {
        self.iter().any(|(low, high)| low < end && start < high)
    }

    /// Bytes of all windows.
    pub fn bytes(&self) -> usize {
        self.starts.len() * self.bytes
    }

    /// `MADV_UNMERGEABLE`: copies what is still shared, and keeps the kernel from merging it again.
    ///
    /// # Errors
    /// When memory is short, or the area is gone.
    pub fn keep_apart(&self) -> Result<(), SysError> {
        self.iter().try_for_each(|(start, end)| advise(start, end - start, uapi::MADV_UNMERGEABLE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        loops::Stride,
        memory::{
            Backing, Layout, Scanner,
            account::{self, Frames},
        },
        process::{Pinned, current_cpu},
        time::usage,
    };

    const STRIDE: Stride = Stride { step: 4096, bytes: 8 };
    const PAGES: u64 = 512;

    fn populated() -> Area {
        let layout = Layout::contiguous(2 << 20);
        let area = Area::mapped(layout, Backing::Anonymous, 2 << 20).unwrap();
        area.advise(Advice::NoHugePage).unwrap();
        area.touch(0, layout.bytes(), STRIDE);
        area
    }

    fn faults(area: &Area) -> u64 {
        let before = usage::thread().minor_faults;
        area.touch(0, area.layout().bytes(), STRIDE);
        usage::thread().minor_faults - before
    }

    #[test]
    fn what_is_given_up_is_gone_and_its_page_table_stays_where_pieces_are_small() {
        let _alone = crate::alone();
        // A process without other threads: page tables are the whole process's.
        let found = |_| {
            let mut area = populated();
            faults(&area);
            let tables = account::page_tables_kib().unwrap();
            area.give_up(1 << 20).unwrap();
            let more = account::page_tables_kib().unwrap().abs_diff(tables);
            [more, Scanner::open().unwrap().scan(&area).unwrap().present, faults(&area)]
        };
        crate::counted([0, 0, PAGES], || crate::process::crew::processes(1, found).unwrap()[0]);
    }

    #[test]
    fn what_is_freed_lazily_stays_until_it_is_taken() {
        let _alone = crate::alone();
        let _stays = Pinned::to(current_cpu());
        let scanner = Scanner::open().unwrap();
        crate::counted([2048, PAGES, 0, PAGES], || {
            let mut area = populated();
            area.free_lazily().unwrap();
            let lazy = account::smaps_kib(&area.ranges(), "LazyFree").unwrap();
            let present = scanner.scan(&area).unwrap().present;
            area.page_out().unwrap();
            [lazy, present, scanner.scan(&area).unwrap().present, faults(&area)]
        });
    }

    #[test]
    fn what_is_broken_up_keeps_one_base_page_in_each_piece() {
        let _alone = crate::alone();
        let layout = Layout::contiguous(4 << 20);
        crate::counted((64, 0, 0), || {
            let mut area = Area::mapped(layout, Backing::Anonymous, 2 << 20).unwrap();
            area.advise(Advice::HugePage).unwrap();
            area.break_up(4 << 20, 2 << 20, 64 << 10).unwrap();
            let found = Scanner::open().unwrap().scan(&area).unwrap();
            (found.present, found.huge, found.zero.unwrap_or(0))
        });
    }

    #[test]
    fn what_is_broken_up_is_not_put_together_again() {
        let _alone = crate::alone();
        let layout = Layout::contiguous(2 << 20);
        let mut area = Area::mapped(layout, Backing::Anonymous, 2 << 20).unwrap();
        area.advise(Advice::HugePage).unwrap();
        area.break_up(2 << 20, 2 << 20, 64 << 10).unwrap();
        // The call asks the same of a mapping as khugepaged does; before Linux 6.1 there is none.
        assert!(advise(area.base(), 2 << 20, uapi::MADV_COLLAPSE).is_err());
        let scanner = Scanner::open().unwrap();
        crate::counted(32, || scanner.scan(&area).unwrap().present);
    }

    #[test]
    fn protecting_changes_neither_pages_nor_contents() {
        let _alone = crate::alone();
        let mut area = populated();
        area.fill(|| 7);
        crate::counted((PAGES, 0), || {
            let before = Frames::read(&area.ranges()).unwrap();
            area.protect_and_back().unwrap();
            let after = Frames::read(&area.ranges()).unwrap();
            let present = Scanner::open().unwrap().scan(&area).unwrap().present;
            (present, after.moved_since(&before).unwrap_or(0))
        });
        assert!((0..area.layout().bytes()).step_by(8).all(|at| area.word(at) == 7));
    }

    #[test]
    fn ranges_overlap_where_they_share_a_byte() {
        let ranges = Ranges { starts: vec![0x2000, 0x8000], bytes: 0x1000 };
        assert!(ranges.overlap(0x2fff, 0x3000) && ranges.overlap(0, 0x10000));
        assert!(!ranges.overlap(0x3000, 0x8000) && !ranges.overlap(0x9000, 0xa000));
        assert_eq!(ranges.bytes(), 0x2000);
    }
}
