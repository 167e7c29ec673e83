//! Golden records: a run such as the reference machine leaves behind, made without a machine.
//!
//! The numbers follow measurements of that machine (quantiles of each fault kind, bandwidth of each
//! level); between the quantiles lies a simple curve. All is deterministic arithmetic, so that the
//! file in `tests/data` can be made again and compared.

use pagelab_record::{
    Case, Clock, Data, Measured, Outcome, Record, RunHeader, Series, Unit, schema,
    vocabulary::Check,
};
use serde_json::json;

pub(crate) use crate::made::{
    case, claim, counters, histogram, journal, measured, outcome, path, repetitions, values, whole,
};
pub(crate) use crate::made_suites::{publication, published, syscall};
use crate::{
    golden_memory, golden_memtype,
    made::{PROCESSES, REPETITIONS, RUN},
};

/// What the generator makes: the text of the golden file.
pub(crate) fn generated() -> String {
    let records = records();
    let plan = records.iter().map(|r| (r.workload.clone(), r.case.clone())).collect();
    let header = RunHeader {
        schema: schema::RUN_SCHEMA.into(),
        run: RUN.into(),
        started: "2026-11-21T01:13:03Z".into(),
        pagelab: "0.1.0".into(),
        asked: None,
        suite: "quick".into(),
        published: Vec::new(),
        command: vec!["pagelab".into(), "run".into()],
        method: json!({"processes": PROCESSES, "repetitions": REPETITIONS}),
        plan,
    };
    let mut text = serde_json::to_string(&header).unwrap() + "\n";
    for record in records {
        text += &(serde_json::to_string(&record).unwrap() + "\n");
    }
    text
}

fn records() -> Vec<Record> {
    let mut records = vec![timer(), syscall()];
    // GB/s of the best arm: clear, copy and read.
    for (level, bytes, clear, copy, read) in [
        ("l1", 32 << 10, 142.0, 118.0, 131.0),
        ("l2", 1 << 20, 44.2, 31.5, 58.0),
        ("llc", 16 << 20, 14.8, 9.6, 17.2),
        ("dram", 1 << 30, 10.07, 5.4, 6.4),
    ] {
        let arms = |name, plain, plain_gbs, nt, nt_gbs| {
            bandwidth(level, name, bytes, &[(plain, plain_gbs), (nt, nt_gbs)])
        };
        records.push(arms("clear", "rep-stosb", clear, "nt-store", clear.min(9.7)));
        records.push(arms("copy", "rep-movsb", copy, "nt-copy", copy.min(5.1)));
        records.push(bandwidth(level, "read", bytes, &[("load", read)]));
    }
    // Nanoseconds of one write fault by page size.
    for (page, ns) in [
        ("4k", 1_240.0),
        ("16k", 3_060.0),
        ("64k", 8_110.0),
        ("256k", 27_900.0),
        ("1m", 108_300.0),
        ("2m", 210_900.0),
    ] {
        records.push(throughput(page, "anon", "touch", ns));
    }
    for (page, ns) in [("4k", 1_195.0), ("64k", 8_160.0), ("2m", 212_400.0)] {
        records.push(throughput(page, "brk", "touch", ns));
    }
    records.push(throughput("4k", "anon", "map-populate", 985.0));
    records.push(throughput("4k", "anon", "madvise-populate", 952.0));
    records.push(invalid());
    records.push(latency("read", "4k", [499, 513, 561, 595, 1_503, 53_427]));
    records.push(latency("write", "4k", [996, 1_280, 1_491, 3_000, 10_740, 58_954]));
    records.push(latency("write", "16k", [2_473, 3_103, 3_441, 4_828, 24_934, 127_391]));
    records.push(latency("write", "64k", [7_036, 8_172, 9_221, 13_662, 47_188, 92_334]));
    records.push(latency("write", "256k", [25_074, 28_114, 30_084, 39_667, 86_028, 116_101]));
    records.push(latency("write", "1m", [102_102, 108_805, 115_160, 147_177, 149_929, 154_129]));
    records.push(latency("write", "2m", [196_135, 211_335, 224_233, 256_021, 268_259, 337_642]));
    records.push(outcome(
        "fault/throughput",
        throughput_case("hugetlb-2m", "anon", "touch"),
        Outcome::Skipped {
            need: "128 free hugetlb pages of 2m (there are 0)".into(),
            cure: "echo 128 | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
                .into(),
        },
    ));
    records.push(outcome(
        "fault/latency",
        latency_case("write", "hugetlb-1g"),
        Outcome::Failed { reason: "the measuring process was killed by signal 9 (SIGKILL)".into() },
    ));
    records.extend(golden_memory::records());
    records.extend(golden_memtype::records());
    records
}

