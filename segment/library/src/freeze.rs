//! Pages that nobody can write to for a moment, while their contents are copied.
//!
//! The one idea: a userfaultfd protects them (of hugetlb memory since Linux 5.19). Whoever writes
//! waits in the kernel, and goes on when they are thawed, wherever the address leads by then. No
//! signal comes of it, as one would of `mprotect`. A child may have the descriptor for a moment
//! longer, so that closing it is not enough.

use std::{ffi::c_int, ops::Range};

use pagelab_interpose::{
    kernel,
    userfaultfd::{self, PAGEFAULT_FLAG_WP, USER_MODE_ONLY, WP_HUGETLBFS_SHMEM},
};

/// Some pages, frozen until this is dropped.
#[derive(Debug)]
pub(crate) struct Frozen(c_int);

impl Frozen {
    /// Nothing yet; `None` where the kernel cannot, or not for this user.
    pub(crate) fn new() -> Option<Self> {
        // Of the kernel's own faults, too, where that is allowed.
        let open = |more| userfaultfd::open(more, PAGEFAULT_FLAG_WP | WP_HUGETLBFS_SHMEM).ok();
        [0, USER_MODE_ONLY].into_iter().find_map(open).map(Self)
    }

    /// Pages of a pool, too; whether they are.
    pub(crate) fn add(&self, range: &Range<usize>) -> bool {
        userfaultfd::protect(self.0, range).is_ok()
    }

    /// Lets those go on who wait for these pages, or for what was there before.
    pub(crate) fn thaw(&self, range: &Range<usize>) {
        let _ = userfaultfd::release(self.0, range);
        let _ = userfaultfd::wake(self.0, range);
    }

    /// Its descriptor.
    pub(crate) fn kept(self) -> c_int {
        let file = self.0;
        std::mem::forget(self);
        file
    }

    /// What has a descriptor that was kept.
    pub(crate) fn again(file: c_int) -> Option<Self> {
        (file >= 0).then_some(Self(file))
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        kernel::close(self.0);
    }
}
