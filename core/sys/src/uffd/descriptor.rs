#![expect(unsafe_code, reason = "userfaultfd is spoken to by ioctl")]
//! The descriptor: opening it, what the kernel can do, and which range it stands for.
//!
//! Rules: (1) every request carries the size of the struct that it is called with, and the struct
//! outlives the call; (2) a range is registered only through the [`Area`] that owns it, and areas
//! are reached by volatile access only, so pages that come and go break no reference.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use linux_raw_sys::general as uapi;
use rustix::mm::{UserfaultfdFlags, userfaultfd};

use crate::{Area, Called, SysError, arch, checked};

/// `UFFD_USER_MODE_ONLY`, which rustix does not name.
const USER_MODE_ONLY: u32 = uapi::UFFD_USER_MODE_ONLY;

listed! {
    /// One thing that a kernel can or cannot do with the faults of a registered range.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Ability {
        /// Missing pages of anonymous memory: the start of it all.
        Missing,
        /// Missing pages of hugetlb memory.
        MissingHugetlb,
        /// `SIGBUS` in place of messages.
        Sigbus,
        /// Pages that are in the page cache and not mapped, in shmem.
        MinorShmem,
        /// The same in hugetlb memory.
        MinorHugetlb,
        /// Stores to write-protected pages of anonymous memory.
        WriteProtect,
        /// The same in shmem and hugetlb memory.
        WriteProtectHugetlb,
        /// Write protection that the kernel takes away by itself.
        WriteProtectAsync,
        /// `UFFDIO_MOVE`.
        Move,
        /// `UFFDIO_POISON`, and an instruction that can be stepped over.
        Poison,
    }
}

impl Ability {
    /// Its bit among the features of `UFFDIO_API`, the kernel's name for it, and the first kernel
    /// that has it, by include/uapi/linux/userfaultfd.h of each release.
    fn row(self) -> (u32, &'static str, &'static str) {
        macro_rules! bit {
            ($name:ident, $since:literal) => {
                (uapi::$name, stringify!($name), $since)
            };
        }
        match self {
            Self::Missing => (0, "userfaultfd", "4.3"),
            Self::MissingHugetlb => bit!(UFFD_FEATURE_MISSING_HUGETLBFS, "4.11"),
            Self::Sigbus => bit!(UFFD_FEATURE_SIGBUS, "4.14"),
            Self::MinorShmem => bit!(UFFD_FEATURE_MINOR_SHMEM, "5.14"),
            Self::MinorHugetlb => bit!(UFFD_FEATURE_MINOR_HUGETLBFS, "5.13"),
            Self::WriteProtect => bit!(UFFD_FEATURE_PAGEFAULT_FLAG_WP, "5.7"),
            Self::WriteProtectHugetlb => bit!(UFFD_FEATURE_WP_HUGETLBFS_SHMEM, "5.19"),
            Self::WriteProtectAsync => bit!(UFFD_FEATURE_WP_ASYNC, "6.7"),
            Self::Move => bit!(UFFD_FEATURE_MOVE, "6.8"),
            Self::Poison => bit!(UFFD_FEATURE_POISON, "6.6"),
        }
    }

    /// All bits that it takes: the wider forms of write protection build on the first.
    fn features(self) -> u64 {
        let wider = matches!(self, Self::WriteProtectHugetlb | Self::WriteProtectAsync);
        let first = if wider { uapi::UFFD_FEATURE_PAGEFAULT_FLAG_WP } else { 0 };
        u64::from(self.row().0 | first)
    }

    /// The kernel's name for it.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The first kernel that has it.
    pub fn since(self) -> &'static str {
        self.row().2
    }

    /// Whether this kernel has it and lets this process use it.
    pub fn is_here(self) -> bool {
        let steps = self != Self::Poison || arch::HAS_STEP_OVER;
        // A descriptor speaks the API once, so each question takes a fresh one.
        let offered = open().and_then(|fd| speak(&fd, 0));
        steps && offered.is_ok_and(|offered| offered & self.features() == self.features())
    }

    /// Why no descriptor can be had at all; `None` where one can.
    pub fn refusal() -> Option<io::Error> {
        open().and_then(|fd| speak(&fd, 0)).err().map(|error| error.source)
    }
}

/// Which faults of a range are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// No page is there.
    Missing,
    /// The page is in the page cache and not in the page table.
    Minor,
    /// The page is write-protected and stored to.
    WriteProtect,
}

/// A descriptor of faults. Dropping it gives its ranges back to the kernel's own handling.
#[derive(Debug)]
pub struct Uffd(OwnedFd);

impl Uffd {
    /// Opens one that does so much.
    ///
    /// # Errors
    /// Where the kernel has no userfaultfd, keeps it from this process, or lacks an ability.
    pub fn open(abilities: &[Ability]) -> Result<Self, SysError> {
        let fd = open()?;
        let wanted = abilities.iter().fold(0, |bits, ability| bits | ability.features());
        speak(&fd, wanted)?;
        Ok(Self(fd))
    }

