//! Two tiers: what is hot is promoted by the kernel's own mode, and nothing is without one.
//!
//! The one idea: states and counts only. An emulated machine says nothing of what they take.

use std::fmt;

use anyhow::{Result, ensure};
use pagelab_record::{
    Record,
    vocabulary::counter::{FOUND_ON_FAST, PAGES, PAGES_PROMOTED},
};

use super::{count, valid};
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

/// Of all pages, those that a mode brought to the fast node, and with how many accesses.
pub(super) struct Gone {
    found: u64,
    all: u64,
    accesses: &'static str,
}

impl Gone {
    /// Whether that is at least this part of a hundred.
    fn is(&self, percent: u64) -> bool {
        self.found * 100 >= self.all * percent
    }

    /// Has a mode move pages with the first of these numbers of accesses that is enough for so
    /// many of a hundred.
    pub(super) fn until(
        guest: &Guest,
        mode: &str,
        page: &str,
        tries: &[&'static str],
        percent: u64,
    ) -> Result<Self> {
        let mut gone = Self { found: 0, all: 1, accesses: "" };
        for accesses in tries {
            let record = of_mode(guest, mode, &[("page", page), ("accesses", accesses)])?;
            gone = Self {
                found: count(&record, FOUND_ON_FAST)?,
                all: count(&record, PAGES)?,
                accesses,
            };
            let moved = count(&record, PAGES_PROMOTED)?;
            guest.note(format!("{page}, {accesses}: {gone}, {moved} moved by vmstat"));
            if gone.is(percent) {
                break;
            }
        }
        ensure!(gone.is(percent), "{page}: {gone} are on the fast node");
        Ok(gone)
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} pages", self.found, self.all)
    }
}

/// The mode, then the control with as many accesses as were enough.
pub(super) fn promotes(guest: &Guest) -> Result<Verdict> {
    for page in ["4k", "2m"] {
        let Gone { all, accesses, .. } = Gone::until(guest, "numab2", page, &scale(guest).1, 100)?;
        let control = of_mode(guest, "none", &[("page", page), ("accesses", accesses)])?;
        let (stayed, promoted) =
            (count(&control, FOUND_ON_FAST)?, count(&control, PAGES_PROMOTED)?);
        ensure!(stayed == 0 && promoted == 0, "{page}: {stayed} of {all}, {promoted} by vmstat");
    }
    Verdict::ok("every page with NUMA balancing 2, none without")
}

/// Our own engine in the place of the kernel's: all that is written goes up.
pub(super) fn ours(guest: &Guest) -> Result<Verdict> {
    Verdict::ok(Gone::until(guest, "ours", "4k", &ACCESSES, 99)?.to_string())
}
