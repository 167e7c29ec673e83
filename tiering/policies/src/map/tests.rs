//! The map against a list of every access, and against its own promises.

use proptest::prelude::*;

use super::*;

const WINDOW: u64 = 1_600_000;

fn fill<L: Layout>(map: &HotMap<L>, times: &[u64]) -> Recorded {
    let mut last = Recorded::Dropped;
    for &at in times {
        last = map.record_access(3, 5, map.epoch(at), 2);
    }
    last
}

/// No access older than the window counts, whatever the order of calls and the pauses.
fn never_counts_the_old<L: Layout>(steps: &[(u64, usize)], window: u64) {
    let map: HotMap<L> = HotMap::new(16, window);
    let mut seen: Vec<Vec<u64>> = vec![Vec::new(); 16];
    let mut now = 0;
    for &(pause, page) in steps {
        now += pause;
        let epoch = map.epoch(now);
        map.record_access(page, 1, epoch, 3);
        seen[page].push(now);
        for (page, times) in seen.iter().enumerate() {
            let young = times.iter().filter(|&&at| now - at <= window).count();
            let record = map.get(page, epoch);
            let counted = record.map_or(0, |record| usize::from(record.frequency));
            assert!(counted <= young, "page {page}: {counted} of {times:?} at {now}");
            if young == 0 {
                assert_eq!(record, None);
            }
        }
        // What came in this epoch is known.
        assert!(map.get(page, epoch).is_some());
    }
}

fn steps() -> impl Strategy<Value = Vec<(u64, usize)>> {
    // Pauses of a fraction of an epoch, of some epochs, of some windows, and around the wrap.
    let pause = prop_oneof![
        0..WINDOW / 64,
        0..WINDOW / 4,
        0..4 * WINDOW,
        2 * WINDOW - WINDOW / 16..2 * WINDOW + WINDOW / 8,
    ];
    prop::collection::vec((pause, 0_usize..16), 1..120)
}

proptest! {
    #[test]
    fn no_access_older_than_the_window_counts_in_one_byte(steps in steps()) {
        never_counts_the_old::<Default8>(&steps, WINDOW);
    }

    #[test]
    fn no_access_older_than_the_window_counts_in_four_bytes(steps in steps()) {
        never_counts_the_old::<Precision32>(&steps, WINDOW);
        // Pauses that wrap 14 bits of epochs.
        let long: Vec<_> = steps.iter().map(|&(pause, page)| (pause * 4, page)).collect();
        never_counts_the_old::<Precision32>(&long, WINDOW);
    }

    #[test]
    fn late_accesses_are_dated_back(offset in 0_u64..3 * WINDOW, late in 0_u64..2 * WINDOW) {
        let map: HotMap<Default8> = HotMap::new(4, WINDOW);
        let old = map.epoch(offset);
        let new = map.epoch(offset + late);
        map.record_access(0, 0, new, 3);
        let how = map.record_access(0, 0, old, 3);
        // In the epoch in which the older one stops to count, so does the record.
        let later = map.epoch(offset + WINDOW + WINDOW / 16);
        if how != Recorded::Dropped && late > 0 {
            let counted = map.get(0, later).map_or(0, |record| record.frequency);
            prop_assert!(counted < 2, "{counted}");
        }
    }
}

#[test]
fn two_accesses_inside_the_window_make_a_page_ready() {
    let map: HotMap<Default8> = HotMap::new(8, WINDOW);
    assert_eq!(fill(&map, &[0, WINDOW * 14 / 16]), Recorded::Ready);
    let again = map.record_access(3, 0, map.epoch(WINDOW * 14 / 16), 2);
    assert_eq!(again, Recorded::Again);
    let found = map.take(3, map.epoch(WINDOW * 14 / 16));
    assert_eq!(found, Some(Record { node: 0, frequency: 3, ready: true }));
    assert_eq!(map.get(3, map.epoch(WINDOW * 14 / 16)), None);
}

#[test]
fn readiness_ends_with_the_window() {
    let map: HotMap<Precision32> = HotMap::new(8, WINDOW);
    assert_eq!(fill(&map, &[0, 1]), Recorded::Ready);
    let after = map.take(3, map.epoch(WINDOW + WINDOW / 4096));
    assert!(after.is_none_or(|record| !record.ready), "{after:?}");
}

#[test]
fn two_accesses_a_wrap_apart_do_not_meet() {
    // 32 epochs: the same number in five bits.
    let map: HotMap<Default8> = HotMap::new(8, WINDOW);
    assert_eq!(fill(&map, &[0, 2 * WINDOW]), Recorded::Counted(1));
    let map: HotMap<Precision32> = HotMap::new(8, WINDOW);
    assert_eq!(fill(&map, &[0, 4 * WINDOW]), Recorded::Counted(1));
}

#[test]
fn a_map_takes_what_it_says() {
    assert_eq!(HotMap::<Default8>::new(1 << 20, WINDOW).bytes(), 1 << 20);
    assert_eq!(HotMap::<Precision32>::new(1 << 20, WINDOW).bytes(), 4 << 20);
}

#[test]
fn records_have_their_published_bits() {
    let map: HotMap<Default8> = HotMap::new(1, WINDOW);
    map.record_access(0, 9, map.epoch(5 * WINDOW / 16), 1);
    assert_eq!(map.cells.load(0), 0x95);
    let map: HotMap<Precision32> = HotMap::new(1, WINDOW);
    map.record_access(0, 9, map.epoch(5 * WINDOW / 16 + WINDOW / 16), 1);
    let epoch = (6 * WINDOW / 16) / (WINDOW / 4096);
    assert_eq!(map.cells.load(0), 1 << 31 | epoch << 13 | 1 << 10 | 9);
}

#[test]
fn no_access_is_lost_between_threads() {
    let map: HotMap<Default8> = HotMap::new(64, WINDOW);
    let epoch = map.epoch(0);
    let count = || {
        let mut counted = 0;
        for page in (0..64).cycle().take(64 * 100) {
            // Whoever makes a page ready takes it.
            if map.record_access(page, 0, epoch, 2) == Recorded::Ready {
                counted += u32::from(map.take(page, epoch).is_some());
            }
        }
        counted
    };
    let total: u32 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    // 400 accesses a page: two or three for each time it was taken.
    assert!((64 * 400 / 4..=64 * 400 / 2).contains(&total), "{total}");
}
