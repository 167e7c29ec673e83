//! `pagelab segment run` on real kernels: a dynamic program with segments of each back end.
//!
//! The one idea: the program checks its own memory while it allocates, maps, cuts and forks; the
//! witness of the library checks what lies behind it. Here both must be content, and faults be as
//! many as the leaves.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::kmod::{end, load, load_whole};
use crate::{
    guest::{Guest, Ran, scratch, text},
    verdict::Verdict,
};

const PROGRAM: &str = "/bin/segments";
/// Emulated processors take their time.
const ROUNDS: &str = "1500";
/// While three threads write.
const FORKS: &str = "40";
const MIB: u64 = 1 << 20;

/// A program with segments, and what was told of it.
fn segmented(guest: &Guest, flags: &[&str], words: &[&str]) -> Result<(Ran, Value)> {
    let path = scratch();
    let run = ["segment", "run", "--report", &path];
    let ran = guest.run(&[&run[..], flags, &["--", PROGRAM], words].concat())?;
    let told = fs::read_to_string(&path).unwrap_or_default();
    let _ = fs::remove_file(&path);
    Ok((ran, serde_json::from_str(&told).unwrap_or_default()))
}

/// What the witness says: the claims, all of which hold, one about what is behind the memory.
fn claims(told: &Value, about: &str) -> Result<usize> {
    let claims = told["witness"].as_array().context("no claims")?;
    let broken = claims.iter().find(|claim| claim["holds"] != true);
    ensure!(broken.is_none(), "{broken:?}");
    // Of ordinary memory the kernel does not say before 6.7 which leaves there are.
    let is_there = claims.iter().any(|claim| claim["claim"] == about);
    ensure!(is_there, "nothing is said of {about}: {told}");
    Ok(claims.len())
}

/// The stress of the program: its memory is right, and so is what is behind it.
fn stress(guest: &Guest, flags: &[&str]) -> Result<Verdict> {
    let (ran, told) = segmented(guest, flags, &[ROUNDS])?;
    ensure!(ran.code == 0 && ran.stdout == "fine\n", "{}: {}{}", ran.code, ran.stdout, ran.stderr);
    let count = claims(&told, "frames")?;
    let copied = told["leaves"]["fork"]["copied"].as_u64().unwrap_or(0);
    ensure!(copied > 0, "no child had a copy: {told}");
    ensure!(told["leaves"]["reserved"]["short"] == 0, "{told}");
    Verdict::ok(format!("{count} claims hold; {} MiB copied for children", copied / MIB))
}

/// Children have memory of one moment, while other threads write.
fn torn(guest: &Guest, flags: &[&str]) -> Result<Verdict> {
    let (ran, told) = segmented(guest, flags, &["torn", FORKS])?;
    ensure!(ran.code == 0 && ran.stdout == "whole\n", "{}: {}{}", ran.code, ran.stdout, ran.stderr);
    let fork = &told["leaves"]["fork"];
    ensure!(fork["torn"] == 0 && fork["copied"].as_u64() > Some(0), "{told}");
    Verdict::ok(format!("{FORKS} forks"))
}

/// Faults of a map that is touched for the first time, which are as many as its leaves. A thread
/// has one of its own now and then: what is more than it should be counts when it comes every time.
fn faults(guest: &Guest, flags: &[&str], mib: u64, leaf: u64) -> Result<Verdict> {
    const TRIES: u32 = 20;
    let expected = mib * MIB / leaf;
    let mut tries = 0;
    loop {
        let (ran, told) = segmented(guest, flags, &["faults", &mib.to_string()])?;
        ensure!(ran.code == 0, "{}{}", ran.stdout, ran.stderr);
        let counted: u64 = ran.stdout.trim().parse().with_context(|| ran.stdout.clone())?;
        claims(&told, "frames")?;
        if counted == expected {
            return Verdict::ok(format!("{counted} faults for {mib} MiB"));
        }
        tries += 1;
        let is_less = counted < expected;
        let said = || format!("{counted} faults, {expected} were expected: {told}");
        ensure!(!is_less && tries < TRIES, said());
    }
}

pub(super) fn pool(guest: &Guest) -> Result<Verdict> {
    const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    let before = text(POOL)?;
    let flags = ["--backing", "hugetlb", "--heap", "64m", "--mmap", "64m"];
    let (ran, told) = segmented(guest, &flags, &[ROUNDS])?;
    ensure!(ran.code == 0 && ran.stdout == "fine\n", "{}{}", ran.stdout, ran.stderr);
    ensure!(told["leaves"]["reserved"]["2m"] == 128 * MIB, "{told}");
    guest.part("forks while threads write", torn(guest, &flags));
    ensure!(text(POOL)? == before, "the pool was {before} and is {}", text(POOL)?);
    if told["proven"] == true {
        claims(&told, "map-bytes")?;
    }
    let demoted = &told["leaves"]["demoted"];
    Verdict::ok(format!("fine; proven: {}; {demoted} leaves became ordinary", told["proven"]))
}

/// The leaf that the module has here of what is wanted.
fn leaf(guest: &Guest, wanted: u64) -> u64 {
    // As memtype/docs/kernel-module.md says: before 6.12 pages.
    if guest.kernel().starts_with("6.1-") || guest.kernel() == "6.1" { 4096 } else { wanted }
}

pub(super) fn module(guest: &Guest) -> Result<Verdict> {
    let flags = ["--backing", "module", "--heap", "64m", "--mmap", "64m"];
    let (ran, _) = segmented(guest, &flags, &["hold", "1"])?;
    ensure!(ran.code == 3 && ran.stderr.contains("modprobe"), "{}: {}", ran.code, ran.stderr);
    let loaded = load(guest, "")?;
    guest.part("threads, cuts and forks", stress(guest, &flags));
    guest.part("forks while threads write", torn(guest, &flags));
    let leaf = leaf(guest, 2 * MIB);
    guest.part("faults", faults(guest, &flags, 16, leaf));
    let much = ["--backing", "module", "--heap", "900g"];
    let (ran, _) = segmented(guest, &much, &["hold", "1"])?;
    ensure!(ran.code == 2, "{}: {}", ran.code, ran.stderr);
    end(loaded)?;
    Verdict::ok("refused without the module, right with it")
}

pub(super) fn module_large(guest: &Guest) -> Result<Verdict> {
    let loaded = load_whole(guest)?;
    let flags = ["--backing", "module", "--leaf", "1g", "--mmap", "1g"];
    let verdict = faults(guest, &flags, 1024, leaf(guest, 1024 * MIB));
    end(loaded)?;
    verdict
}