/// Records of the published experiments, for the frames that only their suites show.
pub(crate) fn micro_pagefault() -> (RunHeader, Vec<Record>) {
    let mut header = journal().header;
    header.suite = "micro-pagefault".into();
    header.published = vec!["micro-pagefault".into()];
    let records = vec![
        throughput("4k", "anon", "touch", 1_240.0),
        throughput("2m", "anon", "touch", 210_900.0),
        throughput("4k", "brk", "touch", 1_195.0),
        throughput("4k", "anon", "map-populate", 985.0),
        invalid(),
    ];
    header.plan = records.iter().map(|r| (r.workload.clone(), r.case.clone())).collect();
    (header, records)
}

/// The experiment of the page-fault latency note, with its own method as an arm.
pub(crate) fn page_fault_latency() -> (RunHeader, Vec<Record>) {
    let mut header = journal().header;
    header.suite = "page-fault-latency".into();
    header.published = vec!["page-fault-latency".into()];
    let mut read = latency("read", "4k", [499, 513, 561, 595, 1_503, 53_427]);
    let Outcome::Measured(measured) = &mut read.outcome else { unreachable!("it is measured") };
    // Its samples come one from each process, so they are kept as values, in ns and in ticks.
    let ns: Vec<u64> = (0..100).map(|n| 560 + n * 2 + (n / 90) * 370 + (n / 99) * 6_000).collect();
    let ticks = ns.iter().map(|ns| ns * 23 / 10).collect();
    for (name, unit, values) in [("fault", Unit::Ns, ns), ("fault-ticks", Unit::Ticks, ticks)] {
        let arm = "as-published".into();
        let template = measured.series[0].clone();
        let (name, data, bytes) = (name.into(), Data::Values(values), 0);
        measured.series.push(Series { name, arm, unit, data, bytes, ..template });
    }
    let mut fifo_off = latency("write", "4k", [1_010, 1_430, 1_700, 3_297, 96_000, 1_963_270]);
    fifo_off.case = fifo_off.case.with("fifo", "off");
    let records = vec![
        timer(),
        read,
        latency("write", "4k", [996, 1_280, 1_491, 3_000, 10_740, 58_954]),
        fifo_off,
        latency("write", "2m", [196_135, 211_335, 224_233, 256_021, 268_259, 337_642]),
    ];
    header.plan = records.iter().map(|r| (r.workload.clone(), r.case.clone())).collect();
    (header, records)
}

fn timer() -> Record {
    let pairs = (0..PROCESSES).map(|process| Series {
        unit: Unit::Ticks,
        ..histogram("pagelab", "pair", process, [40, 44, 46, 58, 90, 21_000], 4_096)
    });
    let mut series: Vec<Series> = pairs.collect();
    series.extend(values("record", "pagelab", Clock::Tsc, 100_000, 0, 610_000.0));
    series.extend(values("sample", "pagelab", Clock::Tsc, 100_000, 0, 2_240_000.0));
    let measured_ = Measured {
        series,
        counters: counters(&[("tsc_hz", 2_300_000_000)]),
        witness: vec![claim((Check::ClockWentBack, "the clock never went back"), "", 0, 0, 0)],
        ..Measured::default()
    };
    measured("limit/timer", Case::default(), measured_)
}

fn bandwidth(level: &str, name: &str, bytes: u64, arms: &[(&str, f64)]) -> Record {
    let series =
        |(arm, gbs): &(&str, f64)| values(name, arm, Clock::Tsc, 1, bytes, bytes as f64 / gbs);
    let measured_ = Measured {
        series: arms.iter().flat_map(series).collect(),
        counters: counters(&[("buffer_bytes", bytes)]),
        witness: vec![claim(
            (Check::EndsAsWritten, "the buffer holds what was written"),
            "",
            0,
            0,
            0,
        )],
        ..Measured::default()
    };
    measured(&format!("limit/{name}"), case(&[("level", level)]), measured_)
}

fn throughput_case(page: &str, backing: &str, populate: &str) -> Case {
    case(&[
        ("page", page),
        ("backing", backing),
        ("populate", populate),
        ("touch", "8@page"),
        ("order", "ascending"),
        ("align", "aligned"),
        ("threads", "1"),
        ("processes", "1"),
        ("size", "256m"),
        ("rounds", "5"),
        ("fifo", "on"),
    ])
}

