//! Paths of a kernel: what is said where something is missing, a machine that does not come up, and
//! one that does.

use std::{env, fs, os::unix::fs::symlink, path::PathBuf};

use pagelab_record::{Outcome, vocabulary::table::STACK};

use crate::support::{Lab, binary, build_library, failure, is_skipped, measured, skip};

/// The plugin is there, as beside a binary that was built whole.
fn with_plugin() -> Lab {
    build_library("pagelab-capture");
    Lab::new()
}

/// Whether a record was skipped, which is said.
fn lacks(record: &pagelab_record::Record) -> bool {
    if let Outcome::Skipped { need, cure } = &record.outcome {
        skip(need, cure);
        return true;
    }
    false
}

#[test]
fn a_kernel_that_is_not_there_is_a_skip_with_its_cure() {
    let lab = with_plugin();
    lab.pagelab(&["run", "fault/path", "--kernel", "./none", "-o", "run"]).exits(4);
    let records = lab.records("run");
    let Outcome::Skipped { need, cure } = &records[0].outcome else { panic!("{records:?}") };
    assert!(need.contains("QEMU") || need.contains("/none"), "{need}");
    assert!(cure.contains("cargo") || cure.contains("bzImage"), "{cure}");
    lab.pagelab(&["run", "fault/path", "--kernel", "a b"]).exits(2).complains(&["newest"]);
    lab.pagelab(&["run", "fault/path", "--kind", "read", "--page", "64k"])
        .exits(2)
        .complains(&["kind=read"]);
}

#[test]
fn an_emulator_that_loads_no_plugins_is_a_skip_that_says_so() {
    let lab = with_plugin();
    let says =
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'QEMU emulator version 10.0.2' || echo -smp\n";
    lab.program(lab.file("script", says), "qemu-system-x86_64");
    lab.file("image", "");
    let mut command = assert_cmd::Command::new(binary());
    command.args(["run", "fault/path", "--kernel", "./image", "-o", "run"]);
    // Neither the system's emulator nor that of the lane.
    command.env("PATH", lab.path(".")).env("XDG_CACHE_HOME", lab.path("."));
    lab.ended(&mut command).exits(4);
    let records = lab.records("run");
    let Outcome::Skipped { need, cure } = &records[0].outcome else { panic!("{records:?}") };
    assert!(need.contains("loads plugins") && cure.contains("-plugin"), "{need}; {cure}");
}

#[test]
fn an_image_that_is_none_is_a_failure_with_the_emulators_words() {
    let lab = with_plugin();
    lab.file("image", "this is no kernel\n".repeat(1000));
    lab.pagelab(&["run", "fault/path", "--kernel", "./image", "-o", "run"]);
    let record = &lab.records("run")[0];
    if !lacks(record) {
        let why = failure(record);
        assert!(why.contains("its first process") && why.contains("QEMU says"), "{why}");
    }
}

/// A cache with the emulator and kernels of ours, and with no machine that was saved.
fn cache(lab: &Lab) -> PathBuf {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let ours = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let cache = lab.path("cache");
    fs::create_dir_all(cache.join("pagelab/vm")).unwrap();
    for part in ["pagelab/vm/qemu", "pagelab/vm/kernels"] {
        if let Some(ours) = &ours {
            symlink(ours.join(part), cache.join(part)).unwrap();
        }
    }
    cache
}

#[test]
fn a_write_fault_is_counted_by_function_and_a_machine_that_was_saved_counts_the_same() {
    let lab = with_plugin();
    let cache = cache(&lab);
    for (run, resumed) in [("run", 0), ("again", 1)] {
        let mut command = assert_cmd::Command::new(binary());
        command.args(["run", "fault/path", "--kernel", "6.12", "--size", "256k", "-o", run]);
        lab.ended(command.env("XDG_CACHE_HOME", &cache));
        let record = &lab.records(run)[0];
        if lacks(record) {
            return;
        }
        assert!(!is_skipped(record));
        let measured = measured(record);
        let broken: Vec<_> = measured.witness.iter().filter(|claim| !claim.holds).collect();
        assert!(broken.is_empty(), "{broken:?}");
        let of_faults = |name: &str| name.starts_with(STACK) && name.contains("handle_mm_fault");
        assert!(measured.tables.iter().any(|table| of_faults(&table.name)));
        let length = measured.counters["mode_instructions"];
        assert!((500..20_000).contains(&length), "{length} instructions of a write fault");
        assert_eq!(measured.counters["boots_resumed"], resumed, "{record:?}");
    }
    // What nothing holds any more and is no machine goes when the next one is saved.
    assert_eq!(fs::read_dir(cache.join("pagelab/vm/saved")).unwrap().count(), 1);
    lab.pagelab(&["compare", "run", "again", "--fail-on", "instructions:0"])
        .exits(0)
        .shows(&["+0"]);
}
