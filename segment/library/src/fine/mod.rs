#![expect(unsafe_code, reason = "hands memory to an allocator; the rules are in lib.rs")]
//! Blocks behind which mimalloc would leave much room.
//!
//! The one idea: mimalloc has four sizes of blocks for each power of two, so one of 4368 bytes, a
//! page of sqlite3 with its header, takes 5120. Blocks of some KiB that waste so much are
//! dlmalloc's, which lays them side by side as long as they are, from the bottom of a part of the
//! segment that is its own. So an address says whose a block is, and as that part is dense its
//! leaves are large soon. And blocks of one size begin at many lines of the caches, where
//! mimalloc's of 4 to 8 KiB have 4 of the 64 sets of a first level for what all of them begin with.
//!
//! That part is cut into shards, each with a lock, and nobody waits for one: a thread that finds
//! its shard held takes another one, or mimalloc; what is given back meanwhile is left in a list of
//! the shard, for whoever holds it next.

use std::{
    cell::{Cell, UnsafeCell},
    ffi::c_void,
    ops::{Range, RangeInclusive},
    ptr,
    sync::atomic::{AtomicPtr, AtomicUsize, Ordering},
};

use dlmalloc::{Allocator, Dlmalloc};
use libmimalloc_sys as mi;
use pagelab_interpose::aside;

use crate::{
    area::{self, Area, PAGE, PMD},
    fork_wait, leaves,
    lock::{Held, Lock},
    orders,
};

/// Sizes that may be dlmalloc's: what smaller blocks waste is little, and of a larger one it is a
/// small share.
const SIZES: RangeInclusive<usize> = 1025..=1 << 20;
/// Before each block lie its length and how far it lies behind the address that dlmalloc knows.
const HEAD: usize = 2 * size_of::<usize>();
/// mimalloc gives a block beyond this slices of so many bytes, with its own words before it.
const SLICE: usize = 64 << 10;
const WORDS: usize = 1 << 10;
/// They are, where mimalloc would add more than such a part of them.
const WASTE: usize = 8;
/// So large a part of the heap is dlmalloc's at most.
const SHARE: usize = 4;
const SHARDS: usize = 4;
/// Of so many bytes of a shard the pages are small: a program that has no more would have most of a
/// large one for nothing.
const SMALL: usize = PMD;

/// The part of a heap that is dlmalloc's.
pub(crate) fn part(heap: &Range<usize>) -> Range<usize> {
    let shard = heap.len() / SHARE / SHARDS / PMD * PMD;
    heap.start..heap.start + shard * SHARDS
}

/// The heap's.
pub(crate) static FINE: Fine = Fine::new();

/// Whether a block of so many bytes is to be dlmalloc's.
fn wants(bytes: usize) -> bool {
    if !SIZES.contains(&bytes) {
        return false;
    }
    let has = if bytes + WORDS > SLICE {
        (bytes + WORDS).next_multiple_of(SLICE)
    } else {
        // SAFETY: takes a number.
        unsafe { mi::mi_good_size(bytes) }
    };
    has - bytes > bytes / WASTE
}

/// All shards.
pub(crate) struct Fine {
    /// The addresses of all shards.
    area: Area,
    shards: [Shard; SHARDS],
}

impl Fine {
    const fn new() -> Self {
        Self { area: Area::new(), shards: [const { Shard::new() }; SHARDS] }
    }

    /// These addresses are its own from now on: a [`part`].
    pub(crate) fn begin(&self, part: &Range<usize>) {
        let each = part.len() / SHARDS;
        for (nth, shard) in self.shards.iter().enumerate() {
            let start = part.start + nth * each;
            if let Some(mut held) = shard.hold() {
                *held.own().allocator_mut() = Source::of(start..start + each);
            }
        }
        self.area.is_there(part.start, part.len());
    }

    /// Bytes of each shard.
    fn each(&self) -> usize {
        self.area.range().len() / SHARDS
    }

    /// Whether a block is dlmalloc's.
    pub(crate) fn has(&self, at: usize) -> bool {
        self.area.has(at)
    }

    /// Whose a block is.
    fn nth(&self, at: usize) -> usize {
        (at - self.area.range().start) / self.each()
    }

    /// As `malloc(3)`; null where mimalloc is as good, or nobody has room at once.
    pub(crate) fn malloc(&self, bytes: usize) -> *mut c_void {
        if wants(bytes) { self.any(1, bytes) } else { ptr::null_mut() }
    }

