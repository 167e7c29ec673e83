#![expect(unsafe_code, reason = "process_madvise is in no library")]
//! Memory of another process, advised from outside.
//!
//! The one idea: `process_madvise(MADV_COLLAPSE)` (Linux 5.10, collapse since 6.1) makes huge pages
//! of what is there already, in any process that we may trace, with `CAP_SYS_NICE`; the process
//! needs to know nothing of it. What it holds is copied, never changed.
//!
//! Rules for the unsafe blocks:
//! 1. The addresses are the other process's: nothing of ours is read or written but the list.

use std::{
    io,
    ops::Range,
    os::fd::{AsRawFd, OwnedFd},
};

use linux_raw_sys::general::MADV_COLLAPSE;

use crate::{
    checked,
    machine::rights::may_advise_others,
    memory::pagemap::{PRESENT, Pagemap},
    process::tree::descriptor,
};

/// A process whose memory may be advised.
#[derive(Debug)]
pub struct Outside {
    process: OwnedFd,
    pagemap: Pagemap,
}

impl Outside {
    /// # Errors
    /// When there is no such process, or the kernel has no such descriptors (before 5.3).
    pub fn of(pid: u32) -> io::Result<Self> {
        Ok(Self { process: descriptor(pid)?, pagemap: Pagemap::of(pid)? })
    }

    /// The aligned blocks of a range of addresses of which at least so many base pages are present.
    ///
    /// # Errors
    /// When the process has ended or may not be looked at.
    pub fn dense(&self, range: Range<u64>, block: u64, least: u64) -> io::Result<Vec<u64>> {
        let mut found = Vec::new();
        let mut at = range.start.next_multiple_of(block);
        while at.checked_add(block).is_some_and(|end| end <= range.end) {
            let mut present = 0;
            self.pagemap.entries(at..at + block, |_, entry| {
                present += u64::from(entry & PRESENT != 0);
            })?;
            if present >= least {
                found.push(at);
            }
            at += block;
        }
        Ok(found)
    }

    /// Collapses a range of addresses into huge pages; the bytes that were, from its start.
    ///
    /// # Errors
    /// `EPERM` without the right, `EINVAL` where the kernel cannot collapse such memory, `ENOMEM`
    /// where it finds no huge page, `EAGAIN` where somebody is in the way.
    pub fn collapse(&self, start: u64, bytes: u64) -> io::Result<u64> {
        let range = [start, bytes];
        // SAFETY: rule 1: reads one entry of two words, which is what a `struct iovec` is.
        let done = unsafe {
            libc::syscall(
                libc::SYS_process_madvise,
                self.process.as_raw_fd(),
                range.as_ptr(),
                1_usize,
                MADV_COLLAPSE,
                0,
            )
        };
        checked(done).map(i64::cast_unsigned)
    }
}

/// Whether this process may do so to others: it has the right, and the kernel knows of it, asked
/// with a range of nothing of itself, which newer kernels let anybody do.
///
/// # Errors
/// As [`Outside::collapse`].
pub fn may_collapse() -> io::Result<()> {
    if !may_advise_others() {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    Outside::of(std::process::id())?.collapse(0, 0).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::print_stderr, reason = "a skip says so")]
    fn a_range_of_this_process_is_collapsed_as_if_from_outside() {
        if let Err(error) = may_collapse() {
            return eprintln!("skipped: {error}; to run it: sudo, on Linux 6.1 or later");
        }
        let bytes = vec![1_u8; 8 << 20];
        let start = (bytes.as_ptr() as u64).next_multiple_of(2 << 20);
        let outside = Outside::of(std::process::id()).unwrap();
        let (block, range) = (2 << 20, start..start + (4 << 20));
        crate::counted(true, || {
            outside.dense(range.clone(), block, 512).unwrap() == [start, start + block]
        });
        assert!(outside.dense(range, block, 513).unwrap().is_empty());
        match outside.collapse(start, 2 << 20) {
            Ok(done) => assert_eq!(done, 2 << 20),
            Err(error) => eprintln!("skipped: no huge page is free ({error})"),
        }
        assert!(bytes.iter().all(|byte| *byte == 1));
        assert!(outside.collapse(start + 1, 4096).is_err(), "no page begins there");
        assert!(Outside::of(u32::MAX).is_err());
    }
}
