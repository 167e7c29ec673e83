//! Bytes of another process's memory, as far as they are there.
//!
//! `/proc/PID/mem` faults in what is not present (`access_remote_vm`), so a look at memory that the
//! process has given back would change the process. The page table is asked first, between opening
//! and reading: what goes away within these microseconds is mapped again nevertheless.

use std::{fs::File, os::unix::fs::FileExt as _};

use super::pagemap::{PRESENT, Pagemap};

/// Reads bytes of one page of a process; `None` where the page is not present, or may not be read.
pub fn peek<const N: usize>(pid: u32, address: u64) -> Option<[u8; N]> {
    let pagemap = Pagemap::of(pid).ok()?;
    let (memory, mut bytes) = (File::open(format!("/proc/{pid}/mem")).ok()?, [0; N]);
    if pagemap.entry(address).ok()? & PRESENT == 0 {
        return None;
    }
    memory.read_exact_at(&mut bytes, address).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_not_read_and_stays_away() {
        // Fresh memory of the kernel, untouched but for one page.
        let mut memory = vec![0_u8; 64 << 20];
        memory[200 * 4096..][..4].copy_from_slice(b"here");
        let at = |page: usize| std::ptr::from_ref(&memory[page * 4096]) as u64;
        let me = std::process::id();
        assert_eq!(peek(me, at(200)), Some(*b"here"));
        for _ in 0..2 {
            assert_eq!(peek::<4>(me, at(9000)), None);
        }
        assert_eq!(peek::<4>(u32::MAX, at(200)), None, "no such process");
    }
}
