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

const HOT: [(&str, &str); 3] = [("threads", "2"), ("rounds", "1"), ("seed", "7")];
/// The kernel marks pages by time, so that on a host that does nothing else more accesses are
/// needed than on one that does: the first that are enough. The most are tried again: a page that
/// is accessed late after it was marked, as on a host that pauses, is not hot to the kernel.
const ACCESSES: [&str; 8] = ["2m", "8m", "64m", "256m", "256m", "256m", "256m", "256m"];
/// The same where each access to the slow node is a call of the emulator's.
const ACCESSES_SLOW: [&str; 8] = ["64k", "256k", "1m", "4m", "4m", "4m", "4m", "4m"];

/// Memory that is accessed, and how often.
fn scale(guest: &Guest) -> (&'static str, [&'static str; 8]) {
    if guest.machine() == "cxl" { ("2m", ACCESSES_SLOW) } else { ("8m", ACCESSES) }
}

pub(super) fn count(record: &Record, name: &str) -> Result<u64> {
    Ok(measured(record)?.counter(name).unwrap_or(0))
}

/// The record of a mode, whose claims hold.
pub(super) fn of_mode(guest: &Guest, mode: &str, also: &[(&str, &str)]) -> Result<Record> {
    let scan = if matches!(mode, "none" | "ours" | "damon") { "kernel" } else { "hurried" };
    let mode = [("mode", mode), ("scan", scan), ("size", scale(guest).0)];
    let case = [&HOT[..], &mode, also].concat();
    let mut records = guest.records("tier/micro", &case)?;
    ensure!(records.len() == 1, "{} records of one case", records.len());
    let record = records.remove(0);
    valid(&record)?;
    Ok(record)
}

/// The mode, then the control with as many accesses as were enough.
pub(super) fn promotes(guest: &Guest) -> Result<Verdict> {
    for page in ["4k", "2m"] {
        let (mut found, mut all, mut enough) = (0, 1, "");
        for accesses in scale(guest).1 {
            let mode = of_mode(guest, "numab2", &[("page", page), ("accesses", accesses)])?;
            (found, all) = (count(&mode, FOUND_ON_FAST)?, count(&mode, PAGES)?);
            let promoted = count(&mode, PAGES_PROMOTED)?;
            guest.note(format!(
                "{page}, {accesses}: {found} of {all} pages, {promoted} promoted by vmstat"
            ));
            enough = accesses;
            if found == all {
                break;
            }
        }
        ensure!(found == all, "{page}: {found} of {all} pages are on the fast node");
        let control = of_mode(guest, "none", &[("page", page), ("accesses", enough)])?;
        let (stayed, promoted) =
            (count(&control, FOUND_ON_FAST)?, count(&control, PAGES_PROMOTED)?);
        ensure!(stayed == 0 && promoted == 0, "{page}: {stayed} of {all}, {promoted} by vmstat");
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
