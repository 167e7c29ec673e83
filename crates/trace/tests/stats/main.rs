//! Every statistic against the plain oracle, stack distances against a plain list, and the
//! identities that the published numbers obey.

mod oracle;

use std::convert::Infallible;

use pagelab_trace::{
    Op, Width, raw,
    stats::{BadOption, Collector, Options, Stack, Stats, TLB_ENTRIES, TLB_SHIFTS},
    synth::Spec,
};
use proptest::prelude::*;

use crate::oracle::Oracle;

fn collected(options: &Options, ops: &[Op]) -> Stats {
    let mut collector = Collector::new(options).expect("options that make sense");
    for op in ops {
        let Ok(()) = op.visit(&mut collector);
    }
    collector.finish(3)
}

fn expected(options: &Options, ops: &[Op]) -> Stats {
    let mut oracle = Oracle::new(options);
    for op in ops {
        let Ok(()) = op.visit(&mut oracle);
    }
    oracle.finish(3)
}

/// The same through the decoder and the collector's own visitor.
fn decoded(options: &Options, ops: &[Op]) -> Stats {
    let mut collector = Collector::new(options).expect("options that make sense");
    for half in [&ops[..ops.len() / 2], &ops[ops.len() / 2..]] {
        let mut bytes = Vec::new();
        for op in half {
            raw::encode(*op, &mut bytes);
        }
        let mut pass = collector.pass();
        assert_eq!(pagelab_trace::decode::visit(&bytes, 0, &mut pass), Ok(bytes.len()));
    }
    collector.finish(3)
}

/// Few pages, their borders, both ends of the address space, and runs that go straight on.
fn ops() -> impl Strategy<Value = Vec<Op>> {
    let addr = prop_oneof![
        4 => (0..6_u64, 0..4096_u64).prop_map(|(page, offset)| page * 4096 + offset),
        2 => (0..6_u64, 4089..4096_u64).prop_map(|(page, offset)| page * 4096 + offset),
        1 => any::<u64>(),
        1 => (0..9_u64).prop_map(|back| u64::MAX - back),
    ];
    let width = prop::sample::select(&Width::ALL[..]);
    let one = (addr, width, any::<bool>(), 1..9_u64).prop_map(|(addr, width, store, run)| {
        let op = |nth: u64| {
            let addr = addr.wrapping_add(nth * width.bytes() as u64);
            if store { Op::store(addr, width, nth) } else { Op::load(addr, width) }
        };
        (0..run).map(op).collect::<Vec<Op>>()
    });
    prop::collection::vec(one, 0..120).prop_map(|runs| runs.concat())
}

fn options() -> impl Strategy<Value = Options> {
    let shift = prop_oneof![4 => Just(12), 1 => 0..64_u32, 1 => 8..16_u32];
    let caches = prop::collection::vec(1..40_u64, 0..5);
    (shift, 0..8_usize, caches).prop_map(|(page_shift, top, caches)| Options {
        page_shift,
        top,
        caches,
        ..Options::default()
    })
}

/// LRU stack distances as anybody would find them: a list, the page used last in front. Returns
/// hits at each depth, and the misses of pages never seen.
fn naive_stack(ops: &[Op], shift: u32) -> (Vec<u64>, u64) {
    let (mut list, mut depths, mut cold) = (Vec::new(), Vec::new(), 0);
    for op in ops {
        let page = op.addr >> shift;
        match list.iter().position(|known| *known == page) {
            Some(depth) => {
                list.remove(depth);
                if depths.len() <= depth {
                    depths.resize(depth + 1, 0);
                }
                depths[depth] += 1;
            }
            None => cold += 1,
        }
        list.insert(0, page);
    }
    (depths, cold)
}

