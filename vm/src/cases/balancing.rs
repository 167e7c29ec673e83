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

const HOT: [(&str, &str); 4] = [("size", "16m"), ("threads", "2"), ("rounds", "1"), ("seed", "7")];
/// The kernel marks pages by time, so that on a host that does nothing else more accesses are
/// needed than on one that does: the first that are enough.
const ACCESSES: [&str; 3] = ["16m", "64m", "256m"];

fn count(record: &Record, name: &str) -> Result<u64> {
    Ok(measured(record)?.counters.get(name).copied().unwrap_or(0))
}

/// The record of a mode, whose claims hold.
fn of_mode(guest: &Guest, mode: &str, also: &[(&str, &str)]) -> Result<Record> {
    let scan = if matches!(mode, "none" | "ours") { "kernel" } else { "hurried" };
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
        let control = of_mode(guest, "none", &[("page", page), ("accesses", ACCESSES[0])])?;
        let (all, stayed) = (count(&control, PAGES)?, count(&control, FOUND_ON_FAST)?);
        let promoted = count(&control, PAGES_PROMOTED)?;
        ensure!(stayed == 0 && promoted == 0, "{page}: {stayed} of {all}, {promoted} by vmstat");
        let mut found = 0;
        for accesses in ACCESSES {
            let also = [("page", page), ("accesses", accesses)];
            let mode = of_mode(guest, "numab2", &also)?;
            found = count(&mode, FOUND_ON_FAST)?;
            let promoted = count(&mode, PAGES_PROMOTED)?;
            guest.note(format!(
                "{page}, {accesses}: {found} of {all} pages, {promoted} promoted by vmstat"
            ));
            if found == all {
                break;
            }
        }
        ensure!(found == all, "{page}: {found} of {all} pages are on the fast node");
    }
    Verdict::ok("every page with NUMA balancing 2, none without")
}

/// Our own engine in the place of the kernel's: all that is written goes up.
pub(super) fn ours(guest: &Guest) -> Result<Verdict> {
    let (mut found, mut all) = (0, 1);
    for accesses in ACCESSES {
        let record = of_mode(guest, "ours", &[("accesses", accesses)])?;
        (found, all) = (count(&record, FOUND_ON_FAST)?, count(&record, PAGES)?);
        let moved = count(&record, PAGES_PROMOTED)?;
        guest.note(format!("{accesses}: {found} of {all} pages, {moved} moved by vmstat"));
        if found * 100 >= all * 99 {
            break;
        }
    }
    ensure!(found * 100 >= all * 99, "{found} of {all} pages are on the fast node");
    Verdict::ok(format!("{found} of {all} pages"))
}
