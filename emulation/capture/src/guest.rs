#![expect(unsafe_code, reason = "guest memory, at its place in this process; rules below")]
//! The guest's memory: what an access is cut into, what a store left, what there is at the start.
//!
//! The one idea: QEMU is started with `-B BASE`, so guest address `a` is host address `BASE + a`
//! and nothing of QEMU's interface is needed to look at it. The interface's own way to the value of
//! an access exists from QEMU 9 on only.
//!
//! # Rules
//! 1. A value is read in the callback of the store that wrote it, where it was just written. Only
//!    a guest that unmaps memory while another of its threads stores there can be gone by then.
//! 2. Guest memory is read through raw pointers only; no reference into it exists.

use pagelab_sys::machine::proc::{self, Mapping, mappings};
use pagelab_trace::{
    Width,
    image::{Image, Segment},
};
use std::{fs::File, io, ops::Range, os::unix::fs::FileExt};

/// Smallest piece of memory that is left out of an image where it holds only zeros.
const PAGE_BYTES: usize = 4096;
/// So much of an image is read at once.
const PIECE_BYTES: usize = 16 << 20;

/// Cuts so many bytes into the widest pieces: 15 into 8, 4, 2 and 1.
#[inline]
pub(crate) fn pieces(addr: u64, bytes: usize) -> impl Iterator<Item = (u64, Width)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let width = match bytes - at {
            0 => return None,
            1 => Width::W1,
            2..4 => Width::W2,
            4..8 => Width::W4,
            _ => Width::W8,
        };
        let piece = (addr.wrapping_add(at as u64), width);
        at += width.bytes();
        Some(piece)
    })
}

/// Where the guest's memory is in this process.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Host address of guest address 0.
    base: u64,
    /// What was mapped before the guest was loaded: QEMU, its libraries, and ourselves.
    before: Vec<Range<u64>>,
}

impl Memory {
    /// The guest's memory, before the guest is loaded.
    ///
    /// # Errors
    /// When `/proc` is not mounted.
    pub(crate) fn at(base: u64) -> io::Result<Self> {
        let before = mappings(&proc::text("self", "maps")?).map(|mapping| mapping.range).collect();
        Ok(Self { base, before })
    }

    /// What the guest has just stored at an address.
    #[inline]
    pub(crate) fn stored(&self, addr: u64, width: Width) -> u64 {
        let at = self.base.wrapping_add(addr);
        match width {
            Width::W1 => u64::from(read::<u8>(at)),
            Width::W2 => u64::from(read::<u16>(at)),
            Width::W4 => u64::from(read::<u32>(at)),
            Width::W8 => read::<u64>(at),
        }
    }

    /// All that the guest can read now.
    ///
    /// Pages of zeros at both ends of a piece are left out: absent memory reads as zeros too.
    ///
    /// # Errors
    /// When `/proc` is not mounted.
    pub(crate) fn image(&self) -> io::Result<Image> {
        let maps = proc::text("self", "maps")?;
        let memory = File::open("/proc/self/mem")?;
        let mut segments = Vec::new();
        let own = mappings(&maps).filter(may_be_guest);
        for range in own.flat_map(|mapping| self.new_in(&mapping.range)) {
            for start in range.clone().step_by(PIECE_BYTES) {
                let length = (range.end - start).min(PIECE_BYTES as u64);
                let bytes = readable(&memory, start, usize::try_from(length).unwrap_or(0));
                if let Some((skipped, bytes)) = without_zeros(bytes) {
                    segments.push(Segment { addr: start - self.base + skipped, bytes });
                }
            }
        }
        Ok(Image { segments })
    }

    /// The parts of a range that are the guest's: above its address 0, and not mapped before it.
    ///
    /// QEMU gives the guest what the kernel offers (QEMU 8.2 and newer), between its own libraries.
    fn new_in(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let above = range.start.max(self.base)..range.end.max(self.base);
        let mut rest = vec![above];
        for old in &self.before {
            let cut = |part: Range<u64>| {
                [part.start..part.end.min(old.start), part.start.max(old.end)..part.end]
            };
            rest = rest.into_iter().flat_map(cut).filter(|part| !part.is_empty()).collect();
        }
        rest
    }
}

#[inline]
fn read<T: Copy>(at: u64) -> T {
    // SAFETY: rules 1 and 2; a guest's store may be unaligned.
    unsafe { (at as *const T).read_unaligned() }
}

/// Reads so many bytes, or page by page up to the first that cannot be read: those beyond the end
/// of a mapped file cannot, by the guest either.
fn readable(memory: &File, start: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    if memory.read_exact_at(&mut bytes, start).is_ok() {
        return bytes;
    }
    let mut at = 0;
    for page in bytes.chunks_mut(PAGE_BYTES) {
        if memory.read_exact_at(page, start + at as u64).is_err() {
            break;
        }
        at += page.len();
    }
    bytes.truncate(at);
    bytes
}

/// Whether a mapping can be read, and is neither the buffer of translated code (which is executable
/// and no file) nor one of the kernel's own, which are in brackets.
fn may_be_guest(mapping: &Mapping<'_>) -> bool {
    let is_translated = mapping.may('x') && mapping.inode == 0;
    mapping.may('r') && !is_translated && !mapping.name.starts_with('[')
}

