#![expect(unsafe_code, reason = "a file is mapped")]
//! A file as memory: mapped for reading, as programs do that want to spare themselves `read`.
//!
//! Rules: (1) only a file that nobody is expected to change is mapped, and only in the process of a
//! case: one that shrinks meanwhile ends that process with SIGBUS, and its parent says so; (2) what
//! is read from it is only looked at, never trusted: other bytes than before are other results.

use std::{fs::File, ops::Deref};

use crate::{
    SysError,
    memory::map::{Map, READ},
};

/// A mapped file.
#[derive(Debug)]
pub struct FileMap(Map);

impl FileMap {
    /// Maps the first `length` bytes of a file; with `populate` all pages are present at once,
    /// without it the kernel is told that all will be needed (`MADV_WILLNEED`).
    ///
    /// # Errors
    /// When the file cannot be mapped, or `length` is 0.
    pub fn of(file: &File, length: usize, populate: bool) -> Result<Self, SysError> {
        let flags = libc::MAP_PRIVATE | if populate { libc::MAP_POPULATE } else { 0 };
        let map = Map::of(file, length, READ, flags)?;
        if !populate {
            map.advise(libc::MADV_WILLNEED);
        }
        Ok(Self(map))
    }
}

impl Deref for FileMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: mapped for as long as `self` lives; rules 1 and 2 for what others do to the file.
        unsafe { std::slice::from_raw_parts(self.0.start(), self.0.bytes()) }
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
