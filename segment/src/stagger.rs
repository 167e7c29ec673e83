#![expect(unsafe_code, reason = "asks the allocator; the rules are in lib.rs")]
//! Where blocks of some KiB begin.
//!
//! The one idea: the room that is left behind what was asked for is left before it in part, by
//! another number of lines of the caches from block to block.
//!
//! mimalloc has four sizes of blocks for each power of two, and lays blocks of one size side by
//! side from an even address on. So each begins at a multiple of a quarter of that power of two,
//! and what all of them begin with, as the headers of a database's pages, has few sets of a cache
//! for itself: with blocks of 4 to 8 KiB 4 of the 64 of a first level. glibc's blocks are as long
//! as what was asked for and 16 bytes, and begin everywhere.

use std::{cell::Cell, ffi::c_void, ops::RangeInclusive};

use libmimalloc_sys as mi;

/// Blocks that are staggered: smaller ones begin at enough places as they are, and a larger one has
/// pages of its own.
const STAGGERED: RangeInclusive<usize> = 1025..=64 << 10;
/// A line of the caches.
const LINE: usize = 64;
/// What is added from block to block, modulo 1 if 64 bits are a fraction: the golden ratio, whose
/// multiples lie apart however many blocks there are between two.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

thread_local! {
    /// The sum so far.
    static SUM: Cell<u64> = const { Cell::new(0) };
}

/// As `malloc(3)`, by mimalloc; null where it has no room.
pub(crate) fn malloc(bytes: usize) -> *mut c_void {
    if STAGGERED.contains(&bytes) {
        let among = room(bytes);
        if among > LINE {
            let sum = SUM.get().wrapping_add(STEP);
            SUM.set(sum);
            let before = (((sum >> 32) as usize * (among / LINE)) >> 32) * LINE;
            // SAFETY: takes numbers, the second one a power of two.
            return unsafe { mi::mi_malloc_aligned_at(bytes, among, before) };
        }
    }
    // SAFETY: takes a number.
    unsafe { mi::mi_malloc(bytes) }
}

/// By less than so much, a power of two, the beginning may be moved within a block.
fn room(bytes: usize) -> usize {
    // SAFETY: takes a number.
    let block = unsafe { mi::mi_good_size(bytes) };
    1 << (block - bytes + 1).ilog2()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Where so many blocks begin, modulo 4 KiB.
    fn places(bytes: usize) -> BTreeSet<usize> {
        let blocks: Vec<_> = (0..64).map(|_| malloc(bytes)).collect();
        for block in &blocks {
            assert_eq!(block.addr() % 16, 0, "{bytes}");
            // SAFETY: the allocator's.
            let usable = unsafe { mi::mi_usable_size(*block) };
            assert!((bytes..=bytes + bytes / 3 + LINE).contains(&usable), "{bytes}: {usable}");
            // SAFETY: so many bytes are ours.
            unsafe { block.cast::<u8>().write_bytes(1, bytes) };
        }
        let places = blocks.iter().map(|block| block.addr() % 4096).collect();
        for block in blocks {
            // SAFETY: the allocator's, and nobody uses it any more.
            unsafe { mi::mi_free(block) };
        }
        places
    }

    #[test]
    fn blocks_of_one_size_begin_at_many_lines_where_they_have_room() {
        // A block of 5120 has room for 752 bytes: 8 lines at each of 4 places.
        assert_eq!(room(4368), 512);
        assert!(places(4368).len() >= 24, "{:?}", places(4368));
        // None is left, and no block grows for it.
        assert_eq!([room(4096), room(65_536)], [1, 1]);
        for bytes in [1024, 1025, 1279, 1280, 1281, 4096, 5100, 20_000, 65_535, 65_536, 65_537] {
            places(bytes);
        }
    }
}
