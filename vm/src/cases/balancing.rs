//! Two tiers: what is hot is promoted by the kernel's own mode, and nothing is without one.
//!
//! The one idea: states and counts only. An emulated machine says nothing of what they take.

use anyhow::{Result, ensure};
use pagelab_record::{
    Record,
    vocabulary::counter::{FOUND_ON_FAST, PAGES, PAGES_PROMOTED},
};

use super::{measured, valid};
use crate::{guest::Guest, verdict::Verdict};

/// Long enough for the kernel to mark every page and for every marked one to be accessed.
const HOT: [(&str, &str); 5] =
    [("size", "16m"), ("threads", "2"), ("accesses", "16m"), ("rounds", "1"), ("seed", "7")];

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
        let control = of_mode(guest, "none", &[("page", page)])?;
        let (all, stayed) = (count(&control, PAGES)?, count(&control, FOUND_ON_FAST)?);
        let promoted = count(&control, PAGES_PROMOTED)?;
        ensure!(stayed == 0 && promoted == 0, "{page}: {stayed} of {all}, {promoted} by vmstat");
        let mode = of_mode(guest, "numab2", &[("page", page)])?;
        let (found, promoted) = (count(&mode, FOUND_ON_FAST)?, count(&mode, PAGES_PROMOTED)?);
        guest.note(format!("{page}: {found} of {all} pages, {promoted} promoted by vmstat"));
        ensure!(found == all, "{page}: {found} of {all} pages are on the fast node");
    }
    Verdict::ok("every page with NUMA balancing 2, none without")
}
