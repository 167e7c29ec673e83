#![expect(
    unsafe_code,
    reason = "throws away what the allocator has given up; the rules are in lib.rs"
)]
//! Which leaves of the heap hold something, and what goes back to the kernel.
//!
//! The one idea: an allocator says of each piece of 64 KiB when it has it and when it gives it up,
//! so a leaf of which it has none can go back whole, at once; no leaf is ever split. Some of those
//! stay all the same, because a program that frees mostly allocates again: as many as had been in
//! use before, and no more than a share, so that the peak of the program's memory stays its own.
//!
//! A leaf is mapped while anything of it is in use or stays. It is a word: a bit for each piece
//! that the allocator has, and one for each that it gave up and that may hold something; 0 is one
//! that is not mapped. All bits are one while it is on its way from or to the kernel, when whoever
//! wants it waits. No lock is held, since a fork waits for whoever is at it.

use std::{
    ops::Range,
    ptr, slice,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering},
};

use pagelab_interpose::{Errno, kernel, segment::Leaf};

use crate::{
    area::{self, PAGE, PMD},
    count, filtered,
    fork_wait::{begins, changing, ends, sending},
    orders,
};

/// What the allocator hands out.
const PIECE: usize = 64 << 10;
/// Pieces of a leaf: bits of half a word.
const PIECES: usize = PMD / PIECE;
/// The leaf is on its way from or to the kernel: pieces that are in use hold nothing old.
const GOING: u64 = u64::MAX;
/// Of so many pieces the pages are small, wherever they lie: a program that never has more has them
/// for each size and for each kind of piece in leaves of their own, and would have a third of those
/// for nothing. Once it has more, all leaves may be large, those in use in the background. What
/// lies before the allocator's tables is dense, and whoever has it asks for itself.
const SMALL: usize = 16 * PIECES;
/// Leaves that stay at least, where as many had been in use; then one for so many in use.
const STAY: usize = 8;
const SHARE: usize = 16;

/// The first that is handed out; none is, before that is known.
static FIRST: AtomicUsize = AtomicUsize::new(usize::MAX >> 1);
/// A word for each leaf; null where there is no heap.
static TABLE: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());
/// Pieces in use, but those of the allocator's tables; at how many somebody looks whether they are
/// touched, whether they were and all leaves are large, and whether they were not.
static LOOKED: AtomicUsize = AtomicUsize::new(SMALL);
static HAD: AtomicUsize = AtomicUsize::new(0);
static IS_LARGE: AtomicBool = AtomicBool::new(false);
static IS_SPARSE: AtomicBool = AtomicBool::new(false);
/// Leaves in use, the most that were, and those that stay though nobody has them.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static STAYING: AtomicUsize = AtomicUsize::new(0);
/// Behind the last leaf that ever was in use.
static HIGH: AtomicUsize = AtomicUsize::new(0);

/// Where the heap lies.
static START: AtomicUsize = AtomicUsize::new(0);
static LEAVES: AtomicUsize = AtomicUsize::new(0);

/// Makes the table of a heap.
pub(crate) fn begin(heap: &Range<usize>) -> Result<(), Errno> {
    let table = kernel::table(heap.len() / PMD)?;
    START.store(heap.start, Ordering::Relaxed);
    LEAVES.store(heap.len() / PMD, Ordering::Relaxed);
    TABLE.store(table, Ordering::Release);
    Ok(())
}

/// Which leaf is the first that the allocator hands out, behind its own tables.
pub(crate) fn first_is(at: usize) {
    FIRST.store((at - start()) / PMD, Ordering::Relaxed);
    HAD.store(1, Ordering::Relaxed);
}

/// Whether anybody is to say so: not where memory was set aside.
pub(crate) fn is_on() -> bool {
    !TABLE.load(Ordering::Relaxed).is_null()
}

fn start() -> usize {
    START.load(Ordering::Relaxed)
}

fn first() -> usize {
    FIRST.load(Ordering::Relaxed)
}

/// Asks for large pages in some leaves, but not in those of the tables.
fn advise(leaves: &Range<usize>) {
    let from = leaves.start.max(first());
    if from < leaves.end {
        area::advise_leaf(start() + from * PMD, (leaves.end - from) * PMD, orders::leaf());
    }
}

/// Some pieces more are in use, side by side.
fn more(count: usize, piece: &Range<usize>) {
    let had = HAD.fetch_add(count, Ordering::Relaxed) + count;
    if IS_LARGE.load(Ordering::Relaxed) {
        return;
    }
    let looked = LOOKED.load(Ordering::Relaxed);
    if had > looked && !filtered::is_set() && first() < LEAVES.load(Ordering::Relaxed) {
        let is_dense = is_dense(piece);
        LOOKED.store(if is_dense.is_some() { 2 * had } else { had + SMALL }, Ordering::Relaxed);
        match is_dense {
            Some(true) => {
                IS_SPARSE.store(false, Ordering::Relaxed);
                IS_LARGE.store(true, Ordering::Relaxed);
                advise(&(0..LEAVES.load(Ordering::Relaxed)));
            }
            Some(false) => IS_SPARSE.store(true, Ordering::Relaxed),
            None => {}
        }
    }
    if piece.len() >= PMD && may_be_large() && !IS_LARGE.load(Ordering::Relaxed) {
        // What one large piece fills is not for nothing.
        advise(&((piece.start - start()).div_ceil(PMD)..(piece.end - start()) / PMD));
    }
}

