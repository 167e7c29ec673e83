#![expect(unsafe_code, reason = "loads and stores of one chosen instruction")]
//! x86-64: loops over words of one chosen instruction and width, and the fences between them.
//!
//! Rules of this file: (1) every loop starts on a cache line and works on whole lines of 64 bytes;
//! (2) the values are counted in registers, off the store ports, so that stores are the limit;
//! (3) no block is `nomem`, so that the compiler moves no access across it; (4) the callers have
//! checked pointers and lengths against a mapping, and the width against [`has_words`].

use std::{arch::asm, sync::OnceLock};

use super::Word;

/// Non-temporal stores exist.
pub(crate) const HAS_NT_WORDS: bool = true;

/// `clflush` exists.
pub(crate) const HAS_LINE_FLUSH: bool = true;

/// Whether there are integer vectors of so many bytes.
pub(crate) fn has_words(width: u64) -> bool {
    match width {
        8 | 16 => true,
        32 => is_x86_feature_detected!("avx2"),
        64 => is_x86_feature_detected!("avx512f"),
        _ => false,
    }
}

/// Whether there is `movntdqa`.
pub(crate) fn has_nt_loads() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| is_x86_feature_detected!("sse4.1"))
}

/// The first line's words and what is added from line to line.
#[repr(C, align(64))]
struct Lanes([u64; 16]);

fn lanes(first: u64) -> Lanes {
    let count = |lane: u64| if lane < 8 { first.wrapping_add(lane) } else { 8 };
    Lanes(std::array::from_fn(|lane| count(lane as u64)))
}

/// A loop over lines: `$init`, then for each line at `{p}` the `$line`s, which move `{p}` on, then
/// `$end`. `{t}` is a table of 16 words, `{a}` to `{d}` are registers.
macro_rules! lines {
    ($to:expr, $lines:expr, $table:expr, $a:expr;
     [$($init:expr),*] [$($line:expr),+] [$($end:expr),*]) => {{
        let result: u64;
        // SAFETY: the caller owns `lines` (above 0) cache lines at the pointer and a table of 16
        // words; only registers named here are written besides.
        unsafe {
            asm!(
                $($init,)*
                ".p2align 6",
                "2:",
                $($line,)+
                "sub {n}, 1",
                "jnz 2b",
                $($end,)*
                "/* {p} {n} {t} {a} {b} {c} {d} */",
                p = inout(reg) $to => _, n = inout(reg) $lines => _, t = in(reg) $table,
                a = inout(reg) $a => result, b = out(reg) _, c = out(reg) _, d = out(reg) _,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
                out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm8") _,
                options(nostack),
            );
        }
        result
    }};
}

macro_rules! store_8 {
    ($to:expr, $lines:expr, $table:expr, $first:expr; $mov:literal) => {
        lines!($to, $lines, $table, $first; [] [
            "lea {b}, [{a} + 1]", "lea {c}, [{a} + 2]", "lea {d}, [{a} + 3]",
            concat!($mov, " [{p}], {a}"), concat!($mov, " [{p} + 8], {b}"),
            concat!($mov, " [{p} + 16], {c}"), concat!($mov, " [{p} + 24], {d}"),
            "lea {b}, [{a} + 4]", "lea {c}, [{a} + 5]", "lea {d}, [{a} + 6]",
            concat!($mov, " [{p} + 32], {b}"), "lea {b}, [{a} + 7]",
            concat!($mov, " [{p} + 40], {c}"), concat!($mov, " [{p} + 48], {d}"),
            concat!($mov, " [{p} + 56], {b}"), "add {a}, 8", "add {p}, 64"
        ] [])
    };
}

/// The pointer moves on between the halves of a line: in the last-level cache that is a few percent
/// faster than one step for the line, and in the second level no slower.
macro_rules! store_16 {
    ($to:expr, $lines:expr, $table:expr; $mov:literal) => {
        lines!($to, $lines, $table, 0_u64; [
            "movdqa xmm0, [{t}]", "movdqa xmm1, [{t} + 16]", "movdqa xmm2, [{t} + 32]",
            "movdqa xmm3, [{t} + 48]", "movdqa xmm4, [{t} + 64]"
        ] [
            concat!($mov, " [{p}], xmm0"), "paddq xmm0, xmm4",
            concat!($mov, " [{p} + 16], xmm1"), "paddq xmm1, xmm4", "add {p}, 32",
            concat!($mov, " [{p}], xmm2"), "paddq xmm2, xmm4",
            concat!($mov, " [{p} + 16], xmm3"), "paddq xmm3, xmm4", "add {p}, 32"
        ] [])
    };
}

