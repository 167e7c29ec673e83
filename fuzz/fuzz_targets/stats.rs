//! Statistics of any trace, with any options: no panic, and every number is that of the plain way
//! to count it.
//!
//! The one idea: the crate's own tests have an oracle, which is told of the same operations. Stack
//! distances are compared with a list, where that does not take too long.
#![no_main]

#[path = "../../emulation/trace/tests/stats/oracle.rs"]
mod oracle;

use libfuzzer_sys::{
    arbitrary::{self, Arbitrary, Unstructured},
    fuzz_target,
};
use pagelab_fuzz::{mend, sow};
use pagelab_trace::{
    Op, Visit, Width, decode,
    op::wide,
    raw,
    stats::{Collector, Options, Stack, StackDistances, Stats, Whole},
};

use oracle::Oracle;

/// The oracle has a slot for each page of a cache.
const CACHE_MAX: u64 = 1 << 12;
/// A list is searched for each operation.
const LISTED_OPS_MAX: usize = 1 << 10;

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
        (input.ratio(1, 3)?, bool::arbitrary(&mut input)?, input.ratio(1, 64)?);
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

    let mut bytes = Vec::new();
    for op in &ops {
        let Ok(()) = op.visit(&mut one);
        raw::encode(*op, &mut bytes);
    }
    assert_eq!(decode::visit(&bytes, 0, &mut other), Ok(bytes.len()));
    let mut stats = one.finish(3);
    assert_eq!(stats, other.finish(3));
    assert!(!stats.text("a trace").is_empty());
    assert_eq!(in_parts(&ops, &options, &stats), stats);

    stacks(&mut stats, &options, &ops);
    if options.caches.iter().all(|entries| *entries <= CACHE_MAX) {
        let mut oracle = Oracle::new(&options);
        for op in &ops {
            let Ok(()) = op.visit(&mut oracle);
        }
        assert_eq!(stats, oracle.finish(3));
    }
});

/// The same from parts, with what those cannot know.
fn in_parts(ops: &[Op], options: &Options, stats: &Stats) -> Stats {
    let mut whole = Whole::new(options).expect("they were good before");
    for ops in ops.chunks(ops.len() / 3 + 1) {
        let mut part = Collector::new(options).expect("they were good before");
        for op in ops {
            let Ok(()) = op.visit(&mut part);
        }
        whole.append(&part.into_part()).expect("a part of this whole");
    }
    let mut parts = whole.finish(3);
    parts.absent.reuse = stats.absent.reuse.clone();
    parts
}

/// Checks, and takes out, what the oracle does not know.
fn stacks(stats: &mut Stats, options: &Options, ops: &[Op]) {
    let (stack, tlb) = (stats.stack.take(), std::mem::take(&mut stats.tlb));
    assert_eq!(stack.is_some(), options.stack != Stack::Off);
    assert_eq!(tlb.len(), if options.tlb { 3 } else { 0 });
    if ops.len() > LISTED_OPS_MAX {
        return;
    }
    if let Some(stack) = stack {
        let exact = options.stack == Stack::Exact || stack.one_in == 1;
        let list = List::of(ops, options.page_shift);
        for pages in 0..list.first + 2 {
            let misses = stack.misses(pages);
            assert!(misses <= stack.ops);
            assert!(!exact || misses == list.misses(pages), "{pages} pages");
        }
        falls(&stack);
    }
    for reach in tlb {
        let list = List::of(ops, reach.page_shift);
        assert_eq!(reach.pages, list.first);
        for tlb in reach.tlbs {
            assert_eq!(tlb.misses, list.misses(tlb.entries));
        }
    }
}

/// A larger cache never misses more.
fn falls(stack: &StackDistances) {
    for pair in stack.curve.windows(2) {
        assert!(pair[0].pages < pair[1].pages && pair[0].misses >= pair[1].misses, "{pair:?}");
    }
}

/// Operations by stack distance, and first ones.
struct List {
    distances: Vec<u64>,
    first: u64,
}

impl List {
    fn of(ops: &[Op], shift: u32) -> Self {
        let (mut list, mut distances, mut first) = (Vec::new(), vec![0; ops.len()], 0);
        for op in ops {
            let page = op.addr >> shift;
            if let Some(depth) = list.iter().position(|held| *held == page) {
                list.remove(depth);
                distances[depth] += 1;
            } else {
                first += 1;
            }
            list.insert(0, page);
        }
        Self { distances, first }
    }

    fn misses(&self, pages: u64) -> u64 {
        let far = (0_u64..).zip(&self.distances).filter(|(distance, _)| *distance >= pages);
        self.first + far.map(|(_, count)| count).sum::<u64>()
    }
}

/// Nothing in them is a trace: the options come from one end, the operations from the other.
fn seeds() -> Vec<Vec<u8>> {
    let counting = |bytes: u8| (0..bytes).collect::<Vec<u8>>();
    vec![counting(40), counting(200), vec![0; 300], [counting(250), vec![0x17; 200]].concat()]
}
