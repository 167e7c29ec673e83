#![expect(unsafe_code, reason = "move_pages and mincore fill arrays of ours")]
//! What is really mapped: read back from the page table, never from what was asked for.
//!
//! `PAGEMAP_SCAN` (since Linux 6.7) answers for any range; before it, `/proc/self/pagemap` gives
//! presence and `smaps` the huge part. Both count base pages.

use linux_raw_sys::general as uapi;
use pagelab_interpose::scan::{NOWHERE, Question, regions};

use crate::{
    Area, Called, SysError,
    memory::{
        account::sum_in_smaps,
        pagemap::{FILE, PRESENT, Pagemap, SWAPPED},
    },
};

const BASE_PAGE: u64 = 4096;

/// Base pages of a range, by what the page table says of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Residency {
    /// Mapped, zero page included.
    pub present: u64,
    /// Mapped by a PMD or larger.
    pub huge: u64,
    /// Mapped to the shared zero page; `None` where the kernel does not tell.
    pub zero: Option<u64>,
    /// Pages of a file or of shared memory, private copies left out.
    pub file: u64,
}

/// Base pages that are in swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swapped {
    /// How many.
    pub pages: u64,
    /// In how many swap spaces.
    pub spaces: u32,
}

/// An open page table of this process.
#[derive(Debug)]
pub struct Scanner {
    pagemap: Pagemap,
    /// The process that opened it.
    process: u32,
    has_scan: bool,
}

impl Scanner {
    /// Opens the page table of the calling process and finds out how it may be read.
    ///
    /// # Errors
    /// When `/proc` is not mounted.
    pub fn open() -> Result<Self, SysError> {
        let (pagemap, process) = (Pagemap::open()?, std::process::id());
        let mut scanner = Self { pagemap, process, has_scan: true };
        scanner.has_scan = scanner.scan_range(0x1000, 0x2000).is_ok();
        Ok(scanner)
    }

    /// Reads back every window of an area.
    ///
    /// # Errors
    /// When the page table cannot be read.
    pub fn scan(&self, area: &Area) -> Result<Residency, SysError> {
        let window = area.layout().window;
        let mut total = Residency { zero: self.has_scan.then_some(0), ..Residency::default() };
        for base in area.windows() {
            let (start, end) = (base, base + window);
            let part =
                if self.has_scan { self.scan_range(start, end) } else { self.read(start, end) }?;
            total.present += part.present;
            total.huge += part.huge;
            total.zero = total.zero.zip(part.zero).map(|(a, b)| a + b);
            total.file += part.file;
        }
        if !self.has_scan {
            // Once for all windows: there may be thousands, and smaps tells of each.
            total.huge = pages_in_smaps(area.base(), area.end(), HUGE)?;
        }
        Ok(total)
    }

    /// Base pages of an area that were stored to and not written back since, as `smaps` has them:
    /// by the page table or by the page itself.
    ///
    /// # Errors
    /// When `/proc/self/smaps` cannot be read.
    pub fn dirty(&self, area: &Area) -> Result<u64, SysError> {
        pages_in_smaps(area.base(), area.end(), &["Private_Dirty", "Shared_Dirty"])
    }

    /// Base pages of an area that are in swap, and in how many swap spaces they are, by
    /// `/proc/self/pagemap`: bit 62, and bits 0-4 where this process may see them (as root), else
    /// one.
    ///
    /// # Errors
    /// When the page table cannot be read.
    pub fn swapped(&self, area: &Area) -> Result<Swapped, SysError> {
        let (mut pages, mut spaces) = (0, 0_u32);
        let own = self.of_this_process()?;
        let pagemap = own.as_ref().unwrap_or(&self.pagemap);
        for base in area.windows() {
            pagemap.each(base, base + area.layout().window, |entry| {
                if entry & SWAPPED != 0 {
                    pages += 1;
                    spaces |= 1 << (entry & 0x1f);
                }
            })?;
        }
        Ok(Swapped { pages, spaces: spaces.count_ones() })
    }

    /// Reads back a part of an area: `bytes` bytes from `at` on of the windows laid end to end, all
    /// in one window.
    ///
    /// # Errors
    /// When the page table cannot be read.
    pub fn scan_part(&self, area: &Area, at: usize, bytes: usize) -> Result<Residency, SysError> {
        let start = area.base() + area.layout().offset(at);
        self.scan_range_of(start, start + bytes)
    }

    /// Reads back any range of this process that starts and ends with a page.
    pub(crate) fn scan_range_of(&self, start: usize, end: usize) -> Result<Residency, SysError> {
        if self.has_scan {
            return self.scan_range(start, end);
        }
        let huge = pages_in_smaps(start, end, HUGE)?;
        Ok(Residency { huge, ..self.read(start, end)? })
    }

    /// In a process that was forked since: what was opened shows the page table of its parent.
    fn of_this_process(&self) -> Result<Option<Pagemap>, SysError> {
        (std::process::id() != self.process).then(Pagemap::open).transpose()
    }

