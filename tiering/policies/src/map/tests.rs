//! The map against a list of every access, and against its own promises.

use proptest::prelude::*;

use super::*;

const WINDOW_NS: u64 = 1_638_400;
const EPOCH_NS: u64 = WINDOW_NS / WINDOW;

fn fill(map: &mut HotMap, times: &[u64]) -> Recorded {
    let mut last = Recorded::Dropped;
    for &at in times {
        let at = map.epoch(at);
        last = map.record_access(3, 5, at, 2);
    }
    last
}

/// No access older than the window counts, whatever the order of calls and the pauses.
fn never_counts_the_old(steps: &[(u64, usize)]) {
    let mut map = HotMap::new(16, WINDOW_NS);
    let mut seen: Vec<Vec<u64>> = vec![Vec::new(); 16];
    let mut now = 0;
    for &(pause, page) in steps {
        now += pause;
        let epoch = map.epoch(now);
        map.record_access(page, 1, epoch, 3);
        seen[page].push(now);
        for (page, times) in seen.iter().enumerate() {
            let young = times.iter().filter(|&&at| now - at <= WINDOW_NS).count();
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
    // Pauses of a fraction of an epoch, of some epochs, of some windows, and around the wrap of 14
    // bits of epochs.
    let pause = prop_oneof![
        0..2 * EPOCH_NS,
        0..WINDOW_NS / 4,
        0..4 * WINDOW_NS,
        4 * WINDOW_NS - WINDOW_NS / 16..4 * WINDOW_NS + WINDOW_NS / 8,
    ];
    prop::collection::vec((pause, 0_usize..16), 1..120)
}

proptest! {
    #[test]
    fn no_access_older_than_the_window_counts(steps in steps()) {
        never_counts_the_old(&steps);
    }

    #[test]
    fn late_accesses_are_dated_back(offset in 0..3 * WINDOW_NS, late in 0..2 * WINDOW_NS) {
        let mut map = HotMap::new(4, WINDOW_NS);
        let old = map.epoch(offset);
        let new = map.epoch(offset + late);
        map.record_access(0, 0, new, 3);
        let how = map.record_access(0, 0, old, 3);
        // In the epoch in which the older one stops to count, so does the record.
        let later = map.epoch(offset + WINDOW_NS + EPOCH_NS);
        if how != Recorded::Dropped && late > 0 {
            let counted = map.get(0, later).map_or(0, |record| record.frequency);
            prop_assert!(counted < 2, "{counted}");
        }
    }
}

#[test]
fn two_accesses_inside_the_window_make_a_page_ready() {
    let mut map = HotMap::new(8, WINDOW_NS);
    assert_eq!(fill(&mut map, &[0, WINDOW_NS * 14 / 16]), Recorded::Ready);
    let now = map.epoch(WINDOW_NS * 14 / 16);
    assert_eq!(map.record_access(3, 6, now, 2), Recorded::Again);
    let found = map.take(3, now);
    assert_eq!(found, Some(Record { node: 6, frequency: 3, ready: true }));
    assert_eq!(map.get(3, now), None);
}

#[test]
fn readiness_ends_with_the_window() {
    let mut map = HotMap::new(8, WINDOW_NS);
    assert_eq!(fill(&mut map, &[0, 1]), Recorded::Ready);
    let end = map.epoch(WINDOW_NS + EPOCH_NS);
    let after = map.take(3, end);
    assert!(after.is_none_or(|record| !record.ready), "{after:?}");
}

#[test]
fn two_accesses_a_wrap_apart_do_not_meet() {
    // 16384 epochs: the same number in 14 bits.
    let mut map = HotMap::new(8, WINDOW_NS);
    assert_eq!(fill(&mut map, &[0, 4 * WINDOW_NS]), Recorded::Counted(1));
}

#[test]
fn records_have_their_published_bits() {
    let mut map = HotMap::new(1, WINDOW_NS);
    let at = map.epoch(6 * EPOCH_NS);
    map.record_access(0, 9, at, 1);
    assert_eq!(map.records[0], 1 << 31 | 6 << 13 | 1 << 10 | 9);
}
