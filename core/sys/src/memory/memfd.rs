//! Files that live in memory and have no name: how a parent hands bytes to the processes it starts.
//!
//! The one idea: once sealed, nobody can write, shrink or grow one, so that whoever maps or reads
//! it need not trust whoever made it.

use std::{fs::File, io, os::fd::AsRawFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use crate::{Called, SysError};

/// An empty file in memory; the name is only shown below `/proc`.
///
/// # Errors
/// When the kernel has no memory or no `memfd_create` (since Linux 3.17).
pub fn create(name: &str) -> Result<File, SysError> {
    make(name, MemfdFlags::ALLOW_SEALING)
}

/// An empty file in memory on hugetlb pages of 2 MiB.
///
/// # Errors
/// When the kernel has no such pages (since Linux 4.14 for files without a name).
pub fn create_hugetlb(name: &str) -> Result<File, SysError> {
    make(name, MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB)
}

fn make(name: &str, flags: MemfdFlags) -> Result<File, SysError> {
    memfd_create(name, flags | MemfdFlags::CLOEXEC).map(File::from).called("memfd_create", name)
}

/// Forbids every further write, shrink and growth of a file in memory, and further seals.
///
/// # Errors
/// When it is no file in memory, or is mapped writable.
pub fn seal(file: &File) -> Result<(), SysError> {
    let all = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL;
    fcntl_add_seals(file, all).called("fcntl", "F_ADD_SEALS")
}

/// Opens the same file once more, for reading: with an offset of its own, which a duplicate or an
/// inherited descriptor has not.
///
/// # Errors
/// When `/proc` is not mounted, or the file may no longer be read.
pub fn reopen(file: &File) -> io::Result<File> {
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn a_sealed_file_can_be_read_and_nothing_else() {
        let mut file = create("pagelab-test").unwrap();
        file.write_all(b"trace").unwrap();
        seal(&file).unwrap();
        assert!(file.write_all(b"more").is_err());
        assert!(file.set_len(1).is_err());
        file.rewind().unwrap();
        let mut text = String::new();
        reopen(&file).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), file.stream_position().unwrap()), ("trace", 0));
    }

    #[test]
    fn an_ordinary_file_cannot_be_sealed() {
        assert!(seal(&tempfile::tempfile().unwrap()).is_err());
    }
}
