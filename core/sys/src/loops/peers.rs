#![expect(unsafe_code, reason = "the loops are C")]
//! Loops in the shape of public page-fault benchmarks: `twin/peers.c`, called from here only.
//!
//! The one idea: a number agrees with that of another tool when the tool's own loop, run beside
//! ours in one process, takes as long for the same faults. The loops share nothing with ours: their
//! own `mmap`, clock and `getrusage`. They are not the tools: those have no witness, and warm up,
//! bind and start their workers in ways of their own.
//!
//! Rules: (1) a shared mapping is only ever touched through volatile stores in C, no reference
//! into it exists; (2) shares of workers do not overlap; (3) the layouts of `struct peer_round` and
//! [`PeerRound`] are one.

use std::ptr::NonNull;

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::SysError;

/// Bytes of a base page, which the loops step by.
const PAGE: u64 = 4096;

/// What one worker of such a loop leaves; times are readings of `CLOCK_MONOTONIC_RAW`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
pub struct PeerRound {
    /// Before `mmap`; before the stores where mapping is not part of the loop.
    pub start_ns: u64,
    /// Before the first store.
    pub mapped_ns: u64,
    /// After the last store.
    pub touched_ns: u64,
    /// After `munmap`; after the stores where unmapping is not part of the loop.
    pub end_ns: u64,
    /// CPU time by `getrusage`, user and system; the kernel gives microseconds.
    pub cpu_ns: u64,
    /// Minor faults by `getrusage`.
    pub minor: u64,
    /// Major faults by `getrusage`.
    pub major: u64,
    /// Pages as the loop counted them.
    pub pages: u64,
}

impl PeerRound {
    /// Both workers at once: from the earliest start to the latest end, counts added.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self {
            start_ns: self.start_ns.min(other.start_ns),
            mapped_ns: self.mapped_ns.min(other.mapped_ns),
            touched_ns: self.touched_ns.max(other.touched_ns),
            end_ns: self.end_ns.max(other.end_ns),
            cpu_ns: self.cpu_ns + other.cpu_ns,
            minor: self.minor + other.minor,
            major: self.major + other.major,
            pages: self.pages + other.pages,
        }
    }
}

/// The counter of a worker, away from every other one's cache line.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Counter(u64);

/// One pass of the loop of will-it-scale's `page_fault1`: maps `bytes`, stores one byte in each
/// base page and counts it, unmaps.
///
/// # Errors
/// When memory is short.
///
/// # Panics
/// When `bytes` is not a multiple of 4096, or 0.
pub fn page_fault1(bytes: u64) -> Result<PeerRound, SysError> {
    assert!(bytes > 0 && bytes.is_multiple_of(PAGE), "{bytes} bytes are no whole pages");
    let mut count = Counter::default();
    let mut out = PeerRound::default();
    // SAFETY: both pointers are to live values of the declared layout; it frees all that it maps.
    let result = unsafe { pagelab_c_page_fault1(bytes, PAGE, &raw mut count.0, &raw mut out) };
    let on = format_args!("{bytes} bytes, in the loop of page_fault1");
    SysError::checked(result, "mmap", on).map(|_| out)
}

/// The mapping that the workers of pft's loop share.
#[derive(Debug)]
pub struct PftMemory {
    base: NonNull<u8>,
    bytes: u64,
}

// SAFETY: the memory is touched by volatile stores only, in shares that do not overlap.
unsafe impl Sync for PftMemory {}

impl PftMemory {
    /// Maps `bytes` of anonymous memory; nothing is touched.
    ///
    /// # Errors
    /// When memory is short.
    ///
    /// # Panics
    /// When `bytes` is not a multiple of 4096, or 0.
    pub fn map(bytes: u64) -> Result<Self, SysError> {
        assert!(bytes > 0 && bytes.is_multiple_of(PAGE), "{bytes} bytes are no whole pages");
        // SAFETY: makes a new mapping and touches nothing.
        let base = unsafe { pagelab_c_pft_map(bytes) };
        match NonNull::new(base) {
            Some(base) => Ok(Self { base, bytes }),
            None => Err(SysError::last("mmap", format!("{bytes} bytes, in the loop of pft"))),
        }
    }

    /// What worker `worker` of `workers` does: stores one byte in each page of its share.
    ///
    /// # Panics
    /// When the memory does not divide into so many shares of whole pages.
    pub fn touch(&self, worker: usize, workers: usize) -> PeerRound {
        let (worker, workers) = (worker as u64, workers as u64);
        let share = self.bytes / workers;
        assert!(worker < workers && share * workers == self.bytes, "{worker} of {workers}");
        assert!(share.is_multiple_of(PAGE), "a share of {share} bytes is no whole pages");
        let at = usize::try_from(worker * share).expect("addresses have 64 bits");
        let start = self.base.as_ptr().wrapping_add(at);
        let mut out = PeerRound::default();
        // SAFETY: the share lies within the mapping (asserted), which lives as long as `self`.
        unsafe { pagelab_c_pft_touch(start, share, PAGE, &raw mut out) };
        out
    }
}

impl Drop for PftMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and `self` was the only way to reach it.
        unsafe { pagelab_c_pft_unmap(self.base.as_ptr(), self.bytes) };
    }
}

// SAFETY: the signatures are those of twin/peers.c; `PeerRound` is laid out as its struct.
unsafe extern "C" {
    fn pagelab_c_page_fault1(bytes: u64, page: u64, count: *mut u64, out: *mut PeerRound) -> i32;
    fn pagelab_c_pft_map(bytes: u64) -> *mut u8;
    fn pagelab_c_pft_unmap(map: *mut u8, bytes: u64);
    fn pagelab_c_pft_touch(share: *mut u8, bytes: u64, page: u64, out: *mut PeerRound);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{alone, process::disable_thp};

    #[test]
    fn both_loops_take_one_fault_a_page_and_count_it() {
        let _alone = alone();
        disable_thp(true).unwrap();
        // The first call of each faults on code and stack.
        page_fault1(16 << 12).unwrap();
        let told = |round: PeerRound| (round.pages, round.minor, round.major);
        crate::counted((256, 256, 0), || {
            let round = page_fault1(1 << 20).unwrap();
            assert!(round.start_ns <= round.mapped_ns && round.touched_ns <= round.end_ns);
            told(round)
        });
        PftMemory::map(16 << 12).unwrap().touch(0, 1);
        crate::counted(((256, 256, 0), 0), || {
            let memory = PftMemory::map(1 << 20).unwrap();
            let halves = memory.touch(0, 2).join(memory.touch(1, 2));
            // All is present by then.
            (told(halves), memory.touch(0, 1).minor)
        });
        disable_thp(false).unwrap();
    }
}
