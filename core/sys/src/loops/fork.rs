#![expect(unsafe_code, reason = "fork, and pages of this process touched where they lie")]
//! A process that holds what this one has in memory, and does nothing else.
//!
//! The one idea: after a fork every private page has two owners, and a store by either takes the
//! kernel's copy-on-write path. A [`Holder`] keeps the other ownership up for as long as it lives.
//! It sleeps on a pipe, ends with the holder or with its parent, and in ten minutes anyway.
//!
//! A fork makes *every* private page of this process shared, those of the measured loop's own data
//! too. [`settle`] takes those copies off the clock.
//!
//! Rules: (1) the child makes plain system calls and nothing else: it takes no lock and allocates
//! nothing, so that it does not matter how many threads its parent has; (2) populating and loading
//! change no contents; (3) memory is touched here only
//! where `/proc/self/maps` says that it is ours and readable, and by the kernel, which answers
//! where a mapping has gone since.

use std::{
    io::{self, PipeWriter},
    ops::Range,
    os::fd::AsRawFd,
    sync::{Mutex, PoisonError},
};

use linux_raw_sys::general as uapi;
use rustix::process::{Pid, Signal, WaitOptions, waitpid};

use crate::{
    Called, SysError,
    machine::proc::{self, Mapping, mappings},
    memory::Ranges,
};

/// Seconds after which a holder ends by itself.
const LIFE_S: u32 = 600;

/// A forked process that shares every private page of this one until it is dropped.
#[derive(Debug)]
pub struct Holder {
    child: Option<Pid>,
    /// Closing it ends the child.
    _door: PipeWriter,
}

impl Holder {
    /// Forks it.
    ///
    /// # Errors
    /// When there are too many processes or descriptors.
    pub fn fork() -> Result<Self, SysError> {
        let (wait, door) = io::pipe().called("pipe", "of a holder")?;
        // SAFETY: the child only makes system calls (rule 1).
        match unsafe { libc::fork() } {
            -1 => Err(SysError::last("fork", "a holder of this process's memory")),
            0 => {
                // SAFETY: asks for a signal when the parent ends; touches no memory.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                // SAFETY: as above: the signal's default action ends this process.
                unsafe { libc::alarm(LIFE_S) };
                // SAFETY: closes the child's copy, so that the parent's is the only one.
                unsafe { libc::close(door.as_raw_fd()) };
                let mut byte = 0_u8;
                // SAFETY: the buffer holds the one byte that is asked for.
                unsafe { libc::read(wait.as_raw_fd(), (&raw mut byte).cast(), 1) };
                // SAFETY: ends the child at once, without the parent's exit handlers.
                unsafe { libc::_exit(0) }
            }
            pid => Ok(Self { child: Pid::from_raw(pid), _door: door }),
        }
    }
}

impl Drop for Holder {
    /// Ends the child and waits until its memory is gone.
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            let _ = rustix::process::kill_process(child, Signal::KILL);
            while matches!(waitpid(Some(child), WaitOptions::empty()), Err(rustix::io::Errno::INTR))
            {
            }
        }
    }
}

/// Makes every private writable page of this process outside `except` its own again and present:
/// what the measured loop stores to must not fault because of a fork.
///
/// The kernel gives the right to write in the page table alone. A translation without it that was
/// used since the fork may stay in the TLB, and a store by it faults for nothing, so that all are
/// thrown away at the end.
///
/// # Errors
/// When `/proc` is not mounted, or the kernel has no `MADV_POPULATE_WRITE` (since Linux 5.14).
pub fn settle(except: &Ranges) -> Result<(), SysError> {
    for (start, end) in writable(except)? {
        let (at, bytes) = (start as *mut libc::c_void, end - start);
        // SAFETY: populating changes no contents, whatever lies there.
        let result = unsafe { libc::madvise(at, bytes, uapi::MADV_POPULATE_WRITE.cast_signed()) };
        let why = io::Error::last_os_error();
        // A mapping that has gone since it was listed, or of a kind that cannot be populated, is
        // none that the loop stores to.
        let is_harmless = matches!(why.raw_os_error(), Some(libc::ENOMEM | libc::EFAULT));
        if result != 0 && !is_harmless {
            let on = "MADV_POPULATE_WRITE of this process's own data";
            return Err(SysError::new("madvise", on, why));
        }
    }
    forget_translations()
}

