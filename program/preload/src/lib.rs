#![cfg_attr(not(test), expect(unsafe_code, reason = "the edge to C; rules below"))]
#![cfg_attr(test, expect(dead_code, reason = "a test calls no C"))]
//! The library that stands before a program's own calls for memory: `libpagelab_preload.so`.
//!
//! The one idea: the dynamic loader of glibc finds `mmap`, `shmget`, `ftruncate` and malloc here
//! first (`LD_PRELOAD`). A call goes to the kernel as it came; then, or before, it is done to it
//! what the variable [`pagelab_interpose::preload::ORDERS`] orders for memory of that size, and
//! counted on a sheet that whoever ordered reads. What the kernel refuses of an order is counted
//! too, and the program gets what it would have got. Without orders nothing is done.
//!
//! It stands before no other call than these, because each costs a program something on the rungs
//! that it is loaded for: what `tier promote` needs inside a program is another library, `heat`.
//! But for those by which a program forbids itself calls: no order is followed from then on.
//!
//! It is no allocator: what malloc maps for itself glibc does not call by these names, and malloc
//! and its kin (`units`) go on to whatever the program has. And nothing here allocates or prints,
//! nor waits but for a thread that looks up that allocator for the first time: a call may come from
//! an allocator, from a signal handler, and before anything is set up.
//!
//! # Rules
//! 1. What the program passes goes to the kernel unchanged, and the kernel checks it; whatever a
//!    call promises about its memory the program promises.
//! 2. What is done beside a call leaves `errno` as the call left it.
//! 3. A sheet is [`pagelab_interpose::preload::SHEET_BYTES`] long, and mapped for good.

mod filter;
mod log;
mod maps;
mod pool;
mod site;
mod units;

use std::{
    ffi::c_int,
    sync::atomic::{AtomicU64, Ordering},
};

use pagelab_interpose::preload::{Counted, ORDERS, Order, Orders, SHEET, SHEET_BYTES};
use pagelab_interpose::{CounterPage, Errno, mmap_calls, variable};

/// The counts, as [`pagelab_interpose::preload::Counts`] reads them.
static COUNTS: CounterPage<{ Counted::ALL.len() }> = CounterPage::new();

/// From how many bytes on each order holds; before they are read there are none.
static FROM: [AtomicU64; Order::ALL.len()] = [const { AtomicU64::new(u64::MAX) }; Order::ALL.len()];

/// Called when the library is loaded, before the program's first instruction.
#[cfg_attr(not(test), used, unsafe(link_section = ".init_array"))]
static BEGIN: extern "C" fn() = {
    extern "C" fn begin() {
        if let Some(text) = variable(ORDERS) {
            follow(Orders::parse(text.to_bytes()));
        }
        if COUNTS.open(SHEET, SHEET_BYTES) {
            count(Counted::Programs, 1);
        }
        log::open();
        let least = Order::OF_UNITS.map(|order| FROM[order as usize].load(Ordering::Relaxed));
        units::follow(least.into_iter().min().unwrap_or(u64::MAX));
    }
    begin
};

/// Takes orders.
fn follow(orders: Orders) {
    for order in Order::ALL {
        let from = orders.from(order).unwrap_or(u64::MAX);
        FROM[order as usize].store(from, Ordering::Relaxed);
    }
}

/// Counts something.
fn count(counted: Counted, more: usize) {
    COUNTS.add(counted as usize, more as u64);
}

/// Counts what came of an order: so many bytes, or a refusal.
fn count_result(came: Result<usize, Errno>) {
    match came {
        Ok(bytes) => count(Counted::Bytes, bytes),
        Err(errno) => {
            count(Counted::Refused, 1);
            COUNTS.set(Counted::Errno as usize, errno.unsigned_abs().into());
        }
    }
}

/// Whether something is ordered for so many bytes.
fn is_ordered(order: Order, bytes: usize) -> bool {
    let from = FROM[order as usize].load(Ordering::Relaxed);
    from != u64::MAX && bytes as u64 >= from
}

/// The bytes of a page of the pool, where shared memory is to have them.
fn pool_page(bytes: usize) -> Option<usize> {
    let page = FROM[Order::Pool as usize].load(Ordering::Relaxed);
    if bytes as u64 >= page { usize::try_from(page).ok() } else { None }
}

mmap_calls!(maps::made);

/// `shmget(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn shmget(key: c_int, size: usize, flags: c_int) -> c_int {
    pool::segment(key, size, flags)
}

/// `ftruncate(2)`: how a file in memory gets its size.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn ftruncate(file: c_int, size: i64) -> c_int {
    pool::sized(file, size)
}

/// The same for programs that were built for large files.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn ftruncate64(file: c_int, size: i64) -> c_int {
    pool::sized(file, size)
}
