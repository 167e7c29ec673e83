//! The text of a tiny trace.

use pagelab_trace::{
    Op, Width,
    stats::{Collector, Options, Stack},
};

fn tiny() -> Vec<Op> {
    let mut ops: Vec<Op> = (0..1_200).map(|at| Op::load(0x11080 + at % 24, Width::W2)).collect();
    ops.extend([
        Op::store(0x7fff_fff8, Width::W8, 1),
        Op::load(0x11082, Width::W2),
        Op::load(0x7fff_fff8, Width::W8),
        Op::store(0x2_0ffd, Width::W4, 2),
        Op::load(0x2_1000, Width::W1),
        Op::load(u64::MAX, Width::W8),
        Op::store(0x11084, Width::W1, 9),
        Op::load(0x11086, Width::W2),
    ]);
    ops
}

fn text(options: &Options) -> String {
    let mut collector = Collector::new(options).expect("good options");
    for op in tiny() {
        let Ok(()) = op.visit(&mut collector);
    }
    collector.finish(3).text("tiny.raw")
}

#[test]
fn in_the_layout_of_the_seed() {
    insta::assert_snapshot!(text(&Options::default()));
}

#[test]
fn without_top_pages_and_caches() {
    let options = Options { top: 0, caches: vec![], ..Options::default() };
    let text = text(&options);
    assert!(!text.contains("top pages") && !text.contains("cache sim"));
    assert!(text.contains("top_k: 0\n"));
}

#[test]
fn with_all_that_the_seed_does_not_have() {
    let options = Options { stack: Stack::Exact, tlb: true, ..Options::default() };
    let (more, plain) = (text(&options), text(&Options::default()));
    insta::assert_snapshot!(more.strip_prefix(&plain).expect("only adds"));
    let options = Options { stack: Stack::Sampled { one_in: 1_000 }, ..Options::default() };
    assert!(text(&options).contains("LRU page cache misses (estimated from 1 page in 1,000):"));
}
