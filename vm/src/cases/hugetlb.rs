//! Pages of 1 GiB: a pool that only the boot fills reliably.

use anyhow::{Context, Result, bail, ensure};
use pagelab_record::{Outcome, vocabulary::Check};

use super::{measured, valid};
use crate::{guest::Guest, verdict::Verdict};

pub(super) fn giant(guest: &Guest) -> Result<Verdict> {
    let case = [("page", "hugetlb-1g"), ("size", "1g"), ("rounds", "1")];
    let records = guest.records("fault/throughput", &case)?;
    let [record] = &records[..] else { bail!("{} records of one case", records.len()) };
    if let Outcome::Skipped { need, cure } = &record.outcome
        && !guest.is_ours()
    {
        return Verdict::skip(need, cure);
    }
    valid(record)?;
    let witness = &measured(record)?.witness;
    let claim = witness.iter().find(|claim| claim.is(Check::Huge));
    let claim = claim.context("no claim about how the page is mapped")?;
    ensure!(claim.observed == 1 << 18, "{} base pages are mapped so", claim.observed);
    Verdict::ok(format!("{} claims hold", witness.len()))
}
