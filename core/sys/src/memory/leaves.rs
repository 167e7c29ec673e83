//! The leaves of a page table that fit into a range: the arithmetic of a segment.
//!
//! The one idea: a range is mapped from its start upwards, at each place by the largest leaf that
//! begins there and ends within it. So few leaves lie at ragged ends, and their number follows from
//! start, length and the largest size alone. It touches no memory.

use std::iter;

/// Sizes of leaves, ascending.
pub const LEAF_SIZES: [usize; 3] = [4 << 10, 2 << 20, 1 << 30];

/// The leaves of a range of addresses by their start and bytes, ascending; none is larger than
/// `largest`.
pub fn leaves(start: usize, end: usize, largest: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut at = start;
    let fitting = move |at: usize| {
        let fits = |leaf: &usize| {
            *leaf <= largest && at.is_multiple_of(*leaf) && end.saturating_sub(at) >= *leaf
        };
        LEAF_SIZES.into_iter().rev().find(fits)
    };
    iter::from_fn(move || {
        let leaf = fitting(at)?;
        at += leaf;
        Some((at - leaf, leaf))
    })
}

/// How many there are of each of [`LEAF_SIZES`].
pub fn count_leaves(start: usize, end: usize, largest: usize) -> [u64; 3] {
    let mut counts = [0; 3];
    for (_, bytes) in leaves(start, end, largest) {
        let place = LEAF_SIZES.iter().position(|leaf| *leaf == bytes);
        counts[place.expect("a leaf has one of the sizes")] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GIB: usize = 1 << 30;

    #[test]
    fn the_published_counts_are_those_of_ten_gib_that_begin_in_the_middle_of_leaves() {
        let start = 4 * GIB + GIB / 2 + (1 << 20);
        let of = |largest| count_leaves(start, start + 10 * GIB, largest);
        assert_eq!(of(4 << 10), [2_621_440, 0, 0]);
        assert_eq!(of(2 << 20), [512, 5119, 0]);
        assert_eq!(of(GIB), [512, 511, 9]);
    }

    proptest! {
        #[test]
        fn leaves_fill_a_range_without_gaps_and_none_could_be_larger(
            start in 0_usize..600_000, pages in 1_usize..900_000, largest in 0_usize..3,
        ) {
            // Up to a few leaves of the largest size: a range of base pages alone needs no GiB.
            let pages = pages % (1024 << (9 * largest)) + 1;
            let (start, end) = (start << 12, (start + pages) << 12);
            let mut at = start;
            for (leaf, bytes) in leaves(start, end, LEAF_SIZES[largest]) {
                prop_assert_eq!(leaf, at);
                prop_assert!(leaf.is_multiple_of(bytes) && leaf + bytes <= end);
                let larger = LEAF_SIZES.into_iter().filter(|more| {
                    *more > bytes && *more <= LEAF_SIZES[largest]
                });
                for larger in larger {
                    prop_assert!(!leaf.is_multiple_of(larger) || leaf + larger > end);
                }
                at += bytes;
            }
            prop_assert_eq!(at, end);
        }
    }
}
