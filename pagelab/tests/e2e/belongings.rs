//! What a case owns on the machine: made for it, and gone after it, however the run ends.
//!
//! Swap of others is never touched: `/proc/swaps` is the same before and after each test. What
//! needs a zram device or a disk says so where there is none.

use std::{fs, path::Path};

use pagelab_sys::{
    knobs::{Place, swap, zram},
    machine::{
        Tree,
        proc::{InUse, in_use},
    },
};

use crate::support::{Lab, Live, Machine, is_skipped, measured, signal, skip, until};

const ZRAM: &str = "fault/latency kind=swap size=1m rounds=2";
const ENDLESS: &str = "fault/latency kind=swap size=1m rounds=1000000";
const FILE: &str = "fault/latency kind=swap swap=file size=1m rounds=2";
const ENDLESS_FILE: &str = "fault/latency kind=swap swap=file size=1m rounds=1000000";

/// What there is of swap, devices and groups; compared before and after.
#[derive(Debug, PartialEq, Eq)]
struct Inventory {
    swaps: Vec<InUse>,
    devices: Vec<usize>,
    page_cluster: String,
}

impl Inventory {
    fn now() -> Self {
        Self {
            swaps: swaps(),
            devices: Tree::machine().numbered("sys/block", "zram"),
            page_cluster: fs::read_to_string("/proc/sys/vm/page-cluster").unwrap(),
        }
    }

    /// Waits until everything is as it was, and asserts that nothing is left to undo.
    fn is_back(&self) {
        until("swap and devices to be as they were", || (Self::now() == *self).then_some(()));
        let lock = fs::File::open(Path::new(Place::MACHINE).join("knobs.lock")).unwrap();
        until("the lock to be free", || lock.try_lock().ok());
        let journal = fs::read_to_string(Path::new(Place::MACHINE).join("knobs.jsonl"));
        assert_eq!(journal.unwrap_or_default(), "");
    }
}

/// The swap there is. How much of it is used changes by itself.
fn swaps() -> Vec<InUse> {
    let all = in_use(&Tree::machine()).into_iter();
    all.map(|one| InUse { used_kib: 0, ..one }).collect()
}

/// Where a zram device can be made.
fn with_zram() -> bool {
    let tree = Tree::machine();
    let has = zram::is_offered(&tree) && swap::is_offered(&tree);
    if !has {
        skip("there is no zram here", "sudo modprobe zram");
    }
    has
}

/// A run in the middle of a case that has its swap.
fn endless(lab: &Lab, case: &str, before: &Inventory) -> Live {
    let suite = lab.suite(&[case]);
    let mut live = Live::start(lab, &["run", "--suite", &suite, "-o", "run"]);
    live.case();
    assert_ne!(Inventory::now().swaps, before.swaps, "the case has swap of its own");
    live
}

#[test]
fn swap_in_is_proven_and_the_device_is_gone_after_it() {
    let Some(_machine) = Machine::as_root() else { return };
    let before = Inventory::now();
    let lab = Lab::new();
    lab.measure("run", &[ZRAM]);
    let record = &lab.records("run")[0];
    if is_skipped(record) {
        return;
    }
    let measured = measured(record);
    assert!(measured.is_valid(), "{:?}", measured.witness);
    let claims: Vec<&str> = measured.witness.iter().map(|one| one.claim.as_str()).collect();
    assert!(claims.iter().any(|claim| claim.contains("zram")), "{claims:?}");
    assert_eq!(measured.counters["swapped_in_major"], 2 * 256);
    before.is_back();
}

#[test]
fn swap_on_a_disk_tells_major_from_minor_faults() {
    let Some(_machine) = Machine::as_root() else { return };
    let before = Inventory::now();
    let lab = Lab::new();
    lab.measure("run", &[FILE, &format!("{FILE} page-cluster=default")]);
    for record in &lab.records("run") {
        if is_skipped(record) {
            return;
        }
        assert!(measured(record).is_valid(), "{:?}", measured(record).witness);
    }
    before.is_back();
}

