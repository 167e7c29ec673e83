#![expect(unsafe_code, reason = "mmap hands out raw memory")]
//! Memory that is mapped for this program's own use, and unmapped when its owner is dropped.
//!
//! Rules: (1) it lies where the kernel chooses, so nobody loses what they have there; (2) whoever
//! owns a [`Map`] answers for what is done through its address, and for the file behind it.
//!
//! It is no memory under test: that is behind [`crate::Area`].

use std::{fs::File, os::fd::AsRawFd, ptr::NonNull, sync::atomic::AtomicU64};

use crate::SysError;

pub(crate) const READ: i32 = libc::PROT_READ;
pub(crate) const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// A mapping.
#[derive(Debug)]
pub(crate) struct Map {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: an address and a length; rule 2 for what is done through them.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// The first bytes of a file.
    pub(crate) fn of(
        file: &File,
        bytes: usize,
        protection: i32,
        flags: i32,
    ) -> Result<Self, SysError> {
        let on = || format!("{bytes} bytes of a file");
        Self::new(file.as_raw_fd(), bytes, protection, flags, on)
    }

    /// Zeroes that are this process's own.
    pub(crate) fn anonymous(bytes: usize, protection: i32, flags: i32) -> Result<Self, SysError> {
        let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        Self::new(-1, bytes, protection, flags, || format!("{bytes} bytes, anonymous"))
    }

    fn new(
        fd: i32,
        bytes: usize,
        protection: i32,
        flags: i32,
        on: impl Fn() -> String,
    ) -> Result<Self, SysError> {
        // SAFETY: a fresh mapping at a place of the kernel's choice (rule 1).
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, fd, 0) };
        match NonNull::new(start.cast()) {
            Some(at) if start != libc::MAP_FAILED => Ok(Self { start: at, bytes }),
            _ => Err(SysError::last("mmap", on())),
        }
    }

    /// Where it starts.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// How long it is.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Advice that changes no contents; a kernel that does not take it gives other pages.
    pub(crate) fn advise(&self, advice: i32) {
        // SAFETY: advice about our own mapping.
        unsafe { libc::madvise(self.start().cast(), self.bytes, advice) };
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and who could reach it borrowed its owner and is gone.
        unsafe { libc::munmap(self.start().cast(), self.bytes) };
    }
}

/// Words that several processes count in.
#[derive(Debug)]
pub(crate) struct Words(Map);

impl Words {
    /// New ones, all 0 and present, for this process and the children that it forks later.
    pub(crate) fn shared(count: usize) -> Result<Self, SysError> {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        let bytes = count * size_of::<AtomicU64>();
        Map::new(-1, bytes, READ_WRITE, flags, || format!("{bytes} bytes, shared")).map(Self)
    }

    /// The first bytes of a file that cannot shrink, which other processes have mapped as well.
    pub(crate) fn of(file: &File, bytes: usize) -> Result<Self, SysError> {
        Map::of(file, bytes, READ_WRITE, libc::MAP_SHARED).map(Self)
    }

    /// The words.
    pub(crate) fn get(&self) -> &[AtomicU64] {
        let count = self.0.bytes / size_of::<AtomicU64>();
        // SAFETY: so many words are mapped for as long as `self` lives, aligned to a page; all
        // access is atomic.
        unsafe { std::slice::from_raw_parts(self.0.start().cast_const().cast(), count) }
    }
}
