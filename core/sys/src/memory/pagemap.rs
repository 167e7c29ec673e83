//! `/proc/PID/pagemap`, the page table as the kernel shows it: one entry of 64 bits for each base
//! page (Documentation/admin-guide/mm/pagemap.rst).

use std::{fmt::Display, fs::File, io, ops::Range, os::unix::fs::FileExt};

use crate::{Called, SysError};

const BASE_PAGE: u64 = 4096;
const PATH: &str = "/proc/self/pagemap";

/// The page is mapped.
pub(crate) const PRESENT: u64 = 1 << 63;
/// It is in swap; bits 0-4 say in which space.
pub(crate) const SWAPPED: u64 = 1 << 62;
/// It is of a file or of shared memory.
pub(crate) const FILE: u64 = 1 << 61;
/// A userfaultfd protects it from stores (since Linux 5.13).
pub(crate) const PROTECTED: u64 = 1 << 57;
/// It is mapped by nobody else (since Linux 4.2).
pub(crate) const EXCLUSIVE: u64 = 1 << 56;
/// Its page frame; zeros for whoever lacks `CAP_SYS_ADMIN`.
pub(crate) const FRAME: u64 = (1 << 55) - 1;

/// The page table of a process.
#[derive(Debug)]
pub(crate) struct Pagemap(pub(crate) File);

impl Pagemap {
    /// Opens that of the calling process.
    pub(crate) fn open() -> Result<Self, SysError> {
        Self::of("self").called("open", PATH)
    }

    /// Opens that of any process: its number, or `self`.
    pub(crate) fn of(process: impl Display) -> io::Result<Self> {
        File::open(format!("/proc/{process}/pagemap")).map(Self)
    }

    /// The entry of the page of an address.
    pub(crate) fn entry(&self, address: u64) -> io::Result<u64> {
        word(&self.0, address / BASE_PAGE)
    }

    /// Hands on the entry of each base page of a range of addresses.
    pub(crate) fn each(
        &self,
        start: usize,
        end: usize,
        mut entry: impl FnMut(u64),
    ) -> Result<(), SysError> {
        self.entries(start as u64..end as u64, |_, word| entry(word)).called("pread", PATH)
    }

    /// Hands on the address and the entry of each base page of a range.
    pub(crate) fn entries(
        &self,
        range: Range<u64>,
        mut entry: impl FnMut(u64, u64),
    ) -> io::Result<()> {
        let mut bytes = [0_u8; 4096];
        let (mut at, end) = (range.start / BASE_PAGE * 8, range.end / BASE_PAGE * 8);
        while at < end {
            let count = usize::try_from(end - at).map_or(bytes.len(), |left| left.min(bytes.len()));
            let part = &mut bytes[..count];
            self.0.read_exact_at(part, at)?;
            for (page, word) in (at / 8..).zip(part.as_chunks().0) {
                entry(page * BASE_PAGE, u64::from_ne_bytes(*word));
            }
            at += count as u64;
        }
        Ok(())
    }
}

/// A word of a file of words, such as `/proc/kpageflags`.
pub(crate) fn word(file: &File, index: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, index * 8)?;
    Ok(u64::from_ne_bytes(bytes))
}
