//! How fast the simulator and the map are: samples a second, nanoseconds an access.
//!
//! Each line is the best of five, in time on a processor where the kernel tells it, so that other
//! work on the machine does not count. `cargo run --release -p pagelab-tier --example speed`; a
//! word after `--` names the lines of simulations that have it, a number how many runs are
//! compared: `-- pagelab 3`. A policy that is told of hint faults or asks for accessed bits has no
//! samples: its line is in seconds.

#![expect(clippy::print_stdout, reason = "an example that prints a table")]

use std::hint::black_box;

use pagelab_tier::{
    Curve, POLICIES, PolicySpec, Scenario, Source, Tiers, Work, WorkSpec,
    map::HotMap,
    policy::Needs,
    sim::{Costs, HintScan, Level, Mover, Sampling},
    simulate,
};

const SAMPLES: u64 = 20_000_000;
const ACCESSES: usize = 20_000_000;

fn scenario(generator: &str, pages: u64, policy: &str) -> Scenario {
    let policy = PolicySpec::parse(policy).expect("a policy");
    Scenario {
        seed: 1,
        work: Work::Generated(WorkSpec::parse(generator).expect("a generator")),
        pages,
        accesses: SAMPLES * 1000,
        threads: 16,
        stores: 0.5,
        // Everything fits: what is measured is sampling, not moving.
        tiers: Tiers::two(2 * pages, pages),
        curve: Curve::Power {
            fast: 20.0,
            lower: vec![Level { seconds: 60.0, exponent: 1.5 }],
            remote: None,
        },
        sources: match policy.row().needs {
            Needs::Faults => vec![Source::Hints(HintScan::kernel(pages))],
            Needs::Young => Vec::new(),
            _ => vec![Source::Sampling(Sampling::every(1000))],
        },
        policy,
        mover: Mover { walk_ps: 13_000, ..Mover::kernel(2_000) },
        costs: Costs::default(),
        rows: 100,
    }
}

/// Nanoseconds that this thread was on a processor, or that passed where nobody counts them.
fn on_processor_ns(since: std::time::Instant) -> f64 {
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let counted = counted.and_then(|line| line.split(' ').next()?.parse().ok());
    counted.filter(|ns| *ns > 0.0).unwrap_or_else(|| since.elapsed().as_nanos() as f64)
}

/// Nanoseconds of the best of so many.
#[expect(clippy::disallowed_methods, reason = "an example that stands on the library alone")]
fn best(runs: usize, mut body: impl FnMut()) -> f64 {
    let began = std::time::Instant::now();
    let mut time = || {
        let start = on_processor_ns(began);
        body();
        on_processor_ns(began) - start
    };
    (0..runs).map(|_| time()).fold(f64::INFINITY, f64::min)
}

fn simulations(word: &str, runs: usize) {
    let rows = POLICIES.iter().filter(|row| row.needs != Needs::Future);
    let rows = rows.map(|row| ("uniform", row.name));
    let more = [
        ("uniform", "threshold:threshold=1"),
        ("uniform", "pghot:threshold=1"),
        ("zipf", "pghot"),
        ("zipf", "histogram"),
        ("zipf", "pagelab"),
    ];
    let lines: Vec<_> = rows.chain(more).collect();
    let lines = [1 << 16, 1 << 21]
        .into_iter()
        .flat_map(|pages| lines.iter().map(move |line| (pages, line)));
    for (pages, &(generator, policy)) in lines {
        let line = format!("{pages:>8} pages  {generator:8} {policy:22}");
        if !line.contains(word) {
            continue;
        }
        let scenario = scenario(generator, pages, policy);
        let ns = best(runs, || {
            black_box(simulate(&scenario).expect("a scenario that makes sense"));
        });
        let has_samples = matches!(scenario.sources[..], [Source::Sampling(_)]);
        let millions = format!("{:6.1} M samples/s", SAMPLES as f64 / ns * 1e3);
        let rate = if has_samples { &millions } else { "       no samples " };
        println!("{line} {rate}  {:6.3} s", ns * 1e-9);
    }
}

/// Pages in an order that caches cannot foresee.
fn order(pages: usize) -> Vec<u32> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % pages
    };
    (0..1 << 16).map(|_| u32::try_from(next()).unwrap_or(0)).collect()
}

fn map() {
    let pages = 1 << 16;
    let order = order(pages);
    let mut map = HotMap::new(pages, 1 << 20);
    let epoch = map.epoch(0);
    let ns = best(5, || {
        for _ in 0..ACCESSES / order.len() {
            for &page in &order {
                black_box(map.record_access(page as usize, 0, epoch, 3));
            }
        }
    });
    println!("{pages} pages: {:.2} ns an access", ns / ACCESSES as f64);
}

fn main() {
    let mut words = std::env::args().skip(1);
    let word = words.next();
    let runs = words.next().and_then(|runs| runs.parse().ok()).unwrap_or(5);
    if word.is_none() {
        map();
    }
    simulations(&word.unwrap_or_default(), runs);
}
