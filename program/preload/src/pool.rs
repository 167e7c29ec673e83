//! Shared memory in pages of the hugetlb pool: segments of System V and files in memory.
//!
//! The one idea: all pages are reserved when the memory gets its size, or the program gets what it
//! asked for: pages that are missing later would be a SIGBUS. A file in memory gets its size by the
//! first `ftruncate`, and with it another file in its place: nobody can have filled it until then.
//! Whoever mapped it before, or has it by another descriptor, keeps the old one, and files of the
//! pool cannot be written: program/docs/try.md says so, and the rung is asked for by whoever knows.

use std::{
    ffi::{CStr, c_int},
    io::Write,
};

use pagelab_interpose::{Errno, aside, done, kernel, number, preload::Counted};

use crate::{count, count_result, pool_page};

/// How the kernel shows a file in memory, and what it adds while it has no name.
const LINK: &[u8] = b"/memfd:";
const DELETED: &[u8] = b" (deleted)";
/// Bytes of such a link: a name has 249 at most.
const LINK_BYTES: usize = 320;

/// `shmget(2)`, in pages of the pool where that is ordered.
pub(crate) fn segment(key: c_int, size: usize, flags: c_int) -> c_int {
    let is_new = key == libc::IPC_PRIVATE || flags & libc::IPC_CREAT != 0;
    let page = pool_page(size).filter(|_| is_new && flags & libc::SHM_HUGETLB == 0);
    if let Some(page) = page {
        let pages = page.trailing_zeros().cast_signed() << libc::MAP_HUGE_SHIFT;
        // Its pages have to be there when they are touched; one that is there is what it is.
        let alone = if key == libc::IPC_PRIVATE { 0 } else { libc::IPC_EXCL };
        let wanted = (flags & !libc::SHM_NORESERVE) | libc::SHM_HUGETLB | pages | alone;
        let came = aside(|| kernel::segment(key, size, wanted));
        if came != Err(libc::EEXIST) {
            count(Counted::Asked, 1);
            count_result(came.map(|_| size));
        }
        if let Ok(segment) = came {
            return segment;
        }
    }
    number(kernel::segment(key, size, flags))
}

/// `ftruncate(2)`, by a file of the pool where that is ordered.
pub(crate) fn sized(file: c_int, size: i64) -> c_int {
    let bytes = usize::try_from(size).unwrap_or(0);
    if let Some(page) = pool_page(bytes).filter(|page| bytes.is_multiple_of(*page)) {
        let is_done = aside(|| {
            let fresh = Fresh::of(file)?;
            count(Counted::Asked, 1);
            let came = fresh.in_pool(file, bytes, page);
            count_result(came.map(|()| bytes));
            came.ok()
        });
        if is_done.is_some() {
            return 0;
        }
    }
    done(kernel::truncate(file, size))
}

/// A file in memory that has no size yet.
struct Fresh {
    link: [u8; LINK_BYTES],
    /// Flags that it was made with.
    flags: u32,
}

impl Fresh {
    fn of(file: c_int) -> Option<Self> {
        let mut fresh = Self { link: [0; LINK_BYTES], flags: 0 };
        let path = path(file);
        let length = kernel::link(CStr::from_bytes_until_nul(&path).ok()?, &mut fresh.link);
        let name = fresh.link.get(..length)?.strip_prefix(LINK)?.strip_suffix(DELETED)?;
        let end = LINK.len() + name.len();
        *fresh.link.get_mut(end)? = 0;
        fresh.flags = match kernel::flags(file, libc::F_GET_SEALS).ok()? {
            0 => libc::MFD_ALLOW_SEALING,
            libc::F_SEAL_SEAL => 0,
            // Somebody says already what it may become.
            _ => return None,
        };
        if kernel::flags(file, libc::F_GETFD).ok()? & libc::FD_CLOEXEC != 0 {
            fresh.flags |= libc::MFD_CLOEXEC;
        }
        (kernel::size(file) == Ok(0)).then_some(fresh)
    }

    /// Puts a file of the pool in its place, of which every page is reserved.
    fn in_pool(&self, file: c_int, bytes: usize, page: usize) -> Result<(), Errno> {
        let name = self.link.get(LINK.len()..).and_then(|n| CStr::from_bytes_until_nul(n).ok());
        let pages = page.trailing_zeros() << libc::MAP_HUGE_SHIFT;
        let wanted = self.flags | libc::MFD_HUGETLB | pages;
        let new = kernel::file_in_memory(name.unwrap_or(c"pool"), wanted)?;
        let close_on_exec = if self.flags & libc::MFD_CLOEXEC == 0 { 0 } else { libc::O_CLOEXEC };
        let came = reserve(new, bytes).and_then(|()| kernel::replace(file, new, close_on_exec));
        kernel::close(new);
        came
    }
}

/// Gives a file of the pool its size and all of its pages: who maps a whole file reserves them for
/// it, and it keeps them when the map is gone.
fn reserve(file: c_int, bytes: usize) -> Result<(), Errno> {
    kernel::truncate(file, i64::try_from(bytes).unwrap_or(i64::MAX))?;
    kernel::forgotten(kernel::shared(file, bytes)?.addr(), bytes);
    Ok(())
}

/// `/proc/self/fd/N`, written without allocating.
fn path(file: c_int) -> [u8; 32] {
    let mut bytes = [0; 32];
    let _ = write!(&mut bytes[..], "/proc/self/fd/{file}");
    bytes
}

#[cfg(test)]
mod tests {
    use pagelab_interpose::errno;

    use super::*;

    #[test]
    fn a_descriptor_has_its_path() {
        for (file, text) in [(0, c"/proc/self/fd/0"), (c_int::MAX, c"/proc/self/fd/2147483647")] {
            assert_eq!(CStr::from_bytes_until_nul(&path(file)), Ok(text));
        }
    }

    #[test]
    fn a_file_in_memory_is_fresh_until_it_has_a_size() {
        let file = kernel::file_in_memory(c"a name", libc::MFD_CLOEXEC).unwrap();
        let fresh = Fresh::of(file).unwrap();
        assert_eq!(fresh.flags, libc::MFD_CLOEXEC);
        assert!(fresh.link.starts_with(b"/memfd:a name\0"));
        assert_eq!(kernel::truncate(file, 4096), Ok(()));
        assert!(Fresh::of(file).is_none());
        kernel::close(file);
        // No number that another thread may have been given.
        assert!(Fresh::of(c_int::MAX).is_none() && Fresh::of(0).is_none());
    }

    #[test]
    fn without_orders_a_call_is_the_kernels() {
        let file = kernel::file_in_memory(c"plain", 0).unwrap();
        assert_eq!((sized(file, 4 << 20), kernel::size(file)), (0, Ok(4 << 20)));
        assert_eq!((sized(file, -1), errno()), (-1, libc::EINVAL));
        kernel::close(file);
        assert_eq!((segment(libc::IPC_PRIVATE, 0, 0o600), errno()), (-1, libc::EINVAL));
    }
}
