//! Chains of loads on a machine with two levels of TLB, for the tests of every part's reports.

use pagelab_record::{Clock, Data, Measured, Record, Table, vocabulary::Check};
use serde_json::json;

use crate::made;

const LOADS: u64 = 100_000;

/// A load over so many lines on a machine with 32 KiB of L1d and 512 KiB of L2.
fn load(lines: u64) -> f64 {
    if lines <= 512 {
        2.0
    } else if lines <= 8192 {
        5.0
    } else {
        30.0
    }
}

/// What base pages add with TLBs of 64 and of 2048 entries.
fn more(pages: u64) -> f64 {
    if pages <= 64 {
        0.0
    } else if pages <= 2048 {
        3.0
    } else {
        14.0
    }
}

pub(crate) fn record(page: &str, size: (&str, u64), noise: f64) -> Record {
    let lines = size.1 / 4096;
    let case = made::case(&[
        ("page", page),
        ("against", "2m"),
        ("size", size.0),
        ("loads", "100k"),
        ("lie", "none"),
    ]);
    let mut series = Vec::new();
    let arms: &[&str] = if page == "4k" { &["pagelab", "against"] } else { &["pagelab"] };
    for arm in arms {
        let extra = if page == "4k" && *arm == "pagelab" { more(lines) } else { 0.0 };
        let ns = (load(lines) + extra) * LOADS as f64;
        let mut all = made::values("load", arm, Clock::Tsc, LOADS, 0, ns);
        for (nth, series) in all.iter_mut().enumerate() {
            if let Data::Values(values) = &mut series.data {
                let off = noise * LOADS as f64 * if nth % 10 < 5 { 1.0 } else { -0.5 };
                let is_ours = *arm == "pagelab";
                values[0] = made::whole(values[0] as f64 + if is_ours { off } else { 0.0 });
            }
        }
        series.extend(all);
    }
    let columns = [("page", "bytes"), ("level", ""), ("entries", "count")];
    let rows = [[4096_i64, 1, 64], [4096, 2, 2048], [2 << 20, 1, 64]];
    let tables = vec![Table::new("tlbs", columns, rows)];
    let witness = vec![made::claim(Check::FaultsOfLoop, "pagelab", 0, 0, 0)];
    let measured = Measured { series, tables, witness, ..Measured::default() };
    let mut record = made::measured("tlb/chase", case, measured);
    for (name, bytes) in [("cache_l1d_bytes", 32 << 10), ("cache_l2_bytes", 512 << 10)] {
        record.host.identity.insert(name.into(), json!(bytes));
    }
    record.host.identity.insert("hypervisor".into(), json!("kvm"));
    record
}

pub(crate) const SIZES: [(&str, u64); 10] = [
    ("128k", 128 << 10),
    ("256k", 256 << 10),
    ("384k", 384 << 10),
    ("1m", 1 << 20),
    ("2m", 2 << 20),
    ("3m", 3 << 20),
    ("8m", 8 << 20),
    ("12m", 12 << 20),
    ("32m", 32 << 20),
    ("1g", 1 << 30),
];
