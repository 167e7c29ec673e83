#![expect(unsafe_code, reason = "anonymous memory on huge pages is mapped by hand")]
//! A copy of a file in anonymous memory, on huge pages where the kernel gives them: what it means
//! for a trace to be in memory.
//!
//! The one idea: it is filled once and then read only, by the page table too, so that it can be
//! handed out as a plain slice. It is no memory under test: that is behind [`crate::Area`].

use std::{fs::File, io, ops::Deref, os::unix::fs::FileExt};

use crate::{
    Called, SysError,
    memory::{
        Scanner,
        map::{Map, READ_WRITE},
    },
};

const HUGE: usize = 2 << 20;

/// Bytes that nobody can change any more.
#[derive(Debug)]
pub struct HugeBytes {
    /// Everything that was mapped.
    map: Map,
    /// Where the bytes start in it, at a boundary of huge pages, and how many they are.
    bytes: (usize, usize),
}

impl HugeBytes {
    /// Copies the first `length` bytes of a file.
    ///
    /// # Errors
    /// When memory is short, or the file is.
    pub fn read(file: &File, length: usize) -> Result<Self, SysError> {
        let whole = length.next_multiple_of(HUGE) + HUGE;
        let map = Map::anonymous(whole, READ_WRITE, 0)?;
        let skip = map.start().align_offset(HUGE);
        let copy = Self { map, bytes: (skip, length) };
        // Where there are no transparent huge pages the copy has base pages: `huge_bytes` tells.
        copy.map.advise(libc::MADV_HUGEPAGE);
        // SAFETY: mapped, zeroed by the kernel, `length` bytes long, and seen by nobody else yet.
        let target = unsafe { std::slice::from_raw_parts_mut(copy.first(), length) };
        fill(file, target).called("pread", "a trace")?;
        // SAFETY: ours; a stray write through a wild pointer is a fault from here on.
        unsafe { libc::mprotect(copy.map.start().cast(), whole, libc::PROT_READ) };
        Ok(copy)
    }

    /// The first byte: less than a huge page into the mapping, which is longer than that.
    fn first(&self) -> *mut u8 {
        self.map.start().wrapping_add(self.bytes.0)
    }

    /// Bytes that lie on huge pages, by the page table; `None` where it cannot be read.
    pub fn huge_bytes(&self) -> Option<u64> {
        let start = self.first() as usize;
        let end = start + self.bytes.1.next_multiple_of(4096);
        let found = Scanner::open().ok()?.scan_range_of(start, end).ok()?;
        Some(found.huge * 4096)
    }
}

/// Like `read_exact_at`, in pieces that a signal may interrupt.
fn fill(file: &File, target: &mut [u8]) -> io::Result<()> {
    let mut at = 0;
    for piece in target.chunks_mut(4 << 20) {
        file.read_exact_at(piece, at)?;
        at += piece.len() as u64;
    }
    Ok(())
}

impl Deref for HugeBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: mapped for as long as `self` lives, initialised, and never written again.
        unsafe { std::slice::from_raw_parts(self.first(), self.bytes.1) }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_copy_is_the_file() {
        let _alone = crate::alone();
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[n as usize % 3]).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let copy = HugeBytes::read(&file, bytes.len()).unwrap();
        assert!(*copy == bytes);
        assert!(copy.as_ptr().align_offset(HUGE) == 0);
        assert!(copy.huge_bytes().is_none_or(|huge| huge <= 4 << 20));
    }

    #[test]
    fn a_file_that_is_too_short_is_refused_and_an_empty_one_is_empty() {
        let file = tempfile::tempfile().unwrap();
        assert!(HugeBytes::read(&file, 1).unwrap_err().to_string().contains("pread"));
        assert!(HugeBytes::read(&file, 0).unwrap().is_empty());
    }
}
