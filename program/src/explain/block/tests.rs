//! Blocks touch by touch, against a naive count.

use proptest::prelude::*;

use super::*;

const ALL: Extent = (0, PAGES);

#[test]
fn memory_that_grows_behind_its_touches_gets_no_page_of_2m() {
    // Four steps of 128 pages; each is touched before the next one is mapped.
    let mut block = Block::default();
    let mut fates = Vec::new();
    for page in 0..PAGES {
        let mapped = (page / 128 + 1) * 128;
        fates.push(block.first(page, (0, mapped), true));
    }
    let count = |size: usize, fate| fates.iter().filter(|fates| fates[size] == fate).count();
    assert_eq!((count(7, Fate::Base), count(6, Fate::Base)), (512, 512), "2m and 1m");
    assert_eq!((count(5, Fate::Whole), count(5, Fate::Covered)), (4, 508), "512k");
    assert_eq!(block.windows(PAGES), (0, 0));
    assert_eq!(block.windows(16), (32, 512));
}

#[test]
fn a_page_that_is_there_keeps_its_window_from_coming() {
    let mut block = Block::default();
    block.other(5, true);
    let fates = block.first(4, ALL, true);
    assert_eq!(fates, [Fate::Base; 8]);
    assert_eq!(block.first(16, ALL, true)[..3], [Fate::Whole, Fate::Whole, Fate::Whole]);
    assert_eq!(block.page(5), (true, true));
}

#[test]
fn a_store_where_only_loads_were_brings_the_block() {
    let last = SIZES.len() - 1;
    let read = || {
        let mut block = Block::default();
        assert!(!block.read(5, Some(ALL))[last], "the first load takes a fault");
        assert_eq!(block.read(9, Some(ALL)), std::array::from_fn(|index| index == last));
        block
    };
    let mut block = read();
    let fates = block.first(4, ALL, true);
    assert_eq!((fates[0], fates[last]), (Fate::Base, Fate::Whole));
    assert_eq!(block.rewrite(5), (std::array::from_fn(|index| index == last), false));
    assert_eq!(block.first(6, ALL, true)[last], Fate::Covered);
    // Or the store goes to a page that was loaded.
    let mut block = read();
    let (spared, came) = block.rewrite(9);
    assert!(spared[last] && came && !spared[0]);
    assert_eq!((block.first(6, ALL, true)[last], block.windows(PAGES)), (Fate::Covered, (1, 1)));
}

#[test]
fn loads_bring_no_block_where_a_page_is_there_or_the_mapping_is_shorter() {
    let last = SIZES.len() - 1;
    let mut stored = Block::default();
    stored.first(0, (0, 256), true);
    let mut short = Block::default();
    let mut taken = Block::default();
    taken.read(5, Some(ALL));
    taken.take((0, 1), false);
    for (block, extent) in
        [(&mut stored, Some(ALL)), (&mut short, Some((0, 256))), (&mut taken, None)]
    {
        block.read(7, extent);
        assert!(!block.read(9, extent)[last]);
        assert_eq!(block.first(6, ALL, true)[last], Fate::Base);
        let (spared, came) = block.rewrite(9);
        assert!(!spared[last] && !came);
    }
}

#[test]
fn what_was_given_back_comes_again_as_it_came() {
    let mut block = Block::default();
    for _ in 0..3 {
        assert_eq!(block.first(0, ALL, true), [Fate::Whole; 8]);
        assert_eq!(block.first(511, ALL, true)[7], Fate::Covered);
        block.take(ALL, false);
    }
    // A part of a window is no window.
    block.first(0, ALL, true);
    block.take((0, 2), false);
    assert_eq!(block.first(0, ALL, true)[0], Fate::Base);
    // Nobody said that it went away.
    assert_eq!(block.first(0, ALL, true)[0], Fate::Unknown);
    // A small window came again, in a large one that had stayed.
    block.take(ALL, false);
    block.first(0, ALL, true);
    block.take((0, 4), false);
    assert_eq!(block.first(0, ALL, true)[..2], [Fate::Whole, Fate::Base]);
    assert_eq!(block.first(1, ALL, true)[..2], [Fate::Covered, Fate::Base]);
}

#[test]
fn a_page_table_that_is_there_stays_until_it_is_unmapped() {
    let mut block = Block::default();
    assert_eq!(block.first(0, (0, 256), true)[7], Fate::Base);
    block.take(ALL, false);
    assert_eq!(block.first(0, ALL, true)[7], Fate::Base);
    block.take(ALL, true);
    assert_eq!(block.first(0, ALL, true)[7], Fate::Whole);
}

#[test]
fn where_nobody_knows_what_was_there_nothing_is_promised() {
    assert_eq!(Block::default().first(0, ALL, false), [Fate::Unknown; 8]);
}

proptest! {
    #[test]
    fn sizes_agree_with_a_naive_count(
        pages in prop::collection::btree_set(0_u64..PAGES, 1..300),
    ) {
        let mut block = Block::default();
        let mut whole = [0_u64; SIZES.len()];
        for page in &pages {
            let fates = block.first(*page, ALL, true);
            for (whole, fate) in whole.iter_mut().zip(fates) {
                prop_assert!(matches!(fate, Fate::Whole | Fate::Covered));
                *whole += u64::from(fate == Fate::Whole);
            }
        }
        for (size, whole) in SIZES.iter().zip(whole) {
            let naive: std::collections::BTreeSet<u64> =
                pages.iter().map(|page| page / size).collect();
            prop_assert_eq!(whole, naive.len() as u64);
            prop_assert_eq!(block.windows(*size), (whole, pages.len() as u64));
        }
    }
}
