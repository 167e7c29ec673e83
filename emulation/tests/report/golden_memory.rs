//! Golden records of emulated memory: replays, verdicts and statistics of traces.
//!
//! The times follow measurements of the reference machine, the statistics those of a generated
//! trace that is like the published one; both are deterministic arithmetic.

use pagelab_record::{
    Case, Claim, Clock, Measured, Outcome, Record, RunHeader, Series, Table, Unit,
    vocabulary::Check,
};

use crate::{
    made::{case, claim, counters, journal, measured, outcome, repetitions, values},
    made_suites::syscall,
};

const OPS: u64 = 20_000_000;
const BYTES: u64 = 211_700_000;
const DIGEST: u64 = 0x5eed_0002_1bad_cafe;
/// What the kernel says of an emulated memory that cannot have its window.
const NO_WINDOW: &str =
    "flat is left out: no window of 2^45 bytes to reserve here: use tlb, or raise ulimit -v";

/// An arm and its CPU nanoseconds for one operation.
type Arm = (&'static str, f64);

const EXEC: [Arm; 5] =
    [("noop", 2.29), ("noop/safe", 2.68), ("paged-fx", 5.20), ("base", 4.41), ("tlb", 2.77)];
const FIB: [Arm; 3] = [("noop", 1.47), ("base", 2.59), ("tlb", 1.91)];

/// What goes into the golden journal.
pub(crate) fn records() -> Vec<Record> {
    let mut records = vec![replay("exec-block", &EXEC, true), replay("fib", &FIB, false)];
    records.push(forgetful());
    let few = ["buffered-8k", "mmap", "memory"];
    let mut readers = readers("exec-block", 2.24);
    readers.retain(|record| few.contains(&record.case.get("reader").unwrap_or_default()));
    records.extend(readers);
    records.push(outcome(
        "emu/replay",
        replay_case("rv.bin", "noop,tlb", "memory").with("ops", "all"),
        Outcome::Skipped {
            need: "96 GiB of memory (22 GiB are free)".into(),
            cure: "a smaller --ops, or --reader mmap".into(),
        },
    ));
    records.push(verified(&["paged-fx", "tlb"], None));
    records.push(verified(&["paged-last"], Some(17)));
    records.push(statistics("exec-block", true));
    records.push(statistics("fib", false));
    records
}

/// The suite of fast-mem, with every arm that an answer asks for.
pub(crate) fn fast_memory() -> (RunHeader, Vec<Record>) {
    let mut header = journal().header;
    header.suite = "fast-memory".into();
    header.published = vec!["fast-memory".into()];
    let exec = [
        ("noop", 2.29),
        ("noop/safe", 2.68),
        ("paged-sip", 12.87),
        ("paged-ahash", 6.31),
        ("paged-fx", 5.20),
        ("paged-nohash", 6.71),
        ("paged-last", 5.31),
        ("paged-cache-4", 5.61),
        ("paged-cache-8", 5.55),
        ("paged-cache-16", 5.50),
        ("paged-cache-32", 5.48),
        ("paged-cache-4-neg", 4.62),
        ("paged-cache-8-neg", 4.31),
        ("paged-cache-16-neg", 4.05),
        ("paged-cache-32-neg", 3.95),
        ("base", 4.41),
        ("tlb", 2.77),
        ("flat", 2.64),
    ];
    // Every map holds one page: nothing tells hash functions apart.
    let fib = exec.map(|(arm, ns)| (arm, 1.47 + (ns - 2.29) * 0.3));
    let mut records =
        vec![syscall(), replay("exec-block", &exec, false), replay("fib", &fib, false)];
    // As published: the file mapped, and decoded with bounds checks.
    let published = [
        ("noop/safe", 3.29),
        ("paged-fx/safe", 6.12),
        ("paged-last/safe", 6.25),
        ("paged-cache-4-neg/safe", 5.44),
        ("base", 4.87),
    ];
    let mut mapped = replay("exec-block", &published, false);
    mapped.case = mapped.case.with("reader", "mmap");
    records.push(mapped);
    records.extend(readers("exec-block", 2.24));
    records.extend(readers("fib", 1.50));
    records.push(statistics("exec-block", false));
    records.push(statistics("fib", false));
    header.plan = records.iter().map(|r| (r.workload.clone(), r.case.clone())).collect();
    (header, records)
}

fn replay_case(trace: &str, backend: &str, reader: &str) -> Case {
    case(&[
        ("trace", trace),
        ("ops", "20m"),
        ("seed", "1"),
        ("image", "none"),
        ("reader", reader),
        ("cache", "warm"),
        ("backend", backend),
        ("cpu", "auto"),
        ("rounds", "auto"),
    ])
}

/// The series that one arm leaves: CPU and elapsed time, its split, calls and faults.
fn arm(name: &str, ns: f64, [elapsed_ns, system_ns]: [f64; 2], counts: [u64; 2]) -> Vec<Series> {
    let ops = OPS as f64;
    let times = [
        ("replay", Clock::Cpu, ns),
        ("replay", Clock::Tsc, elapsed_ns),
        ("user-time", Clock::Cpu, ns - system_ns),
        ("system-time", Clock::Cpu, system_ns),
    ];
    let time = |(series, clock, each): (&str, Clock, f64)| {
        values(series, name, clock, OPS, BYTES, each * ops)
    };
    let mut all: Vec<Series> = times.into_iter().flat_map(time).collect();
    let counted = [("read-calls", counts[0]), ("minor-faults", counts[1]), ("major-faults", 0)];
    for (series, count) in counted {
        all.extend(repetitions().map(|(process, repetition, _)| Series {
            process,
            repetition,
            ..Series::new(series, name, Clock::Tsc, Unit::Count, vec![count])
        }));
    }
    all
}

/// What every arm of a replay claims, and its digest.
fn claims(name: &str, digest: u64) -> Vec<Claim> {
    let low = |digest: u64| i64::try_from(digest << 1 >> 1).unwrap();
    let whole = |value: u64| i64::try_from(value).unwrap();
    let mut claims = vec![
        claim(Check::TraceBytes, name, whole(BYTES), whole(BYTES), 0),
        claim(Check::TraceOperations, name, whole(OPS), whole(OPS), 0),
    ];
    if !name.starts_with("noop") {
        claims.push(claim(Check::ReplayDigest, name, low(DIGEST), low(digest), 0));
    }
    claims
}

fn about_the_trace() -> Vec<(&'static str, u64)> {
    vec![
        ("trace_ops", OPS),
        ("trace_bytes", BYTES),
        ("trace_digest", 0xfeed_beef_0123_4567),
        ("image_bytes", 0),
        ("trace_huge_bytes", 201 << 20),
    ]
}

fn replay(trace: &str, arms: &[Arm], without_flat: bool) -> Record {
    let mut result = Measured { counters: counters(&about_the_trace()), ..Measured::default() };
    for (name, ns) in arms {
        // An empty memory makes its pages: faults, and a little system time.
        let counts = if name.starts_with("noop") { [0, 0] } else { [0, 9_700] };
        result.series.extend(arm(name, *ns, [ns * 1.012, ns * 0.02], counts));
        let digest = if name.starts_with("noop") { 0x0f10_0f10_0f10_0f10 } else { DIGEST };
        result.witness.extend(claims(name, digest));
        result.counters.insert(format!("digest/{name}"), digest);
    }
    let mut names: Vec<&str> = arms.iter().map(|(name, _)| *name).collect();
    if without_flat {
        names.push("flat");
        result.warnings.push(NO_WINDOW.into());
    }
    measured("emu/replay", replay_case(trace, &names.join(","), "memory"), result)
}

/// A backend that loads something else: no number of the case may be shown.
fn forgetful() -> Record {
    let mut record = replay("uniform", &[("noop", 777.0), ("base", 778.0), ("tlb", 779.0)], false);
    let Outcome::Measured(result) = &mut record.outcome else { unreachable!("it is measured") };
    let wrong = 0x0bad_0bad_0bad_0bad;
    result.witness.retain(|claim| claim.arm != "tlb");
    result.witness.extend(claims("tlb", wrong));
    result.counters.insert("digest/tlb".into(), wrong);
    record
}

fn readers(trace: &str, floor: f64) -> Vec<Record> {
    let reader = |(reader, more, system, reads, faults): (&str, f64, f64, u64, u64)| {
        let ns = floor + more;
        let mut result = Measured {
            counters: counters(&about_the_trace()),
            series: arm("noop", ns, [ns * 1.05, system], [reads, faults]),
            witness: claims("noop", 0),
            ..Measured::default()
        };
        result.counters.insert("digest/noop".into(), 0x0f10_0f10_0f10_0f10);
        measured("emu/replay", replay_case(trace, "noop", reader), result)
    };
    let measured = [
        ("buffered-8k", 1.05, 0.93, 25_843, 0),
        ("buffered-4m", 0.99, 0.90, 52, 0),
        ("mmap", 0.61, 0.55, 0, 3_231),
        ("mmap-populate", 0.57, 0.52, 0, 0),
        ("memory", 0.0, 0.0, 0, 0),
    ];
    measured.into_iter().map(reader).collect()
}

fn verified(arms: &[&str], differing: Option<i64>) -> Record {
    let trace = if differing.is_some() { "zipf" } else { "exec-block" };
    let case = case(&[
        ("trace", trace),
        ("ops", "1m"),
        ("seed", "1"),
        ("image", "none"),
        ("backend", &arms.join(",")),
    ]);
    let once = |claim: Claim| Claim { checks: 1, ..claim };
    let claims = |arm: &&str| {
        [
            once(claim(Check::LoadsThatDiffer, arm, 0, differing.unwrap_or(0), 0)),
            once(claim(Check::TraceOperations, arm, 1_000_000, 1_000_000, 0)),
            once(claim(Check::TraceBytes, arm, 10_585_000, 10_585_000, 0)),
        ]
    };
    let first = "paged-last: operation 4711 at byte 49870: load of 8 bytes at 0x7ff9e8 gave 0x0, \
                 not 0x2a";
    let result = Measured {
        counters: counters(&[("trace_ops", 1_000_000), ("loads", 920_400)]),
        witness: arms.iter().flat_map(claims).collect(),
        warnings: differing.map(|_| first.to_owned()).into_iter().collect(),
        ..Measured::default()
    };
    measured("emu/verify", case, result)
}

fn table(name: &str, columns: &[(&str, &str)], rows: &[&[i64]]) -> Table {
    Table::new(name, columns.iter().copied(), rows.iter().map(|row| row.iter().copied()))
}

fn buckets(name: &str, counts: &[i64]) -> Table {
    let rows: Vec<Vec<i64>> =
        counts.iter().enumerate().map(|(at, count)| vec![1 << at, (2 << at) - 1, *count]).collect();
    let rows: Vec<&[i64]> = rows.iter().map(Vec::as_slice).collect();
    let columns = [("from", "operations"), ("to", "operations"), ("count", "operations")];
    table(name, &columns, &rows)
}

/// The statistics of a generated trace; with stack distances and TLBs where `more`.
fn statistics(trace: &str, more: bool) -> Record {
    let on = |yes: bool, word: &'static str| if yes { word } else { "off" };
    let case = case(&[
        ("trace", trace),
        ("ops", "20m"),
        ("seed", "1"),
        ("page-shift", "12"),
        ("top-k", "20"),
        ("cache-sizes", "4,8,16,32"),
        ("stack", on(more, "exact")),
        ("tlb", on(more, "on")),
    ]);
    let mut result = if trace == "fib" { fib_statistics() } else { exec_statistics() };
    if more {
        add_stack(&mut result);
    }
    for (clock, ns) in [(Clock::Cpu, 3.1), (Clock::Tsc, 3.2)] {
        let mut series = values("collect", "pagelab", clock, OPS, BYTES, ns * OPS as f64);
        series.truncate(1);
        result.series.extend(series);
    }
    let ops = i64::try_from(OPS).unwrap();
    for check in [Check::OpsByWidth, Check::ReadsAndWrites] {
        let claim = Claim { checks: 1, ..claim(check, "pagelab", ops, ops, 0) };
        result.witness.push(claim);
    }
    measured("trace/stats", case, result)
}

const WIDTHS: [(&str, &str); 3] =
    [("width", "bytes"), ("reads", "operations"), ("writes", "operations")];
const CACHES: [(&str, &str); 5] = [
    ("entries", "pages"),
    ("hits", "operations"),
    ("misses", "operations"),
    ("conflicts", "operations"),
    ("cold", "operations"),
];
const PAGES: [(&str, &str); 2] = [("page", "number"), ("ops", "operations")];

fn exec_statistics() -> Measured {
    let cache = |entries: i64, misses: i64| {
        [entries, 20_000_000 - misses, misses, misses - entries, entries]
    };
    let caches = [cache(4, 2_770_000), cache(8, 1_620_000), cache(16, 880_000), cache(32, 204_000)];
    let absent = |entries: i64, misses: i64| {
        [entries, 16_540_000 - misses, misses, misses - entries, entries]
    };
    let absent = [absent(4, 66_000), absent(8, 41_000), absent(16, 30_000), absent(32, 24_000)];
    let rows =
        |rows: &[[i64; 5]]| -> Vec<Vec<i64>> { rows.iter().map(|row| row.to_vec()).collect() };
    let caches_table =
        |name, of: &[[i64; 5]]| Table { rows: rows(of), ..table(name, &CACHES, &[]) };
    Measured {
        counters: counters(&[
            ("ops", OPS),
            ("bytes_consumed", BYTES),
            ("bytes_total", BYTES),
            ("reads", 18_408_000),
            ("writes", 1_592_000),
            ("straddles", 0),
            ("transitions", 7_050_000),
            ("pages", 1_460),
            ("absent_reads", 16_540_000),
            ("absent_pages", 235),
        ]),
        tables: vec![
            table(
                "widths",
                &WIDTHS,
                &[
                    &[1, 320_299, 115_420],
                    &[2, 16_475_160, 0],
                    &[4, 1_841, 8_597],
                    &[8, 1_610_700, 1_467_983],
                ],
            ),
            buckets("runs", &[4_189_110, 1_316_235, 1_186_515, 270_720, 66_270, 14_805, 6_346]),
            buckets(
                "reuse",
                &[12_949_054, 4_177_695, 845_938, 663_951, 519_962, 347_974, 267_980, 226_000],
            ),
            buckets("absent-reuse", &[12_970_000, 2_300_000, 690_000, 380_000, 199_765]),
            caches_table("caches", &caches),
            caches_table("absent-caches", &absent),
            table(
                "top-pages",
                &PAGES,
                &[
                    &[0x149, 3_428_000],
                    &[0x14a, 1_926_000],
                    &[0x7ff9, 1_910_000],
                    &[0xd1, 1_076_000],
                ],
            ),
        ],
        ..Measured::default()
    }
}

fn fib_statistics() -> Measured {
    let all = i64::try_from(OPS).unwrap();
    let rows: Vec<Vec<i64>> = [4, 8, 16, 32].map(|n| vec![n, all - 2, 2, 0, 2]).into();
    let caches = |name| Table { rows: rows.clone(), ..table(name, &CACHES, &[]) };
    Measured {
        counters: counters(&[
            ("ops", OPS),
            ("bytes_consumed", 200_000_008),
            ("bytes_total", 200_000_008),
            ("reads", OPS - 1),
            ("writes", 1),
            ("straddles", 0),
            ("transitions", 2),
            ("pages", 2),
            ("absent_reads", OPS - 1),
            ("absent_pages", 1),
        ]),
        tables: vec![
            table("widths", &WIDTHS, &[&[1, 0, 0], &[2, all - 1, 0], &[4, 0, 0], &[8, 0, 1]]),
            buckets("runs", &[2, 0, 0, 1]),
            buckets("reuse", &[all - 3, 1]),
            buckets("absent-reuse", &[all - 3, 1]),
            caches("caches"),
            caches("absent-caches"),
            table("top-pages", &PAGES, &[&[0x11, all - 1], &[0x7fff, 1]]),
        ],
        ..Measured::default()
    }
}

fn add_stack(result: &mut Measured) {
    let curve = [
        (1, 7_050_001),
        (2, 2_870_000),
        (4, 1_760_000),
        (8, 930_000),
        (16, 410_000),
        (32, 121_000),
        (64, 33_000),
        (128, 12_400),
        (256, 5_100),
        (512, 2_400),
        (1024, 1_600),
        (1460, 1_460),
    ];
    let rows: Vec<Vec<i64>> = curve.iter().map(|(size, misses)| vec![*size, *misses]).collect();
    let columns = [("size", "pages"), ("misses", "operations")];
    result.tables.push(Table { rows, ..table("miss-ratio", &columns, &[]) });
    let columns = [
        ("page", "bytes"),
        ("pages", "pages"),
        ("entries", "entries"),
        ("reach", "bytes"),
        ("misses", "operations"),
    ];
    let mut rows = Vec::new();
    for (page, pages, misses) in [
        (4_096_i64, 1_460_i64, [410_000, 33_000, 5_100]),
        (2 << 20, 18, [19, 18, 18]),
        (1 << 30, 1, [1, 1, 1]),
    ] {
        for (entries, misses) in [16_i64, 64, 256].into_iter().zip(misses) {
            rows.push(vec![page, pages, entries, page * entries, misses]);
        }
    }
    result.tables.push(Table { rows, ..table("tlb", &columns, &[]) });
    let stack = [("stack_one_in", 1), ("stack_runs", 7_050_001), ("stack_sampled_pages", 1_460)];
    result.counters.extend(counters(&stack));
}
