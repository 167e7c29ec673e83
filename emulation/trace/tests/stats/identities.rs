//! Numbers that follow from formulas, the published ones among them.

use pagelab_trace::{
    Op, Width,
    stats::{BadOption, Bucket, Collector, DirectMapped, Options, PageOps, Stack, raw_bytes},
};

use crate::collect;

/// Reads before and after the only write of a trace like fast-mem's `fib`.
const BEFORE: u64 = 1;
const AFTER: u64 = 116_999;

/// A thousandth of `fib`: 117,000,006 reads of two bytes on page 0x11, and a write of eight on
/// page 0x7fff after the first.
fn fib() -> Vec<Op> {
    let fetch = |at: u64| Op::load(0x11080 + at % 12 * 2, Width::W2);
    let mut ops = vec![Op::load(0x11078, Width::W2), Op::store(0x07ff_fff8, Width::W8, 3)];
    ops.extend((0..AFTER).map(fetch));
    ops
}

#[test]
fn fib_follows_by_formula() {
    let stats = collect(&fib(), &Options::default());
    let reads = BEFORE + AFTER;
    assert_eq!((stats.ops, stats.reads, stats.writes), (reads + 1, reads, 1));
    assert_eq!((stats.read_widths, stats.write_widths), ([0, reads, 0, 0], [0, 0, 0, 1]));
    assert_eq!((stats.bytes_consumed, stats.bytes_total), (10 * reads + 18, 10 * reads + 18));
    assert_eq!((stats.straddles, stats.transitions, stats.reuse.cold), (0, 2, 2));
    let top = [PageOps { page: 0x11, ops: reads }, PageOps { page: 0x7fff, ops: 1 }];
    assert_eq!(stats.top_pages, top);
    let bucket = |min, count| Bucket { min, max: 2 * min - 1, count };
    assert_eq!(stats.runs, [bucket(1, 2), bucket(1 << 16, 1)]);
    // One read comes back over the write; all others follow a read.
    let distances = [bucket(1, reads - 2), bucket(2, 1)];
    assert_eq!(stats.reuse.distances, distances);
    assert_eq!((stats.absent.reads, stats.absent.pages), (reads, 1));
    assert_eq!(stats.absent.reuse.distances, distances);
    // 0x11 and 0x7fff share no slot.
    let cache =
        |entries| DirectMapped { entries, hits: reads - 1, misses: 2, conflicts: 0, cold: 2 };
    assert_eq!(stats.reuse.caches, [4, 8, 16, 32].map(cache));
    let cache =
        |entries| DirectMapped { entries, hits: reads - 1, misses: 1, conflicts: 0, cold: 1 };
    assert_eq!(stats.absent.reuse.caches, [4, 8, 16, 32].map(cache));
}

#[test]
fn the_published_sizes_follow_from_the_published_counts() {
    assert_eq!(raw_bytes(117_000_006, [0, 0, 0, 1]), 1_170_000_078);
    let writes = [22_434_883, 450_387, 591_855, 287_445_026];
    assert_eq!(writes.iter().sum::<u64>(), 310_922_151);
    assert_eq!(raw_bytes(3_849_865_371, writes), 43_933_138_505);
    assert_eq!(raw_bytes(u64::MAX, [u64::MAX; 4]), u64::MAX);
}

#[test]
fn a_write_in_the_middle_of_a_run_ends_absence() {
    let at = |offset: u64| 0x5000 + offset;
    let mut ops: Vec<Op> = (0..3).map(|offset| Op::load(at(offset), Width::W1)).collect();
    ops.push(Op::load(0x9000, Width::W1));
    ops.extend((0..2).map(|offset| Op::load(at(offset), Width::W1)));
    ops.push(Op::store(at(0), Width::W1, 1));
    ops.extend((0..5).map(|offset| Op::load(at(offset), Width::W1)));
    ops.push(Op::load(0x9000, Width::W1));
    let stats = collect(&ops, &Options::default());
    assert_eq!((stats.absent.reads, stats.absent.pages), (3 + 1 + 2 + 1, 2));
    let bucket = |min: u64, count| Bucket { min, max: 2 * min - 1, count };
    // Three reads follow one; page 5 comes back after 2 operations, page 9 after 9.
    let distances = [bucket(1, 3), bucket(2, 1), bucket(8, 1)];
    assert_eq!(stats.absent.reuse.distances, distances);
}

#[test]
fn the_end_of_the_address_space_is_not_crossed() {
    for shift in [0, 1, 2, 3, 12, 63] {
        let options = Options { page_shift: shift, ..Options::default() };
        for addr in u64::MAX - 8..=u64::MAX {
            let stats = collect(&[Op::load(addr, Width::W8)], &options);
            let end = u64::try_from((u128::from(addr) + 7).min(u128::from(u64::MAX))).unwrap();
            assert_eq!(stats.straddles, u64::from(addr >> shift != end >> shift));
            assert_eq!(stats.top_pages, [PageOps { page: addr >> shift, ops: 1 }]);
            assert_eq!(stats.transitions, 0);
        }
    }
}

#[test]
fn the_last_page_of_all_is_a_page_like_others() {
    // With pages of a byte, its number is the largest there is.
    let options = Options { page_shift: 0, caches: vec![1, 4], ..Options::default() };
    let ops = [0, u64::MAX, 0, u64::MAX, u64::MAX].map(|addr| Op::load(addr, Width::W1));
    let caches = collect(&ops, &options).reuse.caches;
    let one = DirectMapped { entries: 1, hits: 1, misses: 4, conflicts: 3, cold: 1 };
    let four = DirectMapped { entries: 4, hits: 3, misses: 2, conflicts: 0, cold: 2 };
    assert_eq!(caches, [one, four]);
    assert!(caches[1].hits * 10 == (caches[1].hits + caches[1].misses) * 6);
}

#[test]
fn a_cache_of_any_size_needs_no_memory_of_that_size() {
    let options = Options { caches: vec![u64::MAX, 1 << 60], ..Options::default() };
    let stats = collect(&fib(), &options);
    let misses: Vec<u64> = stats.reuse.caches.iter().map(|cache| cache.misses).collect();
    assert_eq!(misses, [2, 2]);
}

#[test]
fn nothing_has_statistics_too() {
    let options = Options { stack: Stack::Exact, tlb: true, ..Options::default() };
    let stats = Collector::new(&options).unwrap().finish(7);
    assert_eq!((stats.ops, stats.transitions, stats.bytes_consumed), (0, 0, 0));
    assert_eq!((stats.bytes_total, stats.reuse.cold, stats.absent.reads), (7, 0, 0));
    let stack = stats.stack.as_ref().unwrap();
    assert_eq!((stack.misses(0), stack.misses(1), stack.pages()), (0, 0, 0));
    assert_eq!((stats.straddles, stats.absent.pages), (0, 0));
    assert!(stats.text("nothing").ends_with('\n'));
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let refused = |options: &Options| Collector::new(options).unwrap_err();
    let good = Options::default();
    let options = Options { page_shift: 64, ..good.clone() };
    assert_eq!(refused(&options), BadOption::PageShift(64));
    let options = Options { caches: vec![4, 0], ..good.clone() };
    assert_eq!(refused(&options), BadOption::Cache);
    let options = Options { stack: Stack::Sampled { one_in: 0 }, ..good.clone() };
    assert_eq!(refused(&options), BadOption::OneIn);
    let options = Options { page_shift: 63, top: 0, caches: vec![], ..good };
    assert!(Collector::new(&options).is_ok());
}
