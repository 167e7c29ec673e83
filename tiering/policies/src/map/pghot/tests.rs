//! The published record: its bits, its arithmetic, its eleven steps.

use proptest::prelude::*;

use super::*;

/// Page frames by number: what each of them is tells its name.
const TOP: u32 = 1;
const OFF_LRU: u32 = 2;
const OFFLINE: u32 = 3;
const OFFLINE_TOP: u32 = 4;
const GOOD: u32 = 5;

struct Machine;

impl Frames for Machine {
    fn is_online(&self, pfn: u32) -> bool {
        pfn != OFFLINE && pfn != OFFLINE_TOP
    }

    fn node(&self, pfn: u32) -> u16 {
        if pfn == TOP || pfn == OFFLINE_TOP { 1 } else { 2 }
    }

    fn is_top_tier(&self, pfn: u32) -> bool {
        self.node(pfn) < 2
    }

    fn is_on_lru(&self, pfn: u32) -> bool {
        pfn != OFF_LRU
    }

    fn is_node(&self, node: u16) -> bool {
        node < 3
    }
}

fn map(mode: Mode, order: Order) -> Map {
    Map::new(100, Tunables { order, ..Tunables::published(mode) })
}

fn hint(map: &mut Map, pfn: u32, node: u16, now: u64) -> Step {
    map.record_access(pfn, node, Source::HwHint, now, &Machine)
}

#[test]
fn records_have_the_published_bits() {
    let record = Record { node: 0, frequency: 2, time: 21, ready: true };
    assert_eq!(Mode::Default.encode(record), 0xd6);
    let record = Record { node: 513, frequency: 5, time: 0x2aaa, ready: true };
    assert_eq!(Mode::Precision.encode(record), 0x8555_5601);
    let record = Record { time: 0x6_aaaa, ..record };
    assert_eq!(Mode::Wide.encode(record), 0x8000_0000_d555_5601);
}

proptest! {
    #[test]
    fn bits_and_records_are_the_same(bits in any::<u64>()) {
        let byte = bits & 0xff;
        prop_assert_eq!(Mode::Default.encode(Mode::Default.decode(byte)), byte);
        // Bits 27 to 30 mean nothing.
        let used = bits & 0x87ff_ffff;
        prop_assert_eq!(Mode::Precision.encode(Mode::Precision.decode(bits)), used);
        // Bits 32 to 62 mean nothing.
        let used = bits & 0x8000_0000_ffff_ffff;
        prop_assert_eq!(Mode::Wide.encode(Mode::Wide.decode(bits)), used);
    }

    #[test]
    fn latency_is_right_up_to_the_wrap_and_wrong_behind_it(
        then in any::<u32>(),
        passed in 0_u64..1 << 14,
    ) {
        let then = u64::from(then);
        let mode = Mode::Precision;
        prop_assert_eq!(mode.latency(then + passed, mode.time(then)), passed);
        prop_assert_eq!(mode.latency(then + passed + (1 << 14), mode.time(then)), passed);
        let mode = Mode::Default;
        let buckets = ((then + passed) >> 7) - (then >> 7);
        prop_assert_eq!(mode.latency(then + passed, mode.time(then)), buckets % 32 * 128);
    }
}

#[test]
fn every_step_ends_where_it_should() {
    for order in [Order::V7, Order::V8] {
        let mut map = map(Mode::Default, order);
        map.start(false);
        assert_eq!(hint(&mut map, GOOD, 0, 0), Step::NotStarted);
        map.start(true);
        assert_eq!(hint(&mut map, GOOD, 9, 0), Step::NoNode);
        assert_eq!(hint(&mut map, GOOD, 2, 0), Step::SameNode);
        assert_eq!(hint(&mut map, TOP, 0, 0), Step::TopTier);
        assert_eq!(hint(&mut map, TOP, 1, 0), Step::SameNode);
        assert_eq!(hint(&mut map, OFFLINE, 0, 0), Step::Offline);
        assert_eq!(hint(&mut map, OFF_LRU, 0, 0), Step::NotOnLru);
        assert_eq!(hint(&mut map, 200, 0, 0), Step::NoMap);
        assert_eq!(hint(&mut map, GOOD, 0, 0), Step::Recorded);
        assert_eq!(hint(&mut map, GOOD, 0, 1), Step::Ready { again: false });
        assert_eq!(hint(&mut map, GOOD, 0, 2), Step::Ready { again: true });
        // Sources are counted before the filters, accesses behind them.
        assert_eq!(map.counters.hw_hints, 9);
        assert_eq!(map.counters.accesses, 3);
    }
}

