//! Whether pages lie in large folios: what decides what mapping them costs.
//!
//! The one idea: the page table says which page frame is behind an address
//! (`/proc/PID/pagemap`, bits 0-54), and `/proc/kpageflags` says of each frame whether it is a part
//! of something larger (`KPF_COMPOUND_HEAD` 15, `KPF_COMPOUND_TAIL` 16:
//! `include/uapi/linux/kernel-page-flags.h`). The kernel shows frames to `CAP_SYS_ADMIN` only;
//! others see zeros there, and get no answer here.
//!
//! It does not say how large: the order stands nowhere that a user can read.

use std::{fs::File, ops::Range, os::unix::fs::FileExt};

use crate::memory::pagemap::{FRAME, PRESENT};

const PAGE: u64 = 4096;
const COMPOUND: u64 = 1 << 15 | 1 << 16;

/// The flags of every page frame, and the page table that was asked last.
#[derive(Debug)]
pub struct Folios {
    flags: File,
    pagemap: Option<(u32, File)>,
}

impl Folios {
    /// `None` where this process may not see page frames.
    pub fn open() -> Option<Self> {
        Some(Self { flags: File::open("/proc/kpageflags").ok()?, pagemap: None })
    }

    /// Whether the page that a process has at an address is a part of a large folio; `None` where
    /// there is none, or nobody says.
    pub fn is_large(&mut self, pid: u32, address: u64) -> Option<bool> {
        let entry = word(self.pagemap(pid)?, address / PAGE)?;
        let frame = entry & FRAME;
        if entry & PRESENT == 0 || frame == 0 {
            return None;
        }
        Some(word(&self.flags, frame)? & COMPOUND != 0)
    }

    /// Bytes of a range of a process's addresses that lie in folios of at least so many bytes, a
    /// power of two: aligned blocks whose frames follow each other, the first aligned as well and a
    /// part of something larger. `None` where nobody says.
    pub fn bytes_in(&mut self, pid: u32, range: Range<u64>, size: u64) -> Option<u64> {
        let pages = (size / PAGE).max(1);
        let mut bytes = vec![0; usize::try_from(pages).ok()?.checked_mul(8)?];
        let mut found = 0;
        let mut at = range.start.next_multiple_of(size);
        while at.checked_add(size)? <= range.end {
            self.pagemap(pid)?.read_exact_at(&mut bytes, at / PAGE * 8).ok()?;
            let entries = bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word));
            let mut frames = entries.map(|entry| (entry & PRESENT != 0).then_some(entry & FRAME));
            if let Some(first) = frames.next().flatten().filter(|first| *first != 0)
                && first.is_multiple_of(pages)
                && (first + 1..first + pages).map(Some).eq(frames)
                && word(&self.flags, first)? & COMPOUND != 0
            {
                found += size;
            }
            at += size;
        }
        Some(found)
    }

    fn pagemap(&mut self, pid: u32) -> Option<&File> {
        if self.pagemap.as_ref().is_none_or(|(owner, _)| *owner != pid) {
            self.pagemap = Some((pid, File::open(format!("/proc/{pid}/pagemap")).ok()?));
        }
        self.pagemap.as_ref().map(|(_, file)| file)
    }
}

fn word(file: &File, index: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, index.checked_mul(8)?).ok()?;
    Some(u64::from_ne_bytes(bytes))
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
        crate::counted(true, || folios.is_large(std::process::id(), address).is_some());
        assert_eq!(folios.is_large(std::process::id(), 0), None);
        assert_eq!(folios.is_large(u32::MAX, address), None, "no such process");
        let block = address / 65536 * 65536;
        let found = folios.bytes_in(std::process::id(), block..block + 65536, 65536);
        assert!([Some(0), Some(65536)].contains(&found), "{found:?}");
        assert_eq!(folios.bytes_in(u32::MAX, 0..65536, 65536), None);
    }
}
