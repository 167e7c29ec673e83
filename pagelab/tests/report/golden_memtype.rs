//! Golden records of memory types, as a machine with the kernel module leaves them, and as machines
//! do that lack it, ignore the types, or are emulated.
//!
//! The rates are those that memcachetest published, so that what its sentences come to is known;
//! what it did not publish (completion, latency, order) is made up near what its table implies.

use pagelab_record::{
    Case, Claim, Clock, Measured, Nature, Outcome, Record, RunHeader, Series, Unit,
    vocabulary::Check,
};

use crate::golden::{
    case, claim, counters, histogram, journal, measured, outcome, repetitions, syscall, whole,
};

const MIB: f64 = 1_048_576.0;
const SIZE: u64 = 16 << 20;
const SIZE_NAME: &str = "16m";
/// What there is to skip without the module.
const NEED: &str = "the kernel module pagelab (/dev/pagelab is missing)";
const CURE: &str = "sudo modprobe pagelab";
/// How the claim ends that a hypervisor honours memory types.
const AS_FAST_AS_WB: &str = "memory that is as fast as WB: PAT ignored";
/// What a record warns of where it does not.
const IGNORED: &str = "this memory behaves as WB: a load takes 1 ns (WB 1 ns), a store with mfence \
    9 ns (WB 9 ns). The hypervisor ignores the guest's PAT: run on the host";

/// A test: its name, store, fence, verification and load.
type Test = [&'static str; 5];
const TESTS: [Test; 9] = [
    ["write", "plain", "sfence", "each-round", "none"],
    ["write_nofence", "plain", "none", "each-round", "none"],
    ["write_ucfence", "plain", "uc-store", "each-round", "none"],
    ["ntwrite", "nt", "sfence", "each-round", "none"],
    ["ntwrite_nofence", "nt", "none", "each-round", "none"],
    ["ntwrite_nofence_deferred", "nt", "none", "deferred", "none"],
    ["ntwrite_ucfence", "nt", "uc-store", "each-round", "none"],
    ["ntwrite_readback", "nt", "none", "each-round", "plain"],
    ["read", "none", "none", "each-round", "plain"],
];
/// The load-back of the fence word, and streaming loads.
const UNNAMED: [Test; 3] = [
    ["unnamed", "plain", "uc-store-load", "each-round", "none"],
    ["unnamed", "nt", "uc-store-load", "each-round", "none"],
    ["unnamed", "none", "none", "each-round", "nt"],
];

/// MiB/s in the order of [`TESTS`], then of [`UNNAMED`].
type Rates = [f64; 12];
pub(crate) const WB: Rates = [
    14605.71, 12493.88, 11718.75, 20481.37, 20584.17, 20351.10, 13888.57, 9120.0, 13198.05,
    11690.0, 13840.0, 13250.0,
];
pub(crate) const UC: Rates =
    [228.20, 226.73, 229.38, 465.89, 464.60, 462.71, 464.41, 158.0, 95.72, 229.35, 464.38, 95.9];
pub(crate) const WC: Rates = [
    25622.50, 25378.19, 14752.77, 20700.59, 21187.27, 20781.79, 15648.83, 207.0, 104.03, 14700.0,
    15590.0, 812.0,
];

/// Nanoseconds of min, p50, p90, p99, p99.9 and max.
type Quantiles = [u64; 6];

/// One case of `memtype/bandwidth` with what is not its default.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) memory_type: &'static str,
    pub(crate) test: Test,
    pub(crate) rate: f64,
    pub(crate) rounds: u32,
    pub(crate) arms: &'static str,
}

impl Shape {
    fn width(&self) -> u64 {
        let [_, store, _, _, load] = self.test;
        if store == "nt" || load == "nt" { 32 } else { 8 }
    }

    fn case(&self) -> Case {
        let [test, store, fence, verify, load] = self.test;
        case(&[
            ("test", test),
            ("type", self.memory_type),
            ("store", store),
            ("fence", fence),
            ("verify", verify),
            ("load", load),
            ("width", &self.width().to_string()),
            ("size", SIZE_NAME),
            ("iterations", &self.rounds.to_string()),
            ("threads", "1"),
            ("cpu", "auto"),
            ("node", "any"),
            ("frames", "scattered"),
            ("leaf", "4k"),
            ("fence-word", "own"),
            ("sum", "reset"),
            ("arms", self.arms),
        ])
    }

