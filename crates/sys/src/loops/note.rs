#![expect(unsafe_code, reason = "mmap and a plain load through it")]
//! The published latency note's method, kept as it was so that its bias can be shown.
//!
//! A fresh 4 MiB mapping, an unfenced counter before and after a *read* of its first byte. The
//! timer's own cost stays in. Nothing else in this room may use it.

use crate::{SysError, arch};

const BYTES: usize = 4096 * 1024;

/// One sample in ticks, with `MADV_NOHUGEPAGE` as the note's author added later.
///
/// # Errors
/// When memory is short.
///
/// # Panics
/// Where the machine has no time stamp counter.
pub fn sample_ticks() -> Result<u64, SysError> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_ANONYMOUS | libc::MAP_PRIVATE;
    // SAFETY: a fresh private mapping at a place of the kernel's choice.
    let map = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, protection, flags, -1, 0) };
    if map == libc::MAP_FAILED {
        return Err(SysError::last("mmap", "4 MiB, anonymous"));
    }
    // SAFETY: advice about our own mapping.
    unsafe { libc::madvise(map, BYTES, libc::MADV_NOHUGEPAGE) };
    let before = arch::ticks_plain();
    // SAFETY: the first byte of a readable mapping.
    let byte = unsafe { map.cast::<u8>().read_volatile() };
    let after = arch::ticks_plain();
    std::hint::black_box(byte);
    // SAFETY: ours, and nothing refers to it any more.
    unsafe { libc::munmap(map, BYTES) };
    Ok(after.saturating_sub(before))
}