/// Gives up more present pages than the kernel flushes one by one: then it flushes all of this
/// process (`tlb_single_page_flush_ceiling`, 33 since Linux 3.16). They lie at one place for good,
/// so that nothing is mapped while somebody else lays out an area.
fn forget_translations() -> Result<(), SysError> {
    const BYTES: usize = 128 << 12;
    static PLACE: Mutex<Option<usize>> = Mutex::new(None);
    let mut place = PLACE.lock().unwrap_or_else(PoisonError::into_inner);
    let at = if let Some(at) = *place {
        at
    } else {
        let (access, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at a place of the kernel's choice, which is kept for good.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, access, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(SysError::last("mmap", "pages to flush translations with"));
        }
        *place.insert(at as usize)
    };
    for advice in [uapi::MADV_POPULATE_WRITE, uapi::MADV_DONTNEED] {
        let pages = at as *mut libc::c_void;
        // SAFETY: the pages are those mapped above, and hold nothing that anybody reads.
        let result = unsafe { libc::madvise(pages, BYTES, advice.cast_signed()) };
        SysError::checked(result, "madvise", "pages to flush translations with")?;
    }
    Ok(())
}

/// A way of changing the signal mask that no kernel knows.
const NO_WAY: i32 = -1;

/// Has the kernel load from every present private page of this process outside `except`: what is
/// marked for a hint fault takes it now.
///
/// # Errors
/// When `/proc` is not mounted.
pub fn visit(except: &Ranges) -> Result<(), SysError> {
    for (start, end) in writable(except)? {
        for at in (start..end).step_by(4096) {
            let (at, nothing) = (at as *const u8, std::ptr::null_mut::<u8>());
            // The list itself lay in a mapping that may be gone, so the kernel loads: it answers
            // that there is no such way of changing the mask, or EFAULT.
            // SAFETY: reads eight bytes and changes no mask, because no way has this number.
            unsafe { libc::syscall(libc::SYS_rt_sigprocmask, NO_WAY, at, nothing, 8_usize) };
        }
    }
    Ok(())
}

/// Bounds of the private writable mappings of this process that share nothing with `except`.
fn writable(except: &Ranges) -> Result<Vec<(usize, usize)>, SysError> {
    let text = proc::text("self", "maps").called("read", "/proc/self/maps")?;
    let ours = mappings(&text).filter(|Mapping { rights, name, .. }| {
        rights.starts_with("rw") && rights.ends_with('p') && !name.starts_with("[v")
    });
    let ranges = ours.map(|mapping| mapping.addresses()).map(|Range { start, end }| (start, end));
    Ok(ranges.filter(|(start, end)| !except.overlap(*start, *end)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Area,
        loops::Stride,
        memory::{Advice, Backing, Layout, account::Frames},
        process::{Pinned, current_cpu},
        time::usage,
    };

    #[test]
    fn a_holder_makes_every_page_shared_and_its_end_leaves_them_to_be_reused() {
        let _alone = crate::alone();
        let layout = Layout::contiguous(64 << 12);
        let area = Area::mapped(layout, Backing::Anonymous, 2 << 20).unwrap();
        area.advise(Advice::NoHugePage).unwrap();
        let stride = Stride { step: 4096, bytes: 8 };
        area.touch(0, layout.bytes(), stride);
        let exclusive = || Frames::read(&area.ranges()).unwrap().exclusive();
        crate::counted([0, 64, 64], || {
            let holder = Holder::fork().unwrap();
            settle(&area.ranges()).unwrap();
            let shared = exclusive();
            drop(holder);
            let left = exclusive();
            let before = usage::thread().minor_faults;
            area.touch(0, layout.bytes(), stride);
            [shared, left, usage::thread().minor_faults - before]
        });
    }

    #[test]
    fn what_was_loaded_from_since_the_fork_can_be_stored_to_without_a_fault() {
        let _alone = crate::alone();
        // Translations are flushed on the processor that runs this: another one may hold old ones.
        let _pinned = Pinned::to(current_cpu()).unwrap();
        // Too few for malloc to map them.
        let mut bytes = vec![1_u8; 24 << 12];
        for _ in 0..20 {
            crate::counted(0, || {
                drop(Holder::fork().unwrap());
                // Leaves translations in the TLB that allow no store.
                assert!(bytes.iter().step_by(4096).all(|byte| std::hint::black_box(*byte) == 1));
                settle(&Ranges::default()).unwrap();
                let before = usage::thread().minor_faults;
                bytes.iter_mut().step_by(4096).for_each(|byte| *std::hint::black_box(byte) = 1);
                usage::thread().minor_faults - before
            });
        }
    }

    #[test]
    fn visiting_survives_mappings_that_go_meanwhile() {
        // It visits the memory of all tests.
        let _alone = crate::alone();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..200).for_each(|_| drop(vec![1_u8; 1 << 20])));
            (0..20).for_each(|_| visit(&Ranges::default()).unwrap());
        });
    }

    #[test]
    fn only_private_writable_mappings_are_listed() {
        let own = 5_u8;
        let address = &raw const own as usize;
        let listed = writable(&Ranges::default()).unwrap();
        assert!(listed.iter().any(|(start, end)| (*start..*end).contains(&address)));
        let code = only_private_writable_mappings_are_listed as *const () as usize;
        assert!(!listed.iter().any(|(start, end)| (*start..*end).contains(&code)));
    }
}
