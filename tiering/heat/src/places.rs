#![expect(unsafe_code, reason = "closes memory of the program; the rules are in lib.rs")]
//! Memory of the program that is looked at for loads, and the window of it that is closed now.
//!
//! The one idea: there is one window at a time, one thread that closes it, and everybody may open
//! it. Whoever takes memory away, or hands it to the kernel, first says so with the place, then
//! waits until the thread that closes is not in the middle of doing so, then opens. That thread
//! waits for nobody, so this ends from a signal handler too.

use std::{
    ffi::c_int,
    sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst},
};

use pagelab_interpose::kernel;

const PAGE: usize = 4096;
/// Places that are looked at; further memory is not.
pub(crate) const PLACES: usize = 256;
const OPEN: c_int = libc::PROT_READ | libc::PROT_WRITE;
/// Start of a place that somebody is taking or giving back.
const BETWEEN: usize = 1;
/// So often may one address fault while nothing is closed, before it is somebody else's fault.
const AGAIN_MAX: u32 = 10_000;

/// Memory that the program asked for by itself, and may read and write.
struct Place {
    /// Its address; 0 for none, [`BETWEEN`] while that changes.
    start: AtomicUsize,
    end: AtomicUsize,
    /// Calls of the kernel that it is in the hands of.
    busy: AtomicU32,
}

#[expect(clippy::declare_interior_mutable_const, reason = "the pattern that statics begin with")]
const NONE: Place =
    Place { start: AtomicUsize::new(0), end: AtomicUsize::new(0), busy: AtomicU32::new(0) };
static ALL: [Place; PLACES] = [NONE; PLACES];
/// No place lies below and above: most calls end here.
static LOWEST: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGHEST: AtomicUsize = AtomicUsize::new(0);

/// The place, and 1, that the closing thread is in the middle of.
static CHANGING: AtomicUsize = AtomicUsize::new(0);
/// The window: its addresses; the end is 0 while nothing is closed.
static FROM: AtomicUsize = AtomicUsize::new(0);
static TO: AtomicUsize = AtomicUsize::new(0);
/// While it is not 0 nothing is closed.
static HELD: AtomicU32 = AtomicU32::new(0);

/// Pages that were opened by whoever touched them.
static SEEN: AtomicUsize = AtomicUsize::new(0);

/// The last address that faulted for no reason that is known here, and how often.
static STRAY: AtomicUsize = AtomicUsize::new(0);
static STRAYS: AtomicU32 = AtomicU32::new(0);

fn protect(from: usize, to: usize, access: c_int) -> bool {
    // SAFETY: memory that is opened and closed here again, which nothing of ours points into.
    unsafe { kernel::protect(from, to - from, access) }.is_ok()
}

/// The program has memory: whole pages of it, whether there was room to note it.
pub(crate) fn begin(at: usize, length: usize) -> bool {
    let (start, end) = (at.next_multiple_of(PAGE), at.saturating_add(length) / PAGE * PAGE);
    if start >= end {
        return false;
    }
    forget(start, end - start);
    for place in &ALL {
        if place.start.compare_exchange(0, BETWEEN, SeqCst, SeqCst).is_ok() {
            place.end.store(end, SeqCst);
            LOWEST.fetch_min(start, SeqCst);
            HIGHEST.fetch_max(end, SeqCst);
            place.start.store(start, SeqCst);
            return true;
        }
    }
    false
}

/// Whether some place may lie in a range.
fn may_have(at: usize, length: usize) -> bool {
    at < HIGHEST.load(SeqCst) && at.saturating_add(length) > LOWEST.load(SeqCst)
}

/// Places of a range, by number and start.
fn among(at: usize, length: usize) -> impl Iterator<Item = (usize, &'static Place, usize)> {
    let last = at.saturating_add(length);
    ALL.iter().enumerate().filter_map(move |(number, place)| {
        let start = place.start.load(SeqCst);
        let meets = start > BETWEEN && at < place.end.load(SeqCst) && last > start;
        meets.then_some((number, place, start))
    })
}