/// Whether large pages are worth their memory, as far as is known.
pub(crate) fn may_be_large() -> bool {
    !IS_SPARSE.load(Ordering::Relaxed)
}

/// Whether of what is in use, but for a piece that nobody could touch yet, most pages were touched,
/// by some leaves of all; `None` where there is too little else.
fn is_dense(fresh: &Range<usize>) -> Option<bool> {
    const SAMPLES: usize = 16;
    /// Fewer say nothing.
    const LEAST: usize = 4 * PMD / PAGE;
    /// Of so many pages all but one.
    const MOST: usize = 4;
    let (high, mut used_pages, mut touched) = (HIGH.load(Ordering::Relaxed), 0, 0);
    for leaf in (first()..high).step_by((high.saturating_sub(first()) / SAMPLES).max(1)) {
        let used = used(table()[leaf].load(Ordering::Relaxed));
        let mut pages = [0; PMD / PAGE];
        let at = start() + leaf * PMD;
        let is_fresh = fresh.start < at + PMD && at < fresh.end;
        if used == 0 || is_fresh || !kernel::present(at, PMD, &mut pages) {
            continue;
        }
        for (piece, pages) in pages.chunks(PIECE / PAGE).enumerate() {
            if used >> piece & 1 == 1 {
                used_pages += pages.len();
                touched += pages.iter().filter(|page| **page & 1 == 1).count();
            }
        }
    }
    (used_pages >= LEAST).then_some(touched * MOST >= used_pages * (MOST - 1))
}

fn table() -> &'static [AtomicU64] {
    let table = TABLE.load(Ordering::Acquire);
    if table.is_null() {
        return &[];
    }
    // SAFETY: `begin` mapped a word for each leaf, zero and for good.
    unsafe { slice::from_raw_parts(table, LEAVES.load(Ordering::Relaxed)) }
}

/// The leaves of some addresses of the heap, and the pieces of each.
fn pieces(start: usize, length: usize) -> impl Iterator<Item = (usize, u64)> {
    let from = start - self::start();
    let (first, end) = (from / PIECE, (from + length).div_ceil(PIECE));
    (first / PIECES..end.div_ceil(PIECES)).map(move |leaf| {
        let at = leaf * PIECES;
        let (low, high) = (first.max(at) - at, end.min(at + PIECES) - at);
        (leaf, ((1_u64 << high) - 1) & !((1_u64 << low) - 1))
    })
}

/// The allocator has some pieces from now on; whether they are zero.
///
/// # Errors
/// Where the kernel maps no more. Of what it did map before, nothing was touched.
pub(crate) fn had(start: usize, length: usize) -> Result<bool, Errno> {
    count::take();
    changing(|| take(start, length)).inspect(|_| {
        let most = MOST.load(Ordering::Relaxed);
        let staying = STAYING.load(Ordering::Relaxed);
        let is_kept = staying == 0 || filtered::is_strict();
        if !is_kept && LIVE.load(Ordering::Relaxed) + staying > most {
            // What grows into fresh leaves has no use for these.
            sending(|| send_staying(staying));
        }
    })
}

fn take(start: usize, length: usize) -> Result<bool, Errno> {
    let table = table();
    let (mut is_zero, mut count, mut fresh) = (true, 0, 0..0);
    for (leaf, mask) in pieces(start, length) {
        let was = hold(leaf, mask);
        if was != 0 {
            is_zero &= (was >> PIECES) & mask == 0;
            count += (mask & !used(was)).count_ones() as usize;
            if used(was) == 0 {
                STAYING.fetch_sub(1, Ordering::Relaxed);
                is_live(leaf);
            }
            continue;
        }
        if fresh.end != leaf {
            count += mapped(&fresh, start, length)?;
            fresh.start = leaf;
        }
        fresh.end = leaf + 1;
    }
    count += mapped(&fresh, start, length)?;
    debug_assert!(table.len() >= fresh.end, "leaves of the heap");
    more(count, &(start..start + length));
    Ok(is_zero)
}

/// Notes pieces of a leaf; what it was. One that was not mapped is on its way then.
fn hold(leaf: usize, mask: u64) -> u64 {
    let word = &table()[leaf];
    let mut was = word.load(Ordering::Acquire);
    loop {
        if was == GOING {
            filtered::wait();
            was = word.load(Ordering::Acquire);
            continue;
        }
        let now = if was == 0 { GOING } else { (was | mask) & !(mask << PIECES) };
        match word.compare_exchange(was, now, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return was,
            Err(now) => was = now,
        }
    }
}

