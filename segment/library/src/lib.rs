#![expect(unsafe_code, reason = "the edge to C; rules below")]
#![cfg_attr(test, expect(dead_code, reason = "a test calls no C, and has no segments"))]
//! The library that gives a program segments: `libpagelab_segment.so`.
//!
//! The one idea: the dynamic loader of glibc finds malloc, `mmap` and their kin here first
//! (`LD_PRELOAD`). What may lie anywhere comes out of a segment, contiguous memory that is aligned
//! to its leaf, so that the kernel serves it by large pages; everything else is the kernel's or
//! libc's as before, and counted. What libc maps for itself, as the stacks of
//! threads, nobody stands before: it is found in the process's mappings at its end.
//!
//! It is no allocator: mimalloc and dlmalloc serve the heap. Nothing else here allocates, prints or
//! waits but for a lock that is held for the time of a look at some words.
//!
//! # Rules
//! 1. What the program passes goes on as it came, and whoever gets it checks it; whatever a call
//!    promises about its memory the program promises.
//! 2. A call sets `errno` where it fails, and leaves it alone where it does not.
//! 3. Nothing here touches an address of a segment that is not mapped: it is mapped when it is
//!    taken, or the whole segment is from the start.

mod area;
mod back;
mod begin;
mod blocks;
mod breaks;
mod careful;
mod changes;
mod copies;
mod count;
mod demand;
mod exec;
mod filter;
mod filtered;
mod fine;
mod fork;
mod fork_wait;
mod freeze;
mod ground;
mod heap;
mod helper;
mod kept;
mod leaves;
mod lock;
mod malloc;
mod maps;
mod module;
mod orders;
mod own;
mod pages;
mod pool;
mod ranges;
mod splits;
mod told;
mod witness;
mod wrapped;

use std::ffi::{c_int, c_long, c_uchar, c_uint, c_void};

use pagelab_interpose::{Errno, Map, aside, checked, done, mmap_calls, number, place};

/// Called when the library is loaded, before the program's first instruction.
#[cfg_attr(not(test), used, unsafe(link_section = ".init_array"))]
static BEGIN: extern "C" fn() = {
    extern "C" fn begin() {
        helper::begin();
        begin::once();
        fork::register();
    }
    begin
};

/// Called when the program ends by itself, after all that it does then.
#[cfg_attr(not(test), used, unsafe(link_section = ".fini_array"))]
static END: extern "C" fn() = {
    extern "C" fn end() {
        told::tell();
    }
    end
};

mmap_calls!(handed_over);

/// `mmap(2)`, counted.
///
/// # Safety
/// As the call.
unsafe fn handed_over(map: &Map) -> *mut c_void {
    aside(begin::is_due);
    // SAFETY: rule 1.
    place(quietly(|| unsafe { maps::made(map) }).inspect(|_| maps::handed_over(map.length)))
}

/// Makes a call, which leaves `errno` alone where it succeeds.
fn quietly<T>(call: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
    aside(|| kept::spared(call))
}

/// `munmap(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn munmap(at: *mut c_void, length: usize) -> c_int {
    // SAFETY: rule 1.
    done(quietly(|| unsafe { maps::unmapped(at.addr(), length) }))
}

/// `mremap(2)`; the last argument is there with `MREMAP_FIXED` only.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn mremap(
    at: *mut c_void,
    old: usize,
    new: usize,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    // SAFETY: rule 1.
    place(quietly(|| unsafe { changes::remap(at.addr(), old, new, flags, to.addr()) }))
}

/// `mprotect(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn mprotect(at: *mut c_void, length: usize, access: c_int) -> c_int {
    // SAFETY: rule 1.
    done(quietly(|| unsafe { changes::protect(at.addr(), length, access, -1) }))
}

/// `pkey_mprotect(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn pkey_mprotect(
    at: *mut c_void,
    length: usize,
    access: c_int,
    key: c_int,
) -> c_int {
    // SAFETY: rule 1.
    done(quietly(|| unsafe { changes::protect(at.addr(), length, access, key) }))
}

/// `madvise(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn madvise(at: *mut c_void, length: usize, advice: c_int) -> c_int {
    // SAFETY: rule 1.
    done(quietly(|| unsafe { changes::advise(at.addr(), length, advice) }))
}

/// `mincore(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn mincore(at: *mut c_void, length: usize, pages: *mut c_uchar) -> c_int {
    changes::look(at.addr(), length);
    // SAFETY: rule 1.
    call(unsafe { libc::syscall(libc::SYS_mincore, at, length, pages) })
}

/// `msync(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn msync(at: *mut c_void, length: usize, flags: c_int) -> c_int {
    changes::look(at.addr(), length);
    // SAFETY: rule 1.
    call(unsafe { libc::syscall(libc::SYS_msync, at, length, c_long::from(flags)) })
}

/// `mlock(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn mlock(at: *const c_void, length: usize) -> c_int {
    if let Err(errno) = changes::note(at.addr(), length) {
        return done(Err(errno));
    }
    // SAFETY: rule 1.
    call(unsafe { libc::syscall(libc::SYS_mlock, at, length) })
}

/// `mlock2(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn mlock2(at: *const c_void, length: usize, flags: c_uint) -> c_int {
    if let Err(errno) = changes::note(at.addr(), length) {
        return done(Err(errno));
    }
    // SAFETY: rule 1.
    call(unsafe { libc::syscall(libc::SYS_mlock2, at, length, c_long::from(flags)) })
}

/// What a system call answered that answers 0.
fn call(answer: c_long) -> c_int {
    done(checked(answer).map(drop))
}

unsafe extern "C" {
    fn __sbrk(by: isize) -> *mut c_void;
}

/// `sbrk(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn sbrk(by: isize) -> *mut c_void {
    if begin::is_due() {
        begin::brk();
    }
    match aside(|| breaks::step(by)) {
        Some(came) => place(came),
        // SAFETY: rule 1.
        None => unsafe { __sbrk(by) },
    }
}

/// `brk(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn brk(to: *mut c_void) -> c_int {
    if begin::is_due() {
        begin::brk();
    }
    if let Some(came) = aside(|| breaks::set(to.addr())) {
        return number(came);
    }
    // libc keeps the break of `sbrk` itself, so it is moved by that.
    // SAFETY: takes a number.
    let now = unsafe { __sbrk(0) };
    let by = to.addr().wrapping_sub(now.addr()).cast_signed();
    // SAFETY: rule 1.
    if unsafe { __sbrk(by) } == libc::MAP_FAILED { -1 } else { 0 }
}
