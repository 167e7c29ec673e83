//! The yard in this program: its row, and what it says there.
//!
//! The one idea: the program opens a descriptor of faults and leaves the rest to whoever watches:
//! nothing is registered from here. What it sees by itself of loads it says in entries, for which
//! a thread takes the next place first, so that none waits for another.

use std::{
    ffi::c_int,
    ops::Range,
    sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering},
};

use pagelab_interpose::{
    CounterPage, aside,
    heat::{
        ENTRY_WORDS, HEAT, HEAT_BYTES, Head, Kind, Of, RING, RING_AT, ROW_WORDS, ROWS, ROWS_AT,
        SPARE, WORDS, entry,
    },
    kernel::{self, process},
    userfaultfd as faults,
};

static YARD: CounterPage<WORDS> = CounterPage::new();
/// Where the words of this program's row begin; 0 before it has one.
static ROW: AtomicUsize = AtomicUsize::new(0);
/// The descriptor of faults, and the process whose memory it is of: a child that was forked has
/// it, too, and memory that is not registered. -1 for none.
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);
static OWNER: AtomicU32 = AtomicU32::new(0);
/// A call waits in so many steps of this length for a watcher that registers memory, which takes
/// one call; then that watcher was killed or stopped in the middle.
const WAITS: u32 = 5000;
const WAIT_NS: i64 = 100_000;
const PAGE: usize = 4096;
/// The descriptor has a number that is in no program's way.
const HIGH: c_int = 700;
const HUGE: usize = 2 << 20;

/// Opens the yard that the environment names, and takes a row.
pub(crate) fn open() {
    if !YARD.open(HEAT, HEAT_BYTES) {
        return;
    }
    let Some(yard) = YARD.get() else { return };
    let nth = yard[Head::Programs as usize].fetch_add(1, Ordering::AcqRel);
    let Some(nth) = usize::try_from(nth).ok().filter(|nth| *nth < ROWS) else { return };
    ROW.store(ROWS_AT + nth * ROW_WORDS, Ordering::Release);
    let features = faults::PAGEFAULT_FLAG_WP | faults::WP_ASYNC | faults::WP_UNPOPULATED;
    match faults::open(faults::USER_MODE_ONLY, features) {
        Ok(file) => {
            let number = kernel::moved_to(file, HIGH);
            OWNER.store(process(), Ordering::Relaxed);
            DESCRIPTOR.store(number, Ordering::Release);
            set(Of::Descriptor, u64::from(number.unsigned_abs()) + 1);
        }
        Err(errno) => set(Of::Errno, errno.unsigned_abs().into()),
    }
    set(Of::Pid, process().into());
}

/// From how many bytes on memory is to be looked at for loads, where this program has a row.
pub(crate) fn sampled() -> Option<u64> {
    let yard = YARD.get().filter(|_| ROW.load(Ordering::Acquire) != 0)?;
    Some(yard[Head::Sampled as usize].load(Ordering::Acquire)).filter(|least| *least != 0)
}

/// Whether a number is that of the descriptor of faults, which the program knows nothing of.
pub(crate) fn is_ours(file: c_int) -> bool {
    file >= 0 && file == DESCRIPTOR.load(Ordering::Acquire)
}

/// The number of the descriptor, where this process's memory is registered with it.
pub(crate) fn watching() -> Option<c_int> {
    let number = DESCRIPTOR.load(Ordering::Acquire);
    (number >= 0 && OWNER.load(Ordering::Relaxed) == process()).then_some(number)
}

/// The descriptor is looked after no more.
pub(crate) fn rest() {
    DESCRIPTOR.store(-1, Ordering::Release);
}

/// Nothing is registered while this is there.
struct Calling {
    descriptor: c_int,
    calls: &'static AtomicU64,
}

impl Calling {
    /// A call begins; `None` where nothing is ever registered.
    fn begin() -> Option<Self> {
        let row = ROW.load(Ordering::Acquire);
        let (yard, descriptor) = (YARD.get().filter(|_| row != 0)?, watching()?);
        let [calls, registering] = [Of::Calls, Of::Registering].map(|of| &yard[row + of as usize]);
        calls.fetch_add(1, Ordering::SeqCst);
        let mut waits = 0;
        while registering.load(Ordering::SeqCst) != 0 && waits < WAITS {
            aside(|| kernel::sleep_ns(WAIT_NS));
            waits += 1;
        }
        if waits == WAITS {
            registering.store(0, Ordering::SeqCst);
        }
        Some(Self { descriptor, calls })
    }

    fn release(&self, range: Range<usize>) -> bool {
        let range = range.start / PAGE * PAGE..range.end.saturating_add(PAGE - 1) / PAGE * PAGE;
        aside(|| faults::release(self.descriptor, &range)).is_ok()
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        self.calls.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Makes a call of the program about memory which the kernel refuses where that is registered, as
/// if nothing were: `mremap` over two mappings of which one is.
pub(crate) fn unregistered<T>(at: usize, length: usize, call: impl FnOnce() -> T) -> T {
    let calling = Calling::begin();
    if let Some(calling) = &calling {
        calling.release(at..at.saturating_add(length));
    }
    call()
}

/// Memory was mapped, and nobody has touched it: it becomes one mapping with its neighbours, which
/// it does not where they are registered, nor ever once it was touched (`anon_vma`).
pub(crate) fn mapped(at: usize, length: usize) {
    let Some(calling) = Calling::begin() else { return };
    let end = at.saturating_add(length);
    // Whole blocks, since a mapping that is cut within a huge page maps it small. Where a block has
    // memory that cannot be registered nothing of it is released: then only the next page is.
    for size in [HUGE, PAGE] {
        let below = at.saturating_sub(1) / size * size;
        let above = end.saturating_add(size) / size * size;
        // Each by itself: one may be of memory that cannot be registered.
        if calling.release(below..end) & calling.release(at..above) {
            break;
        }
    }
}

/// Sets a word of the row.
pub(crate) fn set(which: Of, value: u64) {
    let row = ROW.load(Ordering::Acquire);
    if row != 0 {
        YARD.set(row + which as usize, value);
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
    let pages = u32::try_from(pages).unwrap_or(0);
    let [first, second] = entry(kind, address as u64, pages, process());
    let at = RING_AT + slot * ENTRY_WORDS;
    yard[at + 1].store(second, Ordering::Relaxed);
    yard[at].store(first, Ordering::Release);
}
