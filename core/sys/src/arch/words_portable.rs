#![expect(unsafe_code, reason = "volatile access to raw memory")]
//! Any other architecture: words of 8 bytes, loaded and stored by plain Rust.
//!
//! The same names as `words_x86_64.rs`; what is missing is said by [`HAS_NT_WORDS`],
//! [`has_nt_loads`] and [`has_words`], and the functions behind them are then never called.

use std::sync::atomic::{Ordering, fence};

use super::Word;

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
pub(crate) unsafe fn store_counting(to: *mut u8, lines: usize, first: u64, _width: u64, _nt: bool) {
    for word in 0..lines * 8 {
        // SAFETY: a word of the caller's lines.
        let at = unsafe { Word::new(to.cast::<u64>().wrapping_add(word)) };
        store_word(at, first.wrapping_add(word as u64));
    }
}

#[inline(never)]
pub(crate) unsafe fn sum_words(from: *mut u8, lines: usize, _width: u64, _nt: bool) -> u64 {
    // SAFETY: a word of the caller's lines.
    let load = |word| load_word(unsafe { Word::new(from.cast::<u64>().wrapping_add(word)) });
    (0..lines * 8).fold(0, |sum, word| sum.wrapping_add(load(word)))
}

#[inline(never)]
pub(crate) unsafe fn differing_words(
    from: *mut u8,
    lines: usize,
    first: u64,
    _width: u64,
    _nt: bool,
) -> u64 {
    // SAFETY: a word of the caller's lines.
    let load = |word| load_word(unsafe { Word::new(from.cast::<u64>().wrapping_add(word)) });
    (0..lines * 8).fold(0, |all, word| all | (load(word) ^ first.wrapping_add(word as u64)))
}

#[inline(always)]
pub(crate) fn store_word(to: Word<'_>, value: u64) {
    // SAFETY: the word is mapped and writable, by its type.
    unsafe { to.ptr().write_volatile(value) }
}

pub(crate) fn store_word_nt(_to: Word<'_>, _value: u64) {
    unreachable!("HAS_NT_WORDS is false here")
}

#[inline(always)]
pub(crate) fn load_word(from: Word<'_>) -> u64 {
    // SAFETY: the word is mapped, by its type.
    unsafe { from.ptr().read_volatile() }
}

pub(crate) unsafe fn load_nt(_from: Word<'_>) {
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

pub(crate) fn flush_line(_at: Word<'_>) {
    unreachable!("HAS_LINE_FLUSH is false here")
}
