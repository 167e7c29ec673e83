//! Which pages of any process are there, and which of them were written lately: soft-dirty bits,
//! or a protection that the kernel takes away.
//!
//! The one idea: writing 4 to `/proc/PID/clear_refs` protects every page of the process and clears
//! its bit; the next store to it faults once and sets the bit again (`CONFIG_MEM_SOFT_DIRTY`,
//! Linux 3.11). `PAGEMAP_SCAN` (Linux 6.7) tells presence, the bit and huge pages in one walk that
//! skips holes; before it `/proc/PID/pagemap` has them in bits 63 and 55, eight bytes a page, and
//! what is mapped huge is told by frames that follow each other.
//!
//! A kernel without the option takes the 4 and never sets the bit: [`notes_stores`] asks by doing.
//!
//! Where the process has registered its memory with userfaultfd for asynchronous write protection
//! (`UFFD_FEATURE_WP_ASYNC`, Linux 6.7), the same walk tells which pages have lost theirs and
//! protects those again, without a moment between the two ([`Walk::protecting`]).

use std::{
    fs::File,
    io::{self, Write},
    ops::Range,
};

use linux_raw_sys::general as uapi;
use pagelab_interpose::scan::{NOWHERE, Question, regions};

use crate::memory::pagemap::{FRAME, PRESENT, Pagemap};

const PAGE: u64 = 4096;
const PAGE_BYTES: usize = 4096;
/// Pages that one entry of the second level of the page table from below maps.
const BLOCK: u64 = 512;
/// Bit 55 of an entry of `/proc/PID/pagemap`.
const SOFT_DIRTY: u64 = 1 << 55;
/// Category of `PAGEMAP_SCAN`, which the binding lacks (`include/uapi/linux/fs.h`).
const IS_SOFT_DIRTY: u64 = 1 << 7;
const ENOTTY: rustix::io::Errno = rustix::io::Errno::NOTTY;
/// Regions that one call returns.
const REGIONS: usize = 2048;

/// Pages that follow each other and are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Address of the first.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// Its bit was set since the last clearing.
    pub written: bool,
    /// Mapped by a PMD.
    pub huge: bool,
}

/// The page table of a process, for the time of one walk.
#[derive(Debug)]
pub struct Walk {
    pagemap: Pagemap,
    scans: bool,
    protects: bool,
    regions: Vec<uapi::page_region>,
}

impl Walk {
    /// Opens that of a process.
    ///
    /// # Errors
    /// When there is no such process, or it may not be looked at.
    pub fn of(pid: u32) -> io::Result<Self> {
        let (pagemap, regions) = (Pagemap::of(pid)?, vec![NOWHERE; REGIONS]);
        let mut walk = Self { pagemap, scans: true, protects: false, regions };
        walk.scans = walk.scan(PAGE..2 * PAGE, &mut |_| ()).is_ok();
        Ok(walk)
    }

    /// One that tells which pages are not write-protected, and protects them: it skips memory that
    /// is not registered for that.
    ///
    /// # Errors
    /// As [`Walk::of`]; `ENOTTY` before Linux 6.7.
    pub fn protecting(pid: u32) -> io::Result<Self> {
        let walk = Self::of(pid)?;
        if walk.scans { Ok(Self { protects: true, ..walk }) } else { Err(ENOTTY.into()) }
    }

    /// Hands on every stretch of present pages of a range, in rising order.
    ///
    /// # Errors
    /// When the process has ended or runs another program now.
    pub fn each(&mut self, range: Range<u64>, found: &mut dyn FnMut(Stretch)) -> io::Result<()> {
        if self.scans { self.scan(range, found) } else { self.read(range, found) }
    }

    fn scan(&mut self, range: Range<u64>, found: &mut dyn FnMut(Stretch)) -> io::Result<()> {
        let huge = u64::from(uapi::PAGE_IS_HUGE);
        let (bit, flags) = if self.protects {
            (u64::from(uapi::PAGE_IS_WRITTEN), u64::from(uapi::PM_SCAN_WP_MATCHING))
        } else {
            (IS_SOFT_DIRTY, 0)
        };
        let question = Question { bits: huge | bit, flags };
        regions(&self.pagemap.0, range, question, &mut self.regions, |region| {
            let is = |category| region.categories & category != 0;
            let (written, huge) = (is(bit), is(huge));
            found(Stretch { start: region.start, end: region.end, written, huge });
        })
    }

    /// The way of kernels before 6.7: block by block.
    fn read(&self, range: Range<u64>, found: &mut dyn FnMut(Stretch)) -> io::Result<()> {
        let Range { start: mut at, end } = range;
        let mut words = Vec::new();
        while at < end {
            let next = ((at / PAGE + 1).next_multiple_of(BLOCK) * PAGE).min(end);
            words.clear();
            self.pagemap.entries(at..next, |_, word| words.push(word))?;
            stretches(at, &words, found);
            at = next;
        }
        Ok(())
    }
}

/// What entries of `/proc/PID/pagemap` from an address on say.
fn stretches(at: u64, words: &[u64], found: &mut dyn FnMut(Stretch)) {
    let huge = is_huge(at, words);
    let state = |word: &u64| (word & PRESENT != 0, word & SOFT_DIRTY != 0);
    let mut at = at;
    for alike in words.chunk_by(|left, right| state(left) == state(right)) {
        let end = at + alike.len() as u64 * PAGE;
        let (present, written) = state(&alike[0]);
        if present {
            found(Stretch { start: at, end, written, huge });
        }
        at = end;
    }
}

