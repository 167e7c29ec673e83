#![expect(unsafe_code, reason = "each sample is one system call on memory of an area")]
//! Kinds whose cost is a call on each page: the latency loop with a system call as its body.
//!
//! Rules: (1) one call between two stamps, with arguments that were made before the first; (2) the
//! calls change no contents but those of [`Area::time_zaps`]; (3) the first answer that is no
//! success ends the measurement: what the loop went on to time would be something else.

use std::{cell::Cell, io};

use linux_raw_sys::general as uapi;

use crate::{
    Area, SysError,
    loops::{MIGRATED, TouchList, touch::time_each},
    memory::{Ranges, nodes_of},
    time::Clock,
};

/// The size that a collapse makes.
const PMD_BYTES: usize = 2 << 20;

impl Area {
    /// Times `MADV_COLLAPSE` (since Linux 6.1) on each listed 2 MiB page: nanoseconds, or
    /// [`MIGRATED`].
    ///
    /// # Errors
    /// The first refusal: `EINVAL` where the kernel has no such advice, `ENOMEM` where no huge page
    /// is free, `EAGAIN` where a page could not be isolated.
    ///
    /// # Panics
    /// When the list reaches outside the area.
    pub fn time_collapses(
        &self,
        list: &TouchList,
        clock: &Clock,
        mut record: impl FnMut(u64),
    ) -> Result<(), SysError> {
        list.assert_within(self.layout().bytes(), 8);
        let base = self.base();
        let refusal = Refusal::default();
        let each = |_, ns: Option<u64>, _| record(ns.unwrap_or(MIGRATED));
        time_each(list.offsets(), clock, each, |offset| {
            let at = ((base + offset) & !(PMD_BYTES - 1)) as *mut libc::c_void;
            let advice = uapi::MADV_COLLAPSE.cast_signed();
            // SAFETY: the range is the area's (asserted); collapsing changes no contents.
            refusal.note(i64::from(unsafe { libc::madvise(at, PMD_BYTES, advice) }));
        });
        refusal.answer("madvise", "MADV_COLLAPSE of 2 MiB (free memory, or drop caches)")
    }

    /// Times moving each listed page to `node` by `move_pages`: nanoseconds, or [`MIGRATED`].
    ///
    /// # Errors
    /// The first refusal: the node is full, or not allowed.
    ///
    /// # Panics
    /// When the list reaches outside the area.
    pub fn time_moves(
        &self,
        list: &TouchList,
        node: i32,
        clock: &Clock,
        mut record: impl FnMut(u64),
    ) -> Result<(), SysError> {
        list.assert_within(self.layout().windows * self.layout().stride, 8);
        let base = self.base();
        let refusal = Refusal::default();
        let each = |_, ns: Option<u64>, _| record(ns.unwrap_or(MIGRATED));
        time_each(list.offsets(), clock, each, |offset| {
            let (page, mut status) = ((base + offset) & !4095, -1_i32);
            let (page, node) = (&raw const page, &raw const node);
            let count = 1_usize;
            // SAFETY: each array has one entry and outlives the call; moving changes no contents.
            let moved = unsafe {
                let flag = MPOL_MF_MOVE;
                libc::syscall(libc::SYS_move_pages, 0, count, page, node, &raw mut status, flag)
            };
            refusal.note(moved);
        });
        refusal.answer("move_pages", &format!("a page to node {node} (it needs free memory)"))
    }
}

impl Area {
    /// Times `MADV_DONTNEED` on each listed page of `page` bytes: nanoseconds, or [`MIGRATED`].
    ///
    /// # Errors
    /// The first refusal.
    ///
    /// # Panics
    /// When the list reaches outside the area.
    pub fn time_zaps(
        &self,
        list: &TouchList,
        page: usize,
        clock: &Clock,
        record: impl FnMut(u64),
    ) -> Result<(), SysError> {
        self.time_pages(list, page, clock, record, "madvise", |at| {
            // SAFETY: the page is the area's (asserted); no reference into it exists.
            unsafe { libc::madvise(at, page, uapi::MADV_DONTNEED.cast_signed()) }
        })
    }

    /// Times `mprotect` to read-only of each listed page of `page` bytes; all of them are writable
    /// again afterwards.
    ///
    /// # Errors
    /// The first refusal: every page may be a mapping of its own, of which there are only so many.
    ///
    /// # Panics
    /// When the list reaches outside the area.
    pub fn time_protections(
        &self,
        list: &TouchList,
        page: usize,
        clock: &Clock,
        record: impl FnMut(u64),
    ) -> Result<(), SysError> {
        let timed = self.time_pages(list, page, clock, record, "mprotect", |at| {
            // SAFETY: the page is the area's (asserted), contents stay.
            unsafe { libc::mprotect(at, page, libc::PROT_READ) }
        });
        self.each_window("mprotect", format_args!("back to writable"), |at, bytes| {
            // SAFETY: as above, of a whole window.
            unsafe { libc::mprotect(at, bytes, libc::PROT_READ | libc::PROT_WRITE) }.into()
        })?;
        timed
    }