/// Maps leaves that are on their way, and notes which pieces the allocator has; how many.
fn mapped(leaves: &Range<usize>, start: usize, length: usize) -> Result<usize, Errno> {
    if leaves.is_empty() {
        return Ok(0);
    }
    let range = self::start() + leaves.start * PMD..self::start() + leaves.end * PMD;
    let came = if filtered::is_strict() { Err(libc::ENOMEM) } else { area::map(&range) };
    let mut count = 0;
    for (leaf, mask) in pieces(start, length).filter(|(leaf, _)| leaves.contains(leaf)) {
        table()[leaf].store(if came.is_ok() { mask } else { 0 }, Ordering::Release);
        count += mask.count_ones() as usize;
    }
    came?;
    area::advise_leaf(range.start, range.len(), Leaf::Base);
    if IS_LARGE.load(Ordering::Relaxed) {
        advise(leaves);
    }
    leaves.clone().for_each(is_live);
    Ok(count)
}

/// One leaf more is in use.
fn is_live(leaf: usize) {
    let live = LIVE.fetch_add(1, Ordering::Relaxed) + 1;
    MOST.fetch_max(live, Ordering::Relaxed);
    HIGH.fetch_max(leaf + 1, Ordering::Relaxed);
}

/// Sends leaves that stay though nobody has them, so many of them.
fn send_staying(mut count: usize) {
    let table = table();
    for leaf in (0..HIGH.load(Ordering::Relaxed)).rev() {
        let was = table[leaf].load(Ordering::Acquire);
        if count == 0 {
            break;
        }
        if was != 0
            && used(was) == 0
            && table[leaf].compare_exchange(was, GOING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        {
            STAYING.fetch_sub(1, Ordering::Relaxed);
            send(&(leaf..leaf + 1));
            count -= 1;
        }
    }
}

/// The pieces of a leaf that the allocator has.
fn used(word: u64) -> u64 {
    word & ((1 << PIECES) - 1)
}

/// The allocator gives some pieces up.
pub(crate) fn given_up(start: usize, length: usize) {
    let may_go = begins() && !filtered::is_strict();
    let mut going = 0..0;
    for (leaf, mask) in pieces(start, length) {
        if give_up(leaf, mask, may_go) {
            if going.end != leaf {
                send(&going);
                going.start = leaf;
            }
            going.end = leaf + 1;
        }
    }
    send(&going);
    ends();
}

/// Notes it of one leaf; whether the leaf is to go.
fn give_up(leaf: usize, mask: u64, may_go: bool) -> bool {
    let word = &table()[leaf];
    let mut was = word.load(Ordering::Acquire);
    loop {
        // What is on its way has no piece that anybody could give up.
        let left = (was | (mask << PIECES)) & !mask;
        let is_free = used(was) != 0 && used(left) == 0;
        let goes = is_free && may_go && !may_stay();
        let next = if goes { GOING } else { left };
        match word.compare_exchange(was, next, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                let count = (mask & used(was)).count_ones();
                HAD.fetch_sub(count as usize, Ordering::Relaxed);
                if is_free {
                    LIVE.fetch_sub(1, Ordering::Relaxed);
                    STAYING.fetch_add(usize::from(!goes), Ordering::Relaxed);
                }
                return goes;
            }
            Err(now) => was = now,
        }
    }
}

/// Whether one more leaf may stay that nobody has, now that one less is in use.
fn may_stay() -> bool {
    let live = LIVE.load(Ordering::Relaxed).saturating_sub(1);
    let had = MOST.load(Ordering::Relaxed).saturating_sub(live);
    STAYING.load(Ordering::Relaxed) < had.min(STAY + live / SHARE)
}

/// Sends leaves to the kernel: nobody has them mapped then.
fn send(leaves: &Range<usize>) {
    if leaves.is_empty() {
        return;
    }
    let start = start() + leaves.start * PMD;
    // SAFETY: nobody has any of it, nor gets it while its words say that it is going.
    let came = unsafe { kernel::unmap(start, leaves.len() * PMD) };
    // What the kernel did not take holds what it held.
    let left = if came.is_ok() { 0 } else { !0 << PIECES };
    for word in &table()[leaves.clone()] {
        word.store(left, Ordering::Release);
        STAYING.fetch_add(usize::from(left != 0), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_range_are_bits_of_its_leaves() {
        let at = |start, length| pieces(start, length).collect::<Vec<_>>();
        assert_eq!(at(0, PIECE), [(0, 1)]);
        assert_eq!(at(PMD - PIECE, 2 * PIECE), [(0, 1 << 31), (1, 1)]);
        assert_eq!(at(PMD, PMD), [(1, u64::from(u32::MAX))]);
        assert_eq!(at(PIECE, 2 * PMD), [(0, 0xffff_fffe), (1, 0xffff_ffff), (2, 1)]);
    }
}
