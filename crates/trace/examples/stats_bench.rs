//! How fast the statistics are: the collector against the plain oracle of the tests.
//!
//! `cargo run --release -p pagelab-trace --example stats_bench [spec] [million operations]`. The
//! trace is generated, by default an equivalent of block execution. Times are of the processor on
//! Linux, of the wall elsewhere. The two are alternated in one process, and the medians of five
//! rounds compared. Both decode the raw format; what that takes is also printed by itself.

#[path = "../tests/stats/oracle.rs"]
mod oracle;

use std::{
    convert::Infallible,
    time::{Duration, SystemTime},
};

use oracle::Oracle;
use pagelab_trace::{
    Visit, decode,
    stats::{Collector, Options, Stack},
    synth::Spec,
};

const ROUNDS: usize = 5;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let spec = arguments.next().unwrap_or_else(|| "exec-block".to_owned());
    let millions: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(50);
    let spec = Spec::parse(&spec).expect("a generator").with_ops(millions * 1_000_000);
    let trace = Trace { pieces: spec.stream().collect(), ops: millions * 1_000_000 };
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
    print(&stats.text(&spec.to_string()));
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
    trace.visit(Collector::new(options).expect("good options")).finish(0)
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
fn per_op(name: &str, mut times: Vec<Duration>, ops: u64) -> f64 {
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

/// A trace in the raw format, in pieces.
struct Trace {
    pieces: Vec<Vec<u8>>,
    ops: u64,
}

impl Trace {
    fn visit<V: Visit<Stop = Infallible>>(&self, mut visitor: V) -> V {
        for piece in &self.pieces {
            let done = decode::visit(piece, 0, &mut visitor).expect("a good trace");
            assert_eq!(done, piece.len());
        }
        visitor
    }
}
