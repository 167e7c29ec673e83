//! How a map was asked for, and so what memory it is.

use std::{ffi::c_int, ops::Range};

use crate::kernel;

/// What `mmap(2)` was called with.
#[derive(Debug, Clone, Copy)]
pub struct Map {
    /// Where it is to lie; 0 for anywhere.
    pub address: usize,
    /// Its bytes.
    pub length: usize,
    /// What may be done there (`PROT_…`).
    pub access: c_int,
    /// Of what kind it is (`MAP_…`).
    pub flags: c_int,
    /// The file; -1 for none.
    pub file: c_int,
    /// Where in the file it begins.
    pub offset: i64,
}

/// Flags by which a program chooses the kind of memory itself.
const CHOSEN: c_int = libc::MAP_HUGETLB
    | libc::MAP_POPULATE
    | libc::MAP_LOCKED
    | libc::MAP_STACK
    | libc::MAP_GROWSDOWN;

impl Map {
    /// A map anywhere, of no file.
    pub const fn new(length: usize, access: c_int, flags: c_int) -> Self {
        Self { address: 0, length, access, flags, file: -1, offset: 0 }
    }

    /// The same at some addresses.
    pub fn at(range: &Range<usize>, access: c_int, flags: c_int) -> Self {
        Self { address: range.start, ..Self::new(range.len(), access, flags) }
    }

    /// Whether all of these flags are set.
    pub const fn has(&self, flags: c_int) -> bool {
        self.flags & flags == flags
    }

    /// Anonymous memory of a type (`MAP_PRIVATE`, `MAP_SHARED`) that nobody chose more of.
    pub const fn is_plain(&self, of: c_int) -> bool {
        self.has(libc::MAP_ANONYMOUS)
            && self.flags & libc::MAP_TYPE == of
            && self.flags & CHOSEN == 0
    }

    /// Private anonymous memory that may have huge pages.
    pub const fn is_own(&self) -> bool {
        self.is_plain(libc::MAP_PRIVATE)
    }

    /// The same where it is meant to be used: no address space that is set aside, and no more than
    /// half of the machine's memory.
    pub fn is_used(&self) -> bool {
        self.is_own()
            && self.flags & libc::MAP_NORESERVE == 0
            && self.access & libc::PROT_WRITE != 0
            && self.length as u64 <= kernel::memory_bytes() / 2
    }
}

/// Defines `mmap(2)` by both of its names, of which programs call the second that were built for
/// large files: what is passed goes on to a function, which makes the map.
#[macro_export]
macro_rules! mmap_calls {
    ($made:path) => { $crate::mmap_calls!($made; mmap mmap64); };
    ($made:path; $($name:ident)+) => {$(
        /// `mmap(2)`.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $name(
            address: *mut std::ffi::c_void,
            length: usize,
            access: std::ffi::c_int,
            flags: std::ffi::c_int,
            file: std::ffi::c_int,
            offset: i64,
        ) -> *mut std::ffi::c_void {
            let address = address.addr();
            let map = $crate::Map { address, length, access, flags, file, offset };
            // SAFETY: whatever the call promises about its memory the program promises.
            unsafe { $made(&map) }
        }
    )+};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_that_is_meant_to_be_used_is_used() {
        let own = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let used = Map::new(4 << 20, kernel::USABLE, own);
        assert!(used.is_own() && used.is_used());
        let aside = Map { access: libc::PROT_NONE, ..used };
        let unreserved = Map { flags: used.flags | libc::MAP_NORESERVE, ..used };
        let vast = Map { length: usize::MAX / 2, ..used };
        for map in [aside, unreserved, vast] {
            assert!(map.is_own() && !map.is_used(), "{map:?}");
        }
        let stack = Map { flags: used.flags | libc::MAP_STACK, ..used };
        let file = Map { flags: libc::MAP_PRIVATE, file: 3, ..used };
        let shared = Map { flags: libc::MAP_SHARED | libc::MAP_ANONYMOUS, ..used };
        for map in [stack, file, shared] {
            assert!(!map.is_own(), "{map:?}");
        }
    }
}