/// Waits until nobody is in the middle of closing a part of a place.
fn settle(number: usize) {
    while CHANGING.load(SeqCst) == number + 1 {
        std::hint::spin_loop();
    }
}

/// Opens what is closed, where it meets a range.
fn open_window(at: usize, length: usize) {
    let (from, to) = (FROM.load(SeqCst), TO.load(SeqCst));
    if to != 0 && at < to && at.saturating_add(length) > from && protect(from, to, OPEN) {
        let _ = TO.compare_exchange(to, 0, SeqCst, SeqCst);
    }
}

/// Places of a range are looked at no more: their memory goes, or is not plain any more.
pub(crate) fn forget(at: usize, length: usize) -> usize {
    if !may_have(at, length) {
        return 0;
    }
    let mut count = 0;
    for (number, place, start) in among(at, length) {
        if place.start.compare_exchange(start, BETWEEN, SeqCst, SeqCst).is_err() {
            continue;
        }
        settle(number);
        open_window(start, place.end.load(SeqCst) - start);
        place.end.store(0, SeqCst);
        place.start.store(0, SeqCst);
        count += 1;
    }
    count
}

/// Memory that the kernel reaches for as long as this is there: it is open, and stays so.
pub(crate) struct Busy {
    at: usize,
    length: usize,
    some: bool,
}

impl Busy {
    pub(crate) fn with(at: usize, length: usize) -> Self {
        let some = length > 0 && may_have(at, length);
        if some {
            for (number, place, start) in among(at, length) {
                place.busy.fetch_add(1, SeqCst);
                settle(number);
                open_window(start, place.end.load(SeqCst).saturating_sub(start));
            }
        }
        Self { at, length, some }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if self.some {
            for (_, place, _) in among(self.at, self.length) {
                // A place that came meanwhile was never busy.
                let _ = place.busy.fetch_update(SeqCst, SeqCst, |busy| busy.checked_sub(1));
            }
        }
    }
}

/// Opens what is closed, and lets nothing be closed until [`release`].
pub(crate) fn hold() {
    HELD.fetch_add(1, SeqCst);
    while CHANGING.load(SeqCst) != 0 {
        std::hint::spin_loop();
    }
    open_window(0, usize::MAX);
}

/// See [`hold`].
pub(crate) fn release() {
    HELD.fetch_sub(1, SeqCst);
}

/// The places there are: number, start and end.
pub(crate) fn all() -> impl Iterator<Item = (usize, usize, usize)> {
    among(0, usize::MAX).map(|(number, place, start)| (number, start, place.end.load(SeqCst)))
}

/// Closes a window of a place, unless that is in use or not there any more. For one thread only.
pub(crate) fn close(number: usize, start: usize, from: usize, to: usize) -> bool {
    let Some(place) = ALL.get(number) else { return false };
    CHANGING.store(number + 1, SeqCst);
    let is_there = place.start.load(SeqCst) == start && place.end.load(SeqCst) >= to;
    let may = is_there && place.busy.load(SeqCst) == 0 && HELD.load(SeqCst) == 0;
    let closed = may && {
        FROM.store(from, SeqCst);
        TO.store(to, SeqCst);
        let closed = protect(from, to, libc::PROT_NONE);
        if !closed {
            // Half of it may be.
            protect(from, to, OPEN);
            TO.store(0, SeqCst);
        }
        closed
    };
    CHANGING.store(0, SeqCst);
    closed
}

/// Opens the window that was closed; whether it was closed all the time.
pub(crate) fn reopen(number: usize, start: usize) -> bool {
    let Some(place) = ALL.get(number) else { return false };
    CHANGING.store(number + 1, SeqCst);
    let (from, to) = (FROM.load(SeqCst), TO.load(SeqCst));
    let is_mine = to != 0 && place.start.load(SeqCst) == start;
    if is_mine {
        protect(from, to, OPEN);
        TO.store(0, SeqCst);
    }
    CHANGING.store(0, SeqCst);
    is_mine
}

/// Whether the window is still closed.
pub(crate) fn is_closed() -> bool {
    TO.load(SeqCst) != 0
}

