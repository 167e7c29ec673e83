#![expect(
    unsafe_code,
    reason = "time stamps and bulk stores are instructions Rust has no name for"
)]
//! x86-64: fenced time stamps, string and non-temporal stores.
//!
//! Rules of this file: (1) every asm block states what it clobbers and leaves the stack alone;
//! (2) no block is `nomem`, so that the compiler moves no load or store across a time stamp;
//! (3) whoever calls a bulk function has checked its pointers and lengths against a mapping.

use std::{arch::asm, sync::OnceLock};

use raw_cpuid::CpuId;

use super::Word;

/// `rep stosb` and `rep movsb` exist.
pub const HAS_STRING_STORE: bool = true;

/// Whether the time stamp counter ticks at one rate and never stops.
///
/// CPUID leaf `8000_0007h`, EDX bit 8.
///
/// The kernel's own verdict (the clock source it chose) is checked by the caller.
pub fn has_reliable_tsc() -> bool {
    CpuId::new().get_advanced_power_mgmt_info().is_some_and(|info| info.has_invariant_tsc())
}

/// Whether this is an emulated machine (QEMU's TCG), whose times mean nothing.
///
/// A machine may hide the hypervisor's leaf; the brand of TCG's own processor models remains.
pub fn is_emulated() -> bool {
    let cpuid = CpuId::new();
    let vendor = cpuid.get_hypervisor_info().map(|info| info.identify());
    matches!(vendor, Some(raw_cpuid::Hypervisor::QEMU))
        || cpuid.get_processor_brand_string().is_some_and(|brand| is_tcgs(brand.as_str()))
}

/// Whether a hypervisor runs this machine, so that its memory is backed by a host.
pub fn is_guest() -> bool {
    CpuId::new().get_feature_info().is_some_and(|info| info.has_hypervisor())
}

/// `QEMU TCG CPU version 2.5+`.
fn is_tcgs(brand: &str) -> bool {
    brand.trim_start().starts_with("QEMU TCG CPU")
}

