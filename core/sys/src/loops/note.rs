#![expect(unsafe_code, reason = "a plain load through a mapping")]
//! The published latency note's method, kept as it was so that its bias can be shown.
//!
//! A fresh 4 MiB mapping, an unfenced counter before and after a *read* of its first byte. The
//! timer's own cost stays in. Nothing else in this room may use it.

use crate::{
    SysError, arch,
    memory::map::{Map, READ_WRITE},
};

const BYTES: usize = 4096 * 1024;

/// One sample in ticks, with `MADV_NOHUGEPAGE` as the note's author added later.
///
/// # Errors
/// When memory is short.
///
/// # Panics
/// Where the machine has no time stamp counter.
pub fn sample_ticks() -> Result<u64, SysError> {
    let map = Map::anonymous(BYTES, READ_WRITE, 0)?;
    map.advise(libc::MADV_NOHUGEPAGE);
    let before = arch::ticks_plain();
    // SAFETY: the first byte of a readable mapping.
    let byte = unsafe { map.start().read_volatile() };
    let after = arch::ticks_plain();
    std::hint::black_box(byte);
    Ok(after.saturating_sub(before))
}
