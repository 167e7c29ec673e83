//! `trace/stats`: what a trace looks like.
//!
//! One pass over the trace in one process, which reads or generates it itself, a piece at a time:
//! memory grows with the distinct pages, never with the operations. The statistics are counts and
//! no times; the pass is timed all the same, so that a record says what looking costs.
//!
//! The proof is arithmetic: what was counted by page adds up to what was counted by record.

use std::rc::Rc;

use pagelab_bench::{
    Described, Error, Experiment, Inputs, Kind, Meter, Need, Needed, Over, Param, Read, Trial,
    Witness, needs::Memory, words_of,
};
use pagelab_record::{Case, schema, vocabulary::Check};
use pagelab_sys::process::Pulse;
use pagelab_trace::stats::{Collector, Options, Stack, Stats};

use super::{
    load::too_short,
    params as trace,
    stream::{EMPTY, Stream, Streamed},
    tables,
};

const PARAMS: &[Param] = &[
    trace::TRACE,
    trace::OPS,
    trace::SEED,
    Param::axis("page-shift", Kind::Number { min: 0, max: 63 }, "12")
        .help("pages are 2 to this power bytes"),
    Param::axis("top-k", Kind::Number { min: 0, max: 1_000_000 }, "20")
        .help("how many of the most used pages to list"),
    Param::list("cache-sizes", Kind::Number { min: 1, max: 1 << 32 }, "4,8,16,32")
        .help("direct-mapped caches to simulate, in pages"),
    Param::axis("stack", Kind::Choice(&words_of(&STACKS)), "off")
        .help("LRU stack distances: the miss-ratio curve; sampled looks at one page in 32"),
    Param::axis("tlb", Kind::Choice(&["off", "on"]), "off")
        .help("what TLBs of 16 to 4096 entries would miss with pages of 4k, 2m and 1g"),
];

/// Pages of which one is looked at when stack distances are sampled.
const SAMPLED_ONE_IN: u64 = 32;

/// How stack distances are taken.
const STACKS: [(&str, Stack); 3] = [
    ("off", Stack::Off),
    ("exact", Stack::Exact),
    ("sampled", Stack::Sampled { one_in: SAMPLED_ONE_IN }),
];

/// Bytes that the distinct pages of a large trace take.
const PAGES_BYTES: u64 = 64 << 20;

/// What it is called.
pub(crate) const NAME: &str = STATS.about.name;

/// See the module's documentation.
pub const STATS: Described<Asked> = Described {
    resolve: trace::resolve,
    parts: &[&Over { of: |asked: &Asked| &asked.trace, tables: &[trace::REFUSALS] }],
    ..Described::new(
        "trace/stats",
        "what a trace looks like: widths, pages, runs, reuse, simulated caches",
        PARAMS,
        &[("ops", "100k"), ("stack", "exact"), ("tlb", "on")],
        Asked::of,
    )
    .unmeasured()
};

impl Asked {
    fn of(case: &Case) -> Self {
        let sizes = case.text("cache-sizes").unwrap_or_default().split(',');
        let options = Options {
            page_shift: case.number("page-shift").unwrap_or(0),
            top: case.number("top-k").unwrap_or(0),
            caches: sizes.filter_map(|size| size.parse().ok()).collect(),
            stack: case.one_of("stack", &STACKS),
            tlb: case.is("tlb", "on"),
        };
        Self { trace: trace::Asked::of(case), options }
    }
}

/// A case, read.
#[derive(Debug)]
pub struct Asked {
    trace: trace::Asked,
    options: Options,
}

impl Experiment for Asked {
    fn needs(&self) -> Vec<Needed> {
        vec![Memory(self.footprint()).needed()]
    }

    fn footprint(&self) -> u64 {
        PAGES_BYTES
    }

    fn seconds(&self) -> f64 {
        // 10 ns for an operation, more where stacks are kept, or where it must be made.
        let stacks = self.options.stack != Stack::Off || self.options.tlb;
        let is_made = self.trace.source.is_made();
        let ns = if stacks { 60.0 } else { 10.0 } + if is_made { 10.0 } else { 0.0 };
        self.trace.bytes() as f64 / 11.0 * ns / 1e9 + 0.002
    }

    fn prepare(&self, inputs: &Inputs) -> Result<Vec<Box<dyn Trial>>, Error> {
        let trace::Asked { source, ops, seed, .. } = self.trace.clone();
        let (stream, options) = (Stream { source, ops, seed }, self.options.clone());
        let pulse = Rc::clone(&inputs.pulse);
        Ok(vec![Box::new(Pass { stream, options, pulse, found: None })])
    }
}

struct Pass {
    stream: Stream,
    options: Options,
    pulse: Rc<Pulse>,
    found: Option<(Stats, Streamed)>,
}

impl Trial for Pass {
    fn run(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let failed = |why: String| Error::Case(why);
        let mut collector = Collector::new(&self.options).map_err(|bad| failed(bad.to_string()))?;
        let mut streamed = Ok(Streamed::default());
        let cpu_before = meter.clock().thread_cpu_ns();
        let span = meter.clock().span(|| {
            streamed = self.stream.visit(&mut collector, &self.pulse);
        });
        let cpu_ns = meter.clock().thread_cpu_ns() - cpu_before;
        let streamed = streamed.map_err(failed)?;
        let stats = collector.finish(streamed.trailing);
        let (ops, bytes) = (stats.ops, streamed.bytes);
        if ops == 0 {
            return Err(failed(format!("{}: {EMPTY}", self.stream.source)));
        }
        meter.observe("collect", schema::Clock::Cpu, ops, bytes, cpu_ns);
        meter.observe("collect", meter.elapsed(), ops, bytes, meter.clock().elapsed_ns(span));
        self.found = Some((stats, streamed));
        Ok(())
    }

    fn verify(&mut self, witness: &mut Witness) -> Result<(), Error> {
        let Some((stats, streamed)) = self.found.take() else { return Ok(()) };
        let sum = |counts: &[u64]| counts.iter().sum::<u64>();
        let widths = sum(&stats.read_widths) + sum(&stats.write_widths);
        witness.expect(Check::BytesOfRecords, streamed.bytes, stats.bytes_consumed);
        witness.expect(Check::OpsByWidth, stats.ops, widths);
        witness.expect(Check::ReadsAndWrites, stats.ops, stats.reads + stats.writes);
        let count = |buckets: &[pagelab_trace::stats::Bucket]| {
            buckets.iter().map(|bucket| bucket.count).sum::<u64>()
        };
        witness.expect(Check::OpsByRun, stats.transitions + 1, count(&stats.runs));
        let used = count(&stats.reuse.distances) + stats.reuse.cold;
        witness.expect(Check::OpsByReuse, stats.ops, used);
        for (what, of, caches) in [
            ("operations", stats.ops, &stats.reuse.caches),
            ("absent reads", stats.absent.reads, &stats.absent.reuse.caches),
        ] {
            for cache in caches {
                let claim = format!("{what} that hit or miss in {} pages", cache.entries);
                witness.expect((Check::HitsAndMisses, &claim), of, cache.hits + cache.misses);
            }
        }
        for (name, value) in tables::counters(&stats) {
            witness.set(name, value);
        }
        for table in tables::tables(&stats) {
            witness.table(table);
        }
        if let Some(warning) = too_short(self.stream.ops, stats.ops) {
            witness.warn(warning);
        }
        if streamed.trailing > 0 {
            witness.warn(format!(
                "{} bytes trail after the last record of the trace: nothing was done with them",
                streamed.trailing
            ));
        }
        Ok(())
    }
}