/// One store for each turn: two are faster by a sixth in the second-level cache, but slower by as
/// much where the last level is contended (measured on Zen 3), and the memory is what is measured.
macro_rules! store_32 {
    ($to:expr, $lines:expr, $table:expr; $mov:literal) => {
        lines!($to, $lines * 2, $table, 0_u64; [
            "vmovdqa ymm0, [{t}]", "vmovdqa ymm4, [{t} + 64]", "vpsrlq ymm4, ymm4, 1"
        ] [
            concat!($mov, " [{p}], ymm0"), "vpaddq ymm0, ymm0, ymm4", "add {p}, 32"
        ] ["vzeroupper"])
    };
}

macro_rules! store_64 {
    ($to:expr, $lines:expr, $table:expr; $mov:literal) => {
        lines!($to, $lines, $table, 0_u64; [
            "vmovdqa64 zmm0, [{t}]", "vmovdqa64 zmm4, [{t} + 64]"
        ] [
            concat!($mov, " [{p}], zmm0"), "vpaddq zmm0, zmm0, zmm4", "add {p}, 64"
        ] ["vzeroupper"])
    };
}

/// Stores `first`, `first + 1`, … to the words of `lines` cache lines.
///
/// # Safety
/// The lines are mapped writable at `to`, and the processor has stores of this width.
#[inline(never)]
pub(crate) unsafe fn store_counting(to: *mut u8, lines: usize, first: u64, width: u64, nt: bool) {
    if lines == 0 {
        return;
    }
    let table = lanes(first);
    let t = &raw const table;
    match (width, nt) {
        (8, false) => store_8!(to, lines, t, first; "mov"),
        (8, true) => store_8!(to, lines, t, first; "movnti"),
        (16, false) => store_16!(to, lines, t; "movdqa"),
        (16, true) => store_16!(to, lines, t; "movntdq"),
        (32, false) => store_32!(to, lines, t; "vmovdqa"),
        (32, true) => store_32!(to, lines, t; "vmovntdq"),
        (64, false) => store_64!(to, lines, t; "vmovdqa64"),
        (64, true) => store_64!(to, lines, t; "vmovntdq"),
        _ => unreachable!("has_words was asked for {width} bytes"),
    };
}

macro_rules! sum_16 {
    ($from:expr, $pairs:expr, $t:expr; $($load:literal),+ $(,)?) => {
        lines!($from, $pairs, $t, 0_u64; [
            "pxor xmm0, xmm0", "pxor xmm1, xmm1", "pxor xmm2, xmm2", "pxor xmm3, xmm3"
        ] [$($load),+, "add {p}, 128"] [
            "paddq xmm0, xmm1", "paddq xmm2, xmm3", "paddq xmm0, xmm2",
            "movhlps xmm1, xmm0", "movq {a}, xmm0", "movq {b}, xmm1", "add {a}, {b}"
        ])
    };
}

macro_rules! sum_32 {
    ($from:expr, $pairs:expr, $t:expr; $($load:literal),+ $(,)?) => {
        lines!($from, $pairs, $t, 0_u64; [
            "vpxor xmm0, xmm0, xmm0", "vpxor xmm1, xmm1, xmm1",
            "vpxor xmm2, xmm2, xmm2", "vpxor xmm3, xmm3, xmm3"
        ] [$($load),+, "add {p}, 128"] [
            "vpaddq ymm0, ymm0, ymm1", "vpaddq ymm2, ymm2, ymm3", "vpaddq ymm0, ymm0, ymm2",
            "vextracti128 xmm1, ymm0, 1", "vpaddq xmm0, xmm0, xmm1",
            "vmovq {a}, xmm0", "vpextrq {b}, xmm0, 1", "add {a}, {b}", "vzeroupper"
        ])
    };
}

