#![expect(unsafe_code, reason = "the program's own allocations; the rules are in lib.rs")]
//! malloc and its kin, served by mimalloc and dlmalloc out of the heap's segment.
//!
//! The one idea: what the segment cannot serve, for want of room, comes from glibc's own malloc,
//! which is asked by names that nobody takes; so does everything before the segment is there, and
//! in a program that has none. Who gets memory back is told by its address.
//!
//! Calls of the kernel on the way may fail, as where an allocator gives back pages that are locked:
//! what succeeds for the program leaves its `errno` alone.

use std::{
    ffi::{c_int, c_void},
    ptr,
};

use libmimalloc_sys as mi;
use pagelab_interpose::segment::{Reason, Variable};
use pagelab_interpose::{Errno, Saved, aside, next, set_errno};

use crate::{
    area::PAGE,
    begin, blocks, careful, count,
    fine::{self, FINE},
    heap::{self, AREA},
    orders,
};

unsafe extern "C" {
    fn __libc_malloc(bytes: usize) -> *mut c_void;
    fn __libc_free(at: *mut c_void);
    fn __libc_calloc(count: usize, each: usize) -> *mut c_void;
    fn __libc_realloc(old: *mut c_void, bytes: usize) -> *mut c_void;
    fn __libc_memalign(to: usize, bytes: usize) -> *mut c_void;
}

/// Alignments that mimalloc serves out of memory that was given to it.
const ALIGN_MAX: usize = 64 << 10;

/// As glibc, whose every block begins at a multiple of 16: smaller ones do not in mimalloc.
const LEAST: usize = 16;

/// Whether there is a heap for so many bytes; whoever asks for enough makes it.
fn is_on(bytes: usize) -> bool {
    heap::is_on() || (begin::heap_for(bytes) && heap::is_on())
}

/// The segment did not serve so many bytes; `errno` is what it was before that was tried.
#[cold]
fn fell_back(bytes: usize, to: usize, saved: Saved) {
    saved.put_back();
    if to > ALIGN_MAX {
        return count::fell_back(Reason::Aligned, bytes);
    }
    // What no memory has room for is refused by whoever is asked next.
    if bytes < isize::MAX.cast_unsigned() {
        orders::full(c"the heap", Variable::Heap);
        count::fell_back(Reason::HeapFull, bytes);
    }
}

/// A call, which leaves `errno` alone where it has memory.
#[inline]
fn quietly(call: impl FnOnce(Saved) -> *mut c_void) -> *mut c_void {
    let saved = Saved::now();
    let at = call(saved);
    if !at.is_null() {
        saved.put_back();
    }
    at
}

/// By whom it is served best, or who has room for it; null where nobody has.
fn served(bytes: usize, saved: Saved) -> *mut c_void {
    let bytes = bytes.max(LEAST);
    let mut at = FINE.malloc(bytes);
    if at.is_null() {
        // SAFETY: takes a number.
        at = unsafe { mi::mi_malloc(bytes) };
    }
    if at.is_null() { any(1, bytes, saved) } else { at }
}

/// By whom there is room for it, though mimalloc has none and said so in `errno`.
#[cold]
fn any(to: usize, bytes: usize, saved: Saved) -> *mut c_void {
    let at = FINE.any(to, bytes);
    saved.put_back();
    at
}

/// `malloc(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn malloc(bytes: usize) -> *mut c_void {
    quietly(|saved| {
        if is_on(bytes) {
            let at = served(bytes, saved);
            if !at.is_null() {
                return at;
            }
            fell_back(bytes, 0, saved);
        }
        // SAFETY: takes a number.
        unsafe { __libc_malloc(bytes) }
    })
}

/// `calloc(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn calloc(count: usize, each: usize) -> *mut c_void {
    quietly(|saved| {
        let bytes = count.saturating_mul(each);
        if is_on(bytes) {
            let (count, each) = if bytes < LEAST { (1, LEAST) } else { (count, each) };
            // SAFETY: takes numbers.
            let at = unsafe { mi::mi_calloc(count, each) };
            if !at.is_null() {
                return at;
            }
            let at = any(1, bytes, saved);
            if !at.is_null() {
                // SAFETY: so many bytes are there, which may hold something.
                unsafe { at.cast::<u8>().write_bytes(0, bytes) };
                return at;
            }
            fell_back(bytes, 0, saved);
        }
        // SAFETY: takes numbers.
        unsafe { __libc_calloc(count, each) }
    })
}

/// `free(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn free(at: *mut c_void) {
    aside(|| {
        if FINE.has(at.addr()) {
            // SAFETY: rule 1, and it is of that.
            unsafe { FINE.free(at) };
        } else if AREA.has(at.addr()) {
            // SAFETY: rule 1, and it lies in the allocator's segment.
            unsafe { careful::free(at) };
        } else if blocks::has(at.addr()) {
            // SAFETY: rule 1, and it is a map.
            unsafe { blocks::free(at) };
        } else {
            // SAFETY: rule 1, and it lies elsewhere.
            unsafe { __libc_free(at) };
        }
    });
}