    /// Takes the faults of `from..to` of an area of one window.
    ///
    /// # Errors
    /// When the memory is of a kind whose faults cannot be had.
    ///
    /// # Panics
    /// When the range is not in the area, or the area has several windows.
    pub fn register(
        &self,
        area: &Area,
        from: usize,
        to: usize,
        mode: Mode,
    ) -> Result<(), SysError> {
        let mode = match mode {
            Mode::Missing => uapi::UFFDIO_REGISTER_MODE_MISSING,
            Mode::Minor => uapi::UFFDIO_REGISTER_MODE_MINOR,
            Mode::WriteProtect => uapi::UFFDIO_REGISTER_MODE_WP,
        };
        let mut argument = uapi::uffdio_register {
            range: range(area, from, to),
            mode: u64::from(mode),
            ioctls: 0,
        };
        call(&self.0, REGISTER, &mut argument)
            .called("ioctl", format_args!("UFFDIO_REGISTER, mode {mode}"))
    }

    /// Write-protects `from..to` of an area of one window.
    ///
    /// # Errors
    /// When the range is not registered for it.
    ///
    /// # Panics
    /// When the range is not in the area, or the area has several windows.
    pub fn protect(&self, area: &Area, from: usize, to: usize) -> Result<(), SysError> {
        let mut argument =
            uapi::uffdio_writeprotect { range: range(area, from, to), mode: PROTECT };
        call(&self.0, WRITEPROTECT, &mut argument).called("ioctl", "UFFDIO_WRITEPROTECT")
    }
}

impl AsFd for Uffd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// `UFFDIO_WRITEPROTECT_MODE_WP` of userfaultfd.h, which linux-raw-sys leaves out.
const PROTECT: u64 = 1;

fn range(area: &Area, from: usize, to: usize) -> uapi::uffdio_range {
    let layout = area.layout();
    assert!(layout.windows == 1 && from < to && to <= layout.bytes(), "a range of the area");
    uapi::uffdio_range { start: (area.base() + from) as u64, len: (to - from) as u64 }
}

/// By the system call; where a container or a sysctl forbids it, by the device (since Linux 6.1).
fn open() -> Result<OwnedFd, SysError> {
    let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK;
    let mine = flags | UserfaultfdFlags::from_bits_retain(USER_MODE_ONLY);
    // SAFETY: the descriptor is used on ranges of areas only (rule 2).
    let first = unsafe { userfaultfd(mine) };
    // Before Linux 5.11 there was no such flag.
    let made = match first {
        Err(rustix::io::Errno::INVAL) => {
            // SAFETY: as above.
            unsafe { userfaultfd(flags) }
        }
        other => other,
    };
    let made: Result<OwnedFd, rustix::io::Errno> = made.or_else(|error| {
        let device = File::open("/dev/userfaultfd").map_err(|_| error)?;
        let flags = (flags.bits() | USER_MODE_ONLY) as usize;
        // SAFETY: the request takes flags by value and touches no memory of ours.
        let fd = unsafe { libc::syscall(libc::SYS_ioctl, device.as_raw_fd(), NEW, flags) };
        let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or(error)?;
        // SAFETY: the kernel has just made it, for nobody else.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    });
    made.called("userfaultfd", "user mode")
}

/// Says which features are wanted; answers with all that the kernel has.
fn speak(fd: &OwnedFd, features: u64) -> Result<u64, SysError> {
    let mut argument = uapi::uffdio_api { api: u64::from(uapi::UFFD_API), features, ioctls: 0 };
    call(fd, API, &mut argument).called("ioctl", format_args!("UFFDIO_API, {features:#x}"))?;
    Ok(argument.features)
}

/// One request with its struct.
pub(super) fn call<T>(fd: &OwnedFd, request: u64, argument: &mut T) -> io::Result<()> {
    // SAFETY: the request names the size of `T` (rule 1), which outlives the call.
    let result = unsafe {
        // Not libc::ioctl: glibc and musl disagree about the type of a request.
        libc::syscall(libc::SYS_ioctl, fd.as_raw_fd(), request, std::ptr::from_mut(argument))
    };
    checked(result).map(drop)
}

/// `_IOWR(UFFDIO, number, T)`.
pub(super) const fn request<T>(number: u32) -> u64 {
    3 << 30 | (size_of::<T>() as u64) << 16 | (uapi::UFFDIO as u64) << 8 | number as u64
}

const API: u64 = request::<uapi::uffdio_api>(uapi::_UFFDIO_API);
pub(super) const REGISTER: u64 = request::<uapi::uffdio_register>(uapi::_UFFDIO_REGISTER);
pub(super) const WRITEPROTECT: u64 =
    request::<uapi::uffdio_writeprotect>(uapi::_UFFDIO_WRITEPROTECT);
/// `_IOR(UFFDIO, 1, struct uffdio_range)`.
pub(super) const UNREGISTER: u64 =
    2 << 30 | (size_of::<uapi::uffdio_range>() as u64) << 16 | 0xAA << 8 | 1;
/// `_IOR(UFFDIO, 2, struct uffdio_range)`.
pub(super) const WAKE: u64 =
    2 << 30 | (size_of::<uapi::uffdio_range>() as u64) << 16 | 0xAA << 8 | 2;
/// `USERFAULTFD_IOC_NEW`, `_IO(0xAA, 0)`.
const NEW: u64 = 0xAA << 8;