macro_rules! sum_64 {
    ($from:expr, $pairs:expr, $t:expr; $($load:literal),+ $(,)?) => {
        lines!($from, $pairs, $t, 0_u64; ["vpxor xmm0, xmm0, xmm0", "vpxor xmm1, xmm1, xmm1"] [
            $($load),+, "add {p}, 128"
        ] [
            "vpaddq zmm0, zmm0, zmm1", "vextracti64x4 ymm1, zmm0, 1", "vpaddq ymm0, ymm0, ymm1",
            "vextracti128 xmm1, ymm0, 1", "vpaddq xmm0, xmm0, xmm1",
            "vmovq {a}, xmm0", "vpextrq {b}, xmm0, 1", "add {a}, {b}", "vzeroupper"
        ])
    };
}

/// The wrapping sum of the words of an even number of cache lines.
///
/// Two lines at once, the load folded into the addition where it can be: 2 to 3 % faster than one.
///
/// # Safety
/// The lines are mapped readable at `from`, and the processor has loads of this width.
#[inline(never)]
pub(crate) unsafe fn sum_words(from: *mut u8, lines: usize, width: u64, nt: bool) -> u64 {
    assert!(lines.is_multiple_of(2), "{lines} lines are not pairs");
    let pairs = lines / 2;
    if pairs == 0 {
        return 0;
    }
    let t = std::ptr::null::<Lanes>();
    match (width, nt) {
        (8, false) => lines!(from, pairs, t, 0_u64; [
            "xor {b:e}, {b:e}", "xor {c:e}, {c:e}", "xor {d:e}, {d:e}"
        ] [
            "add {a}, [{p}]", "add {b}, [{p} + 8]", "add {c}, [{p} + 16]", "add {d}, [{p} + 24]",
            "add {a}, [{p} + 32]", "add {b}, [{p} + 40]", "add {c}, [{p} + 48]",
            "add {d}, [{p} + 56]", "add {a}, [{p} + 64]", "add {b}, [{p} + 72]",
            "add {c}, [{p} + 80]", "add {d}, [{p} + 88]", "add {a}, [{p} + 96]",
            "add {b}, [{p} + 104]", "add {c}, [{p} + 112]", "add {d}, [{p} + 120]", "add {p}, 128"
        ] ["add {a}, {b}", "add {c}, {d}", "add {a}, {c}"]),
        (16, false) => sum_16!(from, pairs, t;
            "paddq xmm0, [{p}]", "paddq xmm1, [{p} + 16]", "paddq xmm2, [{p} + 32]",
            "paddq xmm3, [{p} + 48]", "paddq xmm0, [{p} + 64]", "paddq xmm1, [{p} + 80]",
            "paddq xmm2, [{p} + 96]", "paddq xmm3, [{p} + 112]",
        ),
        (16, true) => sum_16!(from, pairs, t;
            "movntdqa xmm4, [{p}]", "movntdqa xmm5, [{p} + 16]",
            "movntdqa xmm6, [{p} + 32]", "movntdqa xmm7, [{p} + 48]",
            "paddq xmm0, xmm4", "paddq xmm1, xmm5", "paddq xmm2, xmm6", "paddq xmm3, xmm7",
            "movntdqa xmm4, [{p} + 64]", "movntdqa xmm5, [{p} + 80]",
            "movntdqa xmm6, [{p} + 96]", "movntdqa xmm7, [{p} + 112]",
            "paddq xmm0, xmm4", "paddq xmm1, xmm5", "paddq xmm2, xmm6", "paddq xmm3, xmm7",
        ),
        (32, false) => sum_32!(from, pairs, t;
            "vpaddq ymm0, ymm0, [{p}]", "vpaddq ymm1, ymm1, [{p} + 32]",
            "vpaddq ymm2, ymm2, [{p} + 64]", "vpaddq ymm3, ymm3, [{p} + 96]",
        ),
        (32, true) => sum_32!(from, pairs, t;
            "vmovntdqa ymm4, [{p}]", "vmovntdqa ymm5, [{p} + 32]",
            "vmovntdqa ymm6, [{p} + 64]", "vmovntdqa ymm7, [{p} + 96]",
            "vpaddq ymm0, ymm0, ymm4", "vpaddq ymm1, ymm1, ymm5",
            "vpaddq ymm2, ymm2, ymm6", "vpaddq ymm3, ymm3, ymm7",
        ),
        (64, false) => sum_64!(from, pairs, t;
            "vpaddq zmm0, zmm0, [{p}]", "vpaddq zmm1, zmm1, [{p} + 64]",
        ),
        (64, true) => sum_64!(from, pairs, t;
            "vmovntdqa zmm4, [{p}]", "vmovntdqa zmm5, [{p} + 64]",
            "vpaddq zmm0, zmm0, zmm4", "vpaddq zmm1, zmm1, zmm5",
        ),
        _ => unreachable!("has_words was asked for {width} bytes"),
    }
}