/// Whether a whole block lies in frames that follow each other from a boundary on: it could be
/// 512 pages by chance, which then are moved one by one.
fn is_huge(at: u64, words: &[u64]) -> bool {
    let first = words.first().map_or(0, |word| word & FRAME);
    let follows = |(frame, word): (u64, &u64)| word & PRESENT != 0 && word & FRAME == frame;
    at.is_multiple_of(BLOCK * PAGE)
        && words.len() as u64 == BLOCK
        && first != 0
        && first.is_multiple_of(BLOCK)
        && (first..).zip(words).all(follows)
}

/// Clears the soft-dirty bits of all pages of a process.
///
/// # Errors
/// When there is no such process, or it is somebody else's.
pub fn clear_written(pid: u32) -> io::Result<()> {
    File::options().write(true).open(format!("/proc/{pid}/clear_refs"))?.write_all(b"4")
}

/// Whether this kernel notes stores, asked by a store of this process after clearing: every page of
/// it takes one fault more, once.
///
/// # Errors
/// When `/proc` is not mounted.
pub fn notes_stores() -> io::Result<bool> {
    let mut page = vec![0_u8; 2 * PAGE_BYTES];
    let pid = std::process::id();
    std::hint::black_box(&mut page)[PAGE_BYTES] = 1;
    clear_written(pid)?;
    std::hint::black_box(&mut page)[PAGE_BYTES] = 2;
    let address = (&raw const page[PAGE_BYTES]) as u64;
    Ok(Pagemap::of("self")?.entry(address)? & SOFT_DIRTY != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Advice, Area, Backing, Layout};

    #[test]
    fn entries_become_stretches_of_present_pages() {
        let (here, there) = (PRESENT | 7, PRESENT | SOFT_DIRTY | 9);
        let mut found = Vec::new();
        stretches(4 * PAGE, &[0, here, there, there, 0, here], &mut |stretch| found.push(stretch));
        let stretch = |start: u64, end: u64, written| Stretch {
            start: start * PAGE,
            end: end * PAGE,
            written,
            huge: false,
        };
        assert_eq!(found, [stretch(5, 6, false), stretch(6, 8, true), stretch(9, 10, false)]);
    }

    #[test]
    fn a_block_is_huge_where_its_frames_follow_each_other_from_a_boundary() {
        let block = |first: u64| (first..first + BLOCK).map(|frame| PRESENT | frame);
        let whole: Vec<u64> = block(1024).collect();
        assert!(is_huge(BLOCK * PAGE, &whole));
        assert!(!is_huge(BLOCK * PAGE + PAGE, &whole), "not at a boundary");
        assert!(!is_huge(0, &block(1025).collect::<Vec<_>>()));
        assert!(!is_huge(0, &whole[1..]));
        assert!(!is_huge(0, &vec![PRESENT; 512]), "frames that are not shown");
    }

    #[test]
    fn every_page_is_found_once_whatever_the_number_of_stretches() {
        let scans = Walk::of(std::process::id()).unwrap().scans;
        // About the kernel's own buffer of 512 regions, and about ours.
        for stretches in [1, 511, 512, 513, 1500, REGIONS - 1, REGIONS, REGIONS + 1, 3 * REGIONS] {
            let layout = Layout::contiguous(2 * stretches * PAGE_BYTES);
            let area = Area::mapped(layout, Backing::Anonymous, PAGE_BYTES).unwrap();
            area.advise(Advice::NoHugePage).unwrap();
            for number in 0..stretches {
                area.set_word(2 * number * PAGE_BYTES, 1);
            }
            let base = area.base() as u64;
            let bytes = 2 * stretches as u64 * PAGE;
            let expected: Vec<u64> = (base..base + bytes).step_by(2 * PAGE_BYTES).collect();
            for scans in [scans, false] {
                let mut walk = Walk::of(std::process::id()).unwrap();
                walk.scans = scans;
                crate::counted((stretches, scans, true), || {
                    let mut found = Vec::new();
                    walk.each(base..base + bytes, &mut |one| {
                        found.extend((one.start..one.end).step_by(PAGE_BYTES));
                    })
                    .unwrap();
                    (stretches, scans, found == expected)
                });
            }
        }
    }

    #[test]
    fn both_ways_find_the_same_pages_of_this_process() {
        let mut walk = Walk::of(std::process::id()).unwrap();
        let mut memory = vec![1_u8; 64 << 12];
        std::hint::black_box(&mut memory).fill(2);
        let start = (memory.as_ptr() as u64).next_multiple_of(PAGE);
        let range = start..start + 63 * PAGE;
        let pages = |walk: &mut Walk| {
            let mut pages = 0;
            walk.each(range.clone(), &mut |found| pages += (found.end - found.start) / PAGE)
                .unwrap();
            pages
        };
        crate::counted(63, || pages(&mut walk));
        walk.scans = false;
        crate::counted(63, || pages(&mut walk));
        assert!(Walk::of(u32::MAX).is_err());
        assert!(clear_written(u32::MAX).is_err());
    }
}
