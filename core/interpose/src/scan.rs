#![expect(unsafe_code, reason = "PAGEMAP_SCAN fills an array through an ioctl")]
//! `PAGEMAP_SCAN` (Linux 6.7): which pages of a range are of some kind, as regions.
//!
//! The one idea: one walk of the kernel skips holes and answers by regions, however large the
//! range; whoever asks says for which bits, and gets every region once, in rising order.

use std::{io, ops::Range, os::fd::AsRawFd};

use linux_raw_sys::general as uapi;

use crate::checked;

/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: u64 =
    3 << 30 | (size_of::<uapi::pm_scan_arg>() as u64) << 16 | (b'f' as u64) << 8 | 16;

/// What is asked of present pages.
#[derive(Debug, Clone, Copy)]
pub struct Question {
    /// The bits that regions are told apart by and told with, `PAGE_IS_*`.
    pub bits: u64,
    /// `PM_SCAN_*`.
    pub flags: u64,
}

/// A region of nothing, to fill an array with.
pub const NOWHERE: uapi::page_region = uapi::page_region { start: 0, end: 0, categories: 0 };

/// Hands on every region of present pages of a range, by an open `/proc/PID/pagemap`. One call
/// returns as many as `room` has.
///
/// # Errors
/// `ENOTTY` before Linux 6.7; when the process has ended or runs another program now.
pub fn regions(
    pagemap: &impl AsRawFd,
    range: Range<u64>,
    question: Question,
    room: &mut [uapi::page_region],
    mut found: impl FnMut(uapi::page_region),
) -> io::Result<()> {
    let (fd, most) = (pagemap.as_raw_fd(), room.len());
    let Range { start: mut from, end } = range;
    while from < end {
        let mut argument = uapi::pm_scan_arg {
            size: size_of::<uapi::pm_scan_arg>() as u64,
            flags: question.flags,
            start: from,
            end,
            walk_end: 0,
            vec: room.as_mut_ptr() as u64,
            vec_len: most as u64,
            max_pages: 0,
            category_inverted: 0,
            category_mask: u64::from(uapi::PAGE_IS_PRESENT),
            category_anyof_mask: 0,
            return_mask: question.bits,
        };
        // Not libc::ioctl: glibc and musl disagree about the type of a request.
        // SAFETY: the argument has the size that it announces, `vec` has `vec_len` entries, and
        // both outlive the call; nothing of ours is written but those entries.
        let filled = unsafe { libc::syscall(libc::SYS_ioctl, fd, PAGEMAP_SCAN, &raw mut argument) };
        let filled = checked(filled).map_err(io::Error::from_raw_os_error)?;
        let filled = usize::try_from(filled).map_err(io::Error::other)?;
        room.iter().take(filled).copied().for_each(&mut found);
        // Not by `walk_end`: the kernel fills the list by parts of 512 regions, and where a part
        // was full and the next one ended the walk, it still names the end of the former (seen on
        // 6.12 and 6.18): what came after it would be found twice.
        match room.last() {
            Some(last) if filled == most => from = last.end,
            _ => break,
        }
    }
    Ok(())
}
