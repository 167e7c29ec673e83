//! Touches of made mappings, and the pages that each size would have had.

use pagelab_sys::counts::perf::Mapping;

use super::*;

const ANONYMOUS: (Place, Owner) = (Place::Anonymous, Owner::Unknown);

fn area(start: u64, end: u64) -> Area {
    let (offset, place, writable) = (0, Place::Anonymous, true);
    let (may_be_huge, untold) = (true, false);
    let (name, lineage) = ("".into(), start);
    let executable = false;
    Area { start, end, offset, place, writable, executable, may_be_huge, untold, name, lineage }
}

fn touched(pages: impl Iterator<Item = u64>, area: &Area) -> Density {
    let mut blocks = Blocks::default();
    for page in pages {
        blocks.first(1, page << 12, (Some(area), Owner::Unknown), true);
    }
    blocks.finish(&Places::default())[&ANONYMOUS]
}

#[test]
fn a_block_that_is_touched_as_a_whole_is_one_page_of_each_size() {
    let density = touched(512..1536, &area(2 << 20, 6 << 20));
    assert_eq!((density.faults, density.pages), (1024, 1024));
    let blocks: Vec<u64> = density.by_size.iter().map(|whole| whole.waves).collect();
    assert_eq!(blocks, [256, 128, 64, 32, 16, 8, 4, 2]);
}

#[test]
fn what_does_not_lie_in_its_mapping_as_a_whole_gets_no_larger_page() {
    // 1 MiB that starts 4 KiB into its block.
    let density = touched(513..769, &area((2 << 20) + 4096, (3 << 20) + 4096));
    let of = |size: u64| density.by_size[SIZES.iter().position(|s| *s == size).unwrap()];
    assert_eq!(of(512).blocks, 0);
    assert_eq!((of(16).blocks, of(16).pages), (15, 240));
}

#[test]
fn what_lies_in_a_block_only_in_the_end_is_for_khugepaged() {
    let mut places = Places::default();
    let mut blocks = Blocks::default();
    for (length, page) in [(1 << 20, 512), (2 << 20, 800)] {
        let name = "//anon".to_owned();
        let (offset, protection, flags, inode) = (0, 3, 2, 0);
        let start = 2 << 20;
        places.map(1, &Mapping { start, length, offset, protection, flags, inode, name }, 1);
        let area = places.find(1, page << 12);
        blocks.first(1, page << 12, (area, Owner::Unknown), true);
    }
    // A program that cleans up behind itself has had it all the same.
    blocks.take(1, (2 << 20, 3 << 20), Some(&places));
    places.unmap(1, 2 << 20, 4 << 20);
    let density = blocks.finish(&places)[&ANONYMOUS];
    assert_eq!((density.pages, density.late, density.by_size[7].faults), (2, 2, 0));
    assert_eq!(density.late_blocks, 1);
}

#[test]
fn pages_come_again_in_larger_pages_where_it_is_known_that_they_went() {
    let of = |told: bool| {
        let mut blocks = Blocks::default();
        for _ in 0..3 {
            for page in 512..1024_u64 {
                let area = area(2 << 20, 4 << 20);
                blocks.first(1, page << 12, (Some(&area), Owner::Unknown), true);
            }
            if told {
                blocks.take(1, (0, 1 << 40), None);
            }
        }
        blocks.finish(&Places::default())[&ANONYMOUS]
    };
    let whole = of(true).by_size[7];
    assert_eq!((whole.blocks, whole.faults, whole.waves, whole.unknown), (1, 1536, 3, 0));
    let whole = of(false).by_size[7];
    assert_eq!((whole.blocks, whole.faults, whole.waves, whole.unknown), (1, 512, 1, 1024));
}

#[test]
fn loads_and_what_replaces_the_zero_page_are_spared_where_the_kernel_keeps_the_block() {
    let of = |loads_keep: bool| {
        let mut blocks = Blocks { loads_keep, ..Blocks::default() };
        let area = area(2 << 20, 4 << 20);
        for page in 512..514_u64 {
            blocks.other((1, page << 12), Some(&area), Kind::Read, true);
        }
        for page in 514..1024_u64 {
            blocks.first(1, page << 12, (Some(&area), Owner::Unknown), true);
        }
        for page in 512..514_u64 {
            blocks.other((1, page << 12), Some(&area), Kind::ZeroWrite, true);
        }
        blocks.finish(&Places::default())[&ANONYMOUS].by_size[7]
    };
    let whole =
        Whole { blocks: 1, faults: 510, pages: 510, waves: 1, unknown: 0, reads: 1, rewrites: 2 };
    assert_eq!(of(true), whole);
    assert_eq!(of(false), Whole::default(), "before Linux 6.13");
}

#[test]
fn memory_that_may_have_no_larger_pages_has_none() {
    let mut blocks = Blocks::default();
    blocks.first(1, 2 << 20, (Some(&area(2 << 20, 4 << 20)), Owner::Unknown), false);
    let density = blocks.finish(&Places::default())[&ANONYMOUS];
    assert_eq!((density.faults, density.denied), (1, 1));
    assert_eq!(density.by_size, [Whole::default(); 8]);
}

#[test]
fn the_zero_page_is_remembered_until_it_is_replaced() {
    let mut blocks = Blocks::default();
    blocks.other((1, 0x5000), None, Kind::Read, true);
    assert_eq!(blocks.page(1, 0x5fff), (true, true));
    let others = (blocks.page(1, 0x6000), blocks.page(2, 0x5000));
    assert_eq!(others, ((false, false), (false, false)));
    blocks.fork(2, 1);
    assert_eq!(blocks.page(2, 0x5000), (true, true));
    blocks.other((1, 0x5000), None, Kind::ZeroWrite, true);
    assert_eq!(blocks.page(1, 0x5000), (false, true));
    blocks.end(2, &Places::default());
    assert_eq!(blocks.page(2, 0x5000), (false, false));
}
