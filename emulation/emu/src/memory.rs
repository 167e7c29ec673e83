//! What every emulated memory can do: loads and stores of 2^64 bytes, little-endian.
//!
//! A [`Memory`] implements the two accesses of a fixed width; everything else follows from them
//! and may be overridden by whoever can do it faster. All methods take `&mut self`, loads too:
//! fast memories cache.

use std::fmt;

use pagelab_trace::image::Image;
use thiserror::Error;

use crate::looked::Looked;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
/// The offset inside a page.
pub const OFFSET_MASK: u64 = PAGE_BYTES as u64 - 1;

/// Number of the page that holds `addr`.
pub const fn page_of(addr: u64) -> u64 {
    addr >> PAGE_BYTES.trailing_zeros()
}

/// What an access that faults was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Reading data.
    Load,
    /// Writing data.
    Store,
    /// Reading instructions.
    Fetch,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::Fetch => "fetch",
        })
    }
}

/// Why an access was refused. A store that faults has written nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Fault {
    /// The access reaches over the end of the 2^64 bytes, and the policy is to trap.
    #[error("{kind} of {bytes} bytes at {addr:#x} reaches over the end of the address space")]
    OutOfRange {
        /// Where it starts.
        addr: u64,
        /// How long it is.
        bytes: u64,
        /// What it is.
        kind: Kind,
    },
    /// Nothing was ever written there, and the policy is that this faults.
    #[error("{kind} at {addr:#x}: the page is absent")]
    Absent {
        /// The first address that is absent.
        addr: u64,
        /// What it is.
        kind: Kind,
    },
    /// The page's permissions forbid it.
    #[error("{kind} at {addr:#x}: the page's permissions forbid it")]
    Denied {
        /// The first address that is forbidden.
        addr: u64,
        /// What it is.
        kind: Kind,
    },
    /// A page more than the limit would be needed.
    #[error("store at {addr:#x}: needs a page more than the limit of {limit} bytes")]
    PageLimit {
        /// The address whose page is missing.
        addr: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The host has no memory for another page.
    #[error("store at {addr:#x}: the host has no memory for another page")]
    OutOfMemory {
        /// The address whose page is missing.
        addr: u64,
    },
}

/// The accesses of a [`Memory`] that are numbers.
macro_rules! numbers {
    ($($number:ty, $load:ident, $store:ident, $bytes:literal;)*) => {$(
        #[doc = concat!("Reads ", $bytes, ".")]
        ///
        /// # Errors
        /// As the memory's policies say.
        #[inline]
        fn $load(&mut self, addr: u64) -> Result<$number, Fault> {
            self.load(addr).map(<$number>::from_le_bytes)
        }

        #[doc = concat!("Writes ", $bytes, ".")]
        ///
        /// # Errors
        /// As the memory's policies say.
        #[inline]
        fn $store(&mut self, addr: u64, value: $number) -> Result<(), Fault> {
            self.store(addr, value.to_le_bytes())
        }
    )*};
}

/// 2^64 bytes, addressed by `u64`, little-endian; unaligned and page-crossing accesses included.
///
/// `N` is 1, 2, 4, 8 or 16.
///
/// ```
/// use pagelab_emu::{Builder, Memory};
///
/// let mut memory = Builder::new().tlb();
/// memory.store_u32(0x1ffe, 0xaabb_ccdd)?; // over a page boundary
/// assert_eq!(memory.load_u16(0x1fff)?, 0xbbcc);
/// assert_eq!(memory.load_u64(0xdead_0000)?, 0); // absent memory reads as zero
/// # Ok::<(), pagelab_emu::Fault>(())
/// ```
pub trait Memory: Send {
    /// Reads `N` bytes at `addr`.
    ///
    /// # Errors
    /// As the memory's policies say.
    fn load<const N: usize>(&mut self, addr: u64) -> Result<[u8; N], Fault>;

    /// Writes `N` bytes at `addr`.
    ///
    /// # Errors
    /// As the memory's policies say; then nothing was written.
    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Fault>;