    fn scan_range(&self, start: usize, end: usize) -> Result<Residency, SysError> {
        let mut found = Residency { zero: Some(0), ..Residency::default() };
        let own = self.of_this_process()?;
        let pagemap = own.as_ref().unwrap_or(&self.pagemap);
        let mut room = [NOWHERE; 64];
        let (huge, zero) = (u64::from(uapi::PAGE_IS_HUGE), u64::from(uapi::PAGE_IS_PFNZERO));
        let file = u64::from(uapi::PAGE_IS_FILE);
        let question = Question { bits: huge | zero | file, flags: 0 };
        let range = start as u64..end as u64;
        regions(&pagemap.0, range, question, &mut room, |region| {
            let pages = (region.end - region.start) / BASE_PAGE;
            let of = |category| if region.categories & category != 0 { pages } else { 0 };
            found.present += pages;
            found.huge += of(huge);
            found.file += of(file);
            found.zero = found.zero.map(|pages| pages + of(zero));
        })
        .called("ioctl", "PAGEMAP_SCAN")?;
        Ok(found)
    }

    /// The way of kernels before 6.7; what is huge is not in it.
    fn read(&self, start: usize, end: usize) -> Result<Residency, SysError> {
        let mut found = Residency::default();
        let own = self.of_this_process()?;
        own.as_ref().unwrap_or(&self.pagemap).each(start, end, |entry| {
            found.present += u64::from(entry & PRESENT != 0);
            found.file += u64::from(entry & PRESENT != 0 && entry & FILE != 0);
        })?;
        Ok(found)
    }
}

/// What `smaps` calls memory that is mapped by a PMD or larger.
const HUGE: &[&str] =
    &["AnonHugePages", "ShmemPmdMapped", "FilePmdMapped", "Private_Hugetlb", "Shared_Hugetlb"];

/// Base pages of some fields of `smaps`, in the VMAs that lie inside `start..end`.
fn pages_in_smaps(start: usize, end: usize, fields: &[&str]) -> Result<u64, SysError> {
    let kib = sum_in_smaps(fields, |of| start <= of.start && of.end <= end)?;
    Ok(kib * 1024 / BASE_PAGE)
}

/// Writes the memory node of each page to `nodes`; a negative number for a page not present.
///
/// # Errors
/// When the kernel was built without NUMA.
///
/// # Panics
/// When the slices differ in length.
pub fn nodes_of(addresses: &[usize], nodes: &mut [i32]) -> Result<(), SysError> {
    assert_eq!(addresses.len(), nodes.len(), "one answer for each page");
    let (count, none) = (addresses.len(), std::ptr::null::<i32>());
    let (pages, nodes) = (addresses.as_ptr(), nodes.as_mut_ptr());
    // SAFETY: both arrays have `count` entries; null target nodes only ask.
    let asked = unsafe { libc::syscall(libc::SYS_move_pages, 0, count, pages, none, nodes, 0) };
    SysError::checked(asked, "move_pages", format_args!("{count} pages")).map(drop)
}

/// Base pages of an area that a touch would find in memory, in the page table or in the swap
/// cache, by `mincore`; each of them is handed to `found` by its offset from the base.
///
/// # Errors
/// When nothing is mapped there.
pub fn in_core(area: &Area, mut found: impl FnMut(usize)) -> Result<u64, SysError> {
    let window = area.layout().window;
    let mut pages = vec![0_u8; window / 4096];
    let mut count = 0;
    for base in area.windows() {
        // SAFETY: one byte is written for each page of the window, and the vector has as many.
        let result = unsafe { libc::mincore(base as *mut _, window, pages.as_mut_ptr()) };
        SysError::checked(result, "mincore", format_args!("{window} bytes"))?;
        for (index, _) in pages.iter().enumerate().filter(|(_, byte)| **byte & 1 != 0) {
            count += 1;
            found(base - area.base() + index * 4096);
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        loops::Stride,
        memory::{Advice, Backing, Layout},
    };

    #[test]
    fn a_forked_process_reads_its_own_page_table() {
        let _alone = crate::alone();
        let scanner = Scanner::open().unwrap();
        let found = |_| {
            let layout = Layout::contiguous(1 << 20);
            let area = Area::mapped(layout, Backing::Anonymous, 2 << 20).unwrap();
            area.touch(0, 1 << 20, Stride { step: 4096, bytes: 8 });
            [scanner.scan(&area).unwrap().present]
        };
        crate::counted([256], || crate::process::crew::processes(1, found).unwrap()[0]);
    }

    #[test]
    fn both_ways_of_reading_agree() {
        let _alone = crate::alone();
        let mut scanner = Scanner::open().unwrap();
        let layout = Layout::contiguous(4 << 20);
        let area = Area::mapped(layout, Backing::Anonymous, 2 << 20).unwrap();
        area.advise(Advice::NoHugePage).unwrap();
        area.touch(0, 1 << 20, Stride { step: 4096, bytes: 8 });
        for has_scan in [scanner.has_scan, false] {
            scanner.has_scan = has_scan;
            crate::counted((256, 0), || {
                let found = scanner.scan(&area).unwrap();
                (found.present, found.huge)
            });
        }
    }
}
