#![expect(unsafe_code, reason = "the program's own calls; the rules are in lib.rs")]
//! Calls that meet the descriptor of faults: to the program it is not there.
//!
//! A program that closes all numbers does not lose it, since memory can be taken back from it only
//! as long as it is open. A program with a userfaultfd of its own gets its memory registered: the
//! kernel refuses what another descriptor has.

use std::ffi::{c_int, c_uint, c_ulong, c_void};

use pagelab_interpose::{next, set_errno, userfaultfd::REGISTER};

use crate::yard;

/// `close(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn close(file: c_int) -> c_int {
    let next = next!(close: fn(c_int) -> c_int).must();
    if yard::is_ours(file) {
        set_errno(libc::EBADF);
        return -1;
    }
    // SAFETY: rule 1.
    unsafe { next(file) }
}

/// `close_range(2)`: all but the descriptor of faults.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    let next = next!(close_range: fn(c_uint, c_uint, c_int) -> c_int).must();
    let ours = yard::watching().map(c_int::unsigned_abs);
    let Some(ours) = ours.filter(|ours| (first..=last).contains(ours)) else {
        // SAFETY: rule 1.
        return unsafe { next(first, last, flags) };
    };
    // SAFETY: rule 1.
    let below = if first < ours { unsafe { next(first, ours - 1, flags) } } else { 0 };
    // SAFETY: rule 1.
    if below == 0 && ours < last { unsafe { next(ours + 1, last, flags) } } else { below }
}

/// `closefrom(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn closefrom(first: c_int) {
    let next = next!(closefrom: fn(c_int)).must();
    if yard::watching().is_some() {
        // SAFETY: rule 1. A kernel with such descriptors has the call.
        unsafe { close_range(first.max(0).unsigned_abs(), c_uint::MAX, 0) };
        return;
    }
    // SAFETY: rule 1.
    unsafe { next(first) }
}

/// `ioctl(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn ioctl(file: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    let next = next!(ioctl: fn(c_int, c_ulong, *mut c_void) -> c_int).must();
    if request != REGISTER.cast_unsigned() || argument.is_null() {
        // SAFETY: rule 1.
        return unsafe { next(file, request, argument) };
    }
    // SAFETY: rule 1: such a request begins with a range, an address and its bytes.
    let range = unsafe { argument.cast::<[u64; 2]>().read() };
    let [at, length] = range.map(|word| usize::try_from(word).unwrap_or(0));
    // SAFETY: rule 1.
    yard::unregistered(at, length, || unsafe { next(file, request, argument) })
}
