#![expect(unsafe_code, reason = "mmap and friends hand out raw memory")]
//! A piece of address space that is mapped, advised, populated, touched and released on demand.
//!
//! The one idea: address space is *reserved* first (off the clock), so that the page size under
//! test decides the alignment, not the kernel's mood (it aligns large anonymous mappings by itself
//! only since 6.7), and so that guards on both sides keep neighbours from merging with it. What is
//! then timed is one plain call.
//!
//! Rules: (1) an `Area` owns its range from `reserve` to drop, nobody else maps into it; (2) memory
//! is reached only through the methods here, by volatile access, while it is mapped; (3) no
//! reference into the range ever leaves this file.

mod advice;
mod binding;
mod layout;

use std::{fmt, io, os::fd::RawFd};

use linux_raw_sys::general as uapi;

use crate::{SysError, memory::heap};
pub use advice::Ranges;
pub use layout::Layout;

const BASE_PAGE: usize = 4096;

/// Where an area lies and what backs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// Anonymous memory wherever the kernel has room.
    Anonymous,
    /// Anonymous memory from a 1 GiB boundary, `MAP_FIXED_NOREPLACE`, as low as possible.
    Fixed,
    /// The heap, grown and shrunk by `brk`.
    Brk,
    /// The hugetlb pool of pages of 2 to this power.
    Hugetlb(u32),
    /// Pages of the pool of 2 to this power where whole ones fit, anonymous memory around them.
    Graded(u32),
    /// A file, or memory that has a descriptor; the bytes of the windows lie in it end to end.
    ///
    /// Whoever names the descriptor keeps it open until the area is mapped.
    File {
        /// Descriptor, open for reading and writing.
        fd: RawFd,
        /// `MAP_SHARED`; else stores stay private.
        shared: bool,
        /// Where in it the first window begins.
        from: usize,
    },
}

/// What to tell the kernel about an area before anything in it faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// `MADV_HUGEPAGE`.
    HugePage,
    /// `MADV_NOHUGEPAGE`.
    NoHugePage,
    /// `MADV_RANDOM`: a fault on a file reads the one page.
    Random,
    /// `MADV_COLD` (since Linux 5.4): as if nobody had touched it for long.
    Cold,
}

/// Reserved address space, mapped or not. Dropping it returns everything.
#[derive(Debug)]
pub struct Area {
    base: usize,
    layout: Layout,
    backing: Backing,
    /// Everything that `reserve` took: start and length; empty for the heap.
    reserved: (usize, usize),
    mapped: bool,
}

impl Area {
    /// Reserves address space for `layout` so that its base is `skew` bytes past a multiple of
    /// `align`. Nothing is mapped yet.
    ///
    /// # Errors
    /// When there is no room, or the heap cannot grow.
    ///
    /// # Panics
    /// When `align` is no power of two, or `skew` is no multiple of the base page below it.
    pub fn reserve(
        layout: Layout,
        backing: Backing,
        align: usize,
        skew: usize,
    ) -> Result<Self, SysError> {
        assert!(align.is_power_of_two() && align >= BASE_PAGE, "alignment {align}");
        assert!(skew < align && skew.is_multiple_of(BASE_PAGE), "skew {skew} of {align}");
        let extent = layout.extent();
        let mut area = Self { base: 0, layout, backing, reserved: (0, 0), mapped: false };
        match backing {
            Backing::Brk => area.base = heap::extend_to(align, skew)?,
            Backing::Fixed => {
                // A page of guard on both sides, the boundary between them.
                let start = (1..64_usize).find_map(|gib| {
                    let start = (gib << 30) - BASE_PAGE;
                    let fixed = uapi::MAP_PRIVATE | uapi::MAP_FIXED_NOREPLACE;
                    map(start, extent + skew + 2 * BASE_PAGE, 0, fixed, None).ok()
                });
                let Some(start) = start else {
                    let why = io::Error::from_raw_os_error(libc::EEXIST);
                    return Err(SysError::new("mmap", "every 1 GiB boundary below 64 GiB", why));
                };
                area.reserved = (start, extent + skew + 2 * BASE_PAGE);
                area.base = start + BASE_PAGE + skew;
            }
            Backing::Anonymous
            | Backing::Hugetlb(_)
            | Backing::Graded(_)
            | Backing::File { .. } => {
                let length = extent + 2 * align + 2 * BASE_PAGE;
                let start = map(0, length, 0, uapi::MAP_PRIVATE, None)?;
                area.reserved = (start, length);
                area.base = (start + BASE_PAGE).next_multiple_of(align) + skew;
            }
        }
        Ok(area)
    }

    /// A layout mapped at a multiple of `align`, untouched. It takes the place of what was
    /// reserved, without a hole in which another thread could map something meanwhile.
    ///
    /// # Errors
    /// As [`Area::reserve`] and [`Area::map`].
    pub fn mapped(layout: Layout, backing: Backing, align: usize) -> Result<Self, SysError> {
        let mut area = Self::reserve(layout, backing, align, 0)?;
        area.map_with(uapi::MAP_FIXED)?;
        Ok(area)
    }

