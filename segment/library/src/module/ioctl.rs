#![expect(unsafe_code, reason = "ioctl")]
//! Segments of the module, for a library inside somebody's program.
//!
//! The one idea: the calls of the module that a segment needs, without allocating: what went wrong
//! is a number, and which part of the reserved region is free is found by asking for it. Addresses
//! are numbers here that the module looks up; only a copy reaches memory.

use std::os::fd::{BorrowedFd, IntoRawFd, RawFd};

use pagelab_interpose::uapi::{
    self, PagelabAlloc, PagelabCopy, PagelabDrop, PagelabFreeze, PagelabInfo, PagelabQuery,
};
use rustix::{
    fs::{Mode, OFlags, open},
    io::Errno,
    ioctl::{Opcode, Updater, ioctl},
};

/// An error number.
type Number = i32;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// A multiple of 4 KiB.
    pub(crate) bytes: u64,
    /// Bytes of the largest leaf; smaller ones where the kernel has no such.
    pub(crate) leaf: u64,
    /// Whether frames are zeroed by the fault that first maps them.
    pub(crate) zero_at_fault: bool,
}

/// What is behind an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mapped {
    /// Bytes of the leaf.
    pub(crate) leaf: u64,
    /// The physical address; `None` for users who may not know it.
    pub(crate) phys: Option<u64>,
}

