#![expect(unsafe_code, reason = "volatile access to raw memory")]
//! Any other architecture: words of 8 bytes, loaded and stored by plain Rust.
//!
//! The same names as `words_x86_64.rs`; what is missing is said by [`HAS_NT_WORDS`],
//! [`has_nt_loads`] and [`has_words`], and the functions behind them are then never called.

use std::sync::atomic::{Ordering, fence};

/// No non-temporal stores are wired up here.
pub(crate) const HAS_NT_WORDS: bool = false;

/// No instruction of user space that drops a line is wired up here.
pub(crate) const HAS_LINE_FLUSH: bool = false;

/// Words of 8 bytes only.
pub(crate) fn has_words(width: u64) -> bool {
    width == 8
}

/// There is no such load.
pub(crate) fn has_nt_loads() -> bool {
    false
}

#[inline(never)]
pub(crate) fn store_counting(to: *mut u8, lines: usize, first: u64, _width: u64, _nt: bool) {
    for word in 0..lines * 8 {
        store_word(to.cast::<u64>().wrapping_add(word), first.wrapping_add(word as u64));
    }
}

#[inline(never)]
pub(crate) fn sum_words(from: *mut u8, lines: usize, _width: u64, _nt: bool) -> u64 {
    let load = |word| load_word(from.cast::<u64>().wrapping_add(word));
    (0..lines * 8).fold(0, |sum, word| sum.wrapping_add(load(word)))
}

#[inline(never)]
pub(crate) fn differing_words(
    from: *mut u8,
    lines: usize,
    first: u64,
    _width: u64,
    _nt: bool,
) -> u64 {
    let load = |word| load_word(from.cast::<u64>().wrapping_add(word));
    (0..lines * 8).fold(0, |all, word| all | (load(word) ^ first.wrapping_add(word as u64)))
}

#[inline(always)]
pub(crate) fn store_word(to: *mut u64, value: u64) {
    // SAFETY: the caller owns the word.
    unsafe { to.write_volatile(value) }
}

pub(crate) fn store_word_nt(_to: *mut u64, _value: u64) {
    unreachable!("HAS_NT_WORDS is false here")
}

#[inline(always)]
pub(crate) fn load_word(from: *const u64) -> u64 {
    // SAFETY: the caller owns the word.
    unsafe { from.read_volatile() }
}

pub(crate) fn load_nt(_from: *const u64) {
    unreachable!("has_nt_loads is false here")
}

#[inline(always)]
pub(crate) fn sfence() {
    fence(Ordering::Release);
}

#[inline(always)]
pub(crate) fn mfence() {
    fence(Ordering::SeqCst);
}

#[inline(always)]
pub(crate) fn lfence() {
    fence(Ordering::Acquire);
}

pub(crate) fn flush_line(_at: *const u64) {
    unreachable!("HAS_LINE_FLUSH is false here")
}
