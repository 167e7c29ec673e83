#![expect(unsafe_code, reason = "the calls of another allocator; rules below")]
//! The program's own allocator, behind a library that takes the calls of malloc.
//!
//! It is what the loader finds next by these names, glibc's or another, so a program keeps the
//! allocator that it has. What the search itself allocates, where it does, comes from a few bytes
//! of ours that are never given back. Only such a library may call this: elsewhere what is next is
//! not the program's allocator.
//!
//! Rules for the unsafe blocks:
//! 1. What a call of C promises about its memory its caller promises.

use std::{
    ffi::{c_int, c_void},
    ptr,
    sync::atomic::{AtomicPtr, AtomicUsize, Ordering},
};

use crate::{Next, errno};

/// Bytes for what the search itself asks for.
const SCRAP: usize = 16 << 10;

#[repr(C, align(64))]
struct Scrap([u8; SCRAP]);

static SCRAPS: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static mut PLACE: Scrap = Scrap([0; SCRAP]);
static USED: AtomicUsize = AtomicUsize::new(0);

/// A function of the allocator; `None` while it is searched for.
fn found<F: Copy>(next: &Next<F>) -> Option<F> {
    next.known().or_else(|| search().then(|| next.known()).flatten())
}

/// Finds all functions; `false` in the midst of that, where this thread searches already.
#[cold]
fn search() -> bool {
    /// The thread that searches: what it asks for meanwhile comes from the scraps.
    static SEARCHING: AtomicUsize = AtomicUsize::new(0);
    let me = errno::thread();
    if SEARCHING.load(Ordering::Acquire) == me {
        return false;
    }
    while SEARCHING.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire).is_err() {
        std::hint::spin_loop();
    }
    find();
    SEARCHING.store(0, Ordering::Release);
    true
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

/// `realloc(3)` of scraps, or before there is one.
fn scrap_again(old: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: takes a number.
    let new = unsafe { malloc(bytes) };
    let room = SCRAP - old.addr().wrapping_sub(SCRAPS.load(Ordering::Relaxed).addr()).min(SCRAP);
    if !new.is_null() && is_scrap(old) {
        // SAFETY: no more than the scraps have from there, and than the new one has.
        unsafe { ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast(), bytes.min(room)) };
    }
    new
}

/// Functions of C, by name: what is answered for scraps, or before the function is found.
macro_rules! behind {
    ($(
        $next:ident $name:ident($($argument:ident: $kind:ty),+) -> $answer:ty,
        not $is_ours:expr, or $without:expr;
    )+) => {
        $(
            static $next: Next<unsafe extern "C" fn($($kind),+) -> $answer> =
                // SAFETY: C declares the function of this name so.
                unsafe { Next::new(concat!(stringify!($name), "\0")) };
        )+

        fn find() {
            $($next.find();)+
        }

        $(
            #[doc = concat!("`", stringify!($name), "(3)`.")]
            ///
            /// # Safety
            /// As the call.
            pub unsafe fn $name($($argument: $kind),+) -> $answer {
                match found(&$next).filter(|_| !$is_ours) {
                    // SAFETY: rule 1.
                    Some(call) => unsafe { call($($argument),+) },
                    None => $without,
                }
            }
        )+
    };
}

behind! {
    MALLOC malloc(bytes: usize) -> *mut c_void, not false, or scrap(bytes);
    CALLOC calloc(count: usize, each: usize) -> *mut c_void,
        not false, or count.checked_mul(each).map_or(ptr::null_mut(), scrap);
    REALLOC realloc(old: *mut c_void, bytes: usize) -> *mut c_void,
        not is_scrap(old), or scrap_again(old, bytes);
    FREE free(at: *mut c_void) -> (), not is_scrap(at), or ();
    ALIGNED_ALLOC aligned_alloc(to: usize, bytes: usize) -> *mut c_void,
        not false, or ptr::null_mut();
    MEMALIGN memalign(to: usize, bytes: usize) -> *mut c_void, not false, or ptr::null_mut();
    POSIX_MEMALIGN posix_memalign(place: *mut *mut c_void, to: usize, bytes: usize) -> c_int,
        not false, or libc::ENOMEM;
}

/// What a library does beside the calls of malloc and its kin.
pub trait Beside {
    /// The alignment of so much memory, where it is to begin at a multiple of that.
    fn alignment(_bytes: usize) -> Option<usize> {
        None
    }

    /// Memory was had; null where there was none.
    fn had(at: *mut c_void, bytes: usize);

    /// Memory is about to be given back.
    fn given_back(at: *mut c_void);
}

/// Defines malloc and its kin: the program's own calls, and what a `Beside` does.
#[macro_export]
macro_rules! malloc_calls {
    ($beside:ty) => {
        $crate::malloc_calls! { $beside;
            malloc(bytes: usize) for bytes, as match <$beside as Beside>::alignment(bytes) {
                Some(to) => behind::memalign(to, bytes),
                None => behind::malloc(bytes),
            };
            calloc(count: usize, each: usize) for count.saturating_mul(each),
                as behind::calloc(count, each);
            realloc(old: *mut c_void, bytes: usize) for bytes, as {
                <$beside as Beside>::given_back(old);
                behind::realloc(old, bytes)
            };
            aligned_alloc(to: usize, bytes: usize) for bytes, as behind::aligned_alloc(to, bytes);
            memalign(to: usize, bytes: usize) for bytes, as behind::memalign(to, bytes);
        }

        /// `free(3)`.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn free(at: *mut c_void) {
            <$beside as Beside>::given_back(at);
            // SAFETY: what the call promises the program promises.
            unsafe { behind::free(at) }
        }

        /// `posix_memalign(3)`.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn posix_memalign(
            place: *mut *mut c_void,
            to: usize,
            bytes: usize,
        ) -> c_int {
            // SAFETY: what the call promises the program promises.
            let answer = unsafe { behind::posix_memalign(place, to, bytes) };
            if answer == 0 {
                // SAFETY: it was just written.
                <$beside as Beside>::had(unsafe { place.read() }, bytes);
            }
            answer
        }
    };
    ($beside:ty; $(
        $name:ident($($argument:ident: $kind:ty),+) for $bytes:expr, as $call:expr;
    )+) => {$(
        #[doc = concat!("`", stringify!($name), "(3)`.")]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $name($($argument: $kind),+) -> *mut c_void {
            // SAFETY: what the call promises the program promises.
            let at = unsafe { $call };
            <$beside as Beside>::had(at, $bytes);
            at
        }
    )+};
}
