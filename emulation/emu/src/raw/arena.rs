//! Where pages live: large pieces of host memory, handed out page by page.
//!
//! The one idea: a chunk is one anonymous mapping, aligned so that the host can back it with huge
//! pages; a page is the next 4 KiB of it. A page never moves and is never given back before its
//! chunk is, so its address stays good for as long as somebody holds the chunk.
//!
//! # Rules
//! 1. A page that was handed out is inside its chunk, and no other page overlaps it.
//! 2. A page is zero when it is handed out for the first time.
//! 3. Whoever keeps a page's address keeps its chunk, too.
#![expect(unsafe_code, reason = "hands out pages of a mapping as pointers")]

use std::{ptr::NonNull, sync::Arc};

use crate::memory::PAGE_BYTES;

/// What the host backs best: a PMD-sized page of x86-64 and others.
const ALIGN: usize = 2 << 20;
/// Bytes of a chunk. Untouched parts cost nothing but address space.
const CHUNK_BYTES: usize = 8 << 20;

/// A page of host memory. The copy of a page is the same page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Page(NonNull<u8>);

// SAFETY: a page is an address; who may read or write it follows from who holds it (`raw::pages`).
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

/// What every absent page reads as.
#[repr(align(4096))]
struct Zeros([u8; PAGE_BYTES]);

static ZEROS: Zeros = Zeros([0; PAGE_BYTES]);

impl Page {
    /// The page of zeros that all memories share; never to be written.
    pub(crate) fn zeros() -> Self {
        Self(NonNull::from(&ZEROS.0).cast())
    }

    /// Its first byte.
    #[inline(always)]
    pub(crate) fn start(self) -> *mut u8 {
        self.0.as_ptr()
    }

    /// Copies another page here.
    ///
    /// # Safety
    /// Both chunks are kept, this page is only the caller's, and it is not the other one.
    pub(crate) unsafe fn copy_from(self, other: Self) {
        // SAFETY: two different whole pages, as the caller promises.
        unsafe { self.0.copy_from_nonoverlapping(other.0, PAGE_BYTES) };
    }
}

/// One mapping, shared by every memory that has pages in it.
#[derive(Debug)]
struct Chunk {
    start: NonNull<u8>,
    #[expect(dead_code, reason = "owns what `start` points into")]
    backing: Backing,
}

// SAFETY: a chunk is only an owner; who may touch which of its pages is the arena's business.
unsafe impl Send for Chunk {}
// SAFETY: as above: no method touches the memory.
unsafe impl Sync for Chunk {}

impl Chunk {
    fn new(huge: bool) -> Option<Self> {
        let mut backing = Backing::new(CHUNK_BYTES + ALIGN)?;
        let start = NonNull::new(backing.start())?;
        let skip = start.as_ptr().align_offset(ALIGN);
        // `align_offset` may give up; a chunk that is not aligned is only slower.
        let skip = if skip <= ALIGN { skip } else { 0 };
        // SAFETY: at most `ALIGN` bytes into a mapping that is that much longer than a chunk.
        let start = unsafe { start.add(skip) };
        backing.advise(skip, CHUNK_BYTES, huge);
        Some(Self { start, backing })
    }
}

/// Anonymous memory of the host.
#[cfg(not(miri))]
#[derive(Debug)]
struct Backing(memmap2::MmapMut);

#[cfg(not(miri))]
impl Backing {
    fn new(bytes: usize) -> Option<Self> {
        let mut options = memmap2::MmapOptions::new();
        options.len(bytes).no_reserve_swap();
        options.map_anon().ok().map(Self)
    }

    fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    #[cfg(target_os = "linux")]
    fn advise(&self, from: usize, bytes: usize, huge: bool) {
        use memmap2::Advice;
        // A kernel without huge pages refuses; then there are none.
        let advice = if huge { Advice::HugePage } else { Advice::NoHugePage };
        let _ = self.0.advise_range(advice, from, bytes);
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "only Linux is told")]
    fn advise(&self, _: usize, _: usize, _: bool) {}
}

/// What Miri has instead of mappings: the allocator.
#[cfg(miri)]
#[derive(Debug)]
struct Backing(NonNull<u8>, std::alloc::Layout);

#[cfg(miri)]
impl Backing {
    fn new(bytes: usize) -> Option<Self> {
        let layout = std::alloc::Layout::from_size_align(bytes, PAGE_BYTES).ok()?;
        // SAFETY: the layout is not empty.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        NonNull::new(start).map(|start| Self(start, layout))
    }

