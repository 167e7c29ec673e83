#![expect(unsafe_code, reason = "the twin is C")]
//! The C twin: `twin/round.c`, called from here and nowhere else.

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
    if result != 0 {
        return Err(SysError::last("mmap", format!("{bytes} bytes, in C")));
    }
    let [map_ns, touch_ns, release_ns] = ns;
    Ok(TwinRound { map_ns, touch_ns, release_ns })
}

// SAFETY: the signature is that of twin/round.c, whose three results are uint64_t.
unsafe extern "C" {
    fn pagelab_c_round(bytes: u64, stride: u64, align: u64, huge: i32, ns: *mut u64) -> i32;
}
