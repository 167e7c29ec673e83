#![expect(unsafe_code, reason = "the twin is C")]
//! The C twin: `twin/round.c` and `twin/bandwidth.c`, called from here and nowhere else.

use crate::SysError;

/// Nanoseconds of one round of the C loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TwinRound {
    /// `mmap`.
    pub map_ns: u64,
    /// The loop.
    pub touch_ns: u64,
    /// `munmap`.
    pub release_ns: u64,
}

/// Maps, touches and releases `bytes` of anonymous memory in C, one 8-byte write every `stride`.
///
/// # Errors
/// When memory is short.
///
/// # Panics
/// When `align` is no power of two or `stride` is 0.
pub fn round(bytes: u64, stride: u64, align: u64, huge: bool) -> Result<TwinRound, SysError> {
    assert!(align.is_power_of_two() && stride > 0, "align {align}, stride {stride}");
    let mut ns = [0_u64; 3];
    // SAFETY: the function writes three words at the pointer and frees all that it maps.
    let result = unsafe { pagelab_c_round(bytes, stride, align, i32::from(huge), ns.as_mut_ptr()) };
    SysError::checked(result, "mmap", format_args!("{bytes} bytes, in C"))?;
    let [map_ns, touch_ns, release_ns] = ns;
    Ok(TwinRound { map_ns, touch_ns, release_ns })
}

// SAFETY: the signature is that of twin/round.c, whose three results are uint64_t.
unsafe extern "C" {
    fn pagelab_c_round(bytes: u64, stride: u64, align: u64, huge: i32, ns: *mut u64) -> i32;
}

/// One round of stores by the C loop: `struct round` of `twin/bandwidth.c`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreRound {
    /// The first word, on a cache line.
    pub(crate) to: *mut u64,
    /// A multiple of 8.
    pub(crate) words: u64,
    /// What the first word gets.
    pub(crate) first: u64,
    /// What the word of the fence gets.
    pub(crate) value: u64,
    pub(crate) fence_word: *mut u64,
    pub(crate) width: u32,
    pub(crate) nt: u32,
    /// 0 none, 1 sfence, 2 mfence, 3 store, 4 store and load.
    pub(crate) fence: u32,
    /// Bytes of a load of the read-back, 0 without one.
    pub(crate) back_width: u32,
    pub(crate) back_nt: u32,
}

/// Stores one round in C: four stamps of `CLOCK_MONOTONIC_RAW`, and not 0 when words differed.
///
/// # Safety
/// The words and the fence's word are mapped writable, and the processor has the width.
pub(crate) unsafe fn store_round(round: &StoreRound) -> ([u64; 4], u64) {
    let mut ns = [0_u64; 4];
    // SAFETY: the words and the fence's word are the caller's, and four stamps are written.
    let differs = unsafe { pagelab_c_store_round(round, ns.as_mut_ptr()) };
    (ns, differs)
}

/// Sums words (their address, a multiple of 8 of them) in C: two stamps and the sum.
///
/// # Safety
/// The words are mapped, and the processor has the width.
pub(crate) unsafe fn read_round(
    from: *const u64,
    words: u64,
    width: u64,
    nt: bool,
) -> ([u64; 2], u64) {
    let mut ns = [0_u64; 2];
    let (width, nt) = (narrow(width), u32::from(nt));
    // SAFETY: the words are the caller's, and two stamps are written.
    let sum = unsafe { pagelab_c_read_round(from, words, width, nt, ns.as_mut_ptr()) };
    (ns, sum)
}

/// A width as C has it.
pub(crate) fn narrow(width: u64) -> u32 {
    u32::try_from(width).expect("a width is at most 64")
}

// SAFETY: the signatures are those of twin/bandwidth.c.
unsafe extern "C" {
    fn pagelab_c_store_round(round: *const StoreRound, ns: *mut u64) -> u64;
    fn pagelab_c_read_round(from: *const u64, words: u64, width: u32, nt: u32, ns: *mut u64)
    -> u64;
}
