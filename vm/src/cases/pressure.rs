//! Faults under pressure: a node without a free block of the size that is asked for, and a memory
//! cgroup of version 2 that is full.

use anyhow::{Result, bail, ensure};
use pagelab_record::Record;

use super::{count, measured, valid};
use crate::{
    guest::{Guest, names, set, text},
    verdict::Verdict,
};

/// The large pages of the kernel that are tried.
fn pages(guest: &Guest) -> &'static str {
    if guest.kernel() == "6.1" { "2m" } else { "2m,64k" }
}

/// What the kernel counts while it compacts.
const COMPACTIONS: [&str; 4] = [
    "compactions",
    "compactions_that_made_a_page",
    "machine_compact_migrate_scanned",
    "machine_compact_isolated",
];

pub(super) fn fragmented(guest: &Guest) -> Result<Verdict> {
    let case = |pages, lie| {
        [
            ("pressure", "fragmented"),
            ("page", pages),
            ("size", "32m"),
            ("rounds", "2"),
            ("lie", lie),
        ]
    };
    let mut count = 0;
    for (workload, pages) in [("fault/latency", pages(guest)), ("fault/throughput", "2m")] {
        for record in guest.records(workload, &case(pages, "none"))? {
            guest.part(&name(&record), saw(&record, &COMPACTIONS));
            count += 1;
        }
    }
    for record in guest.records("fault/latency", &case(pages(guest), "unfragmented"))? {
        let name = format!("{} lie=unfragmented", name(&record));
        let claim = "free blocks of at least this size on the node before the touches";
        let broken = broken(&record)?;
        let noticed = if broken.iter().any(|one| one == claim) {
            Verdict::ok(format!("broken: {}", broken.join(", ")))
        } else {
            Err(anyhow::anyhow!("broken are only {broken:?}"))
        };
        guest.part(&name, noticed);
    }
    Verdict::ok(format!("{count} cases"))
}

pub(super) fn memcg(guest: &Guest) -> Result<Verdict> {
    const CONTROL: &str = "/sys/fs/cgroup/cgroup.subtree_control";
    let before = text(CONTROL)?;
    ensure!(!before.contains("memory"), "the controller is on already: {before}");
    let pages = format!("4k,{}", pages(guest));
    let case = [("pressure", "memcg"), ("page", &pages), ("size", "16m"), ("rounds", "2")];
    let mut fell_back = 0;
    // Where the root gives the controller to nobody, and where it does.
    for given in [false, true] {
        if given {
            set(CONTROL, "+memory")?;
        }
        for workload in ["fault/latency", "fault/throughput"] {
            for record in guest.records(workload, &case)? {
                let place = if given { "given" } else { "not given" };
                let name = format!("{} ({place})", name(&record));
                guest.part(&name, saw(&record, &["limit_hits"]));
                if record.case.get("page") == Some("2m") {
                    fell_back += count(&record, "fell_back")?;
                }
            }
        }
        let now = text(CONTROL)?;
        ensure!(now.contains("memory") == given, "the controllers are {now} afterwards");
        let left = names("/sys/fs/cgroup", "pagelab-");
        ensure!(left.is_empty(), "groups are left: {left:?}");
    }
    set(CONTROL, "-memory")?;
    ensure!(fell_back > 0, "no huge page fell back");
    Verdict::ok(format!("{fell_back} huge pages fell back; no group is left"))
}

fn name(record: &Record) -> String {
    format!("{} page={}", record.workload, record.case.get("page").unwrap_or("?"))
}

/// That a record is valid, with what it counted of these and of fallbacks.
fn saw(record: &Record, counted: &[&str]) -> Result<Verdict> {
    valid(record)?;
    let counts = counted.iter().chain(&["fell_back"]).map(|name| {
        let count = count(record, name)?;
        Ok(format!("{name} {count}"))
    });
    Verdict::ok(counts.collect::<Result<Vec<_>>>()?.join(", "))
}

/// The claims of a record that do not hold.
fn broken(record: &Record) -> Result<Vec<String>> {
    let claims: Vec<_> = measured(record)?.broken().map(|claim| claim.claim.clone()).collect();
    if claims.is_empty() {
        bail!("the lie was not noticed");
    }
    Ok(claims)
}
