//! Two tiers: what is hot is promoted by the kernel's own mode, nothing is without one, and what is
//! cold makes room.
//!
//! The one idea: states and counts only. An emulated machine says nothing of what they take.

use anyhow::{Result, ensure};
use pagelab_record::{
    Record,
    vocabulary::counter::{
        COLD_ON_SLOW, COLD_PAGES, FOUND_ON_FAST, PAGES, PAGES_DEMOTED, PAGES_PROMOTED,
    },
};

use super::{measured, valid};
use crate::{guest::Guest, verdict::Verdict};

/// Long enough for the kernel to mark every page and for every marked one to be accessed.
const HOT: [(&str, &str); 4] =
    [("threads", "2"), ("accesses", "16m"), ("rounds", "1"), ("seed", "7")];

fn count(record: &Record, name: &str) -> Result<u64> {
    Ok(measured(record)?.counters.get(name).copied().unwrap_or(0))
}

/// The record of a mode, whose claims hold.
fn of_mode(guest: &Guest, mode: &str, also: &[(&str, &str)]) -> Result<Record> {
    let scan = if mode == "none" { "kernel" } else { "hurried" };
    let case = [&HOT[..], &[("mode", mode), ("scan", scan)], also].concat();
    let mut records = guest.records("tier/micro", &case)?;
    ensure!(records.len() == 1, "{} records of one case", records.len());
    let record = records.remove(0);
    valid(&record)?;
    Ok(record)
}

/// The control, then the mode.
pub(super) fn promotes(guest: &Guest) -> Result<Verdict> {
    for page in ["4k", "2m"] {
        let control = of_mode(guest, "none", &[("size", "16m"), ("page", page)])?;
        let (all, stayed) = (count(&control, PAGES)?, count(&control, FOUND_ON_FAST)?);
        let promoted = count(&control, PAGES_PROMOTED)?;
        ensure!(stayed == 0 && promoted == 0, "{page}: {stayed} of {all}, {promoted} by vmstat");
        let mode = of_mode(guest, "numab2", &[("size", "16m"), ("page", page)])?;
        let (found, promoted) = (count(&mode, FOUND_ON_FAST)?, count(&mode, PAGES_PROMOTED)?);
        guest.note(format!("{page}: {found} of {all} pages, {promoted} promoted by vmstat"));
        ensure!(found == all, "{page}: {found} of {all} pages are on the fast node");
    }
    Verdict::ok("every page with NUMA balancing 2, none without")
}

/// The fast node is full of memory that nobody touches; more is hot than the files of the guest,
/// which are demoted as well, make room for.
pub(super) fn demotes(guest: &Guest) -> Result<Verdict> {
    let record = of_mode(guest, "numab2", &[("size", "64m"), ("fast", "full")])?;
    let (all, found) = (count(&record, PAGES)?, count(&record, FOUND_ON_FAST)?);
    let (cold, away) = (count(&record, COLD_PAGES)?, count(&record, COLD_ON_SLOW)?);
    let demoted = count(&record, PAGES_DEMOTED)?;
    let told = format!("{found} of {all} hot pages, {away} of {cold} cold ones, {demoted} demoted");
    guest.note(&told);
    ensure!(demoted > 0 && away > 0, "{demoted} demoted, {away} of {cold} cold pages moved");
    ensure!(found * 100 >= all * 95, "{found} of {all} hot pages are on the fast node");
    Verdict::ok(told)
}
