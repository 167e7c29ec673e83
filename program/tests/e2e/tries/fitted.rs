//! `pagelab try --fit`: the mapping that is worth it is chosen, found again and advised alone.

use std::fs;

use pagelab_interpose::preload::PACKAGE;
use pagelab_program::{explain, fit};
use pagelab_record::{Record, vocabulary::tried};

use super::{MIB, compiled, rungs, values};
use crate::support::{
    Lab, Machine, build_library, is_skipped, lacked, measured, put_together, until,
};

/// What a record says of its units, the one with most faults first: by column.
fn units(record: &Record) -> Vec<impl Fn(&str) -> i64> {
    let tables = measured(record).tables.clone().into_iter();
    let of = |table: pagelab_record::Table| move |name: &str| table.cell(name).unwrap();
    tables.filter(|table| table.name.starts_with(tried::UNIT)).map(of).collect()
}

/// Fits a program that fills one array of 64 MiB and touches a part of six others; the record of
/// its units, where it could be watched.
fn fitted(lab: &Lab, way: &str) -> Option<Record> {
    let program = compiled(lab, "mix")?;
    build_library(PACKAGE);
    // Nobody lets everybody have huge pages meanwhile.
    let _machine = Machine::alone();
    let flags =
        ["try", "--wait", "-q", "--fit", "-o", "run", "--rounds", "2", "--rung", "fit-all", "--"];
    let words = [program.to_str().unwrap(), way, "64", "400"];
    // Again, where faults came faster than they were read, a fault of 2 MiB cost too much or too
    // little beside those of 4 KiB, or no huge page was free.
    until("a fit that nobody disturbs", || {
        let _ = fs::remove_dir_all(lab.path("run"));
        let ended = lab.pagelab(&[&flags[..], &words].concat());
        let said = ended.exits(0).stdout.clone();
        let records: Vec<Record> = lab.records("run");
        let watched = records.iter().find(|record| record.workload == explain::WORKLOAD).unwrap();
        if is_skipped(watched) {
            return Some(None);
        }
        if measured(watched).counters["perf_minor_lost"] > 0 {
            return None;
        }
        let fit = &rungs(lab, "run")[tried::FIT];
        if is_skipped(fit) {
            // What it chooses by is measured in the run itself.
            assert!(!lacked(fit).contains("price"), "{}", lacked(fit));
            return Some(None);
        }
        assert!(said.contains("Which mappings are worth it"), "{said}");
        let chosen = records.into_iter().rfind(|record| record.workload == fit::WORKLOAD)?;
        // Without tracepoints the kind of a fault is known where somebody looked before the program
        // was over: nobody does at what its start takes.
        if measured(&chosen).counters[tried::UNKNOWN] > 100 || !is_usual(&chosen) {
            return None;
        }
        assert!(said.contains("1 of 2 mappings") || said.contains("1 of 3 mappings"), "{said}");
        if measured(fit).counters[tried::FALLBACKS] > 0 {
            put_together();
            return None;
        }
        Some(Some(chosen))
    })
}

/// Whether the prices that were measured make huge pages worth it for the dense mapping and for no
/// other one; what each gains has to follow from the prices in any case.
fn is_usual(record: &Record) -> bool {
    let [base_ns, huge_ns] = [tried::BASE_FAULT, tried::HUGE_FAULT]
        .map(|name| i64::try_from(measured(record).counters[name]).unwrap());
    let units = units(record);
    for unit in &units {
        let [saved, huge, gain] = ["saved", "huge", "gain"].map(unit);
        // Both prices are rounded.
        let is_near = (saved * base_ns - huge * huge_ns - gain).abs() <= saved + huge + 1;
        assert!(is_near, "{saved} of {base_ns} ns, {huge} of {huge_ns} ns: {gain} ns");
    }
    units[0]("gain") > 0 && units[1..].iter().all(|unit| unit("gain") <= 0)
}

#[test]
fn the_dense_mapping_is_chosen_and_the_memory_of_the_sparse_ones_is_spared() {
    let lab = Lab::new();
    let Some(record) = fitted(&lab, "mmap") else { return };
    let units = units(&record);
    let [dense, sparse] = [&units[0], &units[1]];
    assert_eq!(["way", "size", "areas"].map(dense), [1, 64 << 20, 1]);
    assert_eq!(["way", "size", "areas"].map(sparse), [1, 32 << 20, 6]);
    assert_eq!((dense("chosen"), sparse("chosen")), (1, 0));
    let faults = [dense("faults"), sparse("faults")];
    assert!(faults[0] >= 64 * 256 && faults[1] >= 6 * 16 * 20, "{faults:?}");
    assert!(dense("extra") < 4 << 20 && sparse("extra") > 6 * (20 << 20), "what is never touched");
    let rungs = rungs(&lab, "run");
    let (fit, plain) = (&rungs[tried::FIT], &rungs[tried::PLAIN]);
    assert_eq!(measured(fit).counters[tried::ASKED], 2, "one map of each of two rounds");
    let large = values(fit, tried::LARGE);
    assert!(large.iter().all(|large| *large <= 64 * MIB), "{large:?}");
    // All of it in huge pages would be 192 MiB more than what is touched.
    let most = values(plain, tried::PEAK).into_iter().max().unwrap() + 24 * MIB;
    assert!(values(fit, tried::PEAK).iter().all(|peak| *peak < most), "{fit:?}");
    let text = lab.pagelab(&["report", "run", "--format", "json"]).exits(0).stdout.clone();
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told["fit"]["chosen"], 1, "{}", told["fit"]);
    let paste = told["fit"]["units"][0]["paste"].as_str().unwrap();
    assert!(
        paste.starts_with("madvise(p, n, MADV_HUGEPAGE)") && paste.contains("dense"),
        "{paste}"
    );
}

#[test]
fn memory_of_malloc_is_known_again_by_who_asked_for_it() {
    let lab = Lab::new();
    let Some(record) = fitted(&lab, "malloc") else { return };
    let units = units(&record);
    let chosen: Vec<[i64; 2]> = units
        .iter()
        .filter(|unit| unit("chosen") == 1)
        .map(|unit| ["way", "size"].map(unit))
        .collect();
    assert_eq!(chosen, [[2, 64 << 20]]);
    assert_eq!(measured(&rungs(&lab, "run")[tried::FIT]).counters[tried::ASKED], 2);
}

#[test]
fn what_cannot_be_fit_says_why() {
    let lab = Lab::new();
    let script = fs::canonicalize("/bin/true").unwrap();
    build_library(PACKAGE);
    let flags =
        ["try", "--wait", "-q", "--fit", "-o", "run", "--rounds", "2", "--rung", "fit-all", "--"];
    let ended = lab.pagelab(&[&flags[..], &[script.to_str().unwrap()]].concat());
    lacked(&rungs(&lab, "run")[tried::FIT]);
    ended.exits(0).shows(&["chosen, and nothing was shown: it needs"]);
    lab.pagelab(&["try", "--fit", "--no-prediction", "--", "true"]).exits(2);
}
