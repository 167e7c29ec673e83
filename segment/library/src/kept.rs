#![expect(unsafe_code, reason = "clears memory that nobody has; the rules are in lib.rs")]
//! Leaves that a program gave back and that stay: `--zero release`.
//!
//! What was given back is moved out of the program's sight, to a range as large as the segment (its
//! store). It is zeroed there in one piece instead of page by page at the next fault, and stays
//! resident, so that taking it again costs no fault: it is moved back. A thread of our own zeroes
//! it ([`crate::helper`]). Whoever takes leaves gets those where it was, if there are so many; else
//! a first one is zeroed by who takes it, and the rest goes to the kernel: no call takes long.
//! Nothing is noted of what a program touches, so a leaf of which not every page is there, and one
//! that is not taken again in time, goes to the kernel.
//!
//! A leaf here is free of the program wholly; its state is a byte, changed by whoever holds it.

use std::{
    ops::Range,
    ptr, slice,
    sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering},
};

use pagelab_interpose::{Errno, kernel, segment::Counted};

use crate::{
    area::{self, Grows, PAGE, PMD},
    count, demand, filtered,
    helper::{self, Work},
    orders,
    pages::AREA,
};

/// As any other memory of the segment: the program's, or nothing.
const NONE: u8 = 0;
/// Given back, with whatever it holds.
const GIVEN: u8 = 1;
/// There, and zero; and the same since a while.
const ZERO: u8 = 2;
const OLD: u8 = 3;
/// Somebody is about to change that.
const HELD: u8 = 4;

/// Whoever takes leaves before the helper was there cleans so many of them, as a call that makes a
/// map is to be short.
const CLEANS: usize = 1;

/// A byte for each leaf; null where nothing is kept.
static TABLE: AtomicPtr<AtomicU8> = AtomicPtr::new(ptr::null_mut());
/// Leaves that are kept, those of them that nobody has looked at yet, and the most there may be.
static KEPT: AtomicUsize = AtomicUsize::new(0);
static UNSEEN: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
/// Where the first leaf lies, where it lies while it is kept, and how many there are.
static START: AtomicUsize = AtomicUsize::new(0);
static STORE: AtomicUsize = AtomicUsize::new(0);
static LEAVES: AtomicUsize = AtomicUsize::new(0);

/// What the helper does here.
static WORK: Work = Work { is_due: is_unseen, act: clean_given, is_any, tick: age };

/// From now on leaves of a segment are kept, of so many bytes at most.
pub(crate) fn begin(segment: &Range<usize>, most: usize) -> Result<(), Errno> {
    let table = kernel::table(segment.len() / PMD)?;
    let store = area::vacant(segment.len(), PMD, Grows::Up).ok_or(libc::ENOMEM)?;
    START.store(segment.start, Ordering::Relaxed);
    STORE.store(store, Ordering::Relaxed);
    LEAVES.store(segment.len() / PMD, Ordering::Relaxed);
    MOST.store(most / PMD, Ordering::Relaxed);
    TABLE.store(table, Ordering::Release);
    Ok(())
}

fn table() -> &'static [AtomicU8] {
    let table = TABLE.load(Ordering::Acquire);
    if table.is_null() {
        return &[];
    }
    // SAFETY: `begin` mapped a byte for each leaf, zero and for good.
    unsafe { slice::from_raw_parts(table, LEAVES.load(Ordering::Relaxed)) }
}

fn start() -> usize {
    START.load(Ordering::Relaxed)
}

/// Where a leaf lies while it is kept.
fn address(leaf: usize) -> usize {
    STORE.load(Ordering::Relaxed) + leaf * PMD
}

/// Whether any leaf may be kept.
pub(crate) fn is_on() -> bool {
    !TABLE.load(Ordering::Relaxed).is_null()
}

/// Bytes that are kept.
pub(crate) fn bytes() -> usize {
    KEPT.load(Ordering::Relaxed) * PMD
}

fn is_any() -> bool {
    bytes() > 0
}

/// Whether nobody has looked at some leaves yet.
fn is_unseen() -> bool {
    UNSEEN.load(Ordering::Relaxed) > 0
}

