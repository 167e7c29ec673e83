//! Parts: put together they are the whole, wherever it is cut.

use std::{fs, path::Path};

use pagelab_trace::{
    Op,
    file::{SpanError, Start, span},
    raw,
    stats::{Absent, Collector, Misfit, Options, Part, Reuse, Stack, Stats, Whole},
};
use proptest::prelude::*;

use crate::{collect, differential::traces};

fn part(ops: &[Op], options: &Options) -> Part {
    let mut collector = Collector::new(options).expect("good options");
    for op in ops {
        let Ok(()) = op.visit(&mut collector);
    }
    collector.into_part()
}

/// What parts cannot know is left out: how absent pages are used again.
fn as_parts_know(stats: Stats) -> Stats {
    let Absent { reads, pages, reuse: Reuse { cold, .. } } = stats.absent;
    let reuse = Reuse { distances: Vec::new(), cold, caches: Vec::new() };
    Stats { absent: Absent { reads, pages, reuse }, ..stats }
}

fn options() -> impl Strategy<Value = (Options, Vec<Op>)> {
    let shift = prop_oneof![4 => Just(12_u32), 2 => 0..6_u32, 2 => 0..64_u32];
    let stack = prop_oneof![
        1 => Just(Stack::Off),
        3 => Just(Stack::Exact),
        1 => Just(Stack::Sampled { one_in: 3 }),
    ];
    let caches = prop::collection::vec(1..70_u64, 0..5);
    (shift, 0..30_usize, caches, stack, any::<bool>()).prop_flat_map(
        |(page_shift, top, caches, stack, tlb)| {
            (Just(Options { page_shift, top, caches, stack, tlb }), traces(page_shift, 60))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn parts_are_the_whole_wherever_it_is_cut(
        (options, ops) in options(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(ops.len() + 1)).collect();
        cuts.extend([0, ops.len()]);
        cuts.sort_unstable();
        let mut whole = Whole::new(&options).unwrap();
        for pair in cuts.windows(2) {
            whole.append(&part(&ops[pair[0]..pair[1]], &options)).unwrap();
        }
        prop_assert_eq!(whole.finish(0), as_parts_know(collect(&ops, &options)));
    }

    #[test]
    fn parts_of_a_file_meet_and_are_the_whole(ops in traces(12, 60), size in 1..400_u64) {
        prop_assume!(!ops.is_empty());
        let (folder, options) = (tempfile::tempdir().unwrap(), Options::default());
        let path = folder.path().join("trace.bin");
        let length = write(&path, &ops);
        let mut whole = Whole::new(&options).unwrap();
        let mut at = 0;
        while at < length {
            let mut collector = Collector::new(&options).unwrap();
            let end = at + size;
            let read = span(&path, Start::At(at), end, &mut collector).unwrap();
            prop_assert_eq!(read.from, at);
            prop_assert!(read.to >= end.min(length) && read.to < end + 18);
            whole.append(&collector.into_part()).unwrap();
            at = read.to;
        }
        prop_assert_eq!(whole.finish(0), as_parts_know(collect(&ops, &options)));
    }
}

fn write(path: &Path, ops: &[Op]) -> u64 {
    let mut bytes = Vec::new();
    for op in ops {
        raw::encode(*op, &mut bytes);
    }
    fs::write(path, &bytes).expect("a folder of our own");
    bytes.len() as u64
}

#[test]
fn a_record_is_found_near_a_byte_and_a_wrong_guess_does_not_meet_the_part_before() {
    use pagelab_trace::Width;
    let (folder, options) = (tempfile::tempdir().unwrap(), Options::default());
    let path = folder.path().join("trace.bin");
    let plain: Vec<Op> =
        (0..9_000).map(|at| Op::store(0x7f00_0000 + at * 64, Width::W4, at)).collect();
    let length = write(&path, &plain);
    let near = |at| {
        let mut collector = Collector::new(&options).unwrap();
        span(&path, Start::Near(at), length, &mut collector).unwrap().from
    };
    // Records of 14 bytes.
    assert_eq!((near(0), near(1), near(14), near(15), near(700)), (0, 14, 14, 28, 700));
    // Addresses that look like records themselves.
    let false_ones: Vec<Op> =
        (0..9_000).map(|_| Op::load(0x0202_0202_0202_0202, Width::W2)).collect();
    let length = write(&path, &false_ones);
    let mut collector = Collector::new(&options).unwrap();
    let before = span(&path, Start::At(0), 4_001, &mut collector).unwrap();
    let mut collector = Collector::new(&options).unwrap();
    let guessed = span(&path, Start::Near(4_001), length, &mut collector).unwrap();
    assert_eq!((before.to, guessed.from), (4_010, 4_001), "told by who compares");
}

#[test]
fn what_is_packed_is_no_file_to_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.bin.gz");
    let mut writer = pagelab_trace::file::Writer::new(
        pagelab_trace::file::create(fs::File::create(&path).unwrap(), &path).unwrap(),
    );
    let Ok(()) = Op::load(1, pagelab_trace::Width::W1).visit(&mut writer) else { panic!() };
    writer.finish().unwrap().finish().unwrap();
    let mut collector = Collector::new(&Options::default()).unwrap();
    let error = span(&path, Start::At(0), 10, &mut collector).unwrap_err();
    assert!(matches!(error, SpanError::Packed(_)) && error.to_string().contains("unpack"));
}

#[test]
fn a_part_of_something_else_is_refused_and_changes_nothing() {
    use pagelab_trace::Width;
    let ops = [Op::load(0x1000, Width::W8), Op::store(0x2000, Width::W8, 1)];
    let options = Options { stack: Stack::Exact, ..Options::default() };
    let mut whole = Whole::new(&options).unwrap();
    whole.append(&part(&ops, &options)).unwrap();
    let other = part(&ops, &Options { stack: Stack::Off, ..options.clone() });
    assert_eq!(whole.append(&other), Err(Misfit::Options));
    let mut more = part(&ops, &options);
    more.ops = 99;
    assert_eq!(whole.append(&more), Err(Misfit::Damaged));
    assert_eq!(whole.finish(0), as_parts_know(collect(&ops, &options)));
}
