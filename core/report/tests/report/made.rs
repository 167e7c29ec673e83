//! What golden records are made of, and the journal of them, for the tests of every part's reports.

use std::path::{Path, PathBuf};

use pagelab_record::{
    Case, Claim, Clock, Data, Host, Measured, Nature, Outcome, Record, Series, Unit, journal,
    latency, schema, vocabulary::Said,
};
use serde_json::json;

pub(crate) const RUN: &str = "20261121T011303Z-reference";
pub(crate) const PROCESSES: u32 = 3;
pub(crate) const REPETITIONS: u32 = 5;
/// Each process is a little slower or faster than the first, each repetition a little less so.
pub(crate) const PROCESS_FACTOR: [f64; 3] = [1.0, 1.008, 0.994];
pub(crate) const REPETITION_FACTOR: [f64; 5] = [1.0, 1.003, 0.998, 1.001, 0.999];

/// The journal of golden records.
pub(crate) fn path() -> PathBuf {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    above.map(|folder| folder.join("tests/data/golden.jsonl")).find(|file| file.is_file()).unwrap()
}

/// The journal of golden records, read back.
pub(crate) fn journal() -> journal::Contents {
    journal::read(&path()).unwrap()
}

fn host(moment: usize) -> Host {
    let facts = |facts: serde_json::Value| serde_json::from_value(facts).unwrap();
    Host {
        identity: facts(json!({
            "cpu_model": "Intel Xeon (Sapphire Rapids)",
            "cpu_count": 2,
            "kernel_release": "6.18.44",
            "memory_bytes": 24_u64 << 30,
            "hypervisor": "Firecracker",
            "numa_nodes": 1,
            "tsc_hz": 2_300_000_000_u64,
        })),
        settings: facts(json!({
            "thp": "madvise",
            "thp_defrag": "madvise",
            "clocksource": "tsc",
            "mitigations": "spectre_v2: Enhanced IBRS; retbleed: not affected",
            "swap": "none",
        })),
        volatile: facts(json!({
            "load_1m": 0.4 + (moment % 4) as f64 / 10.0,
            "steal_percent": moment % 2,
            "memory_free_bytes": 22_500_000_000_u64 - (moment as u64 % 7) * 10_000_000,
        })),
    }
}

pub(crate) fn outcome(workload: &str, case: Case, outcome: Outcome) -> Record {
    let moment = case.to_string().len();
    Record {
        schema: schema::SCHEMA.into(),
        run: RUN.into(),
        boot: "3f0c8a52-5a53-4c5e-9a0c-1d3f2b7a9e10".into(),
        workload: workload.into(),
        nature: Nature::Measured,
        case,
        ab: None,
        host: host(moment),
        outcome,
    }
}

pub(crate) fn measured(workload: &str, case: Case, measured: Measured) -> Record {
    outcome(workload, case, Outcome::Measured(measured))
}

pub(crate) fn case(parameters: &[(&str, &str)]) -> Case {
    parameters.iter().fold(Case::default(), |case, (name, value)| case.with(name, value))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "nanoseconds of an observation are positive and fit in 64 bits"
)]
pub(crate) fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// The place of an observation in the run, and how much it differs from the first.
pub(crate) fn repetitions() -> impl Iterator<Item = (u32, u32, f64)> {
    (0..PROCESSES).flat_map(|process| {
        (0..REPETITIONS).map(move |repetition| {
            let factor = PROCESS_FACTOR[process as usize] * REPETITION_FACTOR[repetition as usize];
            (process, repetition, factor)
        })
    })
}

/// One series for each repetition, each with one value of `ns`.
pub(crate) fn values(
    name: &str,
    arm: &str,
    clock: Clock,
    ops: u64,
    bytes: u64,
    ns: f64,
) -> Vec<Series> {
    let series = |(process, repetition, factor)| Series {
        process,
        repetition,
        ops,
        bytes,
        ..Series::new(name, arm, clock, Unit::Ns, vec![whole(ns * factor)])
    };
    repetitions().map(series).collect()
}

/// A distribution through min, p50, p90, p99, p99.9 and max.
pub(crate) fn histogram(
    arm: &str,
    name: &str,
    process: u32,
    quantiles: [u64; 6],
    n: u32,
) -> Series {
    const SHARES: [f64; 6] = [0.0, 0.5, 0.9, 0.99, 0.999, 1.0];
    let mut histogram = latency::empty();
    for index in 0..n {
        let share = (f64::from(index) + 0.5) / f64::from(n);
        let right = SHARES.iter().position(|s| *s >= share).unwrap().max(1);
        let within = (share - SHARES[right - 1]) / (SHARES[right] - SHARES[right - 1]);
        // 1/value is linear between two quantiles: most observations lie near the lower one.
        let (low, high) = (quantiles[right - 1] as f64, quantiles[right] as f64);
        let value = low * high / (high + (low - high) * within);
        histogram.saturating_record(whole(value * PROCESS_FACTOR[process as usize]));
    }
    Series {
        process,
        ..Series::new(name, arm, Clock::Tsc, Unit::Ns, Data::Histogram(latency::encode(&histogram)))
    }
}

pub(crate) fn counters(counters: &[(&str, u64)]) -> std::collections::BTreeMap<String, u64> {
    counters.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

pub(crate) fn claim<'s>(
    said: impl Into<Said<'s>>,
    arm: &str,
    expected: i64,
    observed: i64,
    tolerance: i64,
) -> Claim {
    let checks = u64::from(PROCESSES * REPETITIONS);
    Claim { checks, ..Claim::check(said, arm, expected, observed, tolerance) }
}
