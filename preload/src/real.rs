#![expect(unsafe_code, reason = "the allocator behind this one; the rules are in lib.rs")]
//! The program's own allocator, which stands behind the calls that this library takes.
//!
//! The one idea: it is whatever the loader finds next by these names, glibc's or another, so a
//! program keeps the allocator that it has. What the search itself allocates, where it does, comes
//! from a few bytes of ours that are never given back.

use std::{
    ffi::{CStr, c_int, c_void},
    mem, ptr,
    sync::atomic::{AtomicPtr, AtomicUsize, Ordering},
};

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
    let me = crate::calls::thread();
    if SEARCHING.load(Ordering::Acquire) == me {
        return ptr::null_mut();
    }
    while SEARCHING.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire).is_err() {
        std::hint::spin_loop();
    }
    for (name, found) in NAMES.iter().zip(&NEXT) {
        // SAFETY: a name that ends with 0.
        let at = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        found.store(at, Ordering::Release);
    }
    SEARCHING.store(0, Ordering::Release);
    NEXT[which as usize].load(Ordering::Acquire)
}

/// A call of the program's that is looked for when it is made for the first time.
#[derive(Debug)]
pub(crate) struct Later {
    name: &'static CStr,
    at: AtomicPtr<c_void>,
}

/// A name with a 0 behind it.
pub(crate) const fn name(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => c"",
    }
}

impl Later {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, at: AtomicPtr::new(ptr::null_mut()) }
    }

    /// What the loader finds behind this library, if anything.
    pub(crate) fn find(&self) -> Option<*mut c_void> {
        let known = self.at.load(Ordering::Acquire);
        if !known.is_null() {
            return Some(known);
        }
        // SAFETY: a name that ends with 0.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.at.store(found, Ordering::Release);
        (!found.is_null()).then_some(found)
    }

    /// The same for a name that the program itself called: without us it would not have started.
    pub(crate) fn must(&self) -> *mut c_void {
        self.find().unwrap_or_else(|| {
            // SAFETY: ends the process.
            unsafe { libc::abort() }
        })
    }
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

/// `malloc(3)`.
///
/// # Safety
/// As the call.
pub(crate) unsafe fn malloc(bytes: usize) -> *mut c_void {
    let next = next(Which::Malloc);
    if next.is_null() {
        return scrap(bytes);
    }
    // SAFETY: the loader found it by the name of this type.
    let call = unsafe { mem::transmute::<*mut c_void, extern "C" fn(usize) -> *mut c_void>(next) };
    call(bytes)
}

/// `calloc(3)`.
///
/// # Safety
/// As the call.
pub(crate) unsafe fn calloc(count: usize, each: usize) -> *mut c_void {
    type Call = extern "C" fn(usize, usize) -> *mut c_void;
    let next = next(Which::Calloc);
    if next.is_null() {
        return count.checked_mul(each).map_or(ptr::null_mut(), scrap);
    }
    // SAFETY: the loader found it by the name of this type.
    let call = unsafe { mem::transmute::<*mut c_void, Call>(next) };
    call(count, each)
}

/// `realloc(3)`.
///
/// # Safety
/// As the call.
pub(crate) unsafe fn realloc(old: *mut c_void, bytes: usize) -> *mut c_void {
    type Call = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
    let next = next(Which::Realloc);
    if next.is_null() || is_scrap(old) {
        // SAFETY: as the call.
        let new = unsafe { malloc(bytes) };
        let room =
            SCRAP - old.addr().wrapping_sub(SCRAPS.load(Ordering::Relaxed).addr()).min(SCRAP);
        if !new.is_null() && is_scrap(old) {
            // SAFETY: no more than the scraps have from there, and than the new one has.
            unsafe { ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast(), bytes.min(room)) };
        }
        return new;
    }
    // SAFETY: the loader found it by the name of this type.
    let call = unsafe { mem::transmute::<*mut c_void, Call>(next) };
    // SAFETY: the caller's.
    unsafe { call(old, bytes) }
}

/// `free(3)`.
///
/// # Safety
/// As the call.
pub(crate) unsafe fn free(at: *mut c_void) {
    type Call = unsafe extern "C" fn(*mut c_void);
    let next = next(Which::Free);
    if next.is_null() || is_scrap(at) {
        return;
    }
    // SAFETY: the loader found it by the name of this type.
    let call = unsafe { mem::transmute::<*mut c_void, Call>(next) };
    // SAFETY: the caller's.
    unsafe { call(at) }
}

/// `aligned_alloc(3)`, or `memalign(3)`.
///
/// # Safety
/// As the call.
pub(crate) unsafe fn aligned(to: usize, bytes: usize, is_old: bool) -> *mut c_void {
    type Call = extern "C" fn(usize, usize) -> *mut c_void;
    let next = next(if is_old { Which::Memalign } else { Which::Aligned });
    if next.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: the loader found it by the name of this type.
    let call = unsafe { mem::transmute::<*mut c_void, Call>(next) };
    call(to, bytes)
}

/// `posix_memalign(3)`.
///
/// # Safety
/// As the call.
pub(crate) unsafe fn posix_memalign(at: *mut *mut c_void, to: usize, bytes: usize) -> c_int {
    type Call = unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int;
    let next = next(Which::PosixMemalign);
    if next.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the loader found it by the name of this type.
    let call = unsafe { mem::transmute::<*mut c_void, Call>(next) };
    // SAFETY: the caller's.
    unsafe { call(at, to, bytes) }
}