/// Ticks before the body: nothing earlier is still running, nothing later has begun.
#[inline(always)]
pub(crate) fn ticks_start() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: lfence and rdtsc read no memory and write only the registers named here.
    unsafe {
        asm!("lfence", "rdtsc", "lfence", out("eax") low, out("edx") high, options(nostack));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Ticks after the body has completed, and `TSC_AUX`, which changes when the thread moved.
#[inline(always)]
pub(crate) fn ticks_end() -> (u64, u32) {
    let (low, high, aux): (u32, u32, u32);
    // SAFETY: rdtscp and lfence read no memory and write only the registers named here.
    unsafe {
        asm!(
            "rdtscp", "lfence",
            out("eax") low, out("edx") high, out("ecx") aux, options(nostack),
        );
    }
    (u64::from(high) << 32 | u64::from(low), aux)
}

/// Ticks as the published note read them: no fence on either side.
#[inline(always)]
pub(crate) fn ticks_plain() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: rdtsc reads no memory and writes only the registers named here.
    unsafe {
        asm!("rdtsc", out("eax") low, out("edx") high, options(nostack));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// An instruction that does nothing, of which each number has its meaning to whoever emulates this
/// machine: `nopl` with a displacement of ours (emulation/capture/src/machine/insn.rs).
macro_rules! mark {
    ($(#[$about:meta])* $name:ident: $number:literal) => {
        $(#[$about])*
        #[inline(always)]
        pub(crate) fn $name() {
            // SAFETY: a NOP reads and writes nothing, whatever address it is given.
            unsafe {
                asm!(
                    concat!(".byte 0x0f, 0x1f, 0x80, ", $number, ", 0x67, 0x61, 0x70"),
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

mark! {
    /// From here on everything is watched.
    mark_watch: 1
}
mark! {
    /// And no more.
    mark_rest: 2
}
mark! {
    /// A window begins behind this instruction.
    mark_begin: 3
}
mark! {
    /// The window ended before this instruction.
    mark_end: 4
}

/// A window around a routine whose length is written here: what [`ROUTINE`] says, and nothing else
/// between the two marks.
pub(crate) fn marked_routine(word: &mut u64, bytes: &mut [u8; 4096]) {
    // SAFETY: loads and stores of a word and of 4096 bytes that the caller lends; the direction
    // flag is clear, as the ABI has it.
    unsafe {
        asm!(
            ".p2align 6",
            ".byte 0x0f, 0x1f, 0x80, 3, 0x67, 0x61, 0x70",
            ".rept 700",
            "add {sum}, 1",
            ".endr",
            ".rept 200",
            "mov {sum}, qword ptr [{word}]",
            ".endr",
            ".rept 89",
            "mov qword ptr [{word}], {sum}",
            ".endr",
            ".rept 9",
            "lock add qword ptr [{word}], 1",
            ".endr",
            "xor eax, eax",
            "rep stosb",
            ".byte 0x0f, 0x1f, 0x80, 4, 0x67, 0x61, 0x70",
            sum = out(reg) _, word = in(reg) std::ptr::from_mut(word),
            inout("rdi") bytes.as_mut_ptr() => _, inout("rcx") bytes.len() => _, out("eax") _,
            options(nostack),
        );
    }
}

/// Instructions of [`marked_routine`], its loads, stores, locked operations, and the bytes that its
/// string instruction stores; a locked addition loads and stores.
pub(crate) const ROUTINE: [u64; 5] = [1000, 209, 98, 9, 4096];

/// Marks a message: the load behind the mark is from where its address and its length lie.
///
/// The two are aligned, so that they are translated together.
pub(crate) fn mark_say(message: &[u8]) {
    let described = [message.as_ptr() as u64, message.len() as u64];
    // SAFETY: a NOP, and a load of a word that lives.
    unsafe {
        asm!(
            ".p2align 5",
            ".byte 0x0f, 0x1f, 0x80, 5, 0x67, 0x61, 0x70",
            "mov {word}, qword ptr [{at}]",
            word = out(reg) _, at = in(reg) described.as_ptr(),
            options(nostack, preserves_flags),
        );
    }
}

/// Stores a zero word at every `step` of `bytes`.
///
/// The loop is aligned, so that every build has it at the same place in its cache line.
///
/// # Safety
/// `bytes` (above 0) are mapped writable at `start`, and a whole word at each step.
#[inline(never)]
pub(crate) unsafe fn store_words(start: *mut u8, bytes: usize, step: usize) {
    // SAFETY: the caller owns `bytes` (above 0) writable bytes at `start`, and a word at each step.
    unsafe {
        asm!(
            ".p2align 6",
            "2:",
            "mov qword ptr [{at}], 0",
            "add {at}, {step}",
            "cmp {at}, {end}",
            "jb 2b",
            at = inout(reg) start => _, step = in(reg) step,
            end = in(reg) start.wrapping_add(bytes),
            options(nostack),
        );
    }
}

/// Loads a word at every `step` of `bytes`; aligned as [`store_words`] is.
///
/// # Safety
/// `bytes` (above 0) are mapped readable at `start`, and a whole word at each step.
#[inline(never)]
pub(crate) unsafe fn load_words(start: *const u8, bytes: usize, step: usize) {
    // SAFETY: the caller owns `bytes` (above 0) readable bytes at `start`, and a word at each step.
    unsafe {
        asm!(
            ".p2align 6",
            "2:",
            "mov {word}, qword ptr [{at}]",
            "add {at}, {step}",
            "cmp {at}, {end}",
            "jb 2b",
            word = out(reg) _, at = inout(reg) start => _, step = in(reg) step,
            end = in(reg) start.wrapping_add(bytes),
            options(nostack, readonly),
        );
    }
}

/// The widest vector in bytes that the read and non-temporal loops use here.
pub fn vector_bytes() -> u64 {
    static WIDTH: OnceLock<u64> = OnceLock::new();
    *WIDTH.get_or_init(|| {
        if is_x86_feature_detected!("avx512f") {
            64
        } else if is_x86_feature_detected!("avx") {
            32
        } else {
            16
        }
    })
}

/// Clears with `rep stosb`, the instruction that the kernel clears pages with on ERMS machines.
///
/// # Safety
/// `bytes` are mapped writable at `to`.
#[inline(never)]
pub(crate) unsafe fn clear_string(to: *mut u8, bytes: usize) {
    // SAFETY: the caller owns `bytes` writable bytes at `to`; the direction flag is clear by ABI.
    unsafe {
        asm!(
            "rep stosb",
            inout("rcx") bytes => _, inout("rdi") to => _, in("al") 0_u8,
            options(nostack, preserves_flags),
        );
    }
}

/// Copies with `rep movsb`.
///
/// # Safety
/// `bytes` are mapped at both pointers, do not overlap, and are writable at `to`.
#[inline(never)]
pub(crate) unsafe fn copy_string(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller owns both ranges, which do not overlap; the direction flag is clear.
    unsafe {
        asm!(
            "rep movsb",
            inout("rcx") bytes => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags),
        );
    }
}

/// A loop over 256-byte blocks: the lines see the block at `{p}` (and `{q}`) and may use vector
/// register 0; `.irp` repeats them at each offset `\\o`. `$end` puts the upper halves of the vector
/// registers in order.
macro_rules! block_loop {
    ($($line:literal),+; $p:ident, $q:ident, $bytes:ident, $end:literal) => {
        // SAFETY: the caller owns `bytes` (a multiple of 256, 64-byte aligned) at both pointers.
        unsafe {
            asm!(
                "2:",
                $($line,)+
                "add {p}, 256",
                "add {q}, 256",
                "sub {n}, 256",
                "jnz 2b",
                "sfence",
                $end,
                p = inout(reg) $p => _, q = inout(reg) $q => _, n = inout(reg) $bytes => _,
                out("xmm0") _, options(nostack),
            );
        }
    };
}

fn assert_blocks(bytes: usize) {
    assert!(bytes > 0 && bytes.is_multiple_of(256), "bulk loops work on blocks of 256 bytes");
}

/// Clears with non-temporal stores, which go around the caches.
///
/// # Safety
/// `bytes` are mapped writable at `to`, on a 64-byte boundary.
#[inline(never)]
pub(crate) unsafe fn clear_nt(to: *mut u8, bytes: usize) {
    assert_blocks(bytes);
    let unused = to;
    match vector_bytes() {
        64 => block_loop!(
            "vpxorq zmm0, zmm0, zmm0", ".irp o, 0,64,128,192",
            "vmovntdq [{p} + \\o], zmm0", ".endr";
            to, unused, bytes, "vzeroupper"),
        32 => block_loop!(
            "vpxor xmm0, xmm0, xmm0", ".irp o, 0,32,64,96,128,160,192,224",
            "vmovntdq [{p} + \\o], ymm0", ".endr";
            to, unused, bytes, "vzeroupper"),
        _ => block_loop!(
            "pxor xmm0, xmm0", ".irp o, 0,16,32,48,64,80,96,112,128,144,160,176,192,208,224,240",
            "movntdq [{p} + \\o], xmm0", ".endr";
            to, unused, bytes, ""),
    }
}

/// Copies with ordinary loads and non-temporal stores.
///
/// # Safety
/// `bytes` are mapped at both pointers, on 64-byte boundaries, do not overlap, and are writable at
/// `to`.
#[inline(never)]
pub(crate) unsafe fn copy_nt(to: *mut u8, from: *const u8, bytes: usize) {
    assert_blocks(bytes);
    match vector_bytes() {
        64 => block_loop!(
            ".irp o, 0,64,128,192",
            "vmovdqa64 zmm0, [{q} + \\o]", "vmovntdq [{p} + \\o], zmm0", ".endr";
            to, from, bytes, "vzeroupper"),
        32 => block_loop!(
            ".irp o, 0,32,64,96,128,160,192,224",
            "vmovdqa ymm0, [{q} + \\o]", "vmovntdq [{p} + \\o], ymm0", ".endr";
            to, from, bytes, "vzeroupper"),
        _ => block_loop!(
            ".irp o, 0,16,32,48,64,80,96,112,128,144,160,176,192,208,224,240",
            "movdqa xmm0, [{q} + \\o]", "movntdq [{p} + \\o], xmm0", ".endr";
            to, from, bytes, ""),
    }
}

/// Loads every byte with the widest vectors and uses none of them.
///
/// # Safety
/// `bytes` are mapped readable at `from`, on a 64-byte boundary.
#[inline(never)]
pub(crate) unsafe fn read_all(from: *const u8, bytes: usize) {
    assert_blocks(bytes);
    let unused = from;
    match vector_bytes() {
        64 => block_loop!(
            ".irp o, 0,64,128,192",
            "vmovdqa64 zmm0, [{p} + \\o]", ".endr";
            from, unused, bytes, "vzeroupper"),
        32 => block_loop!(
            ".irp o, 0,32,64,96,128,160,192,224",
            "vmovdqa ymm0, [{p} + \\o]", ".endr";
            from, unused, bytes, "vzeroupper"),
        _ => block_loop!(
            ".irp o, 0,16,32,48,64,80,96,112,128,144,160,176,192,208,224,240",
            "movdqa xmm0, [{p} + \\o]", ".endr";
            from, unused, bytes, ""),
    }
}

/// A store that meets a poisoned page can be stepped over.
pub const HAS_STEP_OVER: bool = true;

/// `mov qword ptr [rdi], rax`, as the assembler encodes it.
const STORE: [u8; 3] = [0x48, 0x89, 0x07];

/// Stores a zero word by the one instruction that [`step_over_store`] knows.
#[inline(always)]
pub(crate) fn store_or_step_over(at: Word<'_>) {
    // SAFETY: the word is writable; where its page is poisoned, the handler that is armed for it
    // goes on behind the instruction.
    unsafe {
        asm!("mov qword ptr [rdi], rax", in("rdi") at.ptr(), in("rax") 0_u64, options(nostack));
    }
}

/// Lets a handler return behind the store that was interrupted; `false` where it was another
/// instruction.
///
/// # Safety
/// `context` is what the kernel handed to a handler with `SA_SIGINFO`.
pub(crate) unsafe fn step_over_store(context: *mut libc::c_void) -> bool {
    let context: *mut libc::ucontext_t = context.cast();
    // SAFETY: the kernel hands a ucontext to a handler with SA_SIGINFO, for it alone.
    let registers = unsafe { &mut (*context).uc_mcontext.gregs };
    let rip = &mut registers[libc::REG_RIP as usize];
    let at = rip.cast_unsigned() as *const [u8; 3];
    // SAFETY: the processor has just fetched an instruction there; code before the end of ours is
    // followed by more code, so three bytes can be read.
    if unsafe { at.read_unaligned() } != STORE {
        return false;
    }
    *rip += 3;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulated_processor_is_known_by_its_brand() {
        assert!(is_tcgs("QEMU TCG CPU version 2.5+"));
        assert!(!is_tcgs("Intel(R) Xeon(R) Processor @ 2.60GHz"));
        assert!(!is_tcgs("QEMU Virtual CPU version 2.5+"));
    }
}
