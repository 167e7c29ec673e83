//! The folios that pages lie in: what decides what mapping them costs.
//!
//! The page table says which page frame is behind an address (`/proc/PID/pagemap`, bits 0-54), and
//! `/proc/kpageflags` says of each frame whether it is the first page of a folio or a further one
//! (`KPF_COMPOUND_HEAD` 15, `KPF_COMPOUND_TAIL` 16: `include/uapi/linux/kernel-page-flags.h`). The
//! kernel shows frames to `CAP_SYS_ADMIN` only; others see zeros there, and get no answer here.

use std::{fs::File, ops::Range, os::unix::fs::FileExt};

use crate::memory::pagemap::{FRAME, PRESENT, Pagemap, word};

const PAGE: u64 = 4096;
const HEAD: u64 = 1 << 15;
const TAIL: u64 = 1 << 16;
/// Pages of the largest folio that is measured; a larger one counts as that.
const PAGES_MAX: usize = 512;

/// The flags of every page frame, and the page table that was asked last.
#[derive(Debug)]
pub struct Folios {
    flags: File,
    pagemap: Option<(u32, Pagemap)>,
}

impl Folios {
    /// `None` where this process may not see page frames.
    pub fn open() -> Option<Self> {
        Some(Self { flags: File::open("/proc/kpageflags").ok()?, pagemap: None })
    }

    /// Bytes of the folio whose page a process has at an address, at most 2 MiB; `None` where no
    /// page is present, or the kernel does not say.
    pub fn bytes(&mut self, pid: u32, address: u64) -> Option<u64> {
        let entry = self.pagemap(pid)?.entry(address).ok()?;
        let frame = entry & FRAME;
        if entry & PRESENT == 0 || frame == 0 {
            return None;
        }
        if word(&self.flags, frame).ok()? & (HEAD | TAIL) == 0 {
            return Some(PAGE);
        }
        // Folios are aligned to their size: the first page is the last head at or below.
        let first = frame / PAGES_MAX as u64 * PAGES_MAX as u64;
        let mut bytes = [0; 8 * PAGES_MAX];
        self.flags.read_exact_at(&mut bytes, first * 8).ok()?;
        let flags = bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word));
        let flags: Vec<u64> = flags.collect();
        let (before, after) = flags.split_at(usize::try_from(frame - first).ok()? + 1);
        let tails = |flag: &&u64| **flag & TAIL != 0;
        let further = before.iter().rev().take_while(tails).count();
        let pages = further + 1 + after.iter().take_while(tails).count();
        Some(PAGE * pages.min(PAGES_MAX) as u64)
    }

    /// Bytes of a range of a process's addresses that lie in folios of at least so many bytes, a
    /// power of two: aligned blocks whose frames follow each other, the first aligned as well and a
    /// part of something larger. `None` where nobody says.
    pub fn bytes_in(&mut self, pid: u32, range: Range<u64>, size: u64) -> Option<u64> {
        let pages = (size / PAGE).max(1);
        let (mut entries, mut found) = (Vec::new(), 0);
        let mut at = range.start.next_multiple_of(size);
        while at.checked_add(size)? <= range.end {
            entries.clear();
            self.pagemap(pid)?.entries(at..at + size, |_, entry| entries.push(entry)).ok()?;
            let frame = |entry: &u64| (entry & PRESENT != 0).then_some(entry & FRAME);
            let mut frames = entries.iter().map(frame);
            if let Some(first) = frames.next().flatten().filter(|first| *first != 0)
                && first.is_multiple_of(pages)
                && (first + 1..first + pages).map(Some).eq(frames)
                && word(&self.flags, first).ok()? & (HEAD | TAIL) != 0
            {
                found += size;
            }
            at += size;
        }
        Some(found)
    }

    fn pagemap(&mut self, pid: u32) -> Option<&Pagemap> {
        if self.pagemap.as_ref().is_none_or(|(owner, _)| *owner != pid) {
            self.pagemap = Some((pid, Pagemap::of(pid).ok()?));
        }
        self.pagemap.as_ref().map(|(_, file)| file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::print_stderr, reason = "a skip says so")]
    fn a_page_of_the_heap_is_there_and_the_first_page_is_not() {
        let Some(mut folios) = Folios::open() else {
            return eprintln!("skipped: page frames are not shown; to run it: sudo");
        };
        let value = Box::new(7_u64);
        let address = std::ptr::from_ref(&*value) as u64;
        crate::counted(true, || folios.bytes(std::process::id(), address).is_some());
        assert_eq!(folios.bytes(std::process::id(), 0), None);
        let bytes = folios.bytes(std::process::id(), address).unwrap();
        assert!(bytes.is_power_of_two() && (4096..=2 << 20).contains(&bytes), "{bytes}");
        assert_eq!(folios.bytes(u32::MAX, address), None, "no such process");
        let block = address / 65536 * 65536;
        let found = folios.bytes_in(std::process::id(), block..block + 65536, 65536);
        assert!([Some(0), Some(65536)].contains(&found), "{found:?}");
        assert_eq!(folios.bytes_in(u32::MAX, 0..65536, 65536), None);
    }
}