#[test]
fn a_page_that_is_present_is_not_passed_off_as_swapped() {
    let Some(_machine) = Machine::as_root() else { return };
    if !with_zram() {
        return;
    }
    let lab = Lab::new();
    lab.measure("run", &["fault/latency kind=swap size=1m rounds=2 lie=present"]).exits(6);
    let record = &lab.records("run")[0];
    let failed = measured(record).witness.iter().filter(|one| !one.holds);
    assert!(failed.into_iter().any(|one| one.claim == "major faults"));
}

#[test]
fn an_algorithm_that_the_kernel_lacks_is_skipped_with_those_it_has() {
    let Some(_machine) = Machine::as_root() else { return };
    let known = zram::algorithms(&Tree::machine());
    let Some(lacked) = ["842", "deflate", "zstd", "lz4hc"]
        .into_iter()
        .find(|name| !known.is_empty() && !known.iter().any(|known| known == name))
    else {
        return skip("this kernel has every algorithm, or no device to ask", "another kernel");
    };
    let lab = Lab::new();
    lab.measure("run", &[&format!("{ZRAM} algorithm={lacked}")]).exits(4);
    let pagelab_record::Outcome::Skipped { need, cure } = &lab.records("run")[0].outcome else {
        panic!("it was not skipped")
    };
    assert!(need.contains(lacked) && cure.contains(&known[0]), "{need}: {cure}");
}

#[test]
fn swap_is_gone_after_the_whole_process_group_was_killed() {
    let Some(_machine) = Machine::as_root() else { return };
    if !with_zram() {
        return;
    }
    let before = Inventory::now();
    let lab = Lab::new();
    let run = endless(&lab, ENDLESS, &before);
    run.kill_group();
    assert_eq!(run.end().code, None, "it was killed");
    before.is_back();
}

#[test]
fn swap_is_gone_after_its_case_died_and_after_an_interrupt() {
    let Some(_machine) = Machine::as_root() else { return };
    if !with_zram() {
        return;
    }
    let before = Inventory::now();
    let lab = Lab::new();
    let mut run = endless(&lab, ENDLESS, &before);
    signal("KILL", run.case());
    run.end().exits(1);
    before.is_back();
    let lab = Lab::new();
    let run = endless(&lab, ENDLESS, &before);
    signal("INT", run.pid());
    run.end().exits(130);
    before.is_back();
}

#[test]
fn what_a_run_and_its_watchdog_left_is_removed_on_request() {
    let Some(_machine) = Machine::as_root() else { return };
    if !with_zram() {
        return;
    }
    for case in [ENDLESS, ENDLESS_FILE] {
        let before = Inventory::now();
        let lab = Lab::new();
        if case == ENDLESS_FILE && swap::why_not_in(Path::new("/var/tmp"), 4 << 20).is_some() {
            return skip("/var/tmp cannot hold a swap file", "put it on ext4 or xfs");
        }
        let run = endless(&lab, case, &before);
        signal("KILL", run.watchdog());
        run.kill_group();
        run.end();
        // Nobody is left to do it.
        let lock = fs::File::open(Path::new(Place::MACHINE).join("knobs.lock")).unwrap();
        until("the lock to be free", || lock.try_lock().ok());
        drop(lock);
        assert_ne!(Inventory::now().swaps, before.swaps);
        lab.pagelab(&["doctor", "--restore"]).exits(0).shows(&["was removed"]);
        before.is_back();
        lab.pagelab(&["doctor", "--restore"]).exits(0).shows(&["nothing was left changed"]);
    }
}

#[test]
fn a_dry_run_names_what_would_be_made_and_makes_nothing() {
    let Some(_machine) = Machine::as_root() else { return };
    if !with_zram() {
        return;
    }
    let before = Inventory::now();
    let lab = Lab::new();
    let dry = lab.pagelab(&["run", "fault/latency", "--kind", "swap", "--dry-run"]);
    dry.exits(0).shows(&[
        "what would be made for each of its cases and removed:",
        "a zram device of 81 MiB as swap",
    ]);
    before.is_back();
}