    /// Rounds of one series, as values of one observation each.
    fn series(&self, name: &str, arm: &str, bytes: u64, ns: f64) -> Vec<Series> {
        // UC is steady; the others have rounds that take longer.
        let wander = if self.memory_type == "uc" { 0.0004 } else { 0.004 };
        let series = |(process, repetition, factor): (u32, u32, f64)| {
            let round = |round| whole(ns * factor * (1.0 + f64::from(round * 7 % 5) * wander));
            let values: Vec<u64> = (0..self.rounds).map(round).collect();
            let series = Series::new(name, arm, Clock::Tsc, Unit::Ns, values);
            Series { process, repetition, ops: SIZE / self.width(), bytes, ..series }
        };
        repetitions().map(series).collect()
    }

    fn record(&self) -> Record {
        let [test, store, fence, ..] = self.test;
        let bytes = if test == "ntwrite_readback" { SIZE * 2 } else { SIZE };
        let timed = bytes as f64 / MIB * 1e9 / self.rate;
        let mut series = self.series("test", "pagelab", bytes, timed);
        if self.arms.ends_with(",c") {
            series.extend(self.series("test", "c", bytes, timed * 0.99));
        }
        let mut kept = vec![
            ("width_bytes", self.width()),
            ("verified_rounds", u64::from(self.rounds) * 15),
            ("wrong_words", 0),
        ];
        if store == "none" {
            // Every pass reads what the last round left.
            let sum = sum(u64::from(self.rounds) - 1) * u64::from(self.rounds);
            kept.extend(
                halves(sum).map(|(half, value)| {
                    (if half == "low" { "sum_low" } else { "sum_high" }, value)
                }),
            );
            kept.extend(halves(sum).map(|(half, value)| {
                (if half == "low" { "expected_sum_low" } else { "expected_sum_high" }, value)
            }));
        } else {
            // What is still on its way when the last store was issued.
            let left = match (self.memory_type, fence) {
                ("uc", _) => 90.0,
                (_, "none") => 262_000.0,
                _ => 500.0,
            };
            let issue = match (self.memory_type, fence) {
                (_, "none") => timed,
                ("uc", _) => timed - 60.0,
                (_, "sfence") => timed * 0.97,
                _ => timed - 255_000.0,
            };
            let issue = if test == "ntwrite_readback" { timed * 0.4 } else { issue };
            series.extend(self.series("issue", "pagelab", SIZE, issue));
            series.extend(self.series("completion", "pagelab", SIZE, timed + left));
        }
        let result = Measured {
            series,
            counters: counters(&kept),
            witness: self.claims(),
            ..Measured::default()
        };
        measured("memtype/bandwidth", self.case(), result)
    }

    fn claims(&self) -> Vec<Claim> {
        let name = manual_name(self.memory_type);
        let leaves = format!("leaves that are not {name}, by the page table, before and after");
        let mut claims = vec![
            claim(Check::WrongWords, "pagelab", 0, 0, 0),
            claim(Check::FaultsOfLoop, "pagelab", 0, 0, 0),
            claim((Check::OtherLeaves, &leaves), "pagelab", 0, 0, 0),
        ];
        // The fence's word is UC memory, too.
        let word = self.test[2].starts_with("uc-store").then_some("uc");
        let timed = word.into_iter().filter(|_| self.memory_type != "uc");
        claims.extend(timed.chain([self.memory_type]).filter_map(|t| as_fast_as_wb(t, false)));
        claims
    }
}

/// The memory type as the processor manuals write it.
fn manual_name(memory_type: &str) -> &'static str {
    match memory_type {
        "uc" => "UC-",
        "wc" => "WC",
        _ => "WB",
    }
}

/// The claim by timing, which WB memory has no need of.
fn as_fast_as_wb(memory_type: &str, ignored: bool) -> Option<Claim> {
    let text = format!("{} {AS_FAST_AS_WB}", manual_name(memory_type));
    (memory_type != "wb")
        .then(|| claim((Check::PatIgnored, &text), "pagelab", 0, i64::from(ignored), 0))
}

