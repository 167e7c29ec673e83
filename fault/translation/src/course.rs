//! In which order a chain goes through memory, and on which lines.
//!
//! The one idea: all that a data cache sees is the same for every page size; only what a TLB sees
//! differs. There is one line in each block of 4 KiB, so a chain over so many bytes has so many
//! lines, each loaded again after all the others. Pages are taken in turn: each round visits all of
//! them in one random order and takes another block of each, so that a page, too, comes again after
//! all the others, whatever its size.

const BLOCK: u64 = 4096;
const LINE: usize = 64;
/// Lines of a block.
const LINES: usize = 64;
const SEED: u64 = 0x7061_6765;

/// The place of each load, in bytes from the start of the memory.
///
/// Of each 64 blocks in a row each has another line, in random order: the lines of a chain spread
/// evenly over the sets of a cache.
pub(crate) fn course(bytes: u64, page: u64) -> Vec<usize> {
    let narrow = |count: u64| usize::try_from(count).expect("addresses have 64 bits");
    let (blocks, in_page) = (narrow(bytes / BLOCK), narrow((page / BLOCK).max(1)));
    let mut rng = fastrand::Rng::with_seed(SEED);
    // The lines first: nothing of the page is in them.
    let mut lines: Vec<usize> = (0..blocks).map(|block| block % LINES).collect();
    lines.chunks_mut(LINES).for_each(|group| rng.shuffle(group));
    let mut places: Vec<usize> = (0..blocks).collect();
    // Each page's blocks in an order of its own.
    places.chunks_mut(in_page).for_each(|page| rng.shuffle(page));
    let mut pages: Vec<&[usize]> = places.chunks(in_page).collect();
    rng.shuffle(&mut pages);
    let rounds =
        (0..in_page).flat_map(|round| pages.iter().filter_map(move |page| page.get(round)));
    rounds.map(|block| block * narrow(BLOCK) + lines[*block] * LINE).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_block_has_one_load_and_every_page_comes_again_after_all_others(
            blocks in 1_usize..2000, shift in 0_u32..10,
        ) {
            const BLOCK: usize = 4096;
            let page = BLOCK << shift;
            let course = course((blocks * BLOCK) as u64, page as u64);
            let visited: BTreeSet<usize> = course.iter().map(|place| place / 4096).collect();
            prop_assert_eq!((course.len(), visited.len()), (blocks, blocks));
            prop_assert!(course.iter().all(|place| place.is_multiple_of(LINE)));
            let page_of = |place: &usize| place / page;
            let whole = blocks * BLOCK / page;
            // Where pages are whole, each round is the first one again.
            if whole > 0 && (blocks * BLOCK).is_multiple_of(page) {
                let pages: Vec<usize> = course.iter().map(page_of).collect();
                prop_assert!(pages.chunks(whole).all(|round| *round == pages[..whole]));
                prop_assert_eq!(pages[..whole].iter().collect::<BTreeSet<_>>().len(), whole);
            }
        }
    }

    #[test]
    fn lines_spread_evenly_over_the_sets_of_a_cache() {
        let mut uses = [0; LINES];
        for place in course(4 << 20, 4096) {
            uses[place / LINE % LINES] += 1;
        }
        assert_eq!(uses, [16; LINES]);
    }

    #[test]
    fn lines_are_the_same_for_every_page_size() {
        let sorted = |page| {
            let mut course = course(4 << 20, page);
            course.sort_unstable();
            course
        };
        assert_ne!(course(4 << 20, 4096), course(4 << 20, 65536));
        assert_eq!(sorted(4096), sorted(65536));
        assert_eq!(sorted(4096), sorted(2 << 20));
    }
}
