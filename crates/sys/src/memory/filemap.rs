#![expect(unsafe_code, reason = "a file is mapped")]
//! A file as memory: mapped for reading, as programs do that want to spare themselves `read`.
//!
//! Rules: (1) only a file that nobody is expected to change is mapped, and only in the process of a
//! case: one that shrinks meanwhile ends that process with SIGBUS, and its parent says so; (2) what
//! is read from it is only looked at, never trusted: other bytes than before are other results.

use std::{fs::File, ops::Deref, os::fd::AsRawFd, ptr::NonNull};

use crate::SysError;

/// A mapped file.
#[derive(Debug)]
pub struct FileMap {
    start: NonNull<u8>,
    length: usize,
}

impl FileMap {
    /// Maps the first `length` bytes of a file; with `populate` all pages are present at once,
    /// without it the kernel is told that all will be needed (`MADV_WILLNEED`).
    ///
    /// # Errors
    /// When the file cannot be mapped, or `length` is 0.
    pub fn of(file: &File, length: usize, populate: bool) -> Result<Self, SysError> {
        let flags = libc::MAP_PRIVATE | if populate { libc::MAP_POPULATE } else { 0 };
        let fd = file.as_raw_fd();
        // SAFETY: a fresh mapping that may only be read, at a place of the kernel's choice.
        let map =
            unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, flags, fd, 0) };
        let start = NonNull::new(map.cast::<u8>()).filter(|_| map != libc::MAP_FAILED);
        let Some(start) = start else {
            return Err(SysError::last("mmap", format!("{length} bytes of a file")));
        };
        if !populate {
            // SAFETY: advice about our own mapping; what the kernel makes of it is its affair.
            unsafe { libc::madvise(map, length, libc::MADV_WILLNEED) };
        }
        Ok(Self { start, length })
    }
}

impl Deref for FileMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: mapped for as long as `self` lives; rules 1 and 2 for what others do to the file.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours; slices of it borrow `self` and are gone.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_map_is_the_file() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"some records").unwrap();
        for populate in [false, true] {
            assert_eq!(&*FileMap::of(&file, 12, populate).unwrap(), b"some records");
        }
        assert!(FileMap::of(&file, 0, false).is_err());
    }
}
