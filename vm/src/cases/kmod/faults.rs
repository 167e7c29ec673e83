//! `segment/fault` over segments of the module: the published fault counts, by the tool itself.
//!
//! The one idea: the tool's witness holds every round to its formula; here stands what the formula
//! gives, as numbers, so that a mistake in it is seen, too.

use anyhow::{Context, Result, ensure};
use pagelab_record::vocabulary::Check;
use pagelab_sys::memory::count_leaves;

use super::super::{measured, valid};
use super::{end, load_whole};
use crate::{guest::Guest, verdict::Verdict};

/// Leaf, size, placement, and the faults of a round. Small ones where each page is a fault, and one
/// round of what is large: in an emulated machine these take longest.
const ROUNDS: [(&str, &str, &str, i64); 6] = [
    ("4k", "2052k", "aligned", 513),
    ("4k", "16m", "ragged", 4096),
    // 1 GiB, 2 MiB and 4 KiB: a leaf of each size, or the first in leaves of 2 MiB.
    ("2m", "1050628k", "aligned", 514),
    ("1g", "1050628k", "aligned", 3),
    // From the middle of a leaf of each size: 1 GiB whole, 511 of 2 MiB, 512 of 4 KiB.
    ("2m", "2g", "ragged", 1023 + 512),
    ("1g", "2g", "ragged", 1 + 511 + 512),
];

pub(super) fn run(guest: &Guest) -> Result<Verdict> {
    let loaded = load_whole(guest)?;
    for (leaf, size, align, expected) in ROUNDS {
        let rounds = if size == "2g" { "1" } else { "2" };
        let case = [("size", size), ("align", align), ("rounds", rounds)];
        guest.part(&format!("leaves of {leaf}, {align}"), counted(guest, leaf, &case, expected));
    }
    guest.part("published", published());
    end(loaded)?;
    Verdict::ok("faults as published")
}

/// One arm by itself: what this kernel has no leaves for is skipped, and says so. A thread has a
/// fault of its own now and then: more than there should be count when they come every time.
fn counted(guest: &Guest, leaf: &str, case: &[(&str, &str)], expected: i64) -> Result<Verdict> {
    const TRIES: u32 = 5;
    let arm = format!("module-{leaf}");
    let case = [case, &[("arms", arm.as_str())]].concat();
    let mut tries = 0;
    loop {
        let records = guest.records("segment/fault", &case)?;
        let record = records.first().context("no record")?;
        if let pagelab_record::Outcome::Skipped { need, cure } = &record.outcome {
            return Verdict::skip(need, cure);
        }
        let witness = &measured(record)?.witness;
        let claims = witness.iter().filter(|claim| claim.is(Check::FaultsOfSegmentRound));
        let claim = claims.max_by_key(|claim| claim.observed);
        let claim = claim.context("no claim about the faults of a round")?;
        tries += 1;
        if claim.observed > expected && tries < TRIES {
            guest.note(format!("leaves of {leaf}: {} faults, {expected} expected", claim.observed));
            continue;
        }
        ensure!(claim.observed == expected, "{} faults, {expected} expected", claim.observed);
        valid(record)?;
        return Verdict::ok(format!("{expected} faults a round, {} claims hold", witness.len()));
    }
}

/// Ten GiB are more than a machine of the lane has: what was published follows from the same sum.
fn published() -> Result<Verdict> {
    let (gib, start) = (1_usize << 30, (1 << 29) + (1 << 20));
    let all = [4 << 10, 2 << 20, gib]
        .map(|largest| 20 * count_leaves(start, start + 10 * gib, largest).iter().sum::<u64>());
    ensure!(all == [52_428_800, 112_620, 20_640], "{all:?}");
    Verdict::ok("52428800, 112620 and 20640 in twenty rounds of 10 GiB")
}