    fn start(&mut self) -> *mut u8 {
        self.0.as_ptr()
    }

    fn advise(&self, _: usize, _: usize, _: bool) {}
}

#[cfg(miri)]
impl Drop for Backing {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and owned.
        unsafe { std::alloc::dealloc(self.0.as_ptr(), self.1) };
    }
}

/// Pages for one memory, from chunks that it may share with its forks and snapshots.
#[derive(Debug)]
pub(crate) struct Arena {
    chunks: Vec<Arc<Chunk>>,
    /// Bytes of the last chunk that are handed out; `CHUNK_BYTES` when the next page needs another.
    used: usize,
    /// Pages that came back.
    free: Vec<Page>,
    huge: bool,
}

// SAFETY: the pages in `free` belong to this arena alone; its chunks are `Send`.
unsafe impl Send for Arena {}
// SAFETY: `&Arena` gives no access to any page.
unsafe impl Sync for Arena {}

impl Arena {
    pub(crate) fn new(huge: bool) -> Self {
        Self { chunks: Vec::new(), used: CHUNK_BYTES, free: Vec::new(), huge }
    }

    /// A page of zeros; `None` when the host has no more memory.
    pub(crate) fn page(&mut self) -> Option<Page> {
        if let Some(page) = self.free.pop() {
            // SAFETY: the page came back from its only user, whose chunk is still here.
            unsafe { page.0.write_bytes(0, PAGE_BYTES) };
            return Some(page);
        }
        if self.used == CHUNK_BYTES {
            self.chunks.push(Arc::new(Chunk::new(self.huge)?));
            self.used = 0;
        }
        let chunk = self.chunks.last()?;
        // SAFETY: `used` is below the chunk's length, and a multiple of a page.
        let page = unsafe { chunk.start.add(self.used) };
        self.used += PAGE_BYTES;
        Some(Page(page))
    }

    /// Takes a page back that nobody else can reach.
    pub(crate) fn release(&mut self, page: Page) {
        self.free.push(page);
    }

    /// Keeps every chunk alive that this arena keeps, without its right to hand out pages.
    pub(crate) fn share(&self) -> Keep {
        Keep(self.chunks.clone())
    }

    /// Keeps these chunks alive, too; their pages are somebody else's to hand out.
    pub(crate) fn keep(&mut self, keep: &Keep) {
        // New chunks are pushed behind; the one being filled must stay the last.
        let known = |chunk: &Arc<Chunk>| self.chunks.iter().any(|c| Arc::ptr_eq(c, chunk));
        let missing: Vec<_> = keep.0.iter().filter(|chunk| !known(chunk)).cloned().collect();
        self.chunks.splice(0..0, missing);
    }
}

/// Keeps chunks alive.
#[derive(Debug, Clone)]
pub(crate) struct Keep(Vec<Arc<Chunk>>);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn pages_do_not_overlap_and_are_zero_also_when_used_again() {
        let mut arena = Arena::new(true);
        let pages: Vec<Page> = (0..CHUNK_BYTES / PAGE_BYTES + 3)
            .map(|_| arena.page().expect("the host has memory"))
            .collect();
        let starts: BTreeSet<usize> = pages.iter().map(|page| page.start().addr()).collect();
        let apart = starts.iter().zip(starts.iter().skip(1)).all(|(a, b)| b - a >= PAGE_BYTES);
        assert!(apart && starts.len() == pages.len());
        let page = pages[1];
        // SAFETY: the page is this test's alone.
        unsafe { page.start().write(7) };
        arena.release(page);
        let again = arena.page().expect("it was just given back");
        // SAFETY: as above.
        assert_eq!((again, unsafe { again.start().read() }), (page, 0));
    }

    #[test]
    fn a_chunk_lives_as_long_as_anybody_keeps_it() {
        let (mut child, page) = {
            let mut parent = Arena::new(false);
            let page = parent.page().expect("the host has memory");
            // SAFETY: the page is this test's alone.
            unsafe { page.start().write(9) };
            let mut child = Arena::new(false);
            child.keep(&parent.share());
            (child, page)
        };
        // SAFETY: the child keeps the chunk, and nobody else has the page.
        assert_eq!(unsafe { page.start().read() }, 9);
        assert_ne!(child.page(), Some(page), "it is not the child's to hand out");
    }
}