/// Of pages that a program gives back and that are as they were mapped, keeps the whole leaves.
pub(crate) fn keep(part: &Range<usize>) {
    let (table, start) = (table(), start());
    let leaves = (part.start - start).div_ceil(PMD)..(part.end - start) / PMD;
    if table.is_empty() || leaves.is_empty() || filtered::is_set() {
        return;
    }
    let is_full = || KEPT.load(Ordering::Relaxed) + leaves.len() > MOST.load(Ordering::Relaxed);
    // Memory that was never touched is mostly not touched at its beginning.
    if is_full() || !is_present(start + leaves.start * PMD, PAGE) || !helper::is_there(&WORK) {
        return;
    }
    // None of them is kept: it was the program's until now.
    let is_free = |state: &AtomicU8| {
        state.compare_exchange(NONE, HELD, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    let held = table[leaves.clone()].iter().take_while(|state| is_free(state)).count();
    let is_kept = held == leaves.len() && stored(&leaves);
    if is_kept {
        KEPT.fetch_add(held, Ordering::Relaxed);
        UNSEEN.fetch_add(held, Ordering::Relaxed);
    }
    for state in &table[leaves.start..leaves.start + held] {
        state.store(if is_kept { GIVEN } else { NONE }, Ordering::Release);
    }
}

/// Moves leaves of the segment into the store; whether they are there.
fn stored(leaves: &Range<usize>) -> bool {
    let (from, to) = (start() + leaves.start * PMD, address(leaves.start));
    moved(from, to, leaves.len() * PMD)
}

/// Moves memory; whether it was moved.
fn moved(from: usize, to: usize, length: usize) -> bool {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: nobody uses either place, and contents stay as they are.
    unsafe { kernel::remap(from, length, length, flags, to) }.is_ok()
}

/// Whether some free pages lie in leaves that nobody has cleaned yet.
pub(crate) fn is_given(part: &Range<usize>) -> bool {
    is_unseen() && {
        let mut states = table()[leaves(part)].iter();
        states.any(|state| matches!(state.load(Ordering::Acquire), GIVEN | HELD))
    }
}

/// So many bytes of leaves that are there and zero, the highest: an address, if there are such.
pub(crate) fn clean_ones(bytes: usize) -> Option<usize> {
    let (table, mut found) = (table(), 0);
    for leaf in (0..table.len()).rev() {
        let is_clean = matches!(table[leaf].load(Ordering::Acquire), ZERO | OLD);
        found = if is_clean { found + 1 } else { 0 };
        if found == bytes.div_ceil(PMD) {
            return Some(start() + leaf * PMD);
        }
    }
    None
}

/// Each leaf of which some addresses are a part.
fn leaves(part: &Range<usize>) -> Range<usize> {
    (part.start - start()) / PMD..(part.end - start()).div_ceil(PMD)
}

/// Makes sure that free pages are zero, and that nobody but their taker touches them.
pub(crate) fn ready(part: &Range<usize>, opened: fn(&Range<usize>)) {
    if KEPT.load(Ordering::Acquire) == 0 {
        return;
    }
    let (mut given, mut left) = (0..0, CLEANS);
    for leaf in leaves(part) {
        match take(leaf) {
            NONE => continue,
            GIVEN => {}
            _ => {
                give(leaf, part, opened);
                continue;
            }
        }
        if given.end != leaf {
            left -= clean_run(&given, left, part, opened);
            given.start = leaf;
        }
        given.end = leaf + 1;
    }
    clean_run(&given, left, part, opened);
}

/// Sends to the kernel what is kept of some addresses, which get something else.
pub(crate) fn forget(part: &Range<usize>) {
    if KEPT.load(Ordering::Acquire) == 0 {
        return;
    }
    for leaf in leaves(part) {
        let was = take(leaf);
        if was != NONE {
            throw_away(&(leaf..leaf + 1));
        }
        if was == GIVEN {
            table()[leaf].store(NONE, Ordering::Release);
            KEPT.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Sends all that is kept to the kernel.
pub(crate) fn forget_all() {
    forget(&(start()..start() + table().len() * PMD));
}

/// Makes a call. One that the kernel has no memory or no mapping for is made again without what is
/// kept or was zeroed ahead, which counts for the limits of the process.
pub(crate) fn spared<T>(call: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
    match call() {
        Err(libc::ENOMEM) if is_any() => {
            forget_all();
            call()
        }
        Err(libc::ENOMEM) if orders::is_ahead() => {
            demand::close(&AREA.range());
            call()
        }
        came => came,
    }
}

/// Moves a clean leaf back, if it lies in `part` wholly, and says so.
fn give(leaf: usize, part: &Range<usize>, opened: fn(&Range<usize>)) {
    let goal = start() + leaf * PMD..start() + (leaf + 1) * PMD;
    let is_whole = part.start <= goal.start && goal.end <= part.end;
    if is_whole && moved(address(leaf), goal.start, PMD) {
        opened(&goal);
    } else {
        throw_away(&(leaf..leaf + 1));
    }
}

/// Takes a leaf out, and says what it was; one that was given back is held.
fn take(leaf: usize) -> u8 {
    let state = &table()[leaf];
    loop {
        let was = state.load(Ordering::Acquire);
        let next = match was {
            NONE => return NONE,
            GIVEN => HELD,
            HELD => {
                filtered::wait();
                continue;
            }
            _ => NONE,
        };
        if state.compare_exchange(was, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            if next == NONE {
                KEPT.fetch_sub(1, Ordering::Relaxed);
            } else {
                UNSEEN.fetch_sub(1, Ordering::Relaxed);
            }
            return was;
        }
    }
}

/// Makes held leaves zero for whoever takes them: so many here, the rest at their next fault; how
/// many of them here.
fn clean_run(
    leaves: &Range<usize>,
    most: usize,
    part: &Range<usize>,
    opened: fn(&Range<usize>),
) -> usize {
    if leaves.is_empty() {
        return 0;
    }
    let own = leaves.start..leaves.end.min(leaves.start + most);
    let begun = helper::cpu_ns();
    let is_clean = |leaf: &usize| clean(*leaf);
    let cleared = own.clone().filter(is_clean).inspect(|leaf| give(*leaf, part, opened)).count();
    if !own.is_empty() {
        count::add(Counted::OwnBytes, cleared * PMD);
        count::add(Counted::OwnNs, helper::cpu_ns().saturating_sub(begun));
    }
    if own.end < leaves.end {
        throw_away(&(own.end..leaves.end));
    }
    for state in &table()[leaves.clone()] {
        state.store(NONE, Ordering::Release);
        KEPT.fetch_sub(1, Ordering::Relaxed);
    }
    own.len()
}

/// Makes a held leaf zero; whether it is still there.
fn clean(leaf: usize) -> bool {
    let at = address(leaf);
    let is_there = is_present(at, PAGE) && is_present(at, PMD);
    if is_there {
        clear(at, PMD);
    } else {
        throw_away(&(leaf..leaf + 1));
    }
    is_there
}

/// Whether all of these pages are there.
fn is_present(at: usize, length: usize) -> bool {
    let mut pages = [0_u8; PMD / PAGE];
    let pages = &mut pages[..length / PAGE];
    kernel::present(at, length, pages) && pages.iter().all(|page| page & 1 == 1)
}

fn throw_away(leaves: &Range<usize>) {
    let (at, length) = (address(leaves.start), leaves.len() * PMD);
    kernel::forgotten(at, length);
}

/// Clears memory in one piece.
fn clear(at: usize, length: usize) {
    // SAFETY: whole pages, which nobody else has.
    unsafe { ptr::with_exposed_provenance_mut::<u8>(at).write_bytes(0, length) };
}

/// Cleans what was given back, until somebody says stop: the helper's work.
fn clean_given(stops: fn() -> bool) {
    let mut cleared = 0;
    for leaf in (0..table().len()).rev() {
        if !is_unseen() || stops() {
            break;
        }
        let state = &table()[leaf];
        let held = state.compare_exchange(GIVEN, HELD, Ordering::AcqRel, Ordering::Relaxed);
        if held.is_err() {
            continue;
        }
        UNSEEN.fetch_sub(1, Ordering::Relaxed);
        let is_there = clean(leaf);
        cleared += usize::from(is_there);
        // A child of fork looks at states only while any is counted.
        state.store(if is_there { ZERO } else { NONE }, Ordering::Release);
        if !is_there {
            KEPT.fetch_sub(1, Ordering::Release);
        }
    }
    count::add(Counted::HelperBytes, cleared * PMD);
}

/// Sends to the kernel what was zero at the last call already: nobody has taken it since.
fn age() {
    for (leaf, state) in table().iter().enumerate() {
        match state.load(Ordering::Acquire) {
            ZERO => drop(state.compare_exchange(ZERO, OLD, Ordering::AcqRel, Ordering::Relaxed)),
            OLD if state
                .compare_exchange(OLD, HELD, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok() =>
            {
                throw_away(&(leaf..leaf + 1));
                state.store(NONE, Ordering::Release);
                KEPT.fetch_sub(1, Ordering::Relaxed);
                count::add(Counted::Returned, PMD);
            }
            _ => {}
        }
    }
}

/// In a child of fork: it has no helper, and every write to what it shares would be a copy.
pub(crate) fn after_fork_in_child() {
    if KEPT.swap(0, Ordering::Relaxed) == 0 {
        return;
    }
    UNSEEN.store(0, Ordering::Relaxed);
    for (leaf, state) in table().iter().enumerate() {
        if state.load(Ordering::Relaxed) != NONE {
            throw_away(&(leaf..leaf + 1));
            state.store(NONE, Ordering::Relaxed);
        }
    }
}
