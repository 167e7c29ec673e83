//! Stack distances: against a list, and sampled against exact.

use pagelab_trace::{
    Op, Width,
    stats::{Options, Stack, StackDistances, TLB_ENTRIES, TLB_SHIFTS},
};
use proptest::prelude::*;

use crate::{collect, differential::traces};

/// Operations by stack distance, 0 included, and first ones, as the textbook has it.
fn naive(ops: &[Op], shift: u32) -> (Vec<u64>, u64) {
    let (mut list, mut distances, mut cold) = (Vec::new(), Vec::new(), 0);
    for op in ops {
        let page = op.addr >> shift;
        if let Some(depth) = list.iter().position(|held| *held == page) {
            list.remove(depth);
            distances.resize(distances.len().max(depth + 1), 0);
            distances[depth] += 1;
        } else {
            cold += 1;
        }
        list.insert(0, page);
    }
    (distances, cold)
}

fn misses((distances, cold): &(Vec<u64>, u64), size: u64) -> u64 {
    let far = (0..).zip(distances).filter(|(distance, _)| *distance >= size);
    cold + far.map(|(_, count)| count).sum::<u64>()
}

fn stack(ops: &[Op], stack: Stack) -> StackDistances {
    collect(ops, &Options { stack, ..Options::default() }).stack.expect("asked for")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn exact_ones_are_those_of_a_list(
        (shift, ops) in (0..64_u32).prop_flat_map(|shift| (Just(shift), traces(shift, 80))),
        spread in prop::sample::select(vec![0_u32, 9, 13]),
    ) {
        // Also with pages that are far apart for the TLBs.
        let move_up = |op: &Op| Op::load(op.addr << spread, op.width);
        let ops: Vec<Op> = ops.iter().map(move_up).collect();
        let stack = Stack::Exact;
        let options = Options { page_shift: shift, stack, tlb: true, ..Options::default() };
        let stats = collect(&ops, &options);
        let (expected, stack) = (naive(&ops, shift), stats.stack.unwrap());
        prop_assert_eq!(stack.pages(), expected.1);
        for size in 0..expected.1 + 2 {
            prop_assert_eq!(stack.misses(size), misses(&expected, size));
        }
        for point in &stack.curve {
            prop_assert_eq!(point.misses, misses(&expected, point.pages));
        }
        prop_assert_eq!(stats.tlb.len(), TLB_SHIFTS.len());
        for (reach, shift) in stats.tlb.iter().zip(TLB_SHIFTS) {
            let expected = naive(&ops, shift);
            prop_assert_eq!((reach.page_shift, reach.pages), (shift, expected.1));
            for (tlb, entries) in reach.tlbs.iter().zip(TLB_ENTRIES) {
                prop_assert_eq!((tlb.entries, tlb.reach_bytes), (entries, entries << shift));
                prop_assert_eq!(tlb.misses, misses(&expected, entries));
            }
        }
    }

    #[test]
    fn a_sample_of_every_page_is_exact(ops in traces(12, 80)) {
        prop_assert_eq!(stack(&ops, Stack::Sampled { one_in: 1 }), stack(&ops, Stack::Exact));
    }
}

/// Loads of pages of which some are used far more often than others, in runs.
fn skewed(pages: u64, runs: usize) -> Vec<Op> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut ops = Vec::new();
    for run in 0..runs {
        // The largest of some numbers is likely to be large, the smallest to be small.
        let page = random(pages).min(random(pages)).min(random(pages));
        let length = 1 + run % 3;
        ops.extend((0..length).map(|_| Op::load(page << 12, Width::W4)));
    }
    ops
}

#[test]
fn a_sample_of_one_page_in_eight_is_near() {
    let ops = skewed(20_000, 150_000);
    let (exact, sampled) = (stack(&ops, Stack::Exact), stack(&ops, Stack::Sampled { one_in: 8 }));
    assert!(exact.pages() > 10_000, "{}", exact.pages());
    assert!(sampled.sampled_pages < exact.pages() / 6);
    assert!(sampled.pages().abs_diff(exact.pages()) < exact.pages() / 20);
    // Steps of eight pages are as fine as such a sample can be.
    let errors: Vec<f64> = (exact.curve.iter().filter(|point| point.pages >= 8))
        .map(|point| (point.miss_ratio - sampled.miss_ratio(point.pages)).abs())
        .collect();
    let largest = errors.iter().copied().fold(0.0, f64::max);
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    assert!(largest < 0.03 && mean < 0.02, "{largest} {mean}");
    // The curve is not flat: the bounds above say something.
    assert!(exact.miss_ratio(1) - exact.miss_ratio(16_384) > 0.3);
}

#[test]
fn curves_fall_and_end_where_everything_fits() {
    for how in [Stack::Exact, Stack::Sampled { one_in: 3 }] {
        let stack = stack(&skewed(500, 5_000), how);
        assert!(stack.curve.windows(2).all(|pair| pair[0].pages < pair[1].pages));
        assert!(stack.curve.windows(2).all(|pair| pair[0].misses >= pair[1].misses));
        let last = stack.curve.last().unwrap();
        assert!(last.pages >= stack.pages());
        assert_eq!(last.misses, stack.pages());
        assert_eq!(stack.misses(u64::MAX), stack.pages());
        assert_eq!((stack.misses(0), stack.misses(1)), (stack.ops, stack.runs));
    }
}