    /// Leaves holes where the windows will be, so that [`Area::map`] is one plain call for each.
    ///
    /// Nothing else may map memory in this process before `map` does.
    ///
    /// # Errors
    /// When the kernel refuses, which it has no reason to.
    pub fn open(&mut self) -> Result<(), SysError> {
        if self.backing == Backing::Brk { Ok(()) } else { self.unmap_windows() }
    }

    /// Maps every window; `populate` adds `MAP_POPULATE`, which a heap does not have.
    ///
    /// # Errors
    /// When memory or the hugetlb pool is short.
    pub fn map(&mut self, populate: bool) -> Result<(), SysError> {
        let populate = if populate { uapi::MAP_POPULATE } else { 0 };
        self.map_with(populate | uapi::MAP_FIXED_NOREPLACE)
    }

    /// Maps every window with `MAP_LOCKED`, which populates as far as it can and does not say how
    /// far that was. A heap does not have it.
    ///
    /// # Errors
    /// When the memlock limit is too low.
    pub fn map_locked(&mut self) -> Result<(), SysError> {
        self.map_with(uapi::MAP_LOCKED | uapi::MAP_FIXED_NOREPLACE)
    }

    fn map_with(&mut self, flags: u32) -> Result<(), SysError> {
        let file = match self.backing {
            Backing::Brk => {
                heap::grow(self.base, self.layout.window)?;
                self.mapped = true;
                return Ok(());
            }
            Backing::File { fd, from, .. } => Some((fd, from)),
            Backing::Graded(shift) => {
                for base in self.windows() {
                    for (at, bytes, pool) in graded(base, self.layout.window, shift) {
                        map(at, bytes, READ_WRITE, flags | private(pool), None)?;
                    }
                }
                self.mapped = true;
                return Ok(());
            }
            _ => None,
        };
        let flags = flags
            | match self.backing {
                Backing::Hugetlb(shift) => private(Some(shift)),
                Backing::File { shared: true, .. } => uapi::MAP_SHARED,
                _ => private(None),
            };
        for (index, base) in self.windows().enumerate() {
            let file = file.map(|(fd, from)| (fd, from + index * self.layout.window));
            map(base, self.layout.window, READ_WRITE, flags, file)?;
        }
        self.mapped = true;
        Ok(())
    }

    /// Tells the kernel which pages are wanted.
    ///
    /// # Errors
    /// When the kernel was built without transparent huge pages.
    pub fn advise(&self, advice: Advice) -> Result<(), SysError> {
        self.advise_windows(match advice {
            Advice::HugePage => uapi::MADV_HUGEPAGE,
            Advice::NoHugePage => uapi::MADV_NOHUGEPAGE,
            Advice::Random => uapi::MADV_RANDOM,
            Advice::Cold => uapi::MADV_COLD,
        })
    }

    /// `mlock`, or `mlock2(MLOCK_ONFAULT)`.
    ///
    /// # Errors
    /// When the memlock limit is too low.
    pub fn lock(&self, on_fault: bool) -> Result<(), SysError> {
        self.each_window("mlock", format_args!("on fault: {on_fault}"), |at, bytes| {
            if on_fault {
                // SAFETY: the range is ours and mapped; locking changes no contents.
                unsafe { libc::syscall(libc::SYS_mlock2, at, bytes, uapi::MLOCK_ONFAULT) }
            } else {
                // SAFETY: as above.
                unsafe { libc::mlock(at, bytes) }.into()
            }
        })
    }

    /// `MADV_PAGEOUT` (since Linux 5.4): writes to swap what can be reclaimed now.
    ///
    /// # Errors
    /// When the memory is locked.
    pub fn page_out(&self) -> Result<(), SysError> {
        self.advise_windows(uapi::MADV_PAGEOUT)
    }

    /// The address of the first byte, for the latency loop of this room and for read-back.
    pub(crate) fn base_ptr(&self) -> *mut u8 {
        assert!(self.mapped, "only mapped memory is reached");
        self.base as *mut u8
    }

    /// Start addresses of the windows.
    pub fn windows(&self) -> impl Iterator<Item = usize> + use<> {
        let (base, layout) = (self.base, self.layout);
        (0..layout.windows).map(move |index| base + index * layout.stride)
    }

    /// How its bytes lie.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Address of the first byte.
    pub fn base(&self) -> usize {
        self.base
    }

    /// Address after the last byte of the last window.
    pub fn end(&self) -> usize {
        self.base + self.layout.extent()
    }

    /// Unmaps every window (or shrinks the heap). The reservation's guards stay until drop.
    ///
    /// # Errors
    /// When somebody else moved the end of the heap meanwhile: then it is left alone.
    pub fn release(&mut self) -> Result<(), SysError> {
        match self.backing {
            Backing::Brk => heap::shrink(self.base, self.layout.window)?,
            _ => self.unmap_windows()?,
        }
        self.mapped = false;
        Ok(())
    }

    fn unmap_windows(&self) -> Result<(), SysError> {
        self.windows().try_for_each(|base| unmap(base, self.layout.window))
    }

