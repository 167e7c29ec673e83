#![expect(unsafe_code, reason = "memory that outlives this process; rules below")]
//! The buffer of records, in memory that whoever started the capture can still read when the
//! guest has been killed.
//!
//! The one idea: QEMU tells a plugin when the guest exits, but not when a signal ends it (QEMU
//! before 8.0) or when it turns into another program. So the records that are not in the trace yet
//! lie in a file that is mapped, with the counters that say what they are. `pagelab trace capture`
//! makes that file in memory, and appends what is left after the guest has ended.
//!
//! The layout, in 64-bit words: [`MAGIC`], [`State`], error number, bytes of the trace that are in
//! its file, bytes in the buffer, operations recorded, bytes of the image; the buffer follows at
//! [`BUFFER_AT`]. The buffer holds whole records only, the first of them at its start.
//!
//! # Rules
//! 1. The mapping is [`MAPPED_BYTES`] long, page-aligned, writable, and never unmapped.
//! 2. Only the holder of the recorder's turn writes to the buffer, and within it.

use std::{
    io,
    os::fd::AsRawFd,
    path::Path,
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::named;

/// `plcapt/1`: the layout that is written here.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"plcapt/1");
/// Where the buffer starts.
pub(crate) const BUFFER_AT: usize = 4096;
/// The buffer is written out when it holds more than this.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;
/// Room for what is appended before anybody looks.
const SLACK_BYTES: usize = 4096;
const MAPPED_BYTES: usize = BUFFER_AT + BUFFER_BYTES + SLACK_BYTES;

/// How far the capture is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum State {
    /// QEMU has loaded the plugin.
    Loaded = 1,
    /// The guest runs.
    Running = 2,
    /// The guest exited, and all is written.
    Exited = 3,
    /// The capture has as many operations as it was asked for, and all is written.
    Full = 4,
    /// The trace could not be written; the error number says why.
    TraceFailed = 5,
    /// The image could not be written; the error number says why.
    ImageFailed = 6,
}

/// The counters, as they lie in the file.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Head {
    magic: AtomicU64,
    state: AtomicU64,
    /// What the operating system said when something failed.
    pub(crate) errno: AtomicU64,
    /// Bytes of the trace that are in its file.
    pub(crate) written: AtomicU64,
    /// Bytes in the buffer.
    pub(crate) length: AtomicU64,
    /// Operations recorded, those in the buffer too.
    pub(crate) ops: AtomicU64,
    /// Bytes of the image.
    pub(crate) image: AtomicU64,
}

impl Head {
    /// Says how far the capture is.
    pub(crate) fn enter(&self, state: State) {
        self.state.store(state as u64, Ordering::Release);
    }
}

/// The mapping.
#[derive(Debug)]
pub(crate) struct Shared(NonNull<u8>);

// SAFETY: the counters are atomic, and rule 2 is about the buffer.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// Maps a file, or memory of our own where nobody asked for one.
    ///
    /// # Errors
    /// When the file cannot be opened or is too small for what it is to hold.
    pub(crate) fn map(path: Option<&Path>) -> io::Result<Self> {
        let file = path.map(named::existing);
        let file = file.transpose()?;
        if let Some(file) = &file {
            file.set_len(MAPPED_BYTES as u64)?;
        }
        let (flags, fd) = match &file {
            Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
            None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        };
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, wherever the kernel likes; it replaces none.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), MAPPED_BYTES, rights, flags, fd, 0) };
        let mapped = (at != libc::MAP_FAILED).then(|| NonNull::new(at.cast::<u8>())).flatten();
        let shared = Self(mapped.ok_or_else(io::Error::last_os_error)?);
        shared.head().magic.store(MAGIC, Ordering::Relaxed);
        shared.head().enter(State::Loaded);
        Ok(shared)
    }

    /// The counters.
    #[inline]
    pub(crate) fn head(&self) -> &Head {
        // SAFETY: rule 1; whoever else has the file mapped or open only reads it.
        unsafe { self.0.cast::<Head>().as_ref() }
    }

    /// Copies bytes into the buffer; the caller has the turn.
    ///
    /// # Panics
    /// When they do not fit.
    #[inline]
    pub(crate) fn put<const N: usize>(&self, at: usize, bytes: [u8; N]) {
        assert!(at <= BUFFER_BYTES + SLACK_BYTES - N, "{at} is beyond the buffer");
        // SAFETY: the sum is within the mapping: rule 1 and the line above.
        let to = unsafe { self.0.add(BUFFER_AT + at) };
        // SAFETY: rule 2; `N` bytes from here are within the mapping, and bytes need no alignment.
        unsafe { to.cast::<[u8; N]>().write(bytes) };
    }

    /// The first bytes of the buffer; the caller has the turn, and puts nothing while it looks.
    pub(crate) fn bytes(&self, length: usize) -> &[u8] {
        let length = length.min(BUFFER_BYTES + SLACK_BYTES);
        // SAFETY: within the mapping: rule 1.
        let from = unsafe { self.0.add(BUFFER_AT) };
        // SAFETY: `length` bytes from here are within the mapping, and nobody writes: rule 2.
        unsafe { std::slice::from_raw_parts(from.as_ptr(), length) }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::FileExt};

    use super::*;

    #[test]
    fn what_is_put_can_be_read_from_the_file_too() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let shared = Shared::map(Some(file.path())).unwrap();
        shared.put(3, *b"trace");
        shared.head().length.store(8, Ordering::Release);
        assert_eq!(shared.bytes(8), b"\0\0\0trace");
        let mut words = [0; 40];
        fs::File::open(file.path()).unwrap().read_exact_at(&mut words, 0).unwrap();
        let word = |index: usize| u64::from_le_bytes(words[index * 8..][..8].try_into().unwrap());
        assert_eq!([word(0), word(1), word(4)], [MAGIC, State::Loaded as u64, 8]);
        let whole = fs::read(file.path()).unwrap();
        assert_eq!(&whole[BUFFER_AT..][..8], b"\0\0\0trace");
    }

    #[test]
    fn nothing_is_put_beyond_the_end() {
        let shared = Shared::map(None).unwrap();
        let end = BUFFER_BYTES + SLACK_BYTES;
        shared.put(end - 8, [7; 8]);
        assert_eq!(shared.bytes(end).last(), Some(&7));
        let beyond = std::panic::AssertUnwindSafe(|| shared.put(end - 7, [7; 8]));
        assert!(std::panic::catch_unwind(beyond).is_err());
    }

    #[test]
    fn a_file_that_is_not_there_is_an_error() {
        assert!(Shared::map(Some(Path::new("/nowhere/at/all"))).is_err());
    }
}