macro_rules! differ_16 {
    ($from:expr, $lines:expr, $t:expr; $mov:literal) => {
        lines!($from, $lines, $t, 0_u64; [
            "movdqa xmm0, [{t}]", "movdqa xmm1, [{t} + 16]", "movdqa xmm2, [{t} + 32]",
            "movdqa xmm3, [{t} + 48]", "movdqa xmm8, [{t} + 64]", "pxor xmm4, xmm4"
        ] [
            concat!($mov, " xmm5, [{p}]"), concat!($mov, " xmm6, [{p} + 16]"),
            concat!($mov, " xmm7, [{p} + 32]"), "pxor xmm5, xmm0", "por xmm4, xmm5",
            concat!($mov, " xmm5, [{p} + 48]"), "pxor xmm6, xmm1", "por xmm4, xmm6",
            "pxor xmm7, xmm2", "por xmm4, xmm7", "pxor xmm5, xmm3", "por xmm4, xmm5",
            "paddq xmm0, xmm8", "paddq xmm1, xmm8", "paddq xmm2, xmm8", "paddq xmm3, xmm8",
            "add {p}, 64"
        ] ["movhlps xmm1, xmm4", "movq {a}, xmm4", "movq {b}, xmm1", "or {a}, {b}"])
    };
}

macro_rules! differ_32 {
    ($from:expr, $lines:expr, $t:expr; $mov:literal) => {
        lines!($from, $lines, $t, 0_u64; [
            "vmovdqa ymm0, [{t}]", "vmovdqa ymm1, [{t} + 32]", "vmovdqa ymm8, [{t} + 64]",
            "vpxor xmm4, xmm4, xmm4"
        ] [
            concat!($mov, " ymm5, [{p}]"), concat!($mov, " ymm6, [{p} + 32]"),
            "vpxor ymm5, ymm5, ymm0", "vpor ymm4, ymm4, ymm5",
            "vpxor ymm6, ymm6, ymm1", "vpor ymm4, ymm4, ymm6",
            "vpaddq ymm0, ymm0, ymm8", "vpaddq ymm1, ymm1, ymm8", "add {p}, 64"
        ] [
            "vextracti128 xmm1, ymm4, 1", "vpor xmm4, xmm4, xmm1",
            "vmovq {a}, xmm4", "vpextrq {b}, xmm4, 1", "or {a}, {b}", "vzeroupper"
        ])
    };
}

macro_rules! differ_64 {
    ($from:expr, $lines:expr, $t:expr; $mov:literal) => {
        lines!($from, $lines, $t, 0_u64; [
            "vmovdqa64 zmm0, [{t}]", "vmovdqa64 zmm8, [{t} + 64]", "vpxor xmm4, xmm4, xmm4"
        ] [
            concat!($mov, " zmm5, [{p}]"), "vpxorq zmm5, zmm5, zmm0", "vporq zmm4, zmm4, zmm5",
            "vpaddq zmm0, zmm0, zmm8", "add {p}, 64"
        ] [
            "vextracti64x4 ymm1, zmm4, 1", "vpor ymm4, ymm4, ymm1",
            "vextracti128 xmm1, ymm4, 1", "vpor xmm4, xmm4, xmm1",
            "vmovq {a}, xmm4", "vpextrq {b}, xmm4, 1", "or {a}, {b}", "vzeroupper"
        ])
    };
}

