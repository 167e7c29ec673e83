//! A range of addresses that a test may do anything with.

use std::{
    fs::File,
    io::{PipeReader, PipeWriter, pipe},
    os::fd::AsRawFd,
    sync::{Mutex, PoisonError, RwLock},
};

use super::{Errno, Node, answer, is_alone, last};
use crate::memory::word_at;

/// `PROT_READ`.
pub const READ: i32 = libc::PROT_READ;
/// `PROT_WRITE`.
pub const WRITE: i32 = libc::PROT_WRITE;
/// `MAP_SHARED`.
pub const SHARED: i32 = libc::MAP_SHARED;
/// `MAP_PRIVATE`.
pub const PRIVATE: i32 = libc::MAP_PRIVATE;
/// `MAP_POPULATE`.
pub const POPULATE: i32 = libc::MAP_POPULATE;

/// How to map a file.
#[derive(Debug, Clone, Copy)]
pub struct Mapping {
    /// Its length, whole pages or not.
    pub bytes: usize,
    /// `PROT_*`, any bits.
    pub protection: i32,
    /// `MAP_*`, any bits.
    pub flags: i32,
    /// Into the file, whole pages or not.
    pub offset: u64,
}

impl Mapping {
    /// Memory of so many bytes from the start, shared, to load and to store.
    pub const fn shared(bytes: usize) -> Self {
        Self { bytes, protection: READ | WRITE, flags: SHARED, offset: 0 }
    }
}

/// A range of addresses that is this program's alone, to do anything with.
#[derive(Debug)]
pub struct Ground {
    start: usize,
    bytes: usize,
    /// Held exclusively while there is a hole in the ground.
    hole: RwLock<()>,
    /// For copies that the kernel makes.
    pipe: Mutex<(PipeReader, PipeWriter)>,
}

impl Ground {
    /// Reserves a range whose start is a multiple of `align`.
    ///
    /// # Panics
    /// When `align` is no power of two, or no whole pages are asked for.
    pub fn reserve(bytes: usize, align: usize) -> Result<Self, Errno> {
        assert!(align.is_power_of_two() && bytes.is_multiple_of(4096), "{bytes} at {align}");
        let pipe = Mutex::new(pipe().map_err(|_| Errno::MFILE)?);
        let all = map(0, bytes + align, libc::PROT_NONE, RESERVATION, -1, 0)?;
        let start = all.next_multiple_of(align);
        let ground = Self { start, bytes, hole: RwLock::new(()), pipe };
        if start > all {
            // SAFETY: the part before the start was mapped above and belongs to nobody else.
            unsafe { libc::munmap(all as *mut _, start - all) };
        }
        let (end, all_end) = (start + bytes, all + bytes + align);
        if end < all_end {
            // SAFETY: so does the part behind the end.
            unsafe { libc::munmap(end as *mut _, all_end - end) };
        }
        Ok(ground)
    }

    /// Maps a file where the kernel thinks best.
    pub fn anywhere(node: &Node, how: Mapping) -> Result<Self, Errno> {
        let pipe = Mutex::new(pipe().map_err(|_| Errno::MFILE)?);
        let flags = how.flags & !(NEVER | libc::MAP_FIXED);
        let start = map(0, how.bytes, how.protection, flags, node.0.as_raw_fd(), how.offset)?;
        Ok(Self { start, bytes: how.bytes, hole: RwLock::new(()), pipe })
    }

