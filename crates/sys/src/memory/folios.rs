//! Whether pages lie in large folios: what decides what mapping them costs.
//!
//! The one idea: the page table says which page frame is behind an address
//! (`/proc/PID/pagemap`, bits 0-54), and `/proc/kpageflags` says of each frame whether it is a part
//! of something larger (`KPF_COMPOUND_HEAD` 15, `KPF_COMPOUND_TAIL` 16:
//! `include/uapi/linux/kernel-page-flags.h`). The kernel shows frames to `CAP_SYS_ADMIN` only;
//! others see zeros there, and get no answer here.
//!
//! It does not say how large: the order stands nowhere that a user can read.

use std::{fs::File, os::unix::fs::FileExt};

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
        if self.pagemap.as_ref().is_none_or(|(owner, _)| *owner != pid) {
            self.pagemap = Some((pid, File::open(format!("/proc/{pid}/pagemap")).ok()?));
        }
        let (_, pagemap) = self.pagemap.as_ref()?;
        let entry = word(pagemap, address / PAGE)?;
        let frame = entry & FRAME;
        if entry & PRESENT == 0 || frame == 0 {
            return None;
        }
        Some(word(&self.flags, frame)? & COMPOUND != 0)
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
        assert!(folios.is_large(std::process::id(), address).is_some());
        assert_eq!(folios.is_large(std::process::id(), 0), None);
        assert_eq!(folios.is_large(u32::MAX, address), None, "no such process");
    }
}
