//! `/proc/self/pagemap`, the page table as the kernel shows it: one entry of 64 bits for each base
//! page (Documentation/admin-guide/mm/pagemap.rst).

use std::{fs::File, os::unix::fs::FileExt};

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

/// The page table of the process that opened it.
#[derive(Debug)]
pub(crate) struct Pagemap(pub(crate) File);

impl Pagemap {
    /// Opens that of the calling process.
    pub(crate) fn open() -> Result<Self, SysError> {
        File::open(PATH).map(Self).called("open", PATH)
    }

    /// Hands on the entry of each base page of a range of addresses.
    pub(crate) fn each(
        &self,
        start: usize,
        end: usize,
        mut entry: impl FnMut(u64),
    ) -> Result<(), SysError> {
        let mut bytes = [0_u8; 4096];
        let (mut at, end) = (start as u64 / BASE_PAGE * 8, end as u64 / BASE_PAGE * 8);
        while at < end {
            let count = usize::try_from(end - at).map_or(bytes.len(), |left| left.min(bytes.len()));
            let part = &mut bytes[..count];
            self.0.read_exact_at(part, at).called("pread", PATH)?;
            part.as_chunks().0.iter().for_each(|word| entry(u64::from_ne_bytes(*word)));
            at += count as u64;
        }
        Ok(())
    }
}