    /// Reads `N` bytes of instructions at `addr`: a load, where the memory knows no permissions.
    ///
    /// # Errors
    /// As the memory's policies say.
    #[inline]
    fn fetch<const N: usize>(&mut self, addr: u64) -> Result<[u8; N], Fault> {
        self.load(addr)
    }

    /// Reads `count` values of `N` bytes that follow each other, in order, and hands them to
    /// `sink` in as few pieces as the memory can: a batch costs one look-up a page.
    ///
    /// # Errors
    /// As the memory's policies say; `sink` has then seen what comes before the fault.
    fn load_seq<const N: usize>(
        &mut self,
        addr: u64,
        count: usize,
        mut sink: impl FnMut(&[[u8; N]]),
    ) -> Result<(), Fault> {
        for index in 0..count as u64 {
            sink(&[self.load(addr.wrapping_add(index * N as u64))?]);
        }
        Ok(())
    }

    /// Refuses an access of so many bytes that reaches over an end that the memory guards; asked by
    /// what reads and writes piece by piece.
    ///
    /// # Errors
    /// As the memory's policies say.
    fn check_range(&self, addr: u64, bytes: u64, kind: Kind) -> Result<(), Fault> {
        let _ = (addr, bytes, kind);
        Ok(())
    }

    /// How often what stands in front of its pages knew one, where it counts.
    fn looked(&self) -> Option<Looked> {
        None
    }

    /// Reads bytes from `addr` on.
    ///
    /// # Errors
    /// As the memory's policies say; what `to` holds is then unspecified.
    fn read(&mut self, addr: u64, to: &mut [u8]) -> Result<(), Fault> {
        self.check_range(addr, to.len() as u64, Kind::Load)?;
        for (at, byte) in (0..).zip(to) {
            [*byte] = self.load(addr.wrapping_add(at))?;
        }
        Ok(())
    }

    /// Writes bytes from `addr` on.
    ///
    /// # Errors
    /// As the memory's policies say; how much was written is then unspecified.
    fn write(&mut self, addr: u64, from: &[u8]) -> Result<(), Fault> {
        self.check_range(addr, from.len() as u64, Kind::Store)?;
        for (at, byte) in (0..).zip(from) {
            self.store(addr.wrapping_add(at), [*byte])?;
        }
        Ok(())
    }

    /// Writes `bytes` times the same byte from `addr` on.
    ///
    /// # Errors
    /// As the memory's policies say; how much was written is then unspecified.
    fn fill(&mut self, addr: u64, bytes: u64, value: u8) -> Result<(), Fault> {
        self.check_range(addr, bytes, Kind::Store)?;
        let piece = [value; PAGE_BYTES];
        let (mut addr, mut left) = (addr, bytes);
        while left > 0 {
            let here = (PAGE_BYTES as u64 - (addr & OFFSET_MASK)).min(left);
            self.write(addr, &piece[..usize::try_from(here).unwrap_or(PAGE_BYTES)])?;
            (addr, left) = (addr.wrapping_add(here), left - here);
        }
        Ok(())
    }

    /// Writes the segments of a program or of raw bytes, as a loader would before it starts.
    ///
    /// # Errors
    /// As the memory's policies say; what was written until then stays.
    ///
    /// ```no_run
    /// use pagelab_emu::{Builder, Memory};
    /// use pagelab_trace::image::Image;
    ///
    /// let mut memory = Builder::new().tlb();
    /// memory.load_image(&Image::open("guest.elf")?)?; // or "rom.bin@0x80000000"
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn load_image(&mut self, image: &Image) -> Result<(), Fault> {
        image.segments.iter().try_for_each(|segment| self.write(segment.addr, &segment.bytes))
    }

    numbers! {
        u8, load_u8, store_u8, "one byte";
        u16, load_u16, store_u16, "two bytes";
        u32, load_u32, store_u32, "four bytes";
        u64, load_u64, store_u64, "eight bytes";
        u128, load_u128, store_u128, "sixteen bytes";
    }
}
