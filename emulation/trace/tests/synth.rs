//! Generated traces: each keeps its promise, and gives the same bytes for ever.
#![expect(clippy::unwrap_used, reason = "helpers of tests, outside the test functions")]

use std::collections::{BTreeMap, HashSet};

use pagelab_trace::{
    Access, Op, Width, decode,
    raw::decode_one,
    stats::{Collector, Options, Stats},
    synth::{GENERATORS, Spec},
};
use proptest::prelude::*;

fn spec(text: &str, ops: u64) -> Spec {
    Spec::parse(text).unwrap().with_ops(ops)
}

fn bytes(spec: &Spec) -> Vec<u8> {
    spec.stream().flatten().collect()
}

fn ops(spec: &Spec) -> Vec<Op> {
    let bytes = bytes(spec);
    let (mut at, mut ops) = (0, Vec::new());
    while let Some((op, length)) = decode_one(&bytes[at..], at as u64).unwrap() {
        ops.push(op);
        at += length;
    }
    assert_eq!(at, bytes.len());
    ops
}

fn addrs(spec: &Spec) -> Vec<u64> {
    ops(spec).into_iter().map(|op| op.addr).collect()
}

fn stats(spec: &Spec) -> Stats {
    let mut collector = Collector::new(&Options::default()).unwrap();
    let Ok(()) = spec.generate(&mut collector);
    collector.finish(0)
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[test]
fn the_bytes_of_every_generator_stay_what_they_are() {
    let pinned = BTreeMap::from([
        ("sequential", "433ed72395307aa5".to_owned()),
        ("uniform", "7b56318e82bc23fd".to_owned()),
        ("zipf", "b99b4e003580a1b6".to_owned()),
        ("pointer-chase", "f50f066ddf6fa279".to_owned()),
        ("fib", "35e2c5602f641ae1".to_owned()),
        ("exec-block", "20ff12baa8ff4c21".to_owned()),
        ("sparse", "738268ee117053ce".to_owned()),
    ]);
    let found: BTreeMap<_, _> = GENERATORS
        .iter()
        .map(|generator| {
            let hash = hash(&bytes(&spec(generator.name, 100_000)));
            (generator.name, format!("{hash:016x}"))
        })
        .collect();
    assert_eq!(found, pinned, "a trace is named by its spec: its bytes may never change");
}

#[test]
fn the_canonical_text_of_every_generator_reads_back() {
    for generator in GENERATORS {
        let spec = Spec::parse(generator.name).unwrap();
        assert_eq!(Spec::parse(&spec.to_string()), Ok(spec.clone()), "{spec}");
        for parameter in generator.parameters {
            let value = parameter.parse(parameter.default).unwrap();
            assert_eq!(parameter.format(value), parameter.default, "{}", generator.name);
        }
    }
    let spec = Spec::parse("zipf:footprint=1024m,exponent=0.50").unwrap();
    let text = "zipf:footprint=1g,item=4k,exponent=0.5,width=8,stores=0,base=0x10000000";
    assert_eq!(spec.to_string(), text);
}

#[test]
fn what_is_no_spec_is_refused_with_what_is_accepted() {
    for (text, part) in [
        ("", "there are sequential, uniform"),
        ("zip", "`zip`"),
        ("fib:ops=3", "has no parameters"),
        ("uniform:item=4k", "has no parameter `item`; it has footprint"),
        ("uniform:footprint", "no NAME=VALUE"),
        ("uniform:footprint=x", "a number of bytes"),
        ("uniform:width=8,width=4", "twice"),
        ("uniform:footprint=4", "no room for 8 bytes"),
        ("zipf:item=8k,footprint=4k", "no room for an item"),
        ("pointer-chase:stride=4", "no room for 8 bytes"),
        ("uniform:base=0xffffffffffffffff", "end of the address space"),
        ("sparse:bits=12", "from 13 to 64"),
        ("sparse:bits=13,pages=3", "below 2^13 are 2 pages"),
    ] {
        let error = Spec::parse(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn every_generator_gives_as_many_operations_as_asked_for() {
    for generator in GENERATORS {
        for count in [0, 1, 2, 3, 4097, 30_000] {
            let spec = spec(generator.name, count);
            assert_eq!(ops(&spec).len() as u64, count, "{}", generator.name);
        }
    }
}

#[test]
fn pulled_and_pushed_traces_are_the_same() {
    for generator in GENERATORS {
        let spec = spec(generator.name, 60_000);
        let pulled = bytes(&spec);
        let mut encoder = pagelab_trace::file::Encoder::default();
        let Ok(()) = spec.generate(&mut encoder);
        assert!(encoder.bytes() == pulled, "{}", generator.name);
        for piece in spec.stream() {
            assert!(piece.len() < 4 << 20);
            let used = decode::visit(&piece, 0, &mut pagelab_trace::file::Encoder::default());
            assert_eq!(used, Ok(piece.len()), "a piece is whole records");
        }
    }
}

#[test]
fn another_seed_is_another_trace_where_anything_is_random() {
    for generator in GENERATORS {
        let one = spec(generator.name, 10_000);
        let mut other = one.clone();
        other.seed = 2;
        let plain = ["sequential", "fib"].contains(&generator.name);
        assert_eq!(bytes(&one) == bytes(&other), plain, "{}", generator.name);
    }
}

#[test]
fn sequential_rises_by_its_stride_and_starts_again() {
    let spec = spec("sequential:footprint=1000,stride=96,width=4,base=0x1000", 100);
    let places = (1000 - 4) / 96 + 1;
    let expected: Vec<u64> = (0..100).map(|index| 0x1000 + index % places * 96).collect();
    assert_eq!(addrs(&spec), expected);
    assert!(ops(&spec).iter().all(|op| op.width == Width::W4 && op.access == Access::Load));
}

#[test]
fn uniform_stays_inside_and_reaches_everything() {
    let spec = spec("uniform:footprint=1k,width=mixed,stores=0.25,base=0xfffffffffffffc00", 20_000);
    let ops = ops(&spec);
    let slots: HashSet<u64> = ops.iter().map(|op| op.addr).collect();
    assert_eq!(slots.len(), 128, "every slot of 8 bytes, up to the end of the address space");
    assert!(slots.iter().all(|addr| addr % 8 == 0));
    let stores = ops.iter().filter(|op| op.access != Access::Load).count();
    assert!((4700..5300).contains(&stores), "{stores}");
    for width in Width::ALL {
        let count = ops.iter().filter(|op| op.width == width).count();
        assert!((4700..5300).contains(&count), "{width:?}: {count}");
    }
}

#[test]
fn zipf_has_the_ranks_of_its_law_scattered() {
    let spec = spec("zipf:footprint=4m,exponent=1,base=0", 200_000);
    let mut counts = BTreeMap::new();
    for addr in addrs(&spec) {
        *counts.entry(addr / 4096).or_insert(0_u64) += 1;
    }
    let harmonic: f64 = (1..=1024).map(|rank| 1.0 / f64::from(rank)).sum();
    let mut ranked: Vec<(u64, u64)> =
        counts.into_iter().map(|(page, count)| (count, page)).collect();
    ranked.sort_unstable_by(|a, b| b.cmp(a));
    for rank in [1_u32, 2, 10] {
        let expected = 200_000.0 / harmonic / f64::from(rank);
        let got = ranked[rank as usize - 1].0 as f64;
        assert!((got / expected - 1.0).abs() < 0.1, "rank {rank}: {got} for {expected}");
    }
    let hot: Vec<u64> = ranked[..16].iter().map(|&(_, page)| page).collect();
    let mut neighbours = hot.clone();
    neighbours.sort_unstable();
    assert!(neighbours.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count() < 3, "{hot:?}");
}

#[test]
fn a_chase_is_one_cycle_through_every_line() {
    let spec = spec("pointer-chase:footprint=64064,stride=64,base=0x10000", 3 * 1001);
    let addrs = addrs(&spec);
    let (first, rest) = addrs.split_at(1001);
    assert_eq!(rest, [first, first].concat());
    let lines: HashSet<u64> = first.iter().map(|addr| (addr - 0x10000) / 64).collect();
    assert_eq!((lines.len(), lines.iter().max()), (1001, Some(&1000)));
    assert!(first.iter().all(|addr| addr % 64 == 0));
    assert!(!first.is_sorted());
}

#[test]
fn sparse_is_strewn_and_a_third_stores() {
    let spec = spec("sparse:pages=2000", 60_000);
    let ops = ops(&spec);
    let pages: HashSet<u64> = ops.iter().map(|op| op.addr >> 12).collect();
    assert_eq!(pages.len(), 2000);
    assert!(pages.iter().all(|page| page >> 33 == 0));
    assert!(pages.iter().any(|page| page >> 32 == 1));
    assert!(ops.iter().all(|op| op.width == Width::W8 && op.addr % 8 == 0));
    let stores = ops.iter().filter(|op| op.access != Access::Load).count();
    assert!((19_500..20_500).contains(&stores), "{stores}");
    let stats = stats(&spec);
    assert!(stats.transitions > stats.ops * 999 / 1000);
    let whole = self::spec("sparse:bits=64", 1000);
    assert!(addrs(&whole).iter().any(|addr| addr >> 63 == 1));
}

#[test]
fn fib_has_the_published_figures() {
    let published = Spec::parse("fib").unwrap();
    assert_eq!(published.ops, 117_000_007);
    assert_eq!((published.ops - 1) * 10 + 18, 1_170_000_078);
    let ops = 120_007;
    let stats = stats(&spec("fib", ops));
    assert_eq!((stats.reads, stats.writes, stats.transitions), (ops - 1, 1, 2));
    assert_eq!(stats.read_widths, [0, ops - 1, 0, 0]);
    assert_eq!(stats.write_widths, [0, 0, 0, 1]);
    assert_eq!(stats.bytes_consumed, ops * 10 + 8);
    let pages: Vec<(u64, u64)> = stats.top_pages.iter().map(|page| (page.page, page.ops)).collect();
    assert_eq!(pages, [(0x11, ops - 1), (0x7fff, 1)]);
    assert_eq!((stats.absent.reads, stats.absent.pages), (ops - 1, 1));
    // Published: runs of 1, of 2 to 3, and one of all the rest; all reuse but one at distance 1.
    let runs: Vec<(u64, u64)> = stats.runs.iter().map(|run| (run.min, run.count)).collect();
    assert_eq!(runs, [(1, 1), (2, 1), (65_536, 1)]);
    let reuse: Vec<(u64, u64)> =
        stats.reuse.distances.iter().map(|bucket| (bucket.min, bucket.count)).collect();
    assert_eq!(reuse, [(1, ops - 3), (2, 1)]);
    assert_eq!(stats.reuse.cold, 2);
}

/// Shares in hundredths of a percent of all operations, beside those published for `ExecBlock`.
#[test]
fn exec_block_has_the_published_shares() {
    let stats = stats(&spec("exec-block", 6_000_000));
    let near = |what: &str, got: f64, published: f64, tolerance: f64| {
        assert!((got - published).abs() <= tolerance, "{what}: {got:.2}, published {published}");
    };
    let percent = |part: u64, whole: u64| part as f64 * 100.0 / whole as f64;
    let ops = stats.ops;
    near("reads", percent(stats.reads, ops), 92.53, 0.3);
    for (width, published) in stats.read_widths.into_iter().zip([1.69, 89.56, 0.01, 8.73]) {
        near("read widths", percent(width, stats.reads), published, 0.4);
    }
    for (width, published) in stats.write_widths.into_iter().zip([7.22, 0.14, 0.19, 92.45]) {
        near("write widths", percent(width, stats.writes), published, 0.6);
    }
    near("transitions", percent(stats.transitions, ops - 1), 34.68, 0.4);
    near("absent reads", percent(stats.absent.reads, ops), 83.28, 0.4);
    let runs: u64 = stats.runs.iter().map(|bucket| bucket.count).sum();
    for (bucket, published) in stats.runs.iter().zip([58.86, 18.73, 16.64, 4.06, 1.0, 0.57]) {
        near("runs", percent(bucket.count, runs), published, 0.5);
    }
    let reuse = [65.32, 23.34, 6.16, 3.25, 0.99, 0.34, 0.14, 0.11, 0.18, 0.06];
    for (bucket, published) in stats.reuse.distances.iter().zip(reuse) {
        near("reuse", percent(bucket.count, ops), published, 0.4);
    }
    for (cache, published) in stats.reuse.caches.iter().zip([90.11, 93.68, 98.22, 99.51]) {
        near("hit rate", percent(cache.hits, cache.hits + cache.misses), published, 0.4);
    }
    let page = |number: u64| {
        let page = stats.top_pages.iter().find(|page| page.page == number);
        percent(page.map_or(0, |page| page.ops), ops)
    };
    let pages = [(0x149, 17.36), (0x14a, 9.60), (0x7ff9, 9.39), (0xd3, 5.37), (0xcb, 4.18)];
    for (number, published) in pages {
        near("page", page(number), published, 0.5);
    }
    assert_eq!(stats.straddles, 0);
}

#[test]
fn with_its_image_no_read_of_a_trace_is_absent() {
    for (name, pages) in [("fib", 1), ("exec-block", 236)] {
        let spec = spec(name, 300_000);
        let image = spec.image();
        assert_eq!(image.bytes(), pages * 4096, "{name}");
        let mut present: HashSet<u64> = HashSet::new();
        for segment in &image.segments {
            let end = segment.addr + segment.bytes.len() as u64;
            present.extend((segment.addr..end).step_by(4096).map(|addr| addr >> 12));
            assert!(segment.bytes.iter().any(|byte| *byte != segment.bytes[0]));
        }
        let image_pages = present.clone();
        for op in ops(&spec) {
            let page = op.addr >> 12;
            if op.access == Access::Load {
                assert!(present.contains(&page), "{name}: {:#x}", op.addr);
            } else {
                assert!(!image_pages.contains(&page), "{name} writes its text");
                present.insert(page);
            }
        }
        let mut other = spec.clone();
        other.seed = 7;
        assert_eq!(spec.image(), other.image());
    }
    assert!(Spec::parse("zipf").unwrap().image().segments.is_empty());
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z0-9:=,.-]{0,40}") {
        if let Ok(spec) = Spec::parse(&text) {
            prop_assert_eq!(Spec::parse(&spec.to_string()), Ok(spec));
        }
    }

    #[test]
    fn what_a_spec_accepts_can_be_generated(
        kind in 0..GENERATORS.len(),
        pairs in proptest::collection::vec((0..6_usize, "[0-9]{1,4}[kmg]?"), 0..4),
        seed in any::<u64>(),
    ) {
        let generator = &GENERATORS[kind];
        let mut spec = Spec::new(generator.name).unwrap().with_ops(100);
        spec.seed = seed;
        for (at, value) in pairs {
            if let Some(parameter) = generator.parameters.get(at) {
                let _ = spec.set(parameter.name, &value);
            }
        }
        if spec.check().is_ok() {
            prop_assert_eq!(ops(&spec).len(), 100);
        }
    }
}
