#![expect(unsafe_code, reason = "bulk stores work on raw memory")]
//! Any other architecture: no time stamps, no string stores, plain Rust for the rest.
//!
//! The same names as `x86_64.rs`; what is missing is said by [`has_reliable_tsc`] and
//! [`HAS_STRING_STORE`], and the functions behind them are then never called.

use super::Word;

/// There is no string store: the arms that need one are skipped.
pub const HAS_STRING_STORE: bool = false;

/// No store can be stepped over here.
pub const HAS_STEP_OVER: bool = false;

pub(crate) fn store_or_step_over(_at: Word<'_>) {
    unreachable!("HAS_STEP_OVER is false here")
}

pub(crate) unsafe fn step_over_store(_context: *mut libc::c_void) -> bool {
    false
}

/// No counter of this architecture is wired up yet; the monotonic clock is used instead.
pub fn has_reliable_tsc() -> bool {
    false
}

/// Not known on this architecture.
pub fn is_emulated() -> bool {
    false
}

/// Not known on this architecture.
pub fn is_guest() -> bool {
    false
}

pub(crate) fn ticks_start() -> u64 {
    unreachable!("has_reliable_tsc is false here")
}

pub(crate) fn ticks_end() -> (u64, u32) {
    unreachable!("has_reliable_tsc is false here")
}

pub(crate) fn ticks_plain() -> u64 {
    unreachable!("has_reliable_tsc is false here")
}

pub(crate) fn mark_watch() {}

pub(crate) fn mark_rest() {}

pub(crate) fn mark_begin() {}

pub(crate) fn mark_end() {}

pub(crate) fn mark_say(_message: &[u8]) {}

pub(crate) fn marked_routine(_word: &mut u64, _bytes: &mut [u8; 4096]) {}

pub(crate) const ROUTINE: [u64; 5] = [0; 5];

/// The width of the words that the loops below use.
pub fn vector_bytes() -> u64 {
    8
}

pub(crate) unsafe fn clear_string(_to: *mut u8, _bytes: usize) {
    unreachable!("HAS_STRING_STORE is false here")
}

pub(crate) unsafe fn copy_string(_to: *mut u8, _from: *const u8, _bytes: usize) {
    unreachable!("HAS_STRING_STORE is false here")
}

#[inline(never)]
pub(crate) unsafe fn store_words(start: *mut u8, bytes: usize, step: usize) {
    for at in (0..bytes).step_by(step) {
        // SAFETY: `at` is below `bytes`, which the caller owns at `start`, aligned to 8.
        unsafe { start.add(at).cast::<u64>().write_volatile(0) };
    }
}

#[inline(never)]
pub(crate) unsafe fn load_words(start: *const u8, bytes: usize, step: usize) {
    for at in (0..bytes).step_by(step) {
        // SAFETY: `at` is below `bytes`, which the caller owns at `start`, aligned to 8.
        let word = unsafe { start.add(at).cast::<u64>().read_volatile() };
        std::hint::black_box(word);
    }
}

#[inline(never)]
pub(crate) unsafe fn clear_nt(to: *mut u8, bytes: usize) {
    // SAFETY: the caller owns `bytes` writable bytes at `to`.
    unsafe { std::ptr::write_bytes(to, 0, bytes) }
}

#[inline(never)]
pub(crate) unsafe fn copy_nt(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller owns both ranges, which do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) }
}

#[inline(never)]
pub(crate) unsafe fn read_all(from: *const u8, bytes: usize) {
    for at in (0..bytes).step_by(8) {
        // SAFETY: `at` is below `bytes`, which the caller owns at `from`, aligned to 64 bytes.
        let word = unsafe { from.add(at).cast::<u64>().read_volatile() };
        std::hint::black_box(word);
    }
}
