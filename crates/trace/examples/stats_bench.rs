//! How fast the statistics are: the collector against the plain oracle of the tests.
//!
//! `cargo run --release -p pagelab-trace --example stats_bench [million operations]`. The trace is
//! made here: a program of functions whose instructions are body two bytes at a time, with data
//! operations between; its mix is that of block execution. Times are wall-clock times; the two are
//! alternated in one process, and the medians of five rounds are compared. Both decode the raw
//! format, so what decoding takes is in both; it is also printed by itself.

#[path = "../tests/stats/oracle.rs"]
mod oracle;

use std::{
    convert::Infallible,
    time::{Duration, SystemTime},
};

use oracle::Oracle;
use pagelab_trace::{
    Op, Visit, Width, decode, raw,
    stats::{Collector, Options, Stack},
};

const ROUNDS: usize = 5;

fn main() {
    let millions = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(50);
    let trace = Program::new().run(millions * 1_000_000);
    let options = Options::default();
    let only = |stack, tlb| Options { stack, tlb, ..options.clone() };
    let sampled = Stack::Sampled { one_in: 64 };
    let options = [only(Stack::Exact, false), only(sampled, false), only(Stack::Exact, true)];
    let [mut oracle, mut ours, mut bare] = [const { Vec::new() }; 3];
    let mut more = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        oracle.push(timed(|| trace.visit(Oracle::new(&Options::default())).finish(0)));
        ours.push(timed(|| collect(&trace, &Options::default())));
        bare.push(timed(|| trace.visit(Sum(0)).0));
        for (times, options) in more.iter_mut().zip(&options) {
            times.push(timed(|| collect(&trace, options)));
        }
    }
    let expected = trace.visit(Oracle::new(&Options::default())).finish(0);
    let stats = collect(&trace, &Options::default());
    assert_eq!(stats, expected, "the two differ");
    print(&stats.text("synthetic"));
    let oracle = per_op("oracle", oracle, trace.ops);
    let ours = per_op("collector", ours, trace.ops);
    let bare = per_op("decoding alone", bare, trace.ops);
    print(&format!(
        "ratio: {:.2}; without decoding {:.2}\n",
        oracle / ours,
        (oracle - bare) / (ours - bare)
    ));
    let names = ["with exact stack", "with sampled stack, 1 in 64", "with exact stack and TLB"];
    for (name, times) in names.into_iter().zip(more) {
        per_op(name, times, trace.ops);
    }
}

fn collect(trace: &Trace, options: &Options) -> pagelab_trace::stats::Stats {
    let mut collector = Collector::new(options).expect("good options");
    trace.visit(collector.pass());
    collector.finish(0)
}

#[expect(clippy::print_stdout, reason = "a program for people")]
fn print(text: &str) {
    print!("{text}");
}

fn timed<T>(what: impl FnOnce() -> T) -> Duration {
    let start = now();
    std::hint::black_box(what());
    now().saturating_sub(start)
}

/// Time on the processor where the kernel counts it (Linux), else of the wall.
fn now() -> Duration {
    let wall = || SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = stat.and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(wall, Duration::from_nanos)
}

/// Prints the median and returns it, in nanoseconds for each operation.
fn per_op(name: &str, mut times: Vec<Duration>, ops: usize) -> f64 {
    times.sort();
    let [first, .., last] = times[..] else { return 0.0 };
    let per_op = |time: Duration| time.as_secs_f64() * 1e9 / ops as f64;
    let median = per_op(times[times.len() / 2]);
    let (first, last) = (per_op(first), per_op(last));
    print(&format!("{name}: {median:.2} ns/op ({first:.2} to {last:.2})\n"));
    median
}

/// The least that a visitor can do.
struct Sum(u64);

impl Visit for Sum {
    type Stop = Infallible;

    #[inline]
    fn load<const N: usize>(&mut self, addr: u64) -> Result<(), Infallible> {
        self.0 = self.0.wrapping_add(addr);
        Ok(())
    }

