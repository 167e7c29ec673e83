//! Statistics of any trace, with any options: no panic, and the sums add up.
//!
//! The one idea: what a collector counts in blocks of 64 and in runs is counted again here, one
//! operation after the other, where that takes a line; the rest must only not fail.
#![no_main]

use std::collections::HashMap;

use libfuzzer_sys::{
    arbitrary::{self, Arbitrary, Unstructured},
    fuzz_target,
};
use pagelab_fuzz::{mend, sow};
use pagelab_trace::{
    Access, Op, Visit, Width, decode,
    op::wide,
    raw,
    stats::{Collector, Options, Stack, Stats},
};

/// Keeps the operations.
struct Scribe(Vec<Op>);

impl Visit for Scribe {
    type Stop = std::convert::Infallible;

    fn load<const N: usize>(&mut self, addr: u64) -> Result<(), Self::Stop> {
        self.0.extend(Width::of(N).map(|width| Op::load(addr, width)));
        Ok(())
    }

    fn store<const N: usize>(&mut self, addr: u64, value: [u8; N]) -> Result<(), Self::Stop> {
        self.0.extend(Width::of(N).map(|width| Op::store(addr, width, wide(value))));
        Ok(())
    }
}

/// An operation on one of a few pages, so that pages are used again.
fn near(input: &mut Unstructured<'_>) -> arbitrary::Result<Op> {
    let [what, page] = <[u8; 2]>::arbitrary(input)?;
    let width = Width::ALL[usize::from(what & 3)];
    let in_page = if what & 8 == 0 { 0x10 } else { 0xfff };
    // Two pages in the lowest 16 GiB, and the same far away: the last ends the address space.
    let base = [0, 1 << 32, 1 << 63, u64::MAX - 0xfffff][usize::from(what >> 4 & 3)];
    let addr = base + (u64::from(page) << 12) + in_page;
    Ok(if what & 4 == 0 { Op::load(addr, width) } else { Op::store(addr, width, 0) })
}

fn options(input: &mut Unstructured<'_>) -> arbitrary::Result<Options> {
    let size = |input: &mut Unstructured<'_>| -> arbitrary::Result<u64> {
        Ok(if input.ratio(1, 8)? { u64::arbitrary(input)? } else { input.int_in_range(0..=70)? })
    };
    let stack = match input.int_in_range(0..=3)? {
        0 => Stack::Off,
        1 => Stack::Exact,
        _ => Stack::Sampled { one_in: size(input)? },
    };
    Ok(Options {
        page_shift: if input.ratio(1, 4)? { input.int_in_range(0..=66)? } else { 12 },
        top: if input.ratio(1, 8)? { usize::MAX } else { input.int_in_range(0..=40)? },
        caches: (0..input.int_in_range(0..=9)?).map(|_| size(input)).collect::<Result<_, _>>()?,
        stack,
        tlb: bool::arbitrary(input)?,
    })
}

fn ops(mut input: Unstructured<'_>) -> arbitrary::Result<Vec<Op>> {
    let (raw, mended, repeat) =
        (input.ratio(1, 3)?, bool::arbitrary(&mut input)?, input.ratio(1, 8)?);
    let mut ops = Vec::new();
    if raw {
        let mut bytes: Box<[u8]> = input.take_rest().into();
        if mended {
            mend(&mut bytes);
        }
        let mut scribe = Scribe(Vec::new());
        let _ = decode::visit(&bytes, 0, &mut scribe);
        ops = scribe.0;
    } else {
        while !input.is_empty() {
            ops.push(near(&mut input)?);
        }
    }
    // Enough for several of whatever is gathered before it is counted.
    let times = if repeat { 4096 / (ops.len() + 1) } else { 1 };
    Ok(ops.repeat(times.max(1)))
}

fuzz_target!(init: sow(seeds()), |input: &[u8]| {
    let mut input = Unstructured::new(input);
    let Ok(options) = options(&mut input) else { return };
    let Ok(ops) = ops(input) else { return };
    let sensible = options.page_shift < 64
        && !options.caches.contains(&0)
        && options.stack != (Stack::Sampled { one_in: 0 });
    let (Ok(mut one), Ok(mut other)) = (Collector::new(&options), Collector::new(&options)) else {
        assert!(!sensible, "{options:?} was refused");
        return;
    };
    assert!(sensible, "{options:?} was not refused");

    for op in &ops {
        let Ok(()) = op.visit(&mut one);
    }
    // The same in two passes and the rest without one.
    let (first, rest) = ops.split_at(ops.len() / 3);
    let (second, rest) = rest.split_at(rest.len() / 2);
    for part in [first, second] {
        let mut pass = other.pass();
        for op in part {
            let Ok(()) = op.visit(&mut pass);
        }
    }
    for op in rest {
        let Ok(()) = op.visit(&mut other);
    }
    let stats = one.finish(3);
    assert_eq!(stats, other.finish(3));
    check(&stats, &options, &ops);
    assert!(!stats.text("a trace").is_empty());
});

fn check(stats: &Stats, options: &Options, ops: &[Op]) {
    let page = |op: &Op| op.addr >> options.page_shift;
    let (mut pages, mut absent_reads) = (HashMap::<u64, (u64, bool)>::new(), 0);
    let mut raw_bytes = Vec::new();
    for op in ops {
        let (count, written) = pages.entry(page(op)).or_default();
        *count += 1;
        *written |= op.access != Access::Load;
        absent_reads += u64::from(!*written);
        raw::encode(*op, &mut raw_bytes);
    }
    let reads = ops.iter().filter(|op| op.access == Access::Load).count();
    let changes = ops.windows(2).filter(|pair| page(&pair[0]) != page(&pair[1])).count();
    let count = ops.len() as u64;

    assert_eq!((stats.ops, stats.bytes_consumed), (count, raw_bytes.len() as u64));
    assert_eq!((stats.reads, stats.writes), (reads as u64, (ops.len() - reads) as u64));
    assert_eq!((stats.transitions, stats.absent.reads), (changes as u64, absent_reads));
    assert_eq!(stats.pages(), pages.len() as u64);
    assert_eq!(stats.top_pages.len(), pages.len().min(options.top));
    for top in &stats.top_pages {
        assert_eq!(pages[&top.page].0, top.ops);
    }
    let sum = |of: &[pagelab_trace::stats::Bucket]| of.iter().map(|bucket| bucket.count).sum();
    let (runs, reused): (u64, u64) = (sum(&stats.runs), sum(&stats.reuse.distances));
    assert_eq!(runs, if ops.is_empty() { 0 } else { stats.transitions + 1 });
    assert_eq!(reused + stats.reuse.cold, count);
    for (cache, entries) in stats.reuse.caches.iter().zip(&options.caches) {
        assert_eq!((cache.entries, cache.hits + cache.misses), (*entries, count));
    }
    assert_eq!(stats.reuse.caches.len(), options.caches.len());
    assert_eq!(
        (stats.stack.is_some(), stats.tlb.len()),
        (options.stack != Stack::Off, if options.tlb { 3 } else { 0 },)
    );
}

/// Nothing in them is a trace: the options come from one end, the operations from the other.
fn seeds() -> Vec<Vec<u8>> {
    let counting = |bytes: u8| (0..bytes).collect::<Vec<u8>>();
    vec![counting(40), counting(200), vec![0; 300], [counting(250), vec![0x17; 200]].concat()]
}