/// The two halves of a sum, as counters keep it.
fn halves(sum: u64) -> [(&'static str, u64); 2] {
    [("low", sum & u64::from(u32::MAX)), ("high", sum >> 32)]
}

/// The sum of the region after round `last`.
fn sum(last: u64) -> u64 {
    let words = SIZE / 8;
    words / 2 * (words - 1) + last * words
}

fn bandwidth(memory_type: &'static str, rates: &Rates, rounds: u32) -> Vec<Record> {
    let tests = TESTS.iter().chain(&UNNAMED).zip(rates);
    let shape = |(test, rate): (&Test, &f64)| Shape {
        memory_type,
        test: *test,
        rate: *rate,
        rounds,
        arms: if memory_type == "wb" && ["write", "ntwrite", "read"].contains(&test[0]) {
            "pagelab,c"
        } else {
            "pagelab"
        },
    };
    tests.map(|pair| shape(pair).record()).collect()
}

/// The read of the original: sums that go on, a fence word inside the region.
fn accumulated(memory_type: &'static str, rate: f64, sum: u64) -> Record {
    let shape = Shape { memory_type, test: TESTS[8], rate, rounds: 50, arms: "pagelab" };
    let mut record = shape.record();
    let word = if memory_type == "uc" { "overlap" } else { "own" };
    record.case = record.case.with("sum", "accumulated").with("fence-word", word);
    let Outcome::Measured(result) = &mut record.outcome else { unreachable!("it is measured") };
    for (half, value) in halves(sum) {
        result.counters.insert(format!("sum_{half}"), value);
        result.counters.insert(format!("expected_sum_{half}"), value);
    }
    record
}

fn latency(memory_type: &str, state: &str, operations: &[(&str, Quantiles)]) -> Record {
    let names: Vec<&str> = operations.iter().map(|(name, _)| *name).collect();
    let case = case(&[
        ("type", memory_type),
        ("state", state),
        ("frames", "scattered"),
        ("leaf", "4k"),
        ("size", "4m"),
        ("cpu", "auto"),
        ("samples", "10k"),
        ("op", &names.join(",")),
    ]);
    let series = operations.iter().flat_map(|(name, quantiles)| {
        (0..3).map(|process| histogram(name, "op", process, *quantiles, 10_000))
    });
    let mut result = Measured { series: series.collect(), ..Measured::default() };
    for name in names {
        result.witness.push(claim(Check::FaultsOfLoop, name, 0, 0, 0));
    }
    measured("memtype/latency", case, result)
}

fn latencies() -> Vec<Record> {
    let around = |ns: u64| [ns * 9 / 10, ns, ns * 6 / 5, ns * 2, ns * 9, ns * 300];
    let of = |list: &[(&'static str, u64)]| -> Vec<(&'static str, Quantiles)> {
        list.iter().map(|(name, ns)| (*name, around(*ns))).collect()
    };
    vec![
        latency("wb", "hot", &of(&[("load", 12), ("store", 10), ("store-sfence", 24)])),
        latency("wb", "flushed", &of(&[("load", 96), ("store", 11), ("store-sfence", 104)])),
        latency("uc", "hot", &of(&[("load", 92), ("store", 40), ("uc-store", 105)])),
        latency("wc", "hot", &of(&[("load", 88), ("load-nt", 90), ("store-sfence", 120)])),
    ]
}

/// A message-passing case and what was seen.
fn order(memory_type: &str, store: &str, fence: &str, seen: u64, forbidden: bool) -> Record {
    let case = case(&[
        ("type", memory_type),
        ("store", store),
        ("fence", fence),
        ("width", "8"),
        ("rounds", "1m"),
        ("pattern", "4k"),
        ("cpus", "0,1"),
    ]);
    let mut result = Measured::default();
    let each = |name: &str, unit, ops, value| {
        let one = |(process, repetition, _)| Series {
            process,
            repetition,
            ops,
            ..Series::new(name, "pagelab", Clock::Tsc, unit, vec![value])
        };
        repetitions().map(one).collect::<Vec<_>>()
    };
    result.series.extend(each("round", Unit::Ns, 1_000_000, 212_000_000));
    result.series.extend(each("observed", Unit::Count, 1, 731_000));
    result.series.extend(each("reorderings", Unit::Count, 1, seen));
    if forbidden {
        let seen = i64::try_from(seen).unwrap();
        result.witness.push(claim(
            (Check::Reorderings, "reorderings that were seen"),
            "pagelab",
            0,
            seen,
            0,
        ));
    }
    measured("memtype/order", case, result)
}

fn orders() -> Vec<Record> {
    vec![
        order("wb", "plain", "none", 0, true),
        order("wb", "nt", "none", 41, false),
        order("wb", "nt", "sfence", 0, true),
        order("wc", "plain", "none", 0, false),
        order("wc", "nt", "uc-store", 0, false),
    ]
}

/// What goes into the golden journal: a few of each, with few rounds.
pub(crate) fn records() -> Vec<Record> {
    let of = |memory_type, rates: &Rates, keep: &[&str]| {
        let mut all = bandwidth(memory_type, rates, 3);
        all.retain(|record| keep.contains(&record.case.get("test").unwrap()));
        all
    };
    let mut records = of("wb", &WB, &["write", "ntwrite_nofence", "read"]);
    records.extend(of("uc", &UC, &["write"]));
    records.extend(of("wc", &WC, &["write", "read"]));
    let mut latencies = latencies();
    latencies.truncate(3);
    records.extend(latencies);
    let mut orders = orders();
    orders.truncate(3);
    records.extend(orders);
    records
}

/// The suite of memcachetest on a machine like the published one, with the module.
pub(crate) fn memory_types() -> (RunHeader, Vec<Record>) {
    let mut records = vec![syscall()];
    records.extend(bandwidth("wb", &WB, 50));
    records.extend(bandwidth("uc", &UC, 3));
    records.extend(bandwidth("wc", &WC, 5));
    records.push(accumulated("wb", WB[8], 0x6601_3530_0000));
    records.push(accumulated("uc", UC[8], 0x6601_352f_9a02));
    records.push(accumulated("wc", WC[8], 0x6601_3530_0000));
    records.extend(latencies());
    records.extend(orders());
    (header(&records), records)
}

fn header(records: &[Record]) -> RunHeader {
    let mut header = journal().header;
    header.suite = "memory-types".into();
    header.published = vec!["memory-types".into()];
    header.plan = records.iter().map(|r| (r.workload.clone(), r.case.clone())).collect();
    header
}

fn needs_the_module(record: &Record) -> bool {
    let is = |name: &str, value: &str| record.case.get(name) == Some(value);
    let fence = record.case.get("fence").unwrap_or_default();
    record.case.get("type").is_some_and(|memory_type| memory_type != "wb")
        || fence.starts_with("uc-store")
        || is("fence-word", "overlap")
}

/// The same on a machine without the module.
pub(crate) fn without_the_module() -> (RunHeader, Vec<Record>) {
    let (header, mut records) = memory_types();
    for record in records.iter_mut().filter(|record| needs_the_module(record)) {
        let skipped = Outcome::Skipped { need: NEED.into(), cure: CURE.into() };
        *record = outcome(&record.workload, record.case.clone(), skipped);
    }
    (header, records)
}

/// The same in a guest whose hypervisor maps all memory WB: UC and WC take as long as WB.
pub(crate) fn ignored_types() -> (RunHeader, Vec<Record>) {
    let (header, mut records) = memory_types();
    for record in &mut records {
        let Outcome::Measured(result) = &mut record.outcome else { continue };
        let memory_type = record.case.get("type").unwrap_or("wb");
        let is_timed = |claim: &&mut Claim| claim.claim.ends_with(AS_FAST_AS_WB);
        let mut found = false;
        for timed in result.witness.iter_mut().filter(is_timed) {
            (timed.observed, timed.holds, found) = (1, false, true);
        }
        result.witness.extend(as_fast_as_wb(memory_type, true).filter(|_| !found));
        if !result.witness.iter().all(|claim| claim.holds) {
            result.warnings.push(IGNORED.into());
        }
    }
    (header, records)
}

/// The same in QEMU's TCG.
pub(crate) fn emulated() -> (RunHeader, Vec<Record>) {
    let (header, mut records) = memory_types();
    for record in &mut records {
        record.nature = Nature::Emulated;
    }
    (header, records)
}