    fn time_pages(
        &self,
        list: &TouchList,
        page: usize,
        clock: &Clock,
        mut record: impl FnMut(u64),
        name: &'static str,
        call: impl Fn(*mut libc::c_void) -> i32,
    ) -> Result<(), SysError> {
        list.assert_within(self.layout().windows * self.layout().stride, 8);
        let base = self.base();
        let refusal = Refusal::default();
        let each = |_, ns: Option<u64>, _| record(ns.unwrap_or(MIGRATED));
        time_each(list.offsets(), clock, each, |offset| {
            let at = ((base + offset) & !(page - 1)) as *mut libc::c_void;
            refusal.note(i64::from(call(at)));
        });
        refusal.answer(name, &format!("a page of {page} bytes"))
    }
}

impl Ranges {
    /// Base pages that lie on `node`.
    ///
    /// # Errors
    /// When the kernel was built without NUMA.
    pub fn pages_on(&self, node: i32) -> Result<u64, SysError> {
        let addresses: Vec<usize> =
            self.iter().flat_map(|(start, end)| (start..end).step_by(4096)).collect();
        let mut nodes = vec![-1; addresses.len()];
        nodes_of(&addresses, &mut nodes)?;
        Ok(nodes.iter().filter(|found| **found == node).count() as u64)
    }
}

/// `MPOL_MF_MOVE` of the UAPI's `mempolicy.h`, which linux-raw-sys keeps behind another feature.
const MPOL_MF_MOVE: i32 = 2;

/// Whether this kernel has `MADV_COLLAPSE`; the advice is checked before the (empty) range.
pub fn has_collapse() -> bool {
    let nowhere = PMD_BYTES as *mut libc::c_void;
    // SAFETY: an empty range: nothing is collapsed, the address is not looked at.
    unsafe { libc::madvise(nowhere, 0, uapi::MADV_COLLAPSE.cast_signed()) == 0 }
}

/// The first answer that is no success.
#[derive(Debug, Default)]
struct Refusal(Cell<i32>);

impl Refusal {
    fn note(&self, answer: i64) {
        if answer != 0 && self.0.get() == 0 {
            // A positive answer counts pages that were left where they are.
            let error = io::Error::last_os_error().raw_os_error();
            self.0.set(if answer < 0 { error.unwrap_or(libc::EIO) } else { libc::EBUSY });
        }
    }

    fn answer(&self, call: &'static str, on: &str) -> Result<(), SysError> {
        match self.0.get() {
            0 => Ok(()),
            error => Err(SysError::new(call, on, io::Error::from_raw_os_error(error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        loops::Stride,
        memory::{Backing, Layout, Scanner},
        process::sched,
        time::ClockChoice,
    };

    #[test]
    #[expect(clippy::print_stderr, reason = "a skip says so")]
    fn collapsing_makes_base_pages_one_huge_page() {
        let _alone = crate::alone();
        if !has_collapse() {
            return eprintln!("skipped: no MADV_COLLAPSE; to run it: Linux 6.1");
        }
        let layout = Layout::contiguous(4 << 20);
        let area = Area::mapped(layout, Backing::Anonymous, 2 << 20).unwrap();
        sched::disable_thp(true).unwrap();
        area.touch(0, layout.bytes(), Stride { step: 4096, bytes: 8 });
        let scanner = Scanner::open().unwrap();
        // From the next line on khugepaged may come first.
        assert_eq!(scanner.scan(&area).unwrap().huge, 0);
        sched::disable_thp(false).unwrap();
        let clock = Clock::new(ClockChoice::Scripted { step_ns: 7 });
        let mut samples = Vec::with_capacity(2);
        let list = TouchList::new([(64, false), ((2 << 20) + 128, false)]);
        let result = area.time_collapses(&list, &clock, |ns| samples.push(ns));
        // Where no huge page is free the refusal says so.
        if result.is_ok() {
            assert_eq!(samples.len(), 2);
            crate::counted(1024, || scanner.scan(&area).unwrap().huge);
        }
    }

    #[test]
    fn the_first_refusal_is_what_is_told() {
        let refusal = Refusal::default();
        refusal.note(0);
        refusal.note(3);
        let error = refusal.answer("move_pages", "a page").unwrap_err();
        assert_eq!(error.source.raw_os_error(), Some(libc::EBUSY));
    }
}