/// Not 0 when any word of `lines` cache lines differs from `first`, `first + 1`, …
///
/// # Safety
/// The lines are mapped readable at `from`, and the processor has loads of this width.
#[inline(never)]
pub(crate) unsafe fn differing_words(
    from: *mut u8,
    lines: usize,
    first: u64,
    width: u64,
    nt: bool,
) -> u64 {
    if lines == 0 {
        return 0;
    }
    let table = lanes(first);
    let t = &raw const table;
    match (width, nt) {
        (8, false) => {
            // The expected words are counted in {b}; {a} collects the differences.
            lines!(from, lines, t, 0_u64; ["mov {b}, [{t}]"] [
                "mov {c}, [{p}]", "mov {d}, [{p} + 8]", "xor {c}, {b}", "or {a}, {c}",
                "lea {c}, [{b} + 1]", "xor {d}, {c}", "or {a}, {d}",
                "mov {d}, [{p} + 16]", "lea {c}, [{b} + 2]", "xor {d}, {c}", "or {a}, {d}",
                "mov {d}, [{p} + 24]", "lea {c}, [{b} + 3]", "xor {d}, {c}", "or {a}, {d}",
                "mov {d}, [{p} + 32]", "lea {c}, [{b} + 4]", "xor {d}, {c}", "or {a}, {d}",
                "mov {d}, [{p} + 40]", "lea {c}, [{b} + 5]", "xor {d}, {c}", "or {a}, {d}",
                "mov {d}, [{p} + 48]", "lea {c}, [{b} + 6]", "xor {d}, {c}", "or {a}, {d}",
                "mov {d}, [{p} + 56]", "lea {c}, [{b} + 7]", "xor {d}, {c}", "or {a}, {d}",
                "add {b}, 8", "add {p}, 64"
            ] [])
        }
        (16, false) => differ_16!(from, lines, t; "movdqa"),
        (16, true) => differ_16!(from, lines, t; "movntdqa"),
        (32, false) => differ_32!(from, lines, t; "vmovdqa"),
        (32, true) => differ_32!(from, lines, t; "vmovntdqa"),
        (64, false) => differ_64!(from, lines, t; "vmovdqa64"),
        (64, true) => differ_64!(from, lines, t; "vmovntdqa"),
        _ => unreachable!("has_words was asked for {width} bytes"),
    }
}

/// One plain store.
#[inline(always)]
pub(crate) fn store_word(to: Word<'_>, value: u64) {
    let to = to.ptr();
    // SAFETY: the word is mapped and writable, by its type.
    unsafe { asm!("mov [{}], {}", in(reg) to, in(reg) value, options(nostack, preserves_flags)) }
}

/// One `movnti`.
#[inline(always)]
pub(crate) fn store_word_nt(to: Word<'_>, value: u64) {
    let to = to.ptr();
    // SAFETY: the word is mapped and writable, by its type.
    unsafe { asm!("movnti [{}], {}", in(reg) to, in(reg) value, options(nostack, preserves_flags)) }
}

/// One plain load.
#[inline(always)]
pub(crate) fn load_word(from: Word<'_>) -> u64 {
    let from = from.ptr();
    let value;
    // SAFETY: the word is mapped and writable, by its type.
    unsafe { asm!("mov {}, [{}]", out(reg) value, in(reg) from, options(nostack, preserves_flags)) }
    value
}

/// One `movntdqa` of 16 bytes, whose value nobody needs.
///
/// # Safety
/// The 16 bytes are mapped, on a boundary of 16, and the processor has the load.
#[inline(always)]
pub(crate) unsafe fn load_nt(from: Word<'_>) {
    let from = from.ptr();
    // SAFETY: the caller owns 16 bytes, aligned to 16, and asked `has_nt_loads`.
    unsafe {
        asm!("movntdqa xmm0, [{}]", in(reg) from, out("xmm0") _, options(nostack, preserves_flags));
    }
}

/// Earlier stores are visible before later ones.
#[inline(always)]
pub(crate) fn sfence() {
    // SAFETY: orders stores and changes nothing.
    unsafe { asm!("sfence", options(nostack, preserves_flags)) }
}

/// Earlier loads and stores are done before later ones.
#[inline(always)]
pub(crate) fn mfence() {
    // SAFETY: orders loads and stores and changes nothing.
    unsafe { asm!("mfence", options(nostack, preserves_flags)) }
}

/// Earlier loads are done before anything later begins.
#[inline(always)]
pub(crate) fn lfence() {
    // SAFETY: orders loads and changes nothing.
    unsafe { asm!("lfence", options(nostack, preserves_flags)) }
}

/// Writes a line back and drops it from every cache.
#[inline(always)]
pub(crate) fn flush_line(at: Word<'_>) {
    let at = at.ptr();
    // SAFETY: the line is mapped; its contents stay.
    unsafe { asm!("clflush [{}]", in(reg) at, options(nostack, preserves_flags)) }
}
