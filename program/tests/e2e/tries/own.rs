//! Rungs by the program's own setting.

use std::path::Path;

use pagelab_record::vocabulary::tried;
use serde_json::Value;

use super::{ALONE, MIB, rungs, seen, values};
use crate::{
    explain::compiled,
    support::{Lab, Machine, Saved, is_skipped, measured, skip},
};

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";

#[test]
fn a_program_is_started_by_another_command_and_its_pages_are_proven() {
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "random") else { return };
    let words = format!("{} 64 20000000", program.display());
    let own = format!("mine=env GLIBC_TUNABLES=glibc.malloc.hugetlb=1 {words}");
    let flags = ["try", "-q", ALONE, "-o", "run", "--rounds", "2", "--rung", "malloc-thp"];
    let rest = ["--format", "json", "--own", &own, "--", "sh", "-c", &format!("exec {words}")];
    let run = || lab.pagelab(&[&flags[..], &rest].concat());
    let (ended, rungs) = seen(&lab, &["mine"], run);
    ended.exits(0);
    if is_skipped(&rungs["malloc-thp"]) {
        return skip("malloc has no tunable, or nobody may have huge pages here", "glibc 2.35");
    }
    let mine = &rungs["mine"];
    assert!(values(mine, tried::LARGE).iter().any(|large| *large >= 2 * MIB), "{mine:?}");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let told = report["tried"]["rungs"].as_array().unwrap();
    let named = |name: &str| told.iter().find(|rung| rung["rung"] == name).unwrap();
    assert_eq!(
        (&named("mine")["took"], &named("plain")["took"]),
        (&"yes".into(), &"not-asked".into())
    );
    assert!(report["tried"]["answers"].is_array());
    // What it was asked is in the journal, so it goes on by the same command.
    lab.pagelab(&["resume", "-q", "run"]).exits(0).shows(&["mine"]);
}

#[test]
fn a_name_that_is_taken_or_none_is_refused() {
    let lab = Lab::new();
    for (own, said) in [
        ("plain=true", "there is a rung of this name"),
        ("a/b=true", "is no name of a rung"),
        ("..=true", "is no name of a rung"),
        ("=true", "is no name of a rung"),
        ("x= ", "what command starts the program"),
        ("x", "expected NAME=COMMAND"),
    ] {
        lab.pagelab(&["try", "--own", own, "--", "true"]).exits(2).complains(&["--own", said]);
    }
    let twice = ["try", "--own", "x=true", "--own", "x=false", "--", "true"];
    lab.pagelab(&twice).exits(2).complains(&["--own x", "choose another"]);
}

#[test]
fn a_pool_is_set_aside_for_its_own_setting_and_given_back() {
    let Some(_machine) = Machine::as_root() else { return };
    let lab = Lab::new();
    let Some(program) = compiled(&lab, "random") else { return };
    if !Path::new(POOL).exists() {
        return skip("there is no pool of 2 MiB pages", "a kernel with CONFIG_HUGETLBFS");
    }
    let pool = Saved::of(Path::new(POOL));
    let words = format!("{} 32 10000000", program.display());
    let own = format!("pool:mine=env GLIBC_TUNABLES=glibc.malloc.hugetlb=2 {words}");
    let flags = ["try", "-q", ALONE, "-o", "run", "--rounds", "2", "--rung", "plain"];
    let rest = ["--own", &own, "--", program.to_str().unwrap(), "32", "10000000"];
    lab.pagelab(&[&flags[..], &rest].concat()).exits(0);
    let rungs = rungs(&lab, "run");
    let mine = measured(&rungs["mine"]);
    assert!(mine.is_valid());
    if values(&rungs["mine"], tried::LARGE).iter().all(|large| *large == 0) {
        return skip("malloc has no such tunable here", "glibc 2.35");
    }
    assert!(values(&rungs["mine"], tried::LARGE).iter().any(|large| *large >= 2 * MIB));
    assert_eq!(pool.now(), pool.found());
}
