#![expect(unsafe_code, reason = "the program's own allocations; the rules are in lib.rs")]
//! Units of memory: what was asked for at one place of a program, of one power of two.
//!
//! The one idea: large memory is looked at when it is had, before anybody touches it. It is noted
//! on the log, or advised as the list of units says; what is small passes through. What malloc
//! itself would give begins in a page with its own words, which is touched by then: so what is
//! listed is had from the beginning of a huge page on, as its author is told to ask for it.

use std::{
    ffi::{c_int, c_void},
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};

use pagelab_interpose::preload::{
    Counted, Order,
    log::{Entry, UNITS, UNITS_MAX, Way, listed},
};
use pagelab_interpose::{
    aside,
    behind::{self, Beside},
    done, kernel, malloc_calls, variable,
};

use crate::{count, count_result, is_ordered, log, maps::advise, site};

/// Where memory begins that is to have huge pages.
const HUGE: usize = 2 << 20;

/// The least that any order is about.
static LEAST: AtomicU64 = AtomicU64::new(u64::MAX);
/// What is listed.
static LISTED: [AtomicU64; UNITS_MAX] = [const { AtomicU64::new(0) }; UNITS_MAX];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Takes orders, where there are any for units.
pub(crate) fn follow(least: u64) {
    if least == u64::MAX {
        return;
    }
    site::prepare();
    let text = variable(UNITS).map_or(&[][..], |text| text.to_bytes());
    for (key, place) in listed(text).zip(&LISTED) {
        place.store(key, Ordering::Relaxed);
        COUNT.fetch_add(1, Ordering::Release);
    }
    LEAST.store(least, Ordering::Release);
}

/// Looks at nothing any more.
pub(crate) fn rest() {
    LEAST.store(u64::MAX, Ordering::Release);
}

/// Whether so many bytes are looked at.
pub(crate) fn is_large(bytes: usize) -> bool {
    let least = LEAST.load(Ordering::Relaxed);
    least != u64::MAX && bytes as u64 >= least
}

fn is_listed(key: u64) -> bool {
    let count = COUNT.load(Ordering::Acquire);
    LISTED[..count].iter().any(|one| one.load(Ordering::Relaxed) == key)
}

/// Whether so much memory of malloc's is to have huge pages.
#[cold]
fn is_chosen(bytes: usize) -> bool {
    let is_it = || is_listed(site::here().key(Way::Malloc, bytes as u64));
    is_ordered(Order::Units, bytes) && aside(is_it)
}

/// Memory was had.
#[cold]
pub(crate) fn begin(way: Way, at: *mut c_void, length: usize) {
    if at.is_null() {
        return;
    }
    let site = site::here();
    let bytes = length as u64;
    if is_ordered(Order::Watch, length) {
        let (time_ns, pid, address) = (log::now_ns(), kernel::process().into(), at.addr() as u64);
        log::add(&Entry::Begin { time_ns, pid, address, bytes, way, site });
    }
    let is_listed = is_listed(site.key(way, bytes));
    let advice = if is_listed && is_ordered(Order::Units, length) {
        count(Counted::Asked, 1);
        libc::MADV_HUGEPAGE
    } else if way == Way::Malloc && is_ordered(Order::Spare, length) {
        libc::MADV_NOHUGEPAGE
    } else {
        return;
    };
    let start = at.map_addr(|at| at & !4095);
    let whole = (at.addr() + length).next_multiple_of(4096) - start.addr();
    let came = advise(start, whole, advice);
    if is_listed {
        count_result(came.map(|()| length));
    }
}

/// Memory that begins there is given back, where that is noted.
pub(crate) fn end(at: *mut c_void) {
    if !at.is_null() && is_ordered(Order::Watch, usize::MAX) {
        let (time_ns, pid, address) = (log::now_ns(), kernel::process().into(), at.addr() as u64);
        log::add(&Entry::End { time_ns, pid, address });
    }
}

/// Whether memory of glibc's malloc is a map of its own, which is unmapped when it is given back.
fn is_map(at: *mut c_void) -> bool {
    /// Bit of the word before the memory: `IS_MMAPPED`.
    const MAPPED: usize = 2;
    if at.is_null() || at.addr() & 4095 != 16 {
        return false;
    }
    let place = at.wrapping_byte_sub(size_of::<usize>()).cast::<usize>();
    // SAFETY: of the same page, whosever memory it is.
    let word = unsafe { place.read() };
    word & MAPPED != 0
}

struct Units;

impl Beside for Units {
    fn alignment(bytes: usize) -> Option<usize> {
        (is_large(bytes) && is_chosen(bytes)).then_some(HUGE)
    }

    fn had(at: *mut c_void, bytes: usize) {
        if is_large(bytes) {
            aside(|| begin(Way::Malloc, at, bytes));
        }
    }

    fn given_back(at: *mut c_void) {
        if is_large(usize::MAX) && is_map(at) {
            aside(|| end(at));
        }
    }
}

malloc_calls!(Units);

/// `munmap(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn munmap(at: *mut c_void, length: usize) -> c_int {
    if is_large(length) {
        aside(|| end(at));
    }
    // SAFETY: rule 1.
    done(unsafe { kernel::unmap(at.addr(), length) })
}
