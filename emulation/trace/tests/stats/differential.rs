//! Random traces: the collector and the oracle agree in every number.

use pagelab_trace::{
    Op, Width,
    stats::{Options, Stack},
};
use proptest::prelude::*;

use crate::{collect, oracle::Oracle};

/// Traces that come back to their pages, stay on them, cross them, and reach the ends of space.
pub(crate) fn traces(shift: u32, length: usize) -> impl Strategy<Value = Vec<Op>> {
    let size = 1_u64 << shift;
    let base = prop_oneof![
        8 => (0..6_u64).prop_map(move |page| page.wrapping_mul(size)),
        4 => (0..200_u64).prop_map(move |page| page.wrapping_mul(size)),
        2 => (0..20_u64).prop_map(move |page| page.wrapping_mul(size).wrapping_neg()),
        1 => any::<u64>(),
        1 => Just(u64::MAX),
    ];
    let offset = prop_oneof![
        4 => 0..64_u64,
        2 => (0..9_u64).prop_map(u64::wrapping_neg),
        1 => any::<u64>().prop_map(move |offset| offset % size),
    ];
    let width = prop::sample::select(&Width::ALL[..]);
    let run = prop_oneof![6 => 1..4_u64, 2 => 1..20_u64, 1 => 250..520_u64];
    let burst = (base, offset, width, prop::bool::weighted(0.3), run, 0..4_u64);
    let ops = burst.prop_map(|(base, offset, width, store, run, stride)| {
        let op = move |at: u64| {
            let addr = base.wrapping_add(offset).wrapping_add(at * stride);
            if store { Op::store(addr, width, at) } else { Op::load(addr, width) }
        };
        (0..run).map(op).collect::<Vec<_>>()
    });
    prop::collection::vec(ops, 0..length).prop_map(|bursts| bursts.concat())
}

fn cases() -> impl Strategy<Value = (Options, Vec<Op>)> {
    let shift = prop_oneof![4 => Just(12_u32), 2 => 0..6_u32, 2 => 0..64_u32];
    let caches = prop_oneof![
        3 => Just(vec![4, 8, 16, 32]),
        2 => prop::collection::vec(1..70_u64, 0..7),
        1 => Just(vec![1]),
    ];
    (shift, 0..30_usize, caches).prop_flat_map(|(page_shift, top, caches)| {
        let options = Options { page_shift, top, caches, ..Options::default() };
        (Just(options), traces(page_shift, 120))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_number_is_the_oracles((options, ops) in cases()) {
        let mut oracle = Oracle::new(&options);
        for op in &ops {
            let Ok(()) = op.visit(&mut oracle);
        }
        prop_assert_eq!(collect(&ops, &options), oracle.finish(0));
    }

    #[test]
    fn stacks_and_tlbs_leave_the_rest_alone(
        (options, ops) in cases(),
        one_in in 1..5_u64,
        tlb: bool,
    ) {
        let plain = collect(&ops, &options);
        let more = Options { stack: Stack::Sampled { one_in }, tlb, ..options };
        let mut more = collect(&ops, &more);
        prop_assert!(more.stack.take().is_some());
        prop_assert_eq!(std::mem::take(&mut more.tlb).len(), if tlb { 3 } else { 0 });
        prop_assert_eq!(more, plain);
    }
}

/// More runs than are counted together, more pages than are looked up fast, distances that do not
/// fit into a byte.
#[test]
fn a_long_trace_too() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut ops = Vec::new();
    for _ in 0..30_000 {
        let page = match random(10) {
            0..5 => 7,
            5..9 => 0x7fff0 + random(9),
            _ => random(3_000) * 512,
        };
        let width = Width::ALL[usize::try_from(random(4)).unwrap()];
        for _ in 0..=random(8) {
            let addr = (page << 12) + random(4096);
            let store = page != 7 && random(5) == 0;
            ops.push(if store { Op::store(addr, width, 1) } else { Op::load(addr, width) });
        }
    }
    let caches = vec![6, 32, 4, 4, 1 << 9, 12, 5];
    let options = Options { caches, ..Options::default() };
    let mut oracle = Oracle::new(&options);
    for op in &ops {
        let Ok(()) = op.visit(&mut oracle);
    }
    let expected = oracle.finish(0);
    assert!(expected.straddles > 0 && expected.absent.reads > expected.absent.pages);
    assert!(expected.reuse.distances.last().unwrap().max > 0xffff);
    assert_eq!(collect(&ops, &options), expected);
}

/// The first absent read comes late, and on the page with the largest number there is.
#[test]
fn absent_reads_may_come_late() {
    let mut ops: Vec<Op> = (0..9_000).map(|at| Op::store(at % 3, Width::W1, 0)).collect();
    for addr in [u64::MAX, 7, u64::MAX, 1, u64::MAX, 7] {
        ops.push(Op::load(addr, Width::W1));
    }
    for caches in [vec![1], vec![1, 3], vec![2, 1 << 20]] {
        let options = Options { page_shift: 0, caches, ..Options::default() };
        let mut oracle = Oracle::new(&options);
        for op in &ops {
            let Ok(()) = op.visit(&mut oracle);
        }
        let expected = oracle.finish(0);
        assert_eq!((expected.absent.reads, expected.absent.pages), (5, 2));
        assert_eq!(collect(&ops, &options), expected);
    }
}