/// Bytes without the pages of zeros at their ends, and how many are gone from the start.
fn without_zeros(mut bytes: Vec<u8>) -> Option<(u64, Vec<u8>)> {
    let last = bytes.iter().rposition(|byte| *byte != 0)?;
    bytes.truncate((last + 1).next_multiple_of(PAGE_BYTES).min(bytes.len()));
    let first = bytes.iter().position(|byte| *byte != 0)? / PAGE_BYTES * PAGE_BYTES;
    bytes.drain(..first);
    Some((first as u64, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_an_access_once() {
        let widths = |bytes| pieces(0, bytes).map(|(_, width)| width.bytes()).collect::<Vec<_>>();
        assert!(widths(0).is_empty());
        assert_eq!(widths(1), [1]);
        assert_eq!(widths(7), [4, 2, 1]);
        assert_eq!(widths(15), [8, 4, 2, 1]);
        assert_eq!(widths(32), [8; 4]);
        for bytes in 0..40 {
            let mut next = u64::MAX - 5;
            for (addr, width) in pieces(next, bytes) {
                assert_eq!(addr, next);
                next = next.wrapping_add(width.bytes() as u64);
            }
            assert_eq!(next, (u64::MAX - 5).wrapping_add(bytes as u64));
        }
    }

    #[test]
    fn a_stored_value_is_read_at_its_place() {
        let bytes = [0x11_u8, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99];
        let memory = Memory { base: bytes.as_ptr() as u64 - 0x1000, before: Vec::new() };
        assert_eq!(memory.stored(0x1000, Width::W1), 0x11);
        assert_eq!(memory.stored(0x1001, Width::W2), 0x3322);
        assert_eq!(memory.stored(0x1003, Width::W4), 0x7766_5544);
        assert_eq!(memory.stored(0x1001, Width::W8), 0x9988_7766_5544_3322);
    }

    #[test]
    fn the_guest_s_memory_is_what_is_mapped_after_qemu_s_own() {
        let before = "\
            00400000-00401000 r-xp 00000000 fe:00 1 /usr/bin/qemu\n\
            7ffff7d00000-7ffff7e00000 r--p 00000000 fe:00 3 /usr/lib/libc.so\n\
            7ffff7e00000-7ffff7e10000 rw-p 00000000 00:00 0\n";
        let after = "\
            00400000-00401000 r-xp 00000000 fe:00 1 /usr/bin/qemu\n\
            100000010000-100000020000 r--p 00000000 fe:00 2 /tmp/a guest\n\
            100000020000-100000030000 ---p 00000000 00:00 0 \n\
            104000000000-104000800000 rw-p 00000000 00:00 0\n\
            555555554000-555555555000 rw-p 00000000 00:00 0 [heap]\n\
            7fff90000000-7fffd0000000 rwxp 00000000 00:00 0\n\
            7ffff7d00000-7ffff7e00000 r--p 00000000 fe:00 3 /usr/lib/libc.so\n\
            7ffff7df0000-7ffff7e40000 rw-p 00000000 00:00 0\n";
        let before = mappings(before).map(|mapping| mapping.range).collect();
        let memory = Memory { base: 0x1000_0000_0000, before };
        let own = mappings(after).filter(may_be_guest);
        let found: Vec<_> = own.flat_map(|mapping| memory.new_in(&mapping.range)).collect();
        let expected = [
            0x1000_0001_0000..0x1000_0002_0000,
            0x1040_0000_0000..0x1040_0080_0000,
            0x7fff_f7e1_0000..0x7fff_f7e4_0000,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn zeros_are_left_out_at_both_ends_by_whole_pages() {
        let mut bytes = vec![0; 5 * PAGE_BYTES];
        assert_eq!(without_zeros(bytes.clone()), None);
        bytes[PAGE_BYTES + 1] = 1;
        bytes[3 * PAGE_BYTES - 1] = 2;
        let (skipped, rest) = without_zeros(bytes.clone()).unwrap();
        assert_eq!((skipped, rest.len()), (PAGE_BYTES as u64, 2 * PAGE_BYTES));
        assert_eq!(rest, bytes[PAGE_BYTES..3 * PAGE_BYTES]);
        assert_eq!(without_zeros(vec![7; 10]), Some((0, vec![7; 10])));
    }

    #[test]
    fn an_image_holds_what_is_there() {
        // Where the base is where this test's own memory is, this memory is the guest's.
        let page = vec![0x5A; 4 * PAGE_BYTES];
        let here = page.as_ptr() as u64;
        let memory = Memory { base: here & !0xFFFF_FFFF, before: Vec::new() };
        let image = memory.image().unwrap();
        let own = here - memory.base;
        let segment = image.segments.iter().find(|segment| {
            (segment.addr..segment.addr + segment.bytes.len() as u64).contains(&own)
        });
        let segment = segment.unwrap();
        assert_eq!(
            segment.bytes[usize::try_from(own - segment.addr).unwrap()..][..page.len()],
            page
        );
    }
}
