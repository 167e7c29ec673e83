#![expect(unsafe_code, reason = "stands before calls that forbid calls; the rules are in lib.rs")]
//! Programs that forbid themselves system calls (seccomp).
//!
//! A filter may end a program for any call that it does not name. So what lies in the segments is
//! looked at before one is set, and from then on this library makes no call that libc's malloc or
//! the program itself would not make: no segment begins, no advice is given, and nothing is looked
//! at when the program ends. A filter that is set past libc (a system call of the program's own
//! code), and one that was there when the program began, is not seen.

use std::{
    ffi::{c_int, c_ulong, c_void},
    mem, ptr,
};

use pagelab_interpose::{aside, filter_calls, segment::Counted};

use crate::{count, filtered, helper, kept, told};

/// Before a filter is set: of this thread, or of all.
fn before(is_strict: bool) {
    if !filtered::is_set() {
        aside(told::tell);
        count::add(Counted::Filtered, 1);
    }
    filtered::set(is_strict);
    // Where it is of all threads it would forbid the helper to sleep.
    aside(helper::rest);
    // Taking it again is looking whether it is there.
    aside(kept::forget_all);
}

/// Whether something lies in this library.
fn is_ours(at: c_ulong) -> bool {
    let object = |at: *const c_void| {
        // SAFETY: plain numbers and pointers, of which zero is one.
        let mut found: libc::Dl_info = unsafe { mem::zeroed() };
        // SAFETY: takes any address, and fills what is ours.
        let is_found = unsafe { libc::dladdr(at, &raw mut found) } != 0;
        is_found.then_some(found.dli_fbase)
    };
    let name = ptr::with_exposed_provenance(usize::try_from(at).unwrap_or(0));
    object(name).is_some_and(|found| Some(found) == object(is_ours as *const c_void))
}

/// Whether a call of `prctl` is one of mimalloc, which gives a name to what it maps: no filter can
/// expect that of `malloc`.
fn is_ignored(what: c_int, name: c_ulong) -> bool {
    what == libc::PR_SET_VMA && filtered::is_set() && is_ours(name)
}

filter_calls!(before, is_ignored);
