#![expect(unsafe_code, reason = "cachestat fills a struct, mincore looks at a mapping")]
//! Which part of a file the kernel holds in memory, and how to get it in or out.
//!
//! `cachestat` (since Linux 6.5) answers for a descriptor; before it, and on overlayfs, whose files
//! have their pages elsewhere, `mincore` answers for a mapping of the file. To get a file out is a
//! request that the kernel may not follow (dirty or mapped pages stay, a file system in memory has
//! nothing else): ask afterwards.

use std::{
    fs::File,
    io,
    os::{fd::AsRawFd, unix::fs::FileExt},
};

use linux_raw_sys::general::{__NR_cachestat, cachestat, cachestat_range};
use rustix::fs::{Advice, fadvise, fdatasync};

use crate::{
    Called, SysError,
    memory::map::{Map, READ},
};

const PAGE: u64 = 4096;
/// Bytes of a file that are read or written at once.
const PIECE: usize = 1 << 20;

/// Pages of the first `bytes` bytes of a file that are in memory.
///
/// # Errors
/// When the file cannot be mapped or is no file.
pub fn resident_pages(file: &File, bytes: u64) -> Result<u64, SysError> {
    if bytes == 0 {
        return Ok(0);
    }
    let is_overlay = file_system(file).is_ok_and(|(magic, _)| magic == OVERLAYFS);
    let known = if is_overlay { None } else { ask_cachestat(file, bytes) };
    known.map_or_else(|| ask_mincore(file, bytes), Ok)
}

/// Pages that so many bytes lie in.
pub fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE)
}

fn ask_cachestat(file: &File, bytes: u64) -> Option<u64> {
    let range = cachestat_range { off: 0, len: bytes };
    let mut found = cachestat {
        nr_cache: 0,
        nr_dirty: 0,
        nr_writeback: 0,
        nr_evicted: 0,
        nr_recently_evicted: 0,
    };
    let (call, fd) = (libc::c_long::from(__NR_cachestat), file.as_raw_fd());
    // SAFETY: the kernel reads one struct and writes the other; both outlive the call.
    let result = unsafe { libc::syscall(call, fd, &raw const range, &raw mut found, 0_u32) };
    (result == 0).then_some(found.nr_cache)
}

fn ask_mincore(file: &File, bytes: u64) -> Result<u64, SysError> {
    let length = usize::try_from(bytes).expect("addresses have 64 bits");
    // Nobody reads it: mincore looks at the page cache behind it.
    let map = Map::of(file, length, READ, libc::MAP_SHARED)?;
    let mut states = vec![0_u8; usize::try_from(pages(bytes)).expect("fewer pages than bytes")];
    // SAFETY: the array has an entry for each page of the mapping.
    let result = unsafe { libc::mincore(map.start().cast(), length, states.as_mut_ptr()) };
    SysError::checked(result, "mincore", format_args!("{bytes} bytes of a file"))?;
    Ok(states.iter().filter(|state| *state & 1 != 0).count() as u64)
}

/// Writes back what is dirty and asks the kernel to forget the file's pages.
///
/// # Errors
/// When writing back fails.
pub fn evict(file: &File) -> Result<(), SysError> {
    fdatasync(file).called("fdatasync", "a trace")?;
    fadvise(file, 0, None, Advice::DontNeed).called("posix_fadvise", "POSIX_FADV_DONTNEED")
}

/// Reads the first `bytes` bytes of a file, so that they are in memory afterwards.
///
/// # Errors
/// When it cannot be read or is shorter.
pub fn fill(file: &File, bytes: u64) -> io::Result<()> {
    let mut buffer = vec![0; PIECE];
    pieces(bytes, |at, length| file.read_exact_at(&mut buffer[..length], at))
}

/// Writes `bytes` times this byte from the start of a file, and all of it to the disk.
///
/// # Errors
/// When the disk is full.
pub(crate) fn write(file: &File, byte: u8, bytes: u64) -> io::Result<()> {
    let piece = vec![byte; PIECE];
    pieces(bytes, |at, length| file.write_all_at(&piece[..length], at))?;
    file.sync_all()
}

/// So many bytes, piece by piece: where each is, and how long.
fn pieces(bytes: u64, mut each: impl FnMut(u64, usize) -> io::Result<()>) -> io::Result<()> {
    let length = |at| usize::try_from(bytes - at).map_or(PIECE, |left| left.min(PIECE));
    (0..bytes).step_by(PIECE).try_for_each(|at| each(at, length(at)))
}

/// The kernel's number for the file system that a file lies in, and its name.
///
/// # Errors
/// When the kernel does not say.
pub fn file_system(file: &File) -> Result<(u64, &'static str), SysError> {
    let found = rustix::fs::fstatfs(file).called("fstatfs", "a trace")?;
    let magic = found.f_type.cast_unsigned();
    let name = MAGICS.iter().find(|(known, _)| *known == magic).map_or("another", |(_, n)| n);
    Ok((magic, name))
}

/// File systems that have nothing but memory: nothing can be evicted.
pub fn is_in_memory(magic: u64) -> bool {
    [TMPFS, RAMFS].contains(&magic)
}

/// Whether a path lies on tmpfs: its pages are shared memory. `false` where nobody can say.
pub fn is_tmpfs(path: &std::path::Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| u64::try_from(found.f_type) == Ok(TMPFS))
}

const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;
const OVERLAYFS: u64 = 0x794c_7630;

/// The numbers of the UAPI's `magic.h` that a trace is likely to lie in.
const MAGICS: &[(u64, &str)] = &[
    (TMPFS, "tmpfs"),
    (RAMFS, "ramfs"),
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (OVERLAYFS, "overlayfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xf2f5_2010, "f2fs"),
    (0x6969, "nfs"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "fuse"),
];

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_was_just_written_is_in_memory_by_both_ways_of_asking() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; 40_000]).unwrap();
        // Somebody may drop the page cache at any moment.
        crate::until("all of it is in memory", || {
            fill(&file, 40_000).unwrap();
            let (mapped, told) = (ask_mincore(&file, 40_000), resident_pages(&file, 40_000));
            let found = [mapped.unwrap(), told.unwrap()];
            assert!(found.iter().all(|pages| *pages <= 10), "{found:?}");
            found == [10, 10]
        });
        assert_eq!(resident_pages(&file, 0).unwrap(), 0);
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a skip says so")]
    fn what_is_evicted_is_gone_until_it_is_read() {
        let mut file = tempfile::tempfile().unwrap();
        if is_in_memory(file_system(&file).unwrap().0) {
            eprintln!("skipped: temporary files lie in memory; to run it: TMPDIR on a disk");
            return;
        }
        file.write_all(&vec![7; 1 << 20]).unwrap();
        // A page that is locked or isolated at the moment stays.
        crate::until("it is out of memory", || {
            evict(&file).unwrap();
            resident_pages(&file, 1 << 20).unwrap() == 0
        });
        crate::until("all of it is in memory", || {
            fill(&file, 1 << 20).unwrap();
            resident_pages(&file, 1 << 20).unwrap() == 256
        });
        assert!(fill(&file, 2 << 20).is_err(), "it is shorter");
    }
}