#[test]
fn the_versions_ask_in_different_orders() {
    assert_eq!(hint(&mut map(Mode::Default, Order::V7), OFFLINE_TOP, 0, 0), Step::TopTier);
    assert_eq!(hint(&mut map(Mode::Default, Order::V8), OFFLINE_TOP, 0, 0), Step::Offline);
}

#[test]
fn a_source_that_is_off_is_not_counted() {
    let tunables = Tunables { sources: 1, ..Tunables::published(Mode::Default) };
    let mut map = Map::new(100, tunables);
    assert_eq!(hint(&mut map, GOOD, 0, 0), Step::SourceOff);
    assert_eq!(map.counters.hw_hints, 0);
    map.record_access(GOOD, 0, Source::HintFault, 0, &Machine);
    assert_eq!(map.counters.hint_faults, 1);
}

#[test]
fn time_has_an_alias_one_wrap_later() {
    // The window is over, and the record starts again; one wrap later it is taken for recent.
    for (passed, step) in [
        (2900, Step::Ready { again: false }),
        (3500, Step::Recorded),
        (4096 + 100, Step::Ready { again: false }),
        (878 * 4096 + 1024, Step::Ready { again: false }),
    ] {
        let mut map = map(Mode::Default, Order::V8);
        hint(&mut map, GOOD, 0, 0);
        assert_eq!(hint(&mut map, GOOD, 0, passed), step, "{passed}");
    }
}

#[test]
fn at_250_hz_the_field_lasts_four_times_as_long() {
    let tunables = Tunables { hz: 250, ..Tunables::published(Mode::Default) };
    let mut map = Map::new(100, tunables);
    // 4.2 s is an alias at 1000 Hz, and here outside the window; 16.4 s later is the alias.
    hint(&mut map, GOOD, 0, 0);
    assert_eq!(hint(&mut map, GOOD, 0, 4200 / 4), Step::Recorded);
    assert_eq!(hint(&mut map, GOOD, 0, 4200 / 4 + 16_384 / 4), Step::Ready { again: false });
}

#[test]
fn a_window_longer_than_the_field_never_ends() {
    let tunables = Tunables { window_ms: 4000, ..Tunables::published(Mode::Default) };
    for passed in 1..100 {
        let mut map = Map::new(100, tunables);
        hint(&mut map, GOOD, 0, 0);
        let step = hint(&mut map, GOOD, 0, passed * 977);
        assert_eq!(step, Step::Ready { again: false }, "{passed}");
    }
}

#[test]
fn ready_survives_the_window() {
    let mut map = map(Mode::Default, Order::V8);
    hint(&mut map, GOOD, 0, 0);
    hint(&mut map, GOOD, 0, 1);
    assert_eq!(hint(&mut map, GOOD, 0, 3500), Step::Ready { again: true });
    assert_eq!(map.get(GOOD).frequency, 1);
}

#[test]
fn of_eight_bytes_another_node_starts_the_count_again() {
    let mut map = map(Mode::Wide, Order::V8);
    assert_eq!(hint(&mut map, GOOD, 0, 0), Step::Recorded);
    assert_eq!(hint(&mut map, GOOD, 1, 1), Step::Recorded);
    assert_eq!(hint(&mut map, GOOD, 1, 2), Step::Ready { again: false });
    // 524.288 s at 1000 Hz until a time looks recent again.
    assert_eq!(Mode::Wide.latency((1 << 19) + 7, Mode::Wide.time(0)), 7);
    assert_eq!(Mode::Wide.map_bytes(1 << 40), 2 << 30);
}

#[test]
fn a_section_that_goes_offline_takes_its_records_with_it() {
    let mut map = map(Mode::Default, Order::V8);
    hint(&mut map, GOOD, 0, 0);
    hint(&mut map, GOOD, 0, 1);
    let record = map.get(GOOD);
    map.offline(0);
    assert_eq!(hint(&mut map, GOOD, 0, 2), Step::NoMap);
    // Nor does a daemon that corrects itself put back what there is no place for.
    map.restore(GOOD, record);
    map.online(0);
    assert_eq!((map.get(GOOD).frequency, map.get(GOOD).ready), (0, false));
    assert_eq!(hint(&mut map, GOOD, 0, 3), Step::Recorded);
}

#[test]
fn frequencies_saturate() {
    for (mode, most, node) in [(Mode::Default, 3, 0), (Mode::Precision, 7, 1), (Mode::Wide, 7, 1)] {
        let mut map = map(mode, Order::V8);
        for now in 0..10 {
            hint(&mut map, GOOD, 1, now);
        }
        let record = map.get(GOOD);
        assert_eq!((record.frequency, record.node), (most, node));
    }
}