    /// Has a pipe of its own in a child of `fork`. Without, the two would read each other's copies,
    /// and one that is killed in the middle of a copy would leave it to the other.
    pub fn renew(&self) -> Result<(), Errno> {
        let new = pipe().map_err(|_| Errno::MFILE)?;
        *self.pipe.lock().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// Its first address.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Its length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Maps a file over a part of the ground, whatever was there.
    pub fn map(&self, at: usize, node: &Node, how: Mapping) -> Result<(), Errno> {
        let start = self.within(at, how.bytes);
        let _shared = self.hole.read().unwrap_or_else(PoisonError::into_inner);
        let flags = how.flags & !NEVER | libc::MAP_FIXED;
        map(start, how.bytes, how.protection, flags, node.0.as_raw_fd(), how.offset).map(|_| ())
    }

    /// Unmaps a part.
    pub fn unmap(&self, at: usize, bytes: usize) -> Result<(), Errno> {
        let start = self.within(at, bytes);
        let _alone = self.hole.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the part is the ground's, and no reference into it exists (rules 1 and 2).
        answer(unsafe { libc::munmap(start as *mut _, bytes) }.into())?;
        fill_hole(start, bytes);
        Ok(())
    }

    /// Moves a part, and gives it another length: `mremap` to a fixed place in the ground. Only in
    /// a process of one thread, otherwise `EBUSY`: another might get the hole that is left.
    pub fn remap(&self, from: usize, old: usize, to: usize, new: usize) -> Result<(), Errno> {
        let (from, to) = (self.within(from, old), self.within(to, new));
        if !is_alone() {
            return Err(Errno::BUSY);
        }
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let target = to as *mut libc::c_void;
        // SAFETY: both parts are the ground's, and no reference into it exists (rules 1 and 2).
        let moved = unsafe { libc::mremap(from as *mut _, old, new, flags, target) };
        if moved != libc::MAP_FAILED {
            fill_hole(from, old);
            return Ok(());
        }
        let error = last();
        // It may have unmapped the target, and what a shorter length cuts off, before it failed.
        reserve_if_hole(to, new);
        reserve_if_hole(from + new, old.saturating_sub(new));
        Err(error)
    }

    /// `mprotect` of a part, with any bits.
    pub fn protect(&self, at: usize, bytes: usize, protection: i32) -> Result<(), Errno> {
        let start = self.within(at, bytes);
        // SAFETY: the part is the ground's, and no reference into it exists (rules 1 and 2).
        answer(unsafe { libc::mprotect(start as *mut _, bytes, protection) }.into()).map(|_| ())
    }

    /// `madvise` of a part, with any advice but those that break pages or leave holes in children.
    ///
    /// # Panics
    /// With `MADV_HWPOISON`, `MADV_SOFT_OFFLINE` and `MADV_DONTFORK`.
    pub fn advise(&self, at: usize, bytes: usize, advice: i32) -> Result<(), Errno> {
        let never = [libc::MADV_HWPOISON, libc::MADV_SOFT_OFFLINE, libc::MADV_DONTFORK];
        assert!(!never.contains(&advice), "advice {advice} reaches beyond the ground");
        let start = self.within(at, bytes);
        // SAFETY: the part is the ground's, and no reference into it exists (rules 1 and 2).
        answer(unsafe { libc::madvise(start as *mut _, bytes, advice) }.into()).map(|_| ())
    }

    /// `remap_file_pages` of a part: other pages of the file that is mapped there.
    pub fn repage(&self, at: usize, bytes: usize, page: usize) -> Result<(), Errno> {
        let start = self.within(at, bytes);
        // SAFETY: the part is the ground's, and no reference into it exists (rules 1 and 2).
        let result = unsafe { libc::syscall(libc::SYS_remap_file_pages, start, bytes, 0, page, 0) };
        answer(result).map(|_| ())
    }

    /// `mlock` of a part.
    pub fn lock(&self, at: usize, bytes: usize) -> Result<(), Errno> {
        let start = self.within(at, bytes);
        // SAFETY: locking changes no contents and no address.
        answer(unsafe { libc::mlock(start as *const _, bytes) }.into()).map(|_| ())
    }

    /// Lets the kernel read from a part; where nobody could, that is `EFAULT`.
    ///
    /// # Panics
    /// When it is more than a page.
    pub fn copy_out(&self, at: usize, bytes: &mut [u8]) -> Result<(), Errno> {
        assert!(bytes.len() <= 4096, "a pipe takes a page at a time");
        let start = self.within(at, bytes.len());
        let pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        let fd = pipe.1.as_raw_fd();
        // SAFETY: the kernel reads from the ground, and says so where it cannot.
        let copied = answer(unsafe { libc::write(fd, start as *const _, bytes.len()) } as i64)?;
        let copied = usize::try_from(copied).unwrap_or(0);
        rustix::io::read(&pipe.0, &mut bytes[..copied])?;
        if copied == bytes.len() { Ok(()) } else { Err(Errno::FAULT) }
    }

    /// Lets the kernel write to a part; where nobody could, that is `EFAULT`.
    ///
    /// # Panics
    /// When it is more than a page.
    pub fn copy_in(&self, at: usize, bytes: &[u8]) -> Result<(), Errno> {
        assert!(bytes.len() <= 4096, "a pipe takes a page at a time");
        let start = self.within(at, bytes.len());
        let pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        rustix::io::write(&pipe.1, bytes)?;
        let fd = pipe.0.as_raw_fd();
        // SAFETY: the kernel writes to the ground, and no reference into it exists (rule 2).
        let copied = answer(unsafe { libc::read(fd, start as *mut _, bytes.len()) } as i64);
        let missing = bytes.len() - copied.map_or(0, |copied| usize::try_from(copied).unwrap_or(0));
        if missing > 0 {
            let mut rest = [0; 4096];
            rustix::io::read(&pipe.0, &mut rest[..missing])?;
        }
        if missing == 0 { Ok(()) } else { Err(copied.err().unwrap_or(Errno::FAULT)) }
    }

    /// Lets the kernel copy the first bytes of a file to a part, in one call; how many it copied.
    pub fn read_file(&self, at: usize, bytes: usize, file: &File) -> Result<usize, Errno> {
        let start = self.within(at, bytes);
        // SAFETY: the kernel writes to the ground, and no reference into it exists (rule 2).
        let copied = unsafe { libc::pread(file.as_raw_fd(), start as *mut _, bytes, 0) };
        answer(copied as i64).map(|copied| usize::try_from(copied).unwrap_or(0))
    }

    /// Lets the kernel add 1 to the 32-bit word at an offset (`FUTEX_WAKE_OP`). The kernel does it
    /// in atomic context, and resolves a fault separately (`fault_in_user_writeable()`).
    pub fn add_by_futex(&self, at: usize) -> Result<(), Errno> {
        let word = self.within(at, 4);
        let call = libc::c_long::from(libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG);
        let (add, none) = (1_i64 << 28 | 1 << 12, 0_i64);
        // SAFETY: the kernel changes the ground, and no reference into it exists (rule 2).
        let woken = unsafe { libc::syscall(libc::SYS_futex, word, call, none, none, word, add) };
        answer(woken).map(drop)
    }

    /// Asks the kernel for references on the frames behind a part, as direct I/O does. The frames
    /// of the module must refuse: `EFAULT`.
    pub fn pin(&self, at: usize, bytes: usize) -> Result<usize, Errno> {
        let start = self.within(at, bytes);
        // A pipe of its own: it keeps the references for as long as it is there.
        let (_reader, writer) = pipe().map_err(|_| Errno::MFILE)?;
        let part = libc::iovec { iov_base: start as *mut _, iov_len: bytes };
        let flags = libc::SPLICE_F_NONBLOCK;
        // SAFETY: the pages stay what they are; the pipe only holds them until it is closed.
        let pinned = unsafe { libc::vmsplice(writer.as_raw_fd(), &raw const part, 1, flags) };
        answer(pinned as i64).map(|pinned| usize::try_from(pinned).unwrap_or(0))
    }

    /// The word at an offset. Where nobody could read, the process dies of a signal.
    pub fn load(&self, at: usize) -> u64 {
        let word = word_at(self.within(at, 8) as *mut u8, 0);
        // SAFETY: the word is the ground's and aligned; a refused access is a signal (rule 2).
        unsafe { word.read_volatile() }
    }

    /// Sets the word at an offset. Where nobody could write, the process dies of a signal.
    pub fn store(&self, at: usize, value: u64) {
        let word = word_at(self.within(at, 8) as *mut u8, 0);
        // SAFETY: the word is the ground's and aligned; a refused access is a signal (rule 2).
        unsafe { word.write_volatile(value) }
    }

    fn within(&self, at: usize, bytes: usize) -> usize {
        let end = at.checked_add(bytes).expect("an end");
        assert!(end <= self.bytes && at < self.bytes, "{at}+{bytes} is outside the ground");
        self.start + at
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // SAFETY: the range is the ground's own, and no reference into it exists.
        unsafe { libc::munmap(self.start as *mut _, self.bytes) };
    }
}

const RESERVATION: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
/// A mapping that grows by itself would leave the ground.
const NEVER: i32 = libc::MAP_GROWSDOWN;

fn map(
    at: usize,
    bytes: usize,
    protection: i32,
    flags: i32,
    fd: i32,
    offset: u64,
) -> Result<usize, Errno> {
    // The call itself and not the C library's function, which refuses some offsets by itself.
    // SAFETY: a place of the kernel's choice, or one inside a ground (rule 1).
    let start = unsafe {
        libc::syscall(libc::SYS_mmap, at, bytes, protection, flags, fd, offset.cast_signed())
    };
    answer(start).map(|start| usize::try_from(start).unwrap_or(0))
}

/// Reserves a part that was unmapped just now.
fn fill_hole(start: usize, bytes: usize) {
    let flags = RESERVATION | libc::MAP_FIXED_NOREPLACE;
    let bytes = bytes.next_multiple_of(4096);
    if map(start, bytes, libc::PROT_NONE, flags, -1, 0) != Ok(start) {
        // Somebody else has it now: going on would destroy their memory.
        std::process::abort();
    }
}

/// Reserves a part if it is not mapped. In a process of one thread it is mapped whole or not at
/// all.
fn reserve_if_hole(start: usize, bytes: usize) {
    let flags = RESERVATION | libc::MAP_FIXED_NOREPLACE;
    if bytes > 0 {
        let _ = map(start, bytes.next_multiple_of(4096), libc::PROT_NONE, flags, -1, 0);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_another_process_has_in_its_pipe_is_in_no_copy() {
        let ground = Ground::reserve(4096, 4096).unwrap();
        ground.protect(0, 4096, READ | WRITE).unwrap();
        // As a child of fork has it, in the middle of a copy.
        let (_other, mut inherited) = {
            let pipe = ground.pipe.lock().unwrap();
            (pipe.0.try_clone().unwrap(), pipe.1.try_clone().unwrap())
        };
        inherited.write_all(&[7; 8]).unwrap();
        let mut bytes = [1; 8];
        ground.copy_out(0, &mut bytes).unwrap();
        assert_eq!(bytes, [7; 8], "a pipe is what two that share it read");
        ground.renew().unwrap();
        inherited.write_all(&[7; 8]).unwrap();
        ground.copy_out(0, &mut bytes).unwrap();
        assert_eq!(bytes, [0; 8]);
    }
}