proptest! {
    #[test]
    fn every_statistic_is_the_oracles(options in options(), ops in ops()) {
        let expected = expected(&options, &ops);
        prop_assert_eq!(&collected(&options, &ops), &expected);
        prop_assert_eq!(&decoded(&options, &ops), &expected);
    }

    #[test]
    fn other_statistics_do_not_depend_on_stack_distances(options in options(), ops in ops()) {
        let more = Options { stack: Stack::Exact, tlb: true, ..options.clone() };
        let mut with = collected(&more, &ops);
        (with.stack, with.tlb) = (None, Vec::new());
        prop_assert_eq!(with, collected(&options, &ops));
    }

    #[test]
    fn tlb_misses_are_those_of_a_plain_lru_list(ops in ops()) {
        let options = Options { tlb: true, ..Options::default() };
        let stats = collected(&options, &ops);
        prop_assert_eq!(stats.tlb.len(), TLB_SHIFTS.len());
        for (reach, shift) in stats.tlb.iter().zip(TLB_SHIFTS) {
            let (depths, cold) = naive_stack(&ops, shift);
            prop_assert_eq!((reach.page_shift, reach.pages), (shift, cold));
            for (misses, entries) in reach.tlbs.iter().zip(TLB_ENTRIES) {
                let hits: u64 = depths.iter().take(usize::try_from(entries).unwrap()).sum();
                let all = ops.len() as u64;
                prop_assert_eq!((misses.entries, misses.misses), (entries, all - hits));
            }
        }
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let refused = |options: Options| Collector::new(&options).err();
    let default = Options::default;
    assert_eq!(refused(Options { page_shift: 64, ..default() }), Some(BadOption::PageShift(64)));
    assert_eq!(refused(Options { caches: vec![4, 0], ..default() }), Some(BadOption::Cache));
    let stack = Stack::Sampled { one_in: 0 };
    assert_eq!(refused(Options { stack, ..default() }), Some(BadOption::OneIn));
}

/// Counts bytes as the published trace's would be: loads of ten, stores with their value.
fn raw_bytes(loads: u64, stores: [u64; 4]) -> u64 {
    let stores = stores.iter().zip(Width::ALL);
    loads * 10 + stores.map(|(count, width)| count * (10 + width.bytes() as u64)).sum::<u64>()
}

#[test]
fn the_published_sizes_follow_from_the_published_counts() {
    assert_eq!(raw_bytes(117_000_006, [0, 0, 0, 1]), 1_170_000_078);
    let stores = [22_434_883, 450_387, 591_855, 287_445_026];
    assert_eq!(stores.iter().sum::<u64>(), 310_922_151);
    assert_eq!(raw_bytes(3_849_865_371, stores), 43_933_138_505);
}

#[test]
fn a_short_fib_obeys_the_identities_of_the_published_one() {
    let ops = 100_007;
    let mut collector = Collector::new(&Options::default()).unwrap();
    let Ok::<_, Infallible>(()) =
        Spec::parse("fib").unwrap().with_ops(ops).generate(&mut collector);
    let stats = collector.finish(0);
    assert_eq!((stats.reads, stats.writes, stats.transitions), (ops - 1, 1, 2));
    assert_eq!((stats.read_widths, stats.write_widths), ([0, ops - 1, 0, 0], [0, 0, 0, 1]));
    assert_eq!((stats.absent.reads, stats.absent.pages), (ops - 1, 1));
    assert_eq!(stats.bytes_consumed, (ops - 1) * 10 + 18);
    assert_eq!(stats.top_pages.iter().map(|top| top.page).collect::<Vec<_>>(), [0x11, 0x7fff]);
}

#[test]
fn sampled_stack_distances_are_close_to_exact_ones() {
    let curve = |stack| {
        let options = Options { stack, ..Options::default() };
        let mut collector = Collector::new(&options).unwrap();
        let spec = Spec::parse("zipf:footprint=64m,exponent=0.8").unwrap().with_ops(200_000);
        let Ok::<_, Infallible>(()) = spec.generate(&mut collector);
        collector.finish(0).stack.unwrap()
    };
    let (exact, sampled) = (curve(Stack::Exact), curve(Stack::Sampled { one_in: 8 }));
    for entries in [64, 512, 2048, 8192] {
        let (a, b) = (exact.miss_ratio(entries), sampled.miss_ratio(entries));
        assert!((a - b).abs() < 0.05, "{entries} pages: exact {a}, sampled {b}");
    }
}

#[test]
fn nothing_seen_is_nothing_counted() {
    let stats = collected(&Options { tlb: true, stack: Stack::Exact, ..Options::default() }, &[]);
    assert_eq!((stats.ops, stats.transitions, stats.bytes_total), (0, 0, 3));
    assert!(stats.text("empty").contains("ops: 0"));
}