    /// So many bytes with an alignment, whatever their number; null where nobody has room at once.
    #[inline(never)]
    pub(crate) fn any(&self, to: usize, bytes: usize) -> *mut c_void {
        thread_local! {
            /// The shard of this thread.
            static OWN: Cell<usize> = const { Cell::new(usize::MAX) };
        }
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        let before = to.max(HEAD);
        let Some(whole) = bytes.checked_add(before).filter(|whole| *whole <= self.each()) else {
            return ptr::null_mut();
        };
        let mut own = OWN.get();
        if own == usize::MAX {
            own = THREADS.fetch_add(1, Ordering::Relaxed);
        }
        for nth in (own..own + SHARDS).map(|nth| nth % SHARDS) {
            let Some(mut held) = self.shards[nth].hold() else { continue };
            held.take_back();
            // SAFETY: takes numbers, the first a power of two.
            let at = unsafe { held.own().c_memalign(to, whole) };
            if !at.is_null() {
                OWN.set(nth);
                let at = at.wrapping_add(before).cast::<c_void>();
                // SAFETY: so much room is left before the block.
                unsafe { words(at).write([bytes, before]) };
                return at;
            }
        }
        ptr::null_mut()
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// It is of this, and nobody uses it any more.
    // Not a part of what every `free` of a program goes through.
    #[inline(never)]
    pub(crate) unsafe fn free(&self, at: *mut c_void) {
        let shard = &self.shards[self.nth(at.addr())];
        if let Some(mut held) = shard.hold() {
            // SAFETY: the caller's.
            unsafe { held.give_back(at) };
            held.take_back();
        } else {
            // SAFETY: the caller's.
            fork_wait::changing(|| unsafe { shard.leave(at) });
        }
    }

    /// Before a fork: the child finds no shard held.
    pub(crate) fn before_fork(&self) {
        // A handler that forks in the midst of a call here goes on with it in the child.
        self.shards.iter().for_each(|shard| shard.lock.enter());
    }

    /// On both sides of it.
    pub(crate) fn after_fork(&self) {
        self.shards.iter().for_each(|shard| shard.lock.leave());
    }
}

/// How many bytes a block has.
///
/// # Safety
/// It is of [`Fine`].
pub(crate) unsafe fn usable_size(at: *mut c_void) -> usize {
    // SAFETY: the caller's.
    let [bytes, _] = unsafe { words(at).read() };
    bytes
}

/// The words before a block.
fn words(at: *mut c_void) -> *mut [usize; 2] {
    at.wrapping_byte_sub(HEAD).cast()
}

/// One, on lines of the caches that are its own.
#[repr(align(128))]
struct Shard {
    lock: Lock,
    /// Blocks that were given back while it was held; each begins with the next.
    left: AtomicPtr<c_void>,
    own: UnsafeCell<Dlmalloc<Source>>,
}

// SAFETY: what is its own is touched by whoever holds it.
unsafe impl Sync for Shard {}

impl Shard {
    const fn new() -> Self {
        let mut own = Dlmalloc::new_with_allocator(Source::of(0..0));
        // It has one range, which is never empty.
        own.set_max_release_check_rate(0);
        Self { lock: Lock::new(), left: AtomicPtr::new(ptr::null_mut()), own: UnsafeCell::new(own) }
    }

    /// Takes it, if nobody has it.
    fn hold(&self) -> Option<HeldShard<'_>> {
        self.lock.try_hold().map(|held| HeldShard { shard: self, _held: held })
    }

    /// Leaves a block to whoever takes it next.
    ///
    /// # Safety
    /// As [`Fine::free`].
    unsafe fn leave(&self, at: *mut c_void) {
        let mut next = self.left.load(Ordering::Relaxed);
        loop {
            // SAFETY: the caller's, and every block has room for an address.
            unsafe { at.cast::<*mut c_void>().write(next) };
            let (order, failed) = (Ordering::Release, Ordering::Relaxed);
            match self.left.compare_exchange_weak(next, at, order, failed) {
                Ok(_) => return,
                Err(now) => next = now,
            }
        }
    }
}

/// A shard that is held.
struct HeldShard<'s> {
    shard: &'s Shard,
    _held: Held<'s>,
}

impl HeldShard<'_> {
    /// Gives a block back to dlmalloc.
    ///
    /// # Safety
    /// It is of this shard, and nobody uses it.
    unsafe fn give_back(&mut self, at: *mut c_void) {
        // SAFETY: the caller's.
        let [_, before] = unsafe { words(at).read() };
        // SAFETY: the caller's.
        unsafe { self.own().c_free(at.wrapping_byte_sub(before).cast()) };
    }

    fn own(&mut self) -> &mut Dlmalloc<Source> {
        // SAFETY: nobody else holds it.
        unsafe { &mut *self.shard.own.get() }
    }

    /// Takes back what was left.
    fn take_back(&mut self) {
        if self.shard.left.load(Ordering::Relaxed).is_null() {
            return;
        }
        let mut next = self.shard.left.swap(ptr::null_mut(), Ordering::Acquire);
        while !next.is_null() {
            let at = next;
            // SAFETY: whoever left it wrote the next one there.
            next = unsafe { at.cast::<*mut c_void>().read() };
            // SAFETY: it is of this shard, and nobody uses it.
            unsafe { self.give_back(at) };
        }
    }
}

/// What a shard grows into, from its bottom.
#[derive(Debug)]
struct Source {
    start: usize,
    end: usize,
    top: Cell<usize>,
}

impl Source {
    const fn of(range: Range<usize>) -> Self {
        let (start, end) = (range.start, range.end);
        Self { start, end, top: Cell::new(start) }
    }
}

// SAFETY: what is handed out is mapped for good, and nobody else's.
unsafe impl Allocator for Source {
    fn alloc(&self, bytes: usize) -> (*mut u8, usize, u32) {
        let at = self.top.get();
        let Some(wanted) = at.checked_add(bytes).filter(|wanted| *wanted <= self.end) else {
            return (ptr::null_mut(), 0, 0);
        };
        let large = self.start + SMALL;
        let end = if wanted <= large { wanted } else { wanted.next_multiple_of(PMD) };
        if leaves::is_on() {
            if aside(|| leaves::had(at, end - at)).is_err() {
                return (ptr::null_mut(), 0, 0);
            }
            if end > large && leaves::may_be_large() {
                let start = at.max(large);
                aside(|| area::advise_leaf(start, end - start, orders::leaf()));
            }
        }
        self.top.set(end);
        (ptr::with_exposed_provenance_mut(at), end - at, 0)
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        ptr::null_mut()
    }

    fn free_part(&self, at: *mut u8, had: usize, has: usize) -> bool {
        if leaves::is_on() {
            leaves::given_up(at.addr() + has, had - has);
        }
        self.top.set(at.addr() + has);
        true
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        true
    }

    fn allocates_zeros(&self) -> bool {
        false
    }

    fn page_size(&self) -> usize {
        PAGE
    }
}

#[cfg(test)]
mod tests;
