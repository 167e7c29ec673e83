#![expect(unsafe_code, reason = "the calls of another allocator; rules below")]
//! The program's own allocator, which stands behind a library that takes the calls of malloc.
//!
//! The one idea: it is whatever the loader finds next by these names, glibc's or another, so a
//! program keeps the allocator that it has. What the search itself allocates, where it does, comes
//! from a few bytes of ours that are never given back. Whoever is not such a library must not call
//! this: what is next is not its own allocator.
//!
//! Rules for the unsafe blocks:
//! 1. A text that is passed ends with 0.
//! 2. What the loader finds by a name of `NAMES` is of the type that C gives to that name.
//! 3. What a call of C promises about its memory its caller promises.

use std::{
    ffi::{CStr, c_int, c_void},
    mem, ptr,
    sync::atomic::{AtomicPtr, AtomicUsize, Ordering},
};

use super::edge;

/// An allocator: its calls as C has them, with what C asks of a caller.
#[derive(Debug)]
pub struct Allocator {
    /// `malloc(3)`.
    pub malloc: extern "C" fn(usize) -> *mut c_void,
    /// `calloc(3)`.
    pub calloc: extern "C" fn(usize, usize) -> *mut c_void,
    /// `realloc(3)`.
    pub realloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    /// `free(3)`.
    pub free: unsafe extern "C" fn(*mut c_void),
    /// `aligned_alloc(3)`.
    pub aligned_alloc: extern "C" fn(usize, usize) -> *mut c_void,
    /// `memalign(3)`.
    pub memalign: extern "C" fn(usize, usize) -> *mut c_void,
    /// `posix_memalign(3)`.
    pub posix_memalign: unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int,
}

/// The allocator behind the library that this is linked into.
pub const BEHIND: Allocator =
    Allocator { malloc, calloc, realloc, free, aligned_alloc, memalign, posix_memalign };

/// The calls, in the order of [`NEXT`].
#[derive(Clone, Copy)]
enum Which {
    Malloc,
    Calloc,
    Realloc,
    Free,
    Aligned,
    Memalign,
    PosixMemalign,
}

const NAMES: [&CStr; 7] =
    [c"malloc", c"calloc", c"realloc", c"free", c"aligned_alloc", c"memalign", c"posix_memalign"];

static NEXT: [AtomicPtr<c_void>; 7] = [const { AtomicPtr::new(ptr::null_mut()) }; 7];

/// Bytes for what the search itself asks for.
const SCRAP: usize = 16 << 10;

#[repr(C, align(64))]
struct Scrap([u8; SCRAP]);

static SCRAPS: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static mut PLACE: Scrap = Scrap([0; SCRAP]);
static USED: AtomicUsize = AtomicUsize::new(0);

/// What was found; null while it is searched for.
fn next(which: Which) -> *mut c_void {
    let known = NEXT[which as usize].load(Ordering::Acquire);
    if known.is_null() { search(which) } else { known }
}

#[cold]
fn search(which: Which) -> *mut c_void {
    /// Whoever searches already: what it asks for meanwhile comes from the scraps.
    static SEARCHING: AtomicUsize = AtomicUsize::new(0);
    let me = edge::thread();
    if SEARCHING.load(Ordering::Acquire) == me {
        return ptr::null_mut();
    }
    while SEARCHING.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire).is_err() {
        std::hint::spin_loop();
    }
    for (name, found) in NAMES.iter().zip(&NEXT) {
        // SAFETY: rule 1.
        let at = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        found.store(at, Ordering::Release);
    }
    SEARCHING.store(0, Ordering::Release);
    NEXT[which as usize].load(Ordering::Acquire)
}

/// Some bytes that are 0 and never given back.
fn scrap(bytes: usize) -> *mut c_void {
    let place = (&raw mut PLACE).cast::<c_void>();
    SCRAPS.store(place, Ordering::Relaxed);
    let room = bytes.max(1).next_multiple_of(64);
    let from = USED.fetch_add(room, Ordering::Relaxed);
    if from.saturating_add(room) > SCRAP {
        return ptr::null_mut();
    }
    place.wrapping_byte_add(from)
}

fn is_scrap(at: *mut c_void) -> bool {
    let place = SCRAPS.load(Ordering::Relaxed);
    !place.is_null() && (at.addr().wrapping_sub(place.addr())) < SCRAP
}

/// The call of this name, where it is found.
macro_rules! behind {
    ($which:ident as $call:ty) => {{
        let next = next(Which::$which);
        // SAFETY: rule 2; null is none.
        unsafe { mem::transmute::<*mut c_void, Option<$call>>(next) }
    }};
}

extern "C" fn malloc(bytes: usize) -> *mut c_void {
    let call = behind!(Malloc as extern "C" fn(usize) -> *mut c_void);
    call.map_or_else(|| scrap(bytes), |call| call(bytes))
}

extern "C" fn calloc(count: usize, each: usize) -> *mut c_void {
    let call = behind!(Calloc as extern "C" fn(usize, usize) -> *mut c_void);
    let Some(call) = call else { return count.checked_mul(each).map_or(ptr::null_mut(), scrap) };
    call(count, each)
}

unsafe extern "C" fn realloc(old: *mut c_void, bytes: usize) -> *mut c_void {
    let call = behind!(Realloc as unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void);
    if let Some(call) = call.filter(|_| !is_scrap(old)) {
        // SAFETY: rule 3.
        return unsafe { call(old, bytes) };
    }
    let new = malloc(bytes);
    let room = SCRAP - old.addr().wrapping_sub(SCRAPS.load(Ordering::Relaxed).addr()).min(SCRAP);
    if !new.is_null() && is_scrap(old) {
        // SAFETY: no more than the scraps have from there, and than the new one has.
        unsafe { ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast(), bytes.min(room)) };
    }
    new
}

unsafe extern "C" fn free(at: *mut c_void) {
    let call = behind!(Free as unsafe extern "C" fn(*mut c_void));
    if let Some(call) = call.filter(|_| !is_scrap(at)) {
        // SAFETY: rule 3.
        unsafe { call(at) }
    }
}

extern "C" fn aligned_alloc(to: usize, bytes: usize) -> *mut c_void {
    let call = behind!(Aligned as extern "C" fn(usize, usize) -> *mut c_void);
    call.map_or(ptr::null_mut(), |call| call(to, bytes))
}

extern "C" fn memalign(to: usize, bytes: usize) -> *mut c_void {
    let call = behind!(Memalign as extern "C" fn(usize, usize) -> *mut c_void);
    call.map_or(ptr::null_mut(), |call| call(to, bytes))
}

unsafe extern "C" fn posix_memalign(at: *mut *mut c_void, to: usize, bytes: usize) -> c_int {
    type Call = unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int;
    let Some(call) = behind!(PosixMemalign as Call) else { return libc::ENOMEM };
    // SAFETY: rule 3.
    unsafe { call(at, to, bytes) }
}
