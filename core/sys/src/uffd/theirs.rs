//! Another process's descriptor of faults, which it has opened for whoever watches it.
//!
//! The one idea: a descriptor stands for the memory of the process that opened it, whoever holds
//! it. So a process opens one and does nothing more, and a copy of it (`pidfd_getfd`, Linux 5.6)
//! registers whatever the process maps, allocators' own maps included, and keeps it registered
//! when the process closes the first.
//!
//! The memory is the other process's: nothing of ours is reached.

use std::{io, ops::Range, os::fd::OwnedFd};

use linux_raw_sys::general as uapi;
use rustix::process::{PidfdGetfdFlags, pidfd_getfd};

use super::descriptor::{REGISTER, call};
use crate::process::tree::descriptor;

/// The copy of a descriptor that speaks the API already.
#[derive(Debug)]
pub struct Theirs(OwnedFd);

impl Theirs {
    /// That of a process, by the number that it has there.
    ///
    /// # Errors
    /// `ESRCH` without such a process, `EBADF` where it has closed it, `EPERM` without the right to
    /// trace it.
    pub fn of(pid: u32, number: i32) -> io::Result<Self> {
        Ok(Self(pidfd_getfd(descriptor(pid)?, number, PidfdGetfdFlags::empty())?))
    }

    /// Registers a range of whole mappings for write protection; one that is registered stays so.
    ///
    /// # Errors
    /// `EPERM` for memory that nobody may store to, `EBUSY` for what is another descriptor's,
    /// `EINVAL` where nothing is mapped, `ENOMEM` where the process has ended.
    pub fn register(&self, range: Range<u64>) -> io::Result<()> {
        let mut argument = uapi::uffdio_register {
            range: uapi::uffdio_range { start: range.start, len: range.end - range.start },
            mode: u64::from(uapi::UFFDIO_REGISTER_MODE_WP),
            ioctls: 0,
        };
        call(&self.0, REGISTER, &mut argument)
    }
}