    #[inline]
    fn store<const N: usize>(&mut self, addr: u64, _: [u8; N]) -> Result<(), Infallible> {
        self.0 ^= addr;
        Ok(())
    }
}

/// A trace in the raw format.
struct Trace {
    bytes: Vec<u8>,
    ops: usize,
}

impl Trace {
    fn visit<V: Visit<Stop = Infallible>>(&self, mut visitor: V) -> V {
        let done = decode::visit(&self.bytes, 0, &mut visitor).expect("a good trace");
        assert_eq!(done, self.bytes.len());
        visitor
    }
}

/// A data operation of a program, after so many fetches.
struct Slot {
    fetches: u64,
    data: Op,
    heap: bool,
}

/// A function: its slots, and how often it repeats them.
struct Function {
    pc: u64,
    slots: Vec<Slot>,
    loops: u64,
}

struct Program {
    functions: Vec<Function>,
    random: Random,
}

impl Program {
    /// Functions on code pages of which few are hot, as in block execution.
    fn new() -> Self {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut functions = Vec::new();
        for number in 0..400 {
            let page = if number < 40 { 0x140 + number % 10 } else { 0x20 + number };
            let pc = (page << 12) + random.below(1500) * 2;
            let body = 40 + random.below(if number < 40 { 360 } else { 290 });
            let (mut slots, mut done) = (Vec::new(), 0);
            while done < body {
                let fetches = random.fetches();
                done += fetches;
                let (data, heap) = random.data();
                slots.push(Slot { fetches, data, heap });
            }
            let loops = if number < 40 { 1 + random.below(12) } else { 1 };
            functions.push(Function { pc, slots, loops });
        }
        Self { functions, random }
    }

    fn run(mut self, wanted: usize) -> Trace {
        let mut bytes = Vec::with_capacity(wanted * 11);
        let mut ops = 0;
        let mut recent = [0x200_u64; 4];
        while ops < wanted {
            let hot = self.random.below(100) < 90;
            let range = if hot { self.random.below(40) } else { 40 + self.random.below(360) };
            let function = &self.functions[usize::try_from(range).expect("small")];
            for _ in 0..function.loops {
                let mut pc = function.pc;
                for slot in &function.slots {
                    for _ in 0..slot.fetches {
                        raw::encode(Op::load(pc, Width::W2), &mut bytes);
                        pc += 2;
                    }
                    let mut data = slot.data;
                    if slot.heap {
                        if self.random.below(100) < 7 {
                            let page = 0x200 + self.random.below(10_000);
                            recent[(page % 4) as usize] = page;
                        }
                        data.addr += recent[(data.addr >> 4 & 3) as usize] << 12;
                    }
                    raw::encode(data, &mut bytes);
                    ops += usize::try_from(slot.fetches).expect("small") + 1;
                }
            }
        }
        Trace { bytes, ops }
    }
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((u128::from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)) * u128::from(limit)) >> 64) as u64
    }

    /// Length of a run of fetches.
    fn fetches(&mut self) -> u64 {
        match self.below(1000) {
            0..200 => 1,
            200..570 => 2 + self.below(2),
            570..895 => 4 + self.below(4),
            895..970 => 8 + self.below(8),
            _ => 16 + self.below(32),
        }
    }

    /// A data operation; on the heap, its address is an offset into the page.
    fn data(&mut self) -> (Op, bool) {
        let (page, heap) = match self.below(100) {
            0..33 => (0x7ff9, false),
            33..61 => (0x7ffc, false),
            61..71 => (0x7ff8, false),
            71..75 => (0x13f, false),
            _ => (0, true),
        };
        let addr = (page << 12) + self.below(256) * 16;
        let op = match self.below(100) {
            _ if page == 0x13f => Op::load(addr, Width::W8),
            0..40 => Op::load(addr, Width::W8),
            40..54 => Op::load(addr, Width::W1),
            54..95 => Op::store(addr, Width::W8, addr),
            _ => Op::store(addr, Width::W1, addr),
        };
        (op, heap)
    }
}