/// An open file of the module that has a segment; and the leaf that it has.
///
/// # Errors
/// With the number of the call that failed; `EPROTO` for a module of another interface.
pub(crate) fn claim(wanted: &Wanted) -> Result<(RawFd, u64), Number> {
    let file = open(uapi::NODE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(number)?;
    let file = file.into_raw_fd();
    claimed(file, wanted).inspect_err(|_| {
        // SAFETY: opened above, and nobody else knows it.
        unsafe { rustix::io::close(file) };
    })
}

fn claimed(file: RawFd, wanted: &Wanted) -> Result<(RawFd, u64), Number> {
    let mut version = 0_u32;
    call::<{ uapi::IOC_VERSION }, _>(file, &mut version)?;
    if version != uapi::VERSION {
        return Err(libc::EPROTO);
    }
    let mut info = PagelabInfo::default();
    call::<{ uapi::IOC_INFO }, _>(file, &mut info)?;
    let mut why = libc::ENOMEM;
    for layout in [uapi::RESERVED, uapi::CONTIGUOUS] {
        let offered = info.leaves[uapi::WB as usize][layout as usize];
        let Some(leaf) = largest(offered, wanted.leaf) else { continue };
        // A part of the region that another file has is `EBUSY`: the next one may be free.
        let parts = match layout {
            uapi::RESERVED => info.reserved_bytes.saturating_sub(wanted.bytes) / leaf + 1,
            _ => 1,
        };
        if layout == uapi::RESERVED && info.reserved_bytes < wanted.bytes {
            continue;
        }
        for part in 0..parts {
            let flags = if wanted.zero_at_fault { uapi::ZERO_AT_FAULT } else { 0 };
            let mut alloc = PagelabAlloc {
                bytes: wanted.bytes,
                node: -1,
                memtype: uapi::WB,
                layout,
                leaf_shift: leaf.trailing_zeros(),
                flags: uapi::SEGMENT | flags,
                offset: part * leaf,
                ..PagelabAlloc::default()
            };
            match call::<{ uapi::IOC_ALLOC }, _>(file, &mut alloc) {
                Ok(()) => return Ok((file, leaf)),
                Err(libc::EBUSY) => why = libc::EBUSY,
                Err(errno) => {
                    why = errno;
                    break;
                }
            }
        }
    }
    Err(why)
}

/// The largest leaf that is offered, and no larger than what is wanted.
fn largest(offered: u64, wanted: u64) -> Option<u64> {
    let fit = offered & (wanted | (wanted - 1));
    (fit != 0).then(|| 1 << fit.ilog2())
}

/// Forgets what is in a part of a segment: it is zero when it is touched again.
///
/// # Errors
/// With the number of the call's error.
pub(crate) fn forget(file: RawFd, offset: u64, bytes: u64) -> Result<(), Number> {
    let mut part = PagelabDrop { offset, bytes, pad: [0; 2] };
    call::<{ uapi::IOC_DROP }, _>(file, &mut part)
}

/// Keeps all other threads from touching a segment for some time, or, if this thread does already,
/// for that time from now on; 0 lets them go on. The time is cut to what the module allows.
///
/// # Errors
/// With the number of the call's error: `ETIME` where the time was over before, `ENOTTY` of an
/// older module.
pub(crate) fn freeze(file: RawFd, milliseconds: u64) -> Result<(), Number> {
    let most = u64::from(uapi::FREEZE_MOST);
    let milliseconds = u32::try_from(milliseconds.min(most)).unwrap_or(uapi::FREEZE_MOST);
    let mut time = PagelabFreeze { milliseconds, ..PagelabFreeze::default() };
    call::<{ uapi::IOC_FREEZE }, _>(file, &mut time)
}

/// Copies what was touched of a segment to another address, also while it is frozen; how many bytes
/// that were. What was never touched is left as it is there.
///
/// # Safety
/// `to` is memory that the caller has, of this length, and nobody else uses.
///
/// # Errors
/// With the number of the call's error: `EFAULT` where some of it is in no mapping of this file,
/// `ENOTTY` of an older module.
pub(crate) unsafe fn copy(
    file: RawFd,
    address: usize,
    bytes: usize,
    to: usize,
) -> Result<usize, Number> {
    let (addr, bytes, to) = (address as u64, bytes as u64, to as u64);
    let mut copy = PagelabCopy { addr, bytes, to, ..PagelabCopy::default() };
    call::<{ uapi::IOC_COPY }, _>(file, &mut copy)?;
    Ok(usize::try_from(copy.copied).unwrap_or(usize::MAX))
}

/// What is mapped at an address of a segment; `None` where nothing is.
///
/// # Errors
/// With the number of the call's error: `EFAULT` where no mapping of this file is.
pub(crate) fn mapped(file: RawFd, address: usize) -> Result<Option<Mapped>, Number> {
    let mut query = PagelabQuery { addr: address as u64, ..PagelabQuery::default() };
    call::<{ uapi::IOC_QUERY }, _>(file, &mut query)?;
    let leaf = 1_u64.checked_shl(query.leaf_shift).filter(|_| query.leaf_shift > 0);
    Ok(leaf.map(|leaf| Mapped { leaf, phys: Some(query.phys).filter(|phys| *phys != 0) }))
}

fn number(errno: Errno) -> Number {
    errno.raw_os_error()
}

/// One ioctl whose argument is the structure that its number announces.
fn call<const NUMBER: Opcode, T>(file: RawFd, argument: &mut T) -> Result<(), Number> {
    const { assert!(NUMBER as usize >> 16 & 0x3fff == size_of::<T>(), "another structure") };
    // SAFETY: a number that is no open file, or somebody else's, is an error of the call.
    let file = unsafe { BorrowedFd::borrow_raw(file) };
    // SAFETY: the kernel reads and writes at most the bytes announced, which are the argument's.
    let call = unsafe { Updater::<NUMBER, T>::new(argument) };
    // SAFETY: as above; the argument is plain numbers, and lives as long as the call.
    unsafe { ioctl(file, call) }.map_err(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_leaf_that_is_offered_and_wanted_is_taken() {
        let all = 1 << 12 | 1 << 21 | 1 << 30;
        assert_eq!(largest(all, 1 << 30), Some(1 << 30));
        assert_eq!(largest(all, 1 << 21), Some(1 << 21));
        assert_eq!(largest(1 << 12, 1 << 30), Some(1 << 12));
        assert_eq!(largest(1 << 30, 1 << 21), None);
        assert_eq!(largest(0, 1 << 30), None);
    }

    #[test]
    fn without_the_module_there_is_a_number() {
        if !std::path::Path::new(uapi::NODE).exists() {
            let wanted = Wanted { bytes: 4096, leaf: 4096, zero_at_fault: true };
            assert_eq!(claim(&wanted), Err(libc::ENOENT));
        }
        assert_eq!(forget(RawFd::MAX, 0, 4096), Err(libc::EBADF));
        assert_eq!(freeze(RawFd::MAX, 1), Err(libc::EBADF));
    }
}
