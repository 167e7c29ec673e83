//! Which pages of a process were used lately: the accessed bits of its page table.
//!
//! The one idea: the processor's page walk sets the bit, an access that finds its translation in a
//! TLB does not. Writing 1 to `/proc/PID/clear_refs` (Linux 2.6.22, `CONFIG_PROC_PAGE_MONITOR`)
//! clears the bits of all pages and flushes no TLB; `smaps` counts those whose bit is set again
//! (`Referenced`). So what is counted are the pages that were walked to in between. Nothing of the
//! process is changed but what reclaim takes its pages for: idle, until they are used again.

use std::{
    fs::File,
    io::{self, Read, Write},
};

use crate::{machine::proc, time::monotonic_raw_ns};

/// When a walk over a process's page table began and ended, by `CLOCK_MONOTONIC_RAW`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walked {
    /// Nanoseconds.
    pub begun_ns: u64,
    /// Nanoseconds.
    pub done_ns: u64,
}

impl Walked {
    /// From the middle of this one to the middle of a later one: both go through the pages in the
    /// same order, so that each page is seen so long after its bit was cleared, about.
    pub fn until(self, later: Self) -> u64 {
        let middle = |walked: Self| u64::midpoint(walked.begun_ns, walked.done_ns);
        middle(later).saturating_sub(middle(self))
    }

    /// How long it took.
    pub fn took_ns(self) -> u64 {
        self.done_ns.saturating_sub(self.begun_ns)
    }
}

/// Clears the bits of all pages of a process.
///
/// # Errors
/// When there is no such process, or it is somebody else's.
pub fn clear_accessed(pid: u32) -> io::Result<Walked> {
    let mut file = File::options().write(true).open(format!("/proc/{pid}/clear_refs"))?;
    let begun_ns = monotonic_raw_ns();
    file.write_all(b"1")?;
    Ok(Walked { begun_ns, done_ns: monotonic_raw_ns() })
}

/// Reads what `smaps` says of a process into `text`.
///
/// # Errors
/// When there is no such process, or it is somebody else's.
pub fn read_accessed(pid: u32, text: &mut Vec<u8>) -> io::Result<Walked> {
    text.clear();
    let mut file = proc::open(pid, "smaps")?;
    let begun_ns = monotonic_raw_ns();
    file.read_to_end(text)?;
    Ok(Walked { begun_ns, done_ns: monotonic_raw_ns() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_not_there_has_no_pages() {
        assert!(clear_accessed(u32::MAX).is_err());
        assert!(read_accessed(u32::MAX, &mut Vec::new()).is_err());
    }

    #[test]
    fn the_time_between_two_walks_is_from_middle_to_middle() {
        let walked = |begun_ns, done_ns| Walked { begun_ns, done_ns };
        assert_eq!(walked(100, 200).until(walked(250, 450)), 200);
        assert_eq!(walked(100, 200).took_ns(), 100);
        assert_eq!(walked(300, 400).until(walked(0, 10)), 0, "a clock that went back is no time");
    }

    #[test]
    fn this_process_has_pages_that_it_used() {
        let mut text = Vec::new();
        if clear_accessed(std::process::id()).is_err() {
            return;
        }
        read_accessed(std::process::id(), &mut text).unwrap();
        assert!(String::from_utf8_lossy(&text).contains("Referenced:"));
    }
}