/// `realloc(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn realloc(old: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    quietly(|saved| unsafe { reallocated(old, bytes, saved) })
}

unsafe fn reallocated(old: *mut c_void, bytes: usize, saved: Saved) -> *mut c_void {
    if old.is_null() {
        // SAFETY: takes a number.
        return unsafe { malloc(bytes) };
    }
    let is_block = blocks::has(old.addr());
    if !AREA.has(old.addr()) && !is_block {
        // SAFETY: rule 1, and it lies elsewhere.
        return unsafe { __libc_realloc(old, bytes) };
    }
    if bytes == 0 {
        // As glibc does.
        // SAFETY: rule 1.
        unsafe { free(old) };
        return ptr::null_mut();
    }
    // SAFETY: rule 1.
    let had = unsafe { malloc_usable_size(old) };
    if is_block {
        // SAFETY: rule 1, and it is a map.
        let new = unsafe { blocks::resized(old, bytes) };
        if !new.is_null() {
            return new;
        }
    }
    let bytes = bytes.max(LEAST);
    let is_map = bytes > had && blocks::wants(bytes);
    let is_copied = is_block || is_map || careful::is_due() || FINE.has(old.addr());
    if !is_copied {
        // SAFETY: rule 1, and it lies in the allocator's segment.
        let new = unsafe { mi::mi_realloc(old, bytes) };
        if !new.is_null() {
            return new;
        }
    }
    if is_copied && (had / 2..=had).contains(&bytes) {
        return old;
    }
    let mut new = if is_map { blocks::new(bytes) } else { ptr::null_mut() };
    if new.is_null() {
        // What grows once will grow again, and mimalloc leaves room behind it.
        // SAFETY: takes a number.
        new = unsafe { mi::mi_malloc(bytes) };
    }
    saved.put_back();
    if new.is_null() {
        // SAFETY: takes a number.
        new = unsafe { malloc(bytes) };
    }
    if !new.is_null() {
        // SAFETY: no more than either has, and one of them is new.
        unsafe { ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast(), had.min(bytes)) };
        // SAFETY: rule 1.
        unsafe { free(old) };
    }
    new
}

/// `reallocarray(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn reallocarray(old: *mut c_void, count: usize, each: usize) -> *mut c_void {
    match count.checked_mul(each) {
        // SAFETY: rule 1.
        Some(bytes) => unsafe { realloc(old, bytes) },
        None => refused(libc::ENOMEM),
    }
}

fn refused(errno: Errno) -> *mut c_void {
    set_errno(errno);
    ptr::null_mut()
}

/// Memory with an alignment that is a power of two.
fn aligned(to: usize, bytes: usize) -> *mut c_void {
    let to = to.max(LEAST);
    quietly(|saved| {
        if is_on(bytes) {
            if to <= ALIGN_MAX {
                // SAFETY: takes numbers.
                let at = unsafe { mi::mi_malloc_aligned(bytes, to) };
                if !at.is_null() {
                    return at;
                }
                let at = any(to, bytes, saved);
                if !at.is_null() {
                    return at;
                }
            }
            fell_back(bytes, to, saved);
        }
        // SAFETY: takes numbers.
        unsafe { __libc_memalign(to, bytes) }
    })
}

/// `memalign(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn memalign(to: usize, bytes: usize) -> *mut c_void {
    match to.checked_next_power_of_two() {
        Some(to) => aligned(to, bytes),
        None => refused(libc::EINVAL),
    }
}

/// `aligned_alloc(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn aligned_alloc(to: usize, bytes: usize) -> *mut c_void {
    memalign(to, bytes)
}

/// `posix_memalign(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, to: usize, bytes: usize) -> c_int {
    if !to.is_power_of_two() || to < size_of::<usize>() {
        return libc::EINVAL;
    }
    // glibc sets `errno` where it has no memory, though none of its kin is to; `aligned` does so.
    let at = aligned(to, bytes);
    if at.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: rule 1.
    unsafe { place.write(at) };
    0
}

/// `valloc(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn valloc(bytes: usize) -> *mut c_void {
    aligned(PAGE, bytes)
}

/// `pvalloc(3)`: whole pages.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
    match bytes.max(1).checked_next_multiple_of(PAGE) {
        Some(bytes) => aligned(PAGE, bytes),
        None => refused(libc::ENOMEM),
    }
}

/// `malloc_usable_size(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn malloc_usable_size(at: *mut c_void) -> usize {
    if FINE.has(at.addr()) {
        // SAFETY: rule 1, and it is of that.
        return unsafe { fine::usable_size(at) };
    }
    if AREA.has(at.addr()) {
        // SAFETY: rule 1, and it lies in the allocator's segment.
        return unsafe { mi::mi_usable_size(at) };
    }
    if blocks::has(at.addr()) {
        // SAFETY: rule 1, and it is a map.
        return unsafe { blocks::usable_size(at) };
    }
    let call = next!(malloc_usable_size: fn(*mut c_void) -> usize).find();
    // SAFETY: rule 1, and it lies elsewhere.
    call.map_or(0, |call| unsafe { call(at) })
}
