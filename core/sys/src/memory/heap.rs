#![expect(unsafe_code, reason = "brk moves the end of the heap")]
//! The heap's end, moved by raw `brk`.
//!
//! The allocator may use `brk` too. So nothing here allocates, callers allocate nothing between
//! [`grow`] and [`shrink`], and `shrink` refuses when the end is not where `grow` left it: a wrong
//! shrink would take memory away from the allocator.

use std::io;

use crate::SysError;

/// Moves the end of the heap up to `skew` bytes past a multiple of `align`, and returns it.
pub(crate) fn extend_to(align: usize, skew: usize) -> Result<usize, SysError> {
    let end = set(0);
    // One untouched page of the heap below keeps our pages apart from the allocator's.
    let base = (end + 4096).next_multiple_of(align) + skew;
    if set(base) == base { Ok(base) } else { Err(refused("brk", base)) }
}

/// Grows the heap from `base` by `bytes`.
pub(crate) fn grow(base: usize, bytes: usize) -> Result<(), SysError> {
    if set(base + bytes) == base + bytes { Ok(()) } else { Err(refused("brk", base + bytes)) }
}

/// Shrinks the heap back to `base` if it still ends `bytes` above it.
pub(crate) fn shrink(base: usize, bytes: usize) -> Result<(), SysError> {
    if set(0) != base + bytes {
        let why = io::Error::other("somebody else moved the end of the heap");
        return Err(SysError::new("brk", format!("{base:#x}"), why));
    }
    if set(base) == base { Ok(()) } else { Err(refused("brk", base)) }
}

/// Sets the end of the heap (0 only asks) and returns where it is now.
fn set(end: usize) -> usize {
    // SAFETY: callers only grow, or shrink to where they grew from with nothing allocated since.
    let result = unsafe { libc::syscall(libc::SYS_brk, end) };
    usize::try_from(result).unwrap_or(0)
}

fn refused(call: &'static str, end: usize) -> SysError {
    SysError::new(call, format!("{end:#x}"), io::Error::from_raw_os_error(libc::ENOMEM))
}