    fn advise_windows(&self, advice: u32) -> Result<(), SysError> {
        self.windows().try_for_each(|base| advise(base, self.layout.window, advice))
    }

    /// Makes a call for each window, which answers 0 where it was done.
    pub(crate) fn each_window(
        &self,
        name: &'static str,
        on: fmt::Arguments<'_>,
        call: impl Fn(*mut libc::c_void, usize) -> i64,
    ) -> Result<(), SysError> {
        let bytes = self.layout.window;
        self.windows().try_for_each(|base| {
            let result = call(base as *mut libc::c_void, bytes);
            SysError::checked(result, name, format_args!("{bytes} bytes at {base:#x}, {on}"))
                .map(drop)
        })
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        if self.backing == Backing::Brk {
            if self.mapped {
                let _ = self.release();
            }
            return;
        }
        // Holes inside are no error to munmap; the kernel has no other reason to refuse.
        let _ = unmap(self.reserved.0, self.reserved.1);
    }
}

/// The word `offset` bytes above `base`: a page-aligned address and a multiple of 8.
#[inline(always)]
pub(crate) fn word_at(base: *mut u8, offset: usize) -> *mut u64 {
    base.wrapping_add(offset).cast()
}

/// Whether this kernel has `MADV_POPULATE_WRITE`; the advice is checked before the (empty) range.
pub fn has_populate_write() -> bool {
    let nowhere = BASE_PAGE as *mut libc::c_void;
    // SAFETY: an empty range: nothing is populated, the address is not looked at.
    unsafe { libc::madvise(nowhere, 0, uapi::MADV_POPULATE_WRITE.cast_signed()) == 0 }
}

const READ_WRITE: u32 = uapi::PROT_READ | uapi::PROT_WRITE;

/// What makes memory private, and that of a pool.
fn private(pool: Option<u32>) -> u32 {
    uapi::MAP_PRIVATE | pool.map_or(0, |shift| uapi::MAP_HUGETLB | shift << uapi::MAP_HUGE_SHIFT)
}

/// The parts of a range: start, bytes, and the pool that whole pages of it are of.
fn graded(base: usize, bytes: usize, shift: u32) -> Vec<(usize, usize, Option<u32>)> {
    let (page, end) = (1 << shift, base + bytes);
    let first = base.next_multiple_of(page).min(end);
    let last = (end / page * page).max(first);
    let parts = [(base, first, None), (first, last, Some(shift)), (last, end, None)];
    let parts = parts.into_iter().filter(|(start, end, _)| start < end);
    parts.map(|(start, end, pool)| (start, end - start, pool)).collect()
}

/// Maps anonymous memory, or a file from a position on.
fn map(
    at: usize,
    bytes: usize,
    protection: u32,
    flags: u32,
    file: Option<(RawFd, usize)>,
) -> Result<usize, SysError> {
    let (fd, position) = file.unwrap_or((-1, 0));
    let kind = if file.is_some() { 0 } else { uapi::MAP_ANONYMOUS | uapi::MAP_NORESERVE };
    let (protection, flags) = (protection.cast_signed(), (flags | kind).cast_signed());
    let offset = libc::off_t::try_from(position).expect("a position in a file has 63 bits");
    let hint = at as *mut libc::c_void;
    // SAFETY: a mapping at a place of the kernel's choice, or at one of ours that
    // MAP_FIXED_NOREPLACE refuses to take from anybody.
    let address = unsafe { libc::mmap(hint, bytes, protection, flags, fd, offset) };
    if address == libc::MAP_FAILED {
        let of = file.map_or("anonymous".to_owned(), |_| format!("of a file from {position}"));
        return Err(SysError::last("mmap", format!("{bytes} bytes at {at:#x}, {of}")));
    }
    Ok(address as usize)
}

/// Populates a range, for stores or for loads: that changes no contents, whatever lies there.
pub(super) fn populate(base: usize, bytes: usize, write: bool) -> Result<(), SysError> {
    advise(base, bytes, if write { uapi::MADV_POPULATE_WRITE } else { uapi::MADV_POPULATE_READ })
}

/// Advice about a range of an area, or about addresses where one was; for this file and its own.
fn advise(base: usize, bytes: usize, advice: u32) -> Result<(), SysError> {
    let at = base as *mut libc::c_void;
    // SAFETY: what loses contents is called on windows of an area that its owner gives up; the
    // rest changes no contents, whatever lies there.
    let result = unsafe { libc::madvise(at, bytes, advice.cast_signed()) };
    let on = format_args!("{bytes} bytes at {base:#x}, advice {advice}");
    SysError::checked(result, "madvise", on).map(drop)
}

fn unmap(at: usize, bytes: usize) -> Result<(), SysError> {
    // SAFETY: callers pass ranges that their `Area` reserved; no reference into them exists.
    let result = unsafe { libc::munmap(at as *mut libc::c_void, bytes) };
    SysError::checked(result, "munmap", format_args!("{bytes} at {at:#x}")).map(drop)
}

#[cfg(test)]
mod tests;
