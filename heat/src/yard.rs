//! The yard in this program: its row, and what it says there.
//!
//! The one idea: the program opens a descriptor of faults and leaves the rest to whoever watches:
//! nothing is registered from here. What it sees by itself of loads it says in entries, for which
//! a thread takes the next place first, so that none waits for another.

use std::sync::atomic::{AtomicUsize, Ordering};

use pagelab_sys::process::{
    heat::{
        ENTRY_WORDS, HEAT, HEAT_BYTES, Head, Kind, Of, RING, RING_AT, ROW_WORDS, ROWS, ROWS_AT,
        SPARE, WORDS, descriptor, entry,
    },
    preload::edge::{Words, process},
};

static YARD: Words<WORDS> = Words::new();
/// Where the words of this program's row begin; 0 before it has one.
static ROW: AtomicUsize = AtomicUsize::new(0);

/// Opens the yard that the environment names, and takes a row.
pub(crate) fn open() {
    if !YARD.open(HEAT, HEAT_BYTES) {
        return;
    }
    let Some(yard) = YARD.get() else { return };
    let nth = yard[Head::Programs as usize].fetch_add(1, Ordering::AcqRel);
    let Some(nth) = usize::try_from(nth).ok().filter(|nth| *nth < ROWS) else { return };
    ROW.store(ROWS_AT + nth * ROW_WORDS, Ordering::Release);
    match descriptor() {
        Ok(number) => set(Of::Descriptor, u64::from(number.unsigned_abs()) + 1),
        Err(errno) => set(Of::Errno, errno.unsigned_abs().into()),
    }
    set(Of::Pid, process());
}

/// From how many bytes on memory is to be looked at for loads, where this program has a row.
pub(crate) fn sampled() -> Option<u64> {
    let yard = YARD.get().filter(|_| ROW.load(Ordering::Acquire) != 0)?;
    Some(yard[Head::Sampled as usize].load(Ordering::Acquire)).filter(|least| *least != 0)
}

/// Sets a word of the row.
pub(crate) fn set(which: Of, value: u64) {
    let row = ROW.load(Ordering::Acquire);
    if row != 0
        && let Some(yard) = YARD.get()
    {
        yard[row + which as usize].store(value, Ordering::Release);
    }
}

/// The sweep that is asked for; 0 for none.
pub(crate) fn asked() -> u64 {
    YARD.get().map_or(0, |yard| yard[Head::Asked as usize].load(Ordering::Acquire))
}

/// Says something of pages.
pub(crate) fn say(kind: Kind, address: usize, pages: usize) {
    let Some(yard) = YARD.get() else { return };
    let word = |head: Head| &yard[head as usize];
    let waiting = word(Head::Begun)
        .load(Ordering::Acquire)
        .wrapping_sub(word(Head::Taken).load(Ordering::Acquire));
    if waiting > (RING - SPARE) as u64 {
        word(Head::Lost).fetch_add(1, Ordering::Relaxed);
        return;
    }
    let nth = word(Head::Begun).fetch_add(1, Ordering::AcqRel);
    let slot = usize::try_from(nth % RING as u64).unwrap_or(0);
    let [pid, pages] = [process(), pages as u64].map(|n| u32::try_from(n).unwrap_or(0));
    let [first, second] = entry(kind, address as u64, pages, pid);
    let at = RING_AT + slot * ENTRY_WORDS;
    yard[at + 1].store(second, Ordering::Relaxed);
    yard[at].store(first, Ordering::Release);
}