fn throughput(page: &str, backing: &str, populate: &str, ns: f64) -> Record {
    let size = 256_u64 << 20;
    let faults = size / pagelab_record::units::parse_bytes(page).unwrap();
    let touches = populate == "touch";
    let total = ns * faults as f64;
    let (map, populated, touch) = match populate {
        "touch" => (9_000.0, None, total),
        "map-populate" => (total, None, 2_900_000.0),
        _ => (9_000.0, Some(total), 2_900_000.0),
    };
    let mut series = Vec::new();
    for (clock, share) in [(Clock::Tsc, 1.0), (Clock::Cpu, 0.991)] {
        series.extend(values("map", "pagelab", clock, 1, 0, map * share));
        if let Some(populated) = populated {
            series.extend(values("populate", "pagelab", clock, 1, size, populated * share));
        }
        series.extend(values("touch", "pagelab", clock, faults, size, touch * share));
        let release = faults as f64 * if page == "4k" { 118.0 } else { 900.0 };
        series.extend(values("release", "pagelab", clock, 1, size, release * share));
    }
    if touches && page == "4k" && backing == "anon" {
        series.extend(values("touch", "c", Clock::Tsc, faults, size, total * 1.004));
    }
    let expected = i64::try_from(faults).unwrap();
    let measured_ = Measured {
        series,
        counters: counters(&[
            ("faults_per_repetition", faults),
            ("faults", faults * u64::from(PROCESSES * REPETITIONS)),
            ("repetitions", u64::from(PROCESSES * REPETITIONS)),
        ]),
        witness: vec![
            claim(
                (Check::FaultsOfRepetition, "minor faults of a repetition"),
                "pagelab",
                expected,
                expected + 3,
                8,
            ),
            claim(
                (Check::Present, "bytes present after it in pages of this size"),
                "pagelab",
                1 << 28,
                1 << 28,
                0,
            ),
        ],
        ..Measured::default()
    };
    measured("fault/throughput", throughput_case(page, backing, populate), measured_)
}

/// A huge-page case that was served with base pages: its numbers must not be shown.
fn invalid() -> Record {
    let mut record = throughput("2m", "fixed", "touch", 777_777.0);
    let Outcome::Measured(measured) = &mut record.outcome else { unreachable!("it is measured") };
    measured.witness[0] = claim(
        (Check::FaultsOfRepetition, "minor faults of a repetition"),
        "pagelab",
        128,
        65_536,
        8,
    );
    measured.warnings = vec![
        "transparent huge pages fell back 128 times: free some memory or compact it first".into(),
    ];
    record
}

fn latency_case(kind: &str, page: &str) -> Case {
    case(&[
        ("kind", kind),
        ("page", page),
        ("order", "ascending"),
        ("size", "128m"),
        ("fifo", "on"),
        ("cpu", "0"),
        ("mem-node", "0"),
    ])
}

fn latency(kind: &str, page: &str, quantiles: [u64; 6]) -> Record {
    let bytes = pagelab_record::units::parse_bytes(page).unwrap();
    let n = u32::try_from((128 << 20) / bytes).unwrap().min(16_384);
    let mut series = Vec::new();
    for process in 0..PROCESSES {
        series.push(histogram("pagelab", "fault", process, quantiles, n));
        series.push(histogram("control", "fault", process, [21, 42, 129, 257, 341, 43_971], n));
        if page == "4k" {
            let slower = quantiles.map(|q| q + 640);
            series.push(histogram("pagelab", "fault-pagetable", process, slower, 64));
        }
    }
    for series in &mut series {
        series.bytes = bytes;
    }
    let faults = u64::from(n);
    let expected = i64::from(n);
    let measured_ = Measured {
        series,
        counters: counters(&[
            ("faults", faults * u64::from(PROCESSES)),
            ("migrated_samples", u64::from(page == "4k" && kind == "write") * 2),
            ("saturated_samples", 0),
            ("timer_overhead_ticks", 44),
            ("tsc_hz", 2_300_000_000),
        ]),
        witness: vec![
            claim(
                (Check::FaultsOfRepetition, "minor faults of a repetition"),
                "pagelab",
                expected,
                expected,
                8,
            ),
            claim((Check::FaultsOfControl, "minor faults over present pages"), "control", 0, 0, 8),
        ],
        warnings: vec!["a hypervisor is present: faults may hide an exit to it".into()],
        ..Measured::default()
    };
    measured("fault/latency", latency_case(kind, page), measured_)
}