/// How many pages were opened so far by whoever touched them.
pub(crate) fn seen() -> usize {
    SEEN.load(SeqCst)
}

/// What a fault is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A page that was closed, and is open again.
    Seen,
    /// A page that was closed a moment ago.
    Again,
    /// The program's own.
    Theirs,
}

/// A thread could not reach an address.
pub(crate) fn faulted(address: usize) -> Fault {
    if !may_have(address, 1) {
        return Fault::Theirs;
    }
    let (from, to) = (FROM.load(SeqCst), TO.load(SeqCst));
    let page = address / PAGE * PAGE;
    if to != 0 && (from..to).contains(&address) {
        if !protect(page, page + PAGE, OPEN) {
            return whole(from, to);
        }
        SEEN.fetch_add(1, SeqCst);
        return Fault::Seen;
    }
    let is_place = among(address, 1).next().is_some() || CHANGING.load(SeqCst) != 0;
    if !is_place {
        return Fault::Theirs;
    }
    // It was opened between the fault and this; what faults on and on was never closed here.
    if STRAY.swap(address, SeqCst) != address {
        STRAYS.store(0, SeqCst);
    }
    if STRAYS.fetch_add(1, SeqCst) < AGAIN_MAX { Fault::Again } else { Fault::Theirs }
}

/// One page cannot be opened, where the process has as many maps as it may: all of them then.
fn whole(from: usize, to: usize) -> Fault {
    if protect(from, to, OPEN) {
        let _ = TO.compare_exchange(to, 0, SeqCst, SeqCst);
        Fault::Again
    } else {
        Fault::Theirs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{is_readable, map_new};

    /// Tests share the window, which is their process's: its threads (`cargo test`) take turns, and
    /// a process of its own (`cargo nextest`) has its own.
    fn alone() -> std::sync::MutexGuard<'static, ()> {
        static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
        ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn memory(pages: usize) -> usize {
        map_new(pages * PAGE).expose_provenance()
    }

    fn is_open(at: usize) -> bool {
        is_readable(std::ptr::with_exposed_provenance(at))
    }

    #[test]
    fn a_window_is_closed_and_opened_by_whoever_needs_it() {
        let _alone = alone();
        let at = memory(8);
        assert!(begin(at, 8 * PAGE));
        let (number, start, end) = all().find(|place| place.1 == at).unwrap();
        assert_eq!(end, at + 8 * PAGE);
        assert!(close(number, start, at, at + 4 * PAGE) && !is_open(at) && is_open(at + 4 * PAGE));
        assert_eq!(faulted(at + PAGE + 7), Fault::Seen);
        assert!(is_open(at + PAGE) && !is_open(at));
        assert!(reopen(number, start) && is_open(at) && !reopen(number, start));
        assert!(close(number, start, at, end));
        {
            let _busy = Busy::with(at + 3 * PAGE, 10);
            assert!(is_open(at) && !reopen(number, start), "it was not closed all the time");
            assert!(!close(number, start, at, end), "it is in use");
        }
        assert!(close(number, start, at, end));
        hold();
        assert!(is_open(at) && !close(number, start, at, end));
        release();
        assert!(close(number, start, at, end));
        assert_eq!(forget(at + PAGE, 1), 1);
        assert!(is_open(at) && !close(number, start, at, end));
        assert_eq!((faulted(at), forget(at, 8 * PAGE)), (Fault::Theirs, 0));
    }

    #[test]
    fn what_is_no_whole_page_is_no_place_and_what_overlaps_is_a_new_one() {
        let _alone = alone();
        let at = memory(4);
        assert!(!begin(at + 1, PAGE));
        assert!(begin(at + 16, 3 * PAGE) && begin(at + PAGE, 3 * PAGE));
        let places: Vec<_> = all().filter(|place| (at..at + 4 * PAGE).contains(&place.1)).collect();
        assert_eq!(places.len(), 1);
        assert_eq!((places[0].1, places[0].2), (at + PAGE, at + 4 * PAGE));
        forget(at, 4 * PAGE);
    }
}
