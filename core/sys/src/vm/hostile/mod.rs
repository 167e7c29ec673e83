#![expect(unsafe_code, reason = "system calls with arguments that no sane caller would pass")]
//! Any call with any argument on a file of the kernel module: for tests of what it refuses.
//!
//! The one idea: a [`Ground`] owns a range of addresses, and whatever a test maps, moves, protects
//! or unmaps lies in it. So no argument, however wild, can reach memory that this program uses.
//!
//! Rules: (1) nothing outside a ground is ever mapped over, moved or unmapped, and a hole in one
//! is reserved again before anybody else can have it, or the process is aborted; (2) memory of a
//! ground is reached by volatile access or by copies that the kernel makes, and no reference into
//! it exists; (3) the argument of an ioctl is a buffer larger than any that a number can announce,
//! or an address that no process can have; (4) a process that has several threads forks only to
//! touch and to end, and moves nothing.
//!
//! It is not the client of the module: that is [`crate::memtype::Device`], which asks for nothing
//! that it could not get.

mod forked;
mod ground;
mod passing;
mod tally;

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
pub use rustix::io::Errno;

pub use forked::{
    End, Forked, Touch, adopt_orphans, fork, fork_as, touch_in_a_child, wait_for_all,
};
pub use ground::{Ground, Mapping, POPULATE, PRIVATE, READ, SHARED, WRITE};
pub use tally::Tally;

/// A device node of the module, or of what the kernel leaves alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// `/dev/pagelab`.
    Pagelab,
    /// `/dev/memcache_wb`.
    LegacyWb,
    /// `/dev/memcache_uc`.
    LegacyUc,
    /// `/dev/memcache_wc`.
    LegacyWc,
    /// `/dev/mem`: physical memory, of which a kernel with `STRICT_DEVMEM` gives nobody its own.
    Memory,
}

impl Door {
    /// Its path.
    pub fn path(self) -> &'static str {
        match self {
            Self::Pagelab => "/dev/pagelab",
            Self::LegacyWb => "/dev/memcache_wb",
            Self::LegacyUc => "/dev/memcache_uc",
            Self::LegacyWc => "/dev/memcache_wc",
            Self::Memory => "/dev/mem",
        }
    }
}

/// An open file of the module.
#[derive(Debug)]
pub struct Node(OwnedFd);

/// The bytes that the largest ioctl number can announce, and some more.
const ARGUMENT_BYTES: usize = 16 << 10;

/// The first address of the kernel's half and of what is in no half.
const NO_PROCESS: u64 = 1 << 63;

/// An ioctl's argument that is not the address of anything of ours.
#[derive(Debug, Clone, Copy)]
pub struct Nowhere(u64);

impl Nowhere {
    /// An address in the first page, which nobody may map, or in the kernel's half.
    pub fn of(bits: u64) -> Self {
        Self(if bits.is_multiple_of(4) { bits % 4096 } else { bits | NO_PROCESS })
    }
}

impl Node {
    /// Opens a node for reading and writing, or for reading only.
    pub fn open(door: Door, write: bool) -> Result<Self, Errno> {
        let access = if write { OFlags::RDWR } else { OFlags::RDONLY };
        rustix::fs::open(door.path(), access | OFlags::CLOEXEC, Mode::empty()).map(Self)
    }

    /// Another descriptor of the same open file.
    pub fn duplicate(&self) -> Result<Self, Errno> {
        rustix::io::fcntl_dupfd_cloexec(&self.0, 0).map(Self)
    }

    /// An ioctl of any number. The argument is copied in and out of a buffer that is large enough
    /// for whatever the number announces.
    ///
    /// # Panics
    /// When the argument is larger than a number can announce.
    pub fn call(&self, number: u32, argument: &mut [u8]) -> Result<i32, Errno> {
        let mut buffer = [0_u8; ARGUMENT_BYTES];
        buffer[..argument.len()].copy_from_slice(argument);
        // SAFETY: the node is one of our module's, which reads and writes what the number announces
        // (or 8 bytes for the legacy number 0), and the buffer is larger; `/dev/mem` has no ioctl.
        let result = unsafe { ioctl(self.0.as_raw_fd(), number, buffer.as_mut_ptr() as u64) };
        argument.copy_from_slice(&buffer[..argument.len()]);
        answer(result).map(|value| i32::try_from(value).unwrap_or(i32::MAX))
    }

    /// What nobody does with a device of this kind: read, write, seek, cut, reserve, flush.
    pub fn misuse(&self) -> [Result<i64, Errno>; 6] {
        let fd = self.0.as_raw_fd();
        let mut bytes = [0_u8; 64];
        // SAFETY: the buffer has as many bytes as the call is told.
        let read = unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) };
        // SAFETY: as above.
        let written = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
        // SAFETY: no memory is passed.
        let sought = unsafe { libc::lseek(fd, 4096, libc::SEEK_SET) };
        // SAFETY: no memory is passed.
        let cut = unsafe { libc::ftruncate(fd, 0) };
        // SAFETY: no memory is passed.
        let reserved = unsafe { libc::fallocate(fd, 3, 0, 1 << 21) };
        // SAFETY: no memory is passed.
        let flushed = unsafe { libc::fsync(fd) };
        let [read, written] = [read, written].map(|bytes| answer(bytes as i64));
        let [cut, reserved, flushed] = [cut, reserved, flushed].map(|result| answer(result.into()));
        [read, written, answer(sought), cut, reserved, flushed]
    }

    /// An ioctl whose argument is no address of this process.
    pub fn call_nowhere(&self, number: u32, Nowhere(at): Nowhere) -> Result<i32, Errno> {
        // SAFETY: no process can have memory there, so nothing of ours can be written.
        let result = unsafe { ioctl(self.0.as_raw_fd(), number, at) };
        answer(result).map(|value| i32::try_from(value).unwrap_or(i32::MAX))
    }
}

/// The call itself: C libraries differ in the type of the number.
///
/// # Safety
/// The kernel may write to `argument` whatever the driver does.
unsafe fn ioctl(fd: i32, number: u32, argument: u64) -> i64 {
    // SAFETY: the caller knows what the driver does with the argument.
    unsafe { libc::syscall(libc::SYS_ioctl, fd, u64::from(number), argument) }
}

fn answer(result: i64) -> Result<i64, Errno> {
    if result == -1 { Err(last()) } else { Ok(result) }
}

fn last() -> Errno {
    errno(&std::io::Error::last_os_error())
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// Whether this process has one thread: the directory of its tasks has a link for each.
fn is_alone() -> bool {
    rustix::fs::stat("/proc/self/task").is_ok_and(|task| task.st_nlink == 3)
}
